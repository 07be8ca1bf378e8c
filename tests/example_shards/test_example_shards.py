"""The steps from text shards to examples and picked eval examples, alone and as steps."""

import dataclasses
import gzip
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_runs.commands import digests
from data_sets.gold_examples import VOCABULARY
from data_sets.steps import equal_to, run_step
from oracles import pretraining as oracle

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.example_shards.example_shards import (
    ExampleShard,
    ExamplesSetup,
    PickedExamples,
    pick_eval,
    write_example_shard,
)
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.seeds import shard_seed
from maskmill.records.eval_picking import pick_examples
from maskmill.records.examples import ExampleFile, write_examples
from maskmill.records.options import FormatOptions
from maskmill.records.tfrecord import WrittenFile
from maskmill.storage import completions
from maskmill.text.shards import TextShard
from maskmill.text.text_files import describe_text_shard
from maskmill.tokenization.vocabulary import load_vocabulary
from transforms.examples import MaskShards, PickExamples

NAMES = ("part-00000-of-00002", "part-00001-of-00002", "eval-00000-of-00002.txt", "eval-00001-of-00002.txt")
MASKING = MaskingOptions(max_seq_length=32, max_predictions_per_seq=5, dupe_factor=2)
SETUP = ExamplesSetup(
    vocab_file=VOCABULARY,
    vocab_sha256=hashlib.sha256(Path(VOCABULARY).read_bytes()).hexdigest(),
    masking=MASKING,
    one_seed=False,
    packed=False,
)


@pytest.fixture
def shards(tmp_path: Path) -> list[TextShard]:
    """Two train shards and two eval shards; the first two have the same text."""
    (tmp_path / "text").mkdir()
    for place, name in enumerate(NAMES):
        document = "".join(f"Sentence {n} of shard {max(1, place)} is about foxes.\n" for n in range(20))
        (tmp_path / "text" / name).write_text(f"{document}\n" * 3)
    return [describe_text_shard((place, str(tmp_path / "text" / name))) for place, name in enumerate(NAMES)]


def write(shards: Sequence[TextShard], output: Path, setup: ExamplesSetup = SETUP) -> list[ExampleShard]:
    """Writes the shards by the plain function."""
    return [write_example_shard(shard, setup, str(output)) for shard in shards]


def write_in_pipeline(shards: Sequence[TextShard], output: Path, expected: Sequence[ExampleShard]) -> None:
    """Writes the shards in a pipeline, which must describe them as expected."""
    run_step(shards, MaskShards(setup=SETUP, output=str(output)), equal_to(expected))


def moved(shards: Sequence[ExampleShard], output: Path) -> list[ExampleShard]:
    """The descriptions of the same shards in another directory."""

    def at(file: WrittenFile) -> str:
        return str(output / Path(file.path).name)

    def there(file: ExampleFile) -> ExampleFile:
        index = file.index and dataclasses.replace(file.index, path=at(file.index))
        return dataclasses.replace(file, path=at(file), index=index)

    return [dataclasses.replace(shard, files=tuple(map(there, shard.files))) for shard in shards]


def the_file(shard: ExampleShard) -> ExampleFile:
    (file,) = shard.files
    return file


def age(directory: Path) -> None:
    """Sets the time of all files below a directory to the first second of 1970."""
    for path in directory.rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))


def renewed(directory: Path) -> set[str]:
    """The names of a directory's files that were written since `age`."""
    return {path.name for path in directory.iterdir() if path.is_file() and path.stat().st_mtime > 1}


# ---- WriteExamples


def test_shards_in_any_order_give_the_same_files(shards: list[TextShard], tmp_path: Path) -> None:
    plain = write(shards, tmp_path / "plain")
    for place, order in enumerate(([0, 1, 2, 3], [2, 0, 3, 1])):
        output = tmp_path / f"pipeline{place}"
        write_in_pipeline([shards[k] for k in order], output, moved(plain, output))
        assert digests(output) == digests(tmp_path / "plain")
    assert sorted(digests(tmp_path / "plain")) == sorted(f"{n}.tfrecord{i}" for n in NAMES for i in ("", ".idx"))


