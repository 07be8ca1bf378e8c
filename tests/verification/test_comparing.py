import collections
import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from data_sets.built_data_sets import build_data_set
from data_sets.example_sets import setup_of, texts_of, write_set
from data_sets.gold_examples import GOLD, VOCABULARY, options_of_case
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.verification.compared_records import documents_of
from maskmill.verification.comparison_checks import Comparison, compare
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify


def _verdicts(comparison: Comparison) -> list[str]:
    return [part.verdict for part in comparison.parts]


def _severities(comparison: Comparison) -> list[str]:
    return [finding.severity for finding in comparison.findings]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_data_set(tmp_path_factory.mktemp("records"))


@pytest.mark.builds
@pytest.mark.parametrize("format", ["parquet", "mds"])
@pytest.mark.parametrize("objective", ["nsp", "packed", "dynamic"])
def test_the_same_rows_in_other_formats_are_the_same(tmp_path: Path, format: str, objective: str) -> None:
    options = {
        "nsp": ObjectiveOptions(),
        "packed": ObjectiveOptions(objective="mlm", pack=True),
        "dynamic": ObjectiveOptions(objective="sop", dynamic_masking=True),
    }[objective]
    one = build_data_set(tmp_path / "one", objective=options)
    other = build_data_set(tmp_path / "other", objective=options, format=format)  # type: ignore[arg-type]
    comparison = compare(str(one), str(other))
    assert _verdicts(comparison) == ["same_order"]
    assert _severities(comparison) == ["note"]
    assert comparison.looked_at["same_records"] == comparison.parts[0].there > 0


def test_rows_in_another_order_are_the_same_set(built: Path, tmp_path: Path) -> None:
    texts = ["part-00000-of-00003.tfrecord", "part-00001-of-00003.tfrecord", "part-00002-of-00003.tfrecord"]
    for name, source in zip(texts, texts[::-1], strict=True):
        shutil.copy(built / source, tmp_path / name)
    comparison = compare(str(built), str(tmp_path / "part-*"))
    assert _verdicts(comparison) == ["other_order"]
    assert _severities(comparison) == ["warning"]
    assert comparison.findings[0].record == 1
    assert _severities(compare(str(built), str(tmp_path), any_order=True)) == ["note"]


def test_rows_of_another_seed_differ_in_their_masks_and_are_shown_as_words(tmp_path: Path) -> None:
    options = ObjectiveOptions(objective="mlm")
    texts = texts_of(["part-00000-of-00001"])
    sets = [
        write_set(tmp_path, setup_of(random_seed=seed, short_seq_prob=0.0, **vars(options)), texts=texts, folder=name)
        for seed, name in ((1, "one"), (2, "other"))
    ]
    comparison = compare(*sets)
    part = comparison.parts[0]
    assert part.verdict == "different"
    assert part.other_masks == part.only_here == part.only_there > 0
    assert part.first is not None
    assert part.first.here is not None
    assert part.first.there is not None
    assert "masked_lm_positions" in part.first.columns
    assert "[MASK=" in part.first.here.words + part.first.there.words
    assert part.first.here.file.endswith("one/part-00000-of-00001.tfrecord")
    assert f"{part.other_masks:,} have the same text and other masks" in comparison.findings[0].message


def test_a_shorter_data_set_says_where_it_ends(built: Path) -> None:
    shard = str(built / "part-00000-of-00003.tfrecord")
    comparison = compare(str(built), f"{shard},{built}/part-00001-of-00003.tfrecord")
    part = comparison.parts[0]
    assert part.verdict == "different"
    assert (part.only_here, part.only_there) == (part.here - part.there, 0)
    assert part.first is not None
    assert part.first.number == part.there + 1
    assert f"ends after {part.there:,} records" in comparison.findings[0].message


def test_a_file_is_held_against_the_file_of_its_name(built: Path, tmp_path: Path) -> None:
    packed = tmp_path / "part-00001-of-00003.gz"
    packed.write_bytes(gzip.compress((built / "part-00001-of-00003.tfrecord").read_bytes()))
    comparison = compare(str(built), str(packed))
    assert _verdicts(comparison) == ["same_order"]
    assert _verdicts(compare(str(packed), str(built))) == ["same_order"]


