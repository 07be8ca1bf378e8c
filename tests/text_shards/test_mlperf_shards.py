"""MLPerf's chain as steps: the reference's files, from WikiExtractor's files and from fragments, in any order."""

import dataclasses
import functools
import gzip
import hashlib
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP
from conftest import DATA
from data_sets.shard_builds import (
    article,
    equal_sorted,
    input_file,
    make_fragments,
    shuffled,
    write_dump,
    write_wiki_files,
)
from data_sets.steps import run_step

from maskmill.errors import UnusableInputError
from maskmill.inputs.units import InputFile
from maskmill.storage import progress
from maskmill.text.shards import TextShard, write_eval_md5
from maskmill.text_shards import mlperf_shards
from maskmill.text_shards.fragments import read_ranges
from maskmill.text_shards.mlperf_shards import (
    CleanedBatch,
    RawFile,
    batches_of,
    clean_batch,
    drop_texts,
    gather_part,
    plan_parts,
    raw_files_of_fragments,
    raw_files_of_inputs,
)
from maskmill.text_shards.options import ExtractionOptions, SplitOptions
from transforms.text_shards import CleanRawFiles, GatherParts, PackRawFiles, TakeRawFiles

pytestmark = pytest.mark.long

GOLD = DATA / "gold"
OPTIONS = SplitOptions(num_eval_articles=7, shard_size_mb=1.5)
EXTRACTION = ExtractionOptions(extractor="wikiextractor", language="english", doc_blocks=True)

# Of the files of the tests that are not the reference's.
SMALL = SplitOptions(num_eval_articles=2, shard_size_mb=1)