def test_a_second_run_writes_nothing(shards: list[TextShard], tmp_path: Path) -> None:
    output = tmp_path / "out"
    written = write(shards, output)
    age(output)
    write_in_pipeline(shards[::-1], output, written)
    assert renewed(output) == set()


def test_what_is_damaged_or_missing_is_made_again_and_nothing_else(shards: list[TextShard], tmp_path: Path) -> None:
    output = tmp_path / "out"
    written = write(shards, output)
    before = digests(output)
    content = bytearray(Path(the_file(written[1]).path).read_bytes())
    content[len(content) // 2] ^= 1
    Path(the_file(written[1]).path).write_bytes(content)
    Path(f"{the_file(written[2]).path}.idx").unlink()
    age(output)
    write_in_pipeline(shards, output, written)
    assert digests(output) == before
    assert renewed(output) == {f"{NAMES[k]}.tfrecord{suffix}" for k in (1, 2) for suffix in ("", ".idx")}


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(SETUP, masking=dataclasses.replace(MASKING, random_seed=1)),
        dataclasses.replace(SETUP, one_seed=True),
        dataclasses.replace(SETUP, vocab_sha256="of another vocabulary"),
    ],
)
def test_other_options_make_a_shard_again(changed: ExamplesSetup, shards: list[TextShard], tmp_path: Path) -> None:
    output = tmp_path / "out"
    (before,) = write(shards[:1], output)
    age(output)
    (after,) = write(shards[:1], output, changed)
    assert after.key != before.key
    assert renewed(output) == {f"{NAMES[0]}.tfrecord", f"{NAMES[0]}.tfrecord.idx"}


def test_the_description_is_that_of_the_files(shards: list[TextShard], tmp_path: Path) -> None:
    for shard, written in zip(shards, write(shards, tmp_path / "out"), strict=True):
        file = the_file(written)
        content = Path(file.path).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert written.size == file.size
        assert file.index is not None
        assert file.index.path == f"{file.path}.idx"
        assert file.index.sha256 == hashlib.sha256(Path(file.index.path).read_bytes()).hexdigest()
        assert (written.kind, written.number) == (shard.kind, shard.number)
        assert written.inputs == {shard.path: hashlib.sha256(Path(shard.path).read_bytes()).hexdigest()}
        assert written.counts["documents"] == 3
        assert written.counts["sentences"] == 60
        assert written.counts["examples"] == file.examples == len(oracle.split_tfrecord(content))


def test_each_shard_has_a_seed_of_its_own_unless_one_is_for_all(shards: list[TextShard], tmp_path: Path) -> None:
    first, second = write(shards[:2], tmp_path / "own")  # of the same text
    assert the_file(first).sha256 != the_file(second).sha256
    first, second = write(shards[:2], tmp_path / "one", dataclasses.replace(SETUP, one_seed=True))
    assert the_file(first).sha256 == the_file(second).sha256


def test_a_shards_seed_comes_from_its_identity(shards: list[TextShard], tmp_path: Path) -> None:
    assert shard_seed(12345, "train", 0) == 0x5E243F18009E2644  # the first 8 bytes of sha256 of "12345:train:0"
    (written,) = write(shards[3:], tmp_path / "out")
    masking = dataclasses.replace(MASKING, random_seed=shard_seed(MASKING.random_seed, "eval", 1))
    vocabulary = load_vocabulary(VOCABULARY, masking.duplicate_pieces)
    (file, _), _ = write_examples([shards[3].path], [str(tmp_path / "single")], vocabulary, masking)
    assert file.sha256 == the_file(written).sha256


def test_packed_shards_have_no_index(shards: list[TextShard], tmp_path: Path) -> None:
    (plain,) = write(shards[:1], tmp_path / "plain")
    (packed,) = write(shards[:1], tmp_path / "packed", dataclasses.replace(SETUP, packed=True))
    assert the_file(packed).path == str(tmp_path / "packed" / f"{NAMES[0]}.tfrecord.gz")
    assert the_file(packed).index is None
    assert gzip.decompress(Path(the_file(packed).path).read_bytes()) == Path(the_file(plain).path).read_bytes()