def test_stored_and_drawn_masks_differ_in_their_columns(tmp_path: Path) -> None:
    one, other = (
        build_data_set(
            tmp_path / str(is_dynamic), objective=ObjectiveOptions(objective="mlm", dynamic_masking=is_dynamic)
        )
        for is_dynamic in (False, True)
    )
    comparison = compare(str(one), str(other))
    assert [finding.message for finding in comparison.findings if "masked_lm_ids" in finding.expected] != []


def test_a_damaged_file_is_a_finding(built: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(built, damaged)
    shard = damaged / "part-00001-of-00003.tfrecord"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    comparison = compare(str(damaged), str(built))
    assert _verdicts(comparison) == ["unreadable"]
    assert "part-00001-of-00003.tfrecord, record" in comparison.findings[0].message
    shard.unlink()
    assert _verdicts(compare(str(damaged), str(built))) == ["unreadable"]


def test_a_difference_in_front_of_the_damage_is_shown(tmp_path: Path) -> None:
    large = build_data_set(tmp_path / "large", sentences=200, dupe_factor=2)
    other = tmp_path / "other"
    other.mkdir()
    content = bytearray((large / "part-00002-of-00003.tfrecord").read_bytes())
    content[-100] ^= 1  # in the data of the last record, in another block than the first
    (other / "part-00000-of-00003.tfrecord").write_bytes(content)
    shutil.copy(large / "part-00002-of-00003.tfrecord.idx", other / "part-00000-of-00003.tfrecord.idx")
    comparison = compare(str(other), str(large / "part-00001-of-00003.tfrecord"))
    assert _verdicts(comparison) == ["unreadable"]
    assert comparison.findings[0].record == 1
    assert "record 1 has “[CLS]" in comparison.findings[0].message


def test_what_cannot_be_compared_is_refused(built: Path, tmp_path: Path) -> None:
    text = tmp_path / "part-00000-of-00001"
    text.write_text("One sentence .\n\n")
    with pytest.raises(UnusableInputError, match="nothing that could be compared"):
        compare(str(built), str(text))
    with pytest.raises(UnusableInputError, match="check the path"):
        compare(str(built), str(tmp_path / "nothing"))


def test_our_records_are_those_of_the_reference(tmp_path: Path) -> None:
    text = gzip.decompress((GOLD / "cleanup" / "eval.txt.gz").read_bytes()).decode()
    masking = {**vars(options_of_case("cased128")), "duplicate_pieces": "first"}
    setup = setup_of(one_seed=True, **masking)
    ours = write_set(tmp_path, setup, texts={"eval.txt": text})
    comparison = compare(ours, str(GOLD / "pretraining" / "cased128.tfrecord.gz"), vocab_file=VOCABULARY)
    assert _verdicts(comparison) == ["same_order"]


def test_text_shards_may_be_cut_elsewhere(tmp_path: Path) -> None:
    documents = [f"Document {n} .\nIt has two lines .\n\n" for n in range(9)]
    for folder, cut in (("one", 4), ("other", 6)):
        (tmp_path / folder).mkdir()
        for number, part in enumerate((documents[:cut], documents[cut:])):
            (tmp_path / folder / f"part-{number:05d}-of-00002").write_text("".join(part))
    assert _verdicts(compare(str(tmp_path / "one"), str(tmp_path / "other"))) == ["same_order"]
    changed = tmp_path / "other" / "part-00000-of-00002"
    changed.write_text(changed.read_text().replace("Document 2 .\nIt has two", "Document 2 .\nIt has 2\x1b"))
    comparison = compare(str(tmp_path / "one"), str(tmp_path / "other"))
    part = comparison.parts[0]
    assert (part.verdict, part.only_here, part.only_there) == ("different", 1, 1)
    assert part.first is not None
    assert part.first.here is not None
    assert part.first.there is not None
    assert (part.first.number, part.first.here.record, part.first.there.record) == (3, 8, 8)
    assert part.first.here.words == "“It has two lines .”"
    assert part.first.there.words == "“It has 2\\x1b lines .”"


def _documents(text: str) -> list[str]:
    """The documents of a text shard by its definition, line by line."""
    documents, lines = [], list[str]()
    for line in text.split("\n")[: -1 if text.endswith("\n") or not text else None]:
        if line:
            lines.append(line)
        else:
            documents.append("\n".join(lines))
            lines = []
    return [*documents, *(["\n".join(lines)] if lines else [])]


@tries(60, **SEEDED)
@hypothesis.given(st.lists(st.text("ab\n", max_size=40), min_size=1, max_size=3), st.integers(1, 7))
def test_documents_are_cut_at_blank_lines(tmp_path: Path, texts: Sequence[str], read_bytes: int) -> None:
    paths = []
    for number, text in enumerate(texts):
        path = tmp_path / str(number)
        path.write_text(text)
        paths.append(str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maskmill.verification.compared_records._READ_BYTES", read_bytes)
        batches = list(documents_of(paths, LocalRanges()))
    assert [d.decode() for batch in batches for d in batch.documents] == [d for text in texts for d in _documents(text)]
    numbers = [batch.first for batch in batches]
    assert numbers == [sum(len(batch.documents) for batch in batches[:n]) for n in range(len(batches))]
    for batch in batches:
        lines = (tmp_path / Path(batch.file).name).read_text().split("\n")
        for record, document in enumerate(batch.documents):
            assert lines[batch.place(record) - 1] == document.split(b"\n")[0].decode()


@tries(40, **SEEDED)
@hypothesis.given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_sets_are_those_of_a_counter(tmp_path: Path, here: list[int], there: list[int]) -> None:
    for name, numbers in (("here", here), ("there", there)):
        (tmp_path / name).write_text("".join(f"Document {n} .\n\n" for n in numbers))
    part = compare(str(tmp_path / "here"), str(tmp_path / "there")).parts[0]
    counts = collections.Counter(here), collections.Counter(there)
    only = (counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()
    assert (part.here, part.there) == (len(here), len(there))
    assert (part.only_here, part.only_there) == only
    verdict = "same_order" if here == there else "different" if any(only) else "other_order"
    assert part.verdict == verdict
    if here != there:
        differs = np.argmax([a != b for a, b in zip(here, there, strict=False)] + [True])
        assert part.first is not None
        assert part.first.number == differs + 1


def test_a_verification_holds_a_data_set_against_another(built: Path) -> None:
    options = VerifyOptions(against=f"{built}/part-00001-of-00003.tfrecord")
    found = verify([str(built / "part-00001-of-00003.tfrecord")], options)
    assert [finding.severity for finding in found.findings if finding.check == "same_records"] == ["note"]
    assert found.outcomes["same_records"].looked_at > 0


def test_chosen_shards_are_held_against_those_of_the_same_names(built: Path) -> None:
    found = verify([str(built)], VerifyOptions(against=str(built), shards="0-1"))
    assert [finding.severity for finding in found.findings if finding.check == "same_records"] == ["note"]
    whole = verify([str(built)], VerifyOptions(against=str(built)))
    assert 0 < found.outcomes["same_records"].looked_at < whole.outcomes["same_records"].looked_at


@pytest.mark.parametrize("format", ["tfrecord", "parquet"])
def test_several_files_are_held_against_a_data_set_together(tmp_path: Path, format: str) -> None:
    built = build_data_set(tmp_path, format=format)  # type: ignore[arg-type]
    paths = sorted(str(path) for path in built.glob(f"part-*.{format}"))
    found = verify(paths, VerifyOptions(against=str(built)))
    notes = [finding.message for finding in found.findings if finding.check == "same_records"]
    assert len(notes) == 1
    assert "in the same order" in notes[0]
    assert found.outcomes["same_records"].looked_at > 100