@pytest.fixture(scope="module")
def wiki_files(tmp_path_factory: pytest.TempPathFactory) -> list[InputFile]:
    """The files that the reference's WikiExtractor wrote of the sample dump."""
    folder = tmp_path_factory.mktemp("AA")
    for packed in sorted((GOLD / "wikiextractor").glob("wiki_0?.gz")):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return [input_file(path, date="") for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> list[InputFile]:
    """Files of a few articles each."""
    return write_wiki_files(tmp_path_factory.mktemp("small"), 4)


def clean(raw_files: list[RawFile], output: Path, options: SplitOptions = OPTIONS) -> list[CleanedBatch]:
    """In a batch of two files, and one of each other file."""
    batches = [tuple(raw_files[:2]), *((raw,) for raw in raw_files[2:])]
    return [clean_batch(batch, options, EXTRACTION, str(output)) for batch in batches]


def gather(cleaned: list[CleanedBatch], output: Path, options: SplitOptions = OPTIONS) -> list[TextShard]:
    plans = plan_parts(cleaned, options, str(output))
    return [gather_part(plan, options, EXTRACTION, str(output)) for plan in plans]


def check_against_gold(shards: list[TextShard], output: Path) -> None:
    """The files that the reference's programs give, and what the descriptions say of them."""
    expected = dict(reversed(line.split()) for line in (GOLD / "cleanup" / "results.md5").read_text().splitlines())
    write_eval_md5(shards, str(output))
    names = {*(Path(shard.path).name for shard in shards), "eval.md5"}
    assert {name: hashlib.md5((output / name).read_bytes()).hexdigest() for name in names} == expected
    for shard in shards:
        content = Path(shard.path).read_bytes()
        assert (shard.size, shard.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert shard.sentences == sum(1 for line in content.split(b"\n") if line)
    *train, evaluation = shards
    assert (evaluation.kind, evaluation.documents) == ("eval", 7)
    assert sum(shard.documents for shard in train) == 106 - 7


def test_wikiextractors_files_give_the_references_shards(wiki_files: list[InputFile], tmp_path: Path) -> None:
    raw_files = raw_files_of_inputs(shuffled(wiki_files))
    assert [raw.file for raw in raw_files] == wiki_files
    assert [(raw.number, raw.num_files) for raw in raw_files] == [(0, 3), (1, 3), (2, 3)]
    check_against_gold(gather(clean(raw_files, tmp_path), tmp_path), tmp_path)


def test_a_dump_gives_the_references_shards(tmp_path: Path, wiki_files: list[InputFile]) -> None:
    # WikiExtractor ran on that day: it writes the current year where a page asks for it.
    fragments = make_fragments(DUMP, tmp_path, EXTRACTION, unit_bytes=400_000, date="2026-11-21")
    assert len(fragments) > 2
    raw_files = raw_files_of_fragments(shuffled(fragments), str(tmp_path))
    for raw, file in zip(raw_files, wiki_files, strict=True):
        content = b"".join(read_ranges(raw.pieces, {"": EXTRACTION}, str(tmp_path)))
        assert content == Path(file.path).read_bytes()
        assert raw.size == len(content)
        assert raw.inputs == {str(DUMP): fragments[0].batch.files[0].sha256}
    check_against_gold(gather(clean(raw_files, tmp_path), tmp_path), tmp_path)


def test_no_document_in_the_fragments_is_one_sentence(tmp_path: Path) -> None:
    path = write_dump(tmp_path, [])
    with pytest.raises(UnusableInputError, match="No article is left of the input after the filters"):
        raw_files_of_fragments(make_fragments(path, tmp_path / "out", EXTRACTION), str(tmp_path / "out"))


def test_the_plan_announces_its_shards(small_files: list[InputFile], tmp_path: Path) -> None:
    cleaned = clean(raw_files_of_inputs(small_files), tmp_path, SMALL)
    # Two raw files fill a shard.
    size = max(file.size for file in small_files)
    options = dataclasses.replace(SMALL, shard_size_mb=2 * size / (1 << 20))
    plans = plan_parts(shuffled(cleaned), options, str(tmp_path))
    assert [(plan.name, plan.kind) for plan in plans] == [
        ("part-00000-of-00500", "train"),
        ("part-00001-of-00500", "train"),
        ("eval.txt", "eval"),
    ]
    first, *others = cleaned
    of_each = tuple((batch, 0, 1) for batch in others)
    assert [plan.pieces for plan in plans] == [((first, 0, 2),), of_each, ((first, 0, 2), *of_each)]
    announced = progress.announced(str(tmp_path), "text")
    assert announced == progress.Announced(pieces=3, bytes=sum(file.size for file in small_files))


def test_messages_name_the_file(small_files: list[InputFile], tmp_path: Path) -> None:
    bad = tmp_path / "wiki_00"
    bad.write_bytes(b"ab\xff")
    with pytest.raises(UnusableInputError, match="wiki_00 is not valid UTF-8 at byte 2"):
        clean(raw_files_of_inputs([input_file(bad)]), tmp_path / "out")
    bad.write_bytes(b'<doc id="1" url="u" title="T">\nT\n\nOne.\n\n</doc>\n')
    everything = SplitOptions(num_eval_articles=2, shard_size_mb=1)
    cleaned = clean(raw_files_of_inputs([input_file(bad)]), tmp_path / "out", everything)
    with pytest.raises(UnusableInputError, match="wiki_00 has no article left for training"):
        gather(cleaned, tmp_path / "out", everything)
    assert not list((tmp_path / "out").glob("part-*"))
    fragments = make_fragments(write_dump(tmp_path, [article(1, "One.")]), tmp_path / "dump", EXTRACTION)
    (raw,) = raw_files_of_fragments(fragments, str(tmp_path / "dump"))
    assert raw.name == "WikiExtractor file 0 of this input"


@pytest.mark.parametrize("damage", ["train", "eval"])
def test_a_lost_shard_is_made_again_from_the_raw_files(
    damage: str, small_files: list[InputFile], tmp_path: Path
) -> None:
    cleaned = clean(raw_files_of_inputs(small_files), tmp_path, SMALL)
    shards = gather(cleaned, tmp_path, SMALL)
    before = {shard.path: Path(shard.path).read_bytes() for shard in shards}
    drop_texts(cleaned, str(tmp_path))
    assert not [*tmp_path.rglob("*.train"), *tmp_path.rglob("*.eval")]
    Path(next(shard.path for shard in shards if shard.kind == damage)).unlink()
    assert clean(raw_files_of_inputs(small_files), tmp_path, SMALL) == cleaned
    assert gather(cleaned, tmp_path, SMALL) == shards
    assert {shard.path: Path(shard.path).read_bytes() for shard in shards} == before


def test_a_shard_of_a_part_of_a_batch(small_files: list[InputFile], tmp_path: Path) -> None:
    options = dataclasses.replace(SMALL, shard_size_mb=max(file.size for file in small_files) / (1 << 20))
    raw_files = raw_files_of_inputs(small_files)
    alone = [clean_batch((raw,), options, EXTRACTION, str(tmp_path / "alone")) for raw in raw_files]
    together = [clean_batch(tuple(raw_files), options, EXTRACTION, str(tmp_path / "together"))]
    texts = []
    for cleaned, folder in ((alone, "alone"), (together, "together")):
        shards = gather(cleaned, tmp_path / folder, options)
        texts.append([(shard.documents, shard.sentences, Path(shard.path).read_bytes()) for shard in shards])
        write_eval_md5(shards, str(tmp_path / folder))
    assert texts[0] == texts[1]
    assert len(texts[0]) == len(small_files) + 1
    assert (tmp_path / "alone" / "eval.md5").read_bytes() == (tmp_path / "together" / "eval.md5").read_bytes()


def test_neighbours_share_a_batch() -> None:
    def sizes(*raw: int) -> list[list[int]]:
        files = [RawFile(number=number, num_files=len(raw), size=size) for number, size in enumerate(raw)]
        return [[file.size for file in batch] for batch in batches_of(files)]

    small, large = mlperf_shards._SMALLEST_BATCH, mlperf_shards._LARGEST_BATCH
    assert sizes(3, 2) == [[3, 2]]
    assert sizes(small, 1, small - 1, 9 * large, 5) == [[small], [1, small - 1], [9 * large], [5]]
    assert sizes(*[small] * 128) == [[small] * 2] * 64
    assert sizes(*[large // 2] * 256) == [[large // 2] * 2] * 128
    assert sizes(0) == [[0]]


def test_the_key_is_of_the_content_the_place_and_the_options(small_files: list[InputFile], tmp_path: Path) -> None:
    raw = raw_files_of_inputs(small_files)[0]
    others = [
        (raw, SMALL, EXTRACTION),
        (dataclasses.replace(raw, number=1), SMALL, EXTRACTION),
        (dataclasses.replace(raw, num_files=9), SMALL, EXTRACTION),
        (raw, dataclasses.replace(SMALL, num_eval_articles=3), EXTRACTION),
        (raw, SMALL, dataclasses.replace(EXTRACTION, random_seed=1)),
    ]
    keys = [clean_batch((raw,), *options, str(tmp_path)).key for raw, *options in others]
    assert len(set(keys)) == len(keys)
    larger_shards = dataclasses.replace(SMALL, shard_size_mb=9)
    assert clean_batch((raw,), larger_shards, EXTRACTION, str(tmp_path)).key == keys[0]


# ---- on Beam's runner


def test_taking_raw_files(small_files: list[InputFile]) -> None:
    expected = [tuple(raw_files_of_inputs(small_files))]
    run_step([shuffled(small_files)], TakeRawFiles(), equal_sorted(expected, lambda batch: batch[0].number))


def unpacked(raw: RawFile) -> dict[str, Any]:
    """A raw file in values that can be compared."""
    pieces = [(fragment, ranges.tolist()) for fragment, ranges in raw.pieces]
    return {field.name: getattr(raw, field.name) for field in dataclasses.fields(raw)} | {"pieces": pieces}


def check_raw_files(expected: list[dict[str, Any]], batches: list[tuple[RawFile, ...]]) -> None:
    assert sorted((unpacked(raw) for batch in batches for raw in batch), key=lambda raw: raw["number"]) == expected


def test_packing_fragments_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_dump(tmp_path, [article(i, f"Town {i} has {i} bridges.") for i in range(1, 31)])
    output = str(tmp_path / "out")
    fragments = make_fragments(path, tmp_path / "out", EXTRACTION)
    # A file takes several documents, some of them of two fragments.
    monkeypatch.setattr(mlperf_shards, "pack_files", functools.partial(mlperf_shards.pack_files, limit=1000))
    expected = list(map(unpacked, raw_files_of_fragments(fragments, output)))
    assert len(expected) > 2
    assert max(len(raw["pieces"]) for raw in expected) > 1
    run_step(
        shuffled(fragments),
        PackRawFiles(output=output),
        functools.partial(check_raw_files, expected),
    )


def work_files(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (output / ".maskmill" / "clean").iterdir()}


def test_cleaning_raw_files_in_any_order(small_files: list[InputFile], tmp_path: Path) -> None:
    batches = [(raw,) for raw in raw_files_of_inputs(small_files)]
    expected = [clean_batch(batch, SMALL, EXTRACTION, str(tmp_path / "expected")) for batch in batches]
    step = CleanRawFiles(split=SMALL, extraction=EXTRACTION, output=str(tmp_path / "beam"))
    run_step(shuffled(batches), step, equal_sorted(expected, lambda cleaned: cleaned.raw[0].number))
    assert work_files(tmp_path / "beam") == work_files(tmp_path / "expected")
    assert len(work_files(tmp_path / "beam")) == 3 * len(expected)


def test_gathering_cleaned_files_in_any_order(small_files: list[InputFile], tmp_path: Path) -> None:
    options = dataclasses.replace(SMALL, shard_size_mb=1000 / (1 << 20))
    cleaned = clean(raw_files_of_inputs(small_files), tmp_path, options)
    shards = gather(cleaned, tmp_path, options)
    assert len(shards) > 2
    contents = {shard.path: Path(shard.path).read_bytes() for shard in shards}
    for path in contents:
        Path(path).unlink()
    step = GatherParts(split=options, extraction=EXTRACTION, output=str(tmp_path))
    run_step(shuffled(cleaned), step, equal_sorted(shards, lambda shard: (shard.kind != "train", shard.number)))
    assert {path: Path(path).read_bytes() for path in contents} == contents