# ---- other objectives and formats

SHORT = dataclasses.replace(MASKING, short_seq_prob=1.0)
BINS = dataclasses.replace(SETUP, masking=SHORT, objective=ObjectiveOptions(bins=8))
MDS = dataclasses.replace(
    SETUP, objective=ObjectiveOptions(objective="mlm", dynamic_masking=True), format=FormatOptions(format="mds")
)


@pytest.mark.parametrize(
    ("setup", "pattern"),
    [
        (
            BINS,
            r"part-0000.-of-00002\.bin-[0-7]\.tfrecord(\.idx)?|eval-0000.-of-00002\.txt\.bin-[0-7]\.tfrecord(\.idx)?",
        ),
        (dataclasses.replace(BINS, packed=True), r".*\.bin-[0-7]\.tfrecord\.gz"),
        (
            dataclasses.replace(SETUP, format=FormatOptions(format="parquet")),
            r"(part|eval)-0000.-of-00002(\.txt)?\.parquet",
        ),
        (MDS, r"train/part-0000.-of-00002\.00000\.mds|eval/eval-0000.-of-00002\.txt\.00000\.mds"),
        (
            dataclasses.replace(MDS, objective=dataclasses.replace(MDS.objective, bins=2)),
            r"train/bin-[01]/part-0000.-of-00002\.00000\.mds|eval/bin-[01]/eval-0000.-of-00002\.txt\.00000\.mds",
        ),
    ],
)
def test_the_names_of_files(setup: ExamplesSetup, pattern: str, shards: list[TextShard], tmp_path: Path) -> None:
    written = write(shards, tmp_path / "out", setup)
    names = sorted(digests(tmp_path / "out"))
    assert [name for name in names if not re.fullmatch(pattern, name)] == []
    told = [part.path for shard in written for file in shard.files for part in (file, file.index) if part]
    assert sorted(told) == [str(tmp_path / "out" / name) for name in names]
    for shard in written:
        assert shard.counts["examples"] == sum(file.examples for file in shard.files)
        assert shard.size == sum(Path(file.path).stat().st_size for file in shard.files)


def test_of_several_files_one_that_is_damaged_makes_its_shard_again(shards: list[TextShard], tmp_path: Path) -> None:
    output = tmp_path / "out"
    written = write(shards, output, BINS)
    assert len(written[0].files) > 1
    before = digests(output)
    for break_it in (
        lambda file: Path(file.path).write_bytes(Path(file.path).read_bytes()[:-1]),
        lambda file: Path(file.path).unlink(),
        lambda file: Path(file.index.path).write_text(""),
    ):
        age(output)
        assert write(shards, output, BINS) == written
        assert renewed(output) == set()
        break_it(written[0].files[-1])
        age(output)
        assert write(shards, output, BINS) == written
        assert digests(output) == before
        own = [Path(part.path).name for file in written[0].files for part in (file, file.index) if part]
        assert renewed(output) == set(own)


def test_what_older_versions_made_is_kept(shards: list[TextShard], tmp_path: Path) -> None:
    """The default's key has nothing of other objectives and formats; its record lacked two counts."""
    output = tmp_path / "out"
    (written,) = write(shards[:1], output)
    plan = SETUP.plan_of("train", 0)
    source = (shards[0].sha256, SETUP.vocab_sha256)
    key = completions.fingerprint(
        "examples", completions.FORMAT_VERSIONS["examples"], source, plan.masking, f"{NAMES[0]}.tfrecord"
    )
    assert written.key == key
    record = completions.finished(str(output), "examples", key)
    assert set(record) == {"files", "counts"}
    for name in ("special_tokens", "padding_tokens"):
        del record["counts"][name]
    completions.store(str(output), "examples", key, record)
    age(output)
    assert write(shards[:1], output) == [written]
    assert renewed(output) == set()


