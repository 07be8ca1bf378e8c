"""`verify --against`: whether two data sets have the same records, and where they first differ."""

import collections
import gzip
import shutil
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from data_sets.built_data_sets import build_data_set
from data_sets.example_sets import setup_of, texts_of, write_set
from data_sets.gold_examples import GOLD, VOCABULARY, options_of_case
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.verification.findings import Finding
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify


def compare(path: object, against: object, **options: Any) -> list[Finding]:
    """What comparing two data sets gives."""
    chosen = VerifyOptions(against=str(against), checks=("same_records",), remake=0, **options)
    return list(verify([str(path)], chosen).findings)


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
    (finding,) = compare(one, other)
    assert (finding.severity, "in the same order" in finding.message) == ("note", True)


def test_rows_in_another_order_are_the_same_set(built: Path, tmp_path: Path) -> None:
    names = [f"part-0000{number}-of-00003.tfrecord" for number in range(3)]
    for name, source in zip(names, names[::-1], strict=True):
        shutil.copy(built / source, tmp_path / name)
    (finding,) = compare(built, tmp_path / "part-*")
    assert (finding.severity, finding.record) == ("warning", 1)
    assert [found.severity for found in compare(built, tmp_path, any_order=True)] == ["note"]


def test_rows_of_another_seed_differ_in_their_masks_and_are_shown_as_words(tmp_path: Path) -> None:
    options = ObjectiveOptions(objective="mlm")
    texts = texts_of(["part-00000-of-00001"])
    sets = [
        write_set(tmp_path, setup_of(random_seed=seed, short_seq_prob=0.0, **vars(options)), texts=texts, folder=name)
        for seed, name in ((1, "one"), (2, "other"))
    ]
    (finding,) = compare(*sets)
    assert finding.severity == "error"
    assert "one/part-00000-of-00001.tfrecord, record 1 has “" in finding.message
    assert "masked_lm_positions" in finding.message
    assert "[[MASK]=" in finding.message
    assert f"{finding.count:,} have the same text and other masks" in finding.message


def test_a_shorter_data_set_says_where_it_ends(built: Path) -> None:
    shard = str(built / "part-00000-of-00003.tfrecord")
    found = verify([str(built)], VerifyOptions(against=shard, checks=("same_records",), remake=0))
    assert [finding.severity for finding in found.findings] == ["note"]  # a file is compared with that of its name
    (finding,) = compare(built, built / "part-0000[01]-of-00003.tfrecord")
    assert "examples, where" in finding.message or "ends after" in finding.message
    assert finding.severity == "error"


def test_stored_and_drawn_masks_differ_in_their_columns(tmp_path: Path) -> None:
    one, other = (
        build_data_set(
            tmp_path / str(is_dynamic), objective=ObjectiveOptions(objective="mlm", dynamic_masking=is_dynamic)
        )
        for is_dynamic in (False, True)
    )
    assert [finding.message for finding in compare(one, other) if "masked_lm_ids" in finding.expected] != []


def test_a_damaged_file_cannot_be_compared(built: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(built, damaged)
    shard = damaged / "part-00001-of-00003.tfrecord"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    for _ in range(2):
        (finding,) = compare(damaged, built)
        assert finding.found == "not readable"
        assert "part-00001-of-00003.tfrecord" in finding.message
        shard.unlink(missing_ok=True)


def test_what_cannot_be_compared_is_refused(built: Path, tmp_path: Path) -> None:
    text = tmp_path / "part-00000-of-00001"
    text.write_text("One sentence .\n\n")
    with pytest.raises(UnusableInputError, match="nothing that could be compared"):
        compare(built, text)
    with pytest.raises(UnusableInputError, match="nothing"):
        compare(built, tmp_path / "nothing")


def test_our_records_are_those_of_the_reference(tmp_path: Path) -> None:
    text = gzip.decompress((GOLD / "cleanup" / "eval.txt.gz").read_bytes()).decode()
    setup = setup_of(one_seed=True, **{**vars(options_of_case("cased128")), "duplicate_pieces": "first"})
    ours = write_set(tmp_path, setup, texts={"eval.txt": text})
    (finding,) = compare(ours, GOLD / "pretraining" / "cased128.tfrecord.gz", vocab_file=VOCABULARY, split="eval")
    assert finding.severity == "note"


def test_text_shards_may_be_cut_elsewhere(tmp_path: Path) -> None:
    documents = [f"Document {n} .\nIt has two lines .\n\n" for n in range(9)]
    for folder, cut in (("one", 4), ("other", 6)):
        (tmp_path / folder).mkdir()
        for number, part in enumerate((documents[:cut], documents[cut:])):
            (tmp_path / folder / f"part-{number:05d}-of-00002").write_text("".join(part))
    assert [finding.severity for finding in compare(tmp_path / "one", tmp_path / "other")] == ["note"]
    changed = tmp_path / "other" / "part-00000-of-00002"
    changed.write_text(changed.read_text().replace("Document 2 .\nIt has two", "Document 2 .\nIt has 2\x1b"))
    (finding,) = compare(tmp_path / "one", tmp_path / "other")
    assert (finding.severity, finding.record, finding.count) == ("error", 3, 1)
    assert "document 3 has “Document 2 . It has two lines .”" in finding.message
    assert "has 2\\x1b lines" in finding.message


@tries(40, **SEEDED)
@hypothesis.given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_sets_are_those_of_a_counter(tmp_path: Path, here: list[int], there: list[int]) -> None:
    for name, numbers in (("here", here), ("there", there)):
        (tmp_path / name).write_text("".join(f"Document {n} .\n\n" for n in [9, *numbers]))
    (finding,) = compare(tmp_path / "here", tmp_path / "there")
    counts = collections.Counter(here), collections.Counter(there)
    only = (counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()
    assert finding.severity == ("note" if here == there else "error" if any(only) else "warning")
    if any(only):
        assert finding.count == max(only)
        assert (
            f"{only[0]:,} of {len(here) + 1:,} documents here, and {only[1]:,} of {len(there) + 1:,}" in finding.message
        )


def test_chosen_shards_are_held_against_those_of_the_same_names(built: Path) -> None:
    options = VerifyOptions(against=str(built), shards="0-1", remake=0)
    found, whole = (verify([str(built)], chosen) for chosen in (options, VerifyOptions(against=str(built), remake=0)))
    assert [finding.severity for finding in found.findings if finding.check == "same_records"] == ["note"]
    assert 0 < found.outcomes["same_records"].looked_at < whole.outcomes["same_records"].looked_at


@pytest.mark.parametrize("format", ["tfrecord", "parquet"])
def test_several_files_are_held_against_a_data_set_together(tmp_path: Path, format: str) -> None:
    built = build_data_set(tmp_path, format=format)  # type: ignore[arg-type]
    paths = sorted(str(path) for path in built.glob(f"part-*.{format}"))
    found = verify(paths, VerifyOptions(against=str(built), remake=0))
    notes = [finding.message for finding in found.findings if finding.check == "same_records"]
    assert len(notes) == 1
    assert "in the same order" in notes[0]
    assert found.outcomes["same_records"].looked_at > 100