def test_a_unit_that_says_the_same_has_the_same_key(shards: list[TextShard], tmp_path: Path) -> None:
    whole = dataclasses.replace(SETUP, masking=dataclasses.replace(MASKING, do_whole_word_mask=True))
    by_unit = dataclasses.replace(SETUP, objective=ObjectiveOptions(mask_unit="whole_word"))
    assert write(shards[:1], tmp_path / "out", by_unit) == write(shards[:1], tmp_path / "out", whole)


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(MDS, objective=dataclasses.replace(MDS.objective, cross_documents=False)),
        dataclasses.replace(MDS, format=FormatOptions(format="mds", special_tokens_mask=True)),
        dataclasses.replace(MDS, masking=dataclasses.replace(MASKING, masked_lm_prob=0.3)),
    ],
)
def test_other_objectives_and_formats_have_other_keys(
    changed: ExamplesSetup, shards: list[TextShard], tmp_path: Path
) -> None:
    (before,), (after,) = (write(shards[:1], tmp_path / "out", setup) for setup in (MDS, changed))
    assert before.key != after.key


def test_a_text_that_is_replaced_meanwhile_gives_no_record(shards: list[TextShard], tmp_path: Path) -> None:
    shard = dataclasses.replace(shards[0], changed=Path(shards[0].path).stat().st_mtime_ns)
    os.utime(shard.path, (1_700_000_000, 1_700_000_000))
    with pytest.raises(RunFailedError, match="part-00000-of-00002: this input was changed while"):
        write_example_shard(shard, SETUP, str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob(".maskmill/examples/*.json"))


# ---- PickExamples


def pick_in_pipeline(
    shards: Sequence[ExampleShard], wanted: int, output: Path, expected: PickedExamples | None, strict: bool = False
) -> None:
    step = PickExamples(wanted=wanted, strict=strict, output=str(output))
    run_step(shards, step, equal_to([expected]))


def test_eval_shards_in_any_order_give_the_same_examples(shards: list[TextShard], tmp_path: Path) -> None:
    written = write(shards, tmp_path / "out")
    eval_shards = written[2:]
    available = sum(shard.counts["examples"] for shard in eval_shards)
    file = pick_examples([the_file(shard).path for shard in eval_shards], str(tmp_path / "expected"), 5)
    for place, order in enumerate(([0, 1, 2, 3], [3, 1, 0, 2])):
        output = tmp_path / f"picked{place}"
        expected = PickedExamples(
            path=str(output),
            size=file.size,
            sha256=str(file.sha256),
            picked=5,
            available=available,
            inputs={the_file(shard).path: str(the_file(shard).sha256) for shard in eval_shards},
            setup=eval_shards[0].setup,
        )
        pick_in_pipeline([written[k] for k in order], 5, output, expected, strict=True)
        assert output.read_bytes() == (tmp_path / "expected").read_bytes()


def test_where_there_are_too_few_all_are_taken(shards: list[TextShard], tmp_path: Path) -> None:
    written = write(shards[2:], tmp_path / "out")
    everything = [example for shard in written for example in oracle.read_examples(Path(the_file(shard).path))]
    picked = pick_eval(written, 100_000, False, str(tmp_path / "picked"))
    assert picked is not None
    assert (picked.picked, picked.available) == (len(everything), len(everything))
    assert oracle.read_examples(tmp_path / "picked") == everything


def test_nothing_is_picked_where_there_is_no_eval_set(shards: list[TextShard], tmp_path: Path) -> None:
    written = write(shards[:2], tmp_path / "out")
    pick_in_pipeline(written, 5, tmp_path / "picked", None)
    assert pick_eval(written, 0, True, str(tmp_path / "picked")) is None
    with pytest.raises(UnusableInputError, match="The eval set is empty, so 5 eval examples cannot be picked; hold "):
        pick_eval(written, 5, True, str(tmp_path / "picked"))
    assert not (tmp_path / "picked").exists()
