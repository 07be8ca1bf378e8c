"""Picking examples at even distance, against what the reference picked."""

import gzip
from pathlib import Path

import hypothesis
import pytest
from data_sets.gold_examples import PICKED, VOCABULARY, options_of_case, unpacked
from hypothesis import strategies as st
from made_up.tfrecords import write_records
from oracles import pretraining as oracle
from properties import WITH_FOLDER, tries

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.records import eval_picking
from maskmill.records.eval_picking import pick_examples
from maskmill.records.examples import write_examples
from maskmill.records.tfrecord import read_records
from maskmill.tokenization.vocabulary import load_vocabulary


@pytest.fixture(scope="module")
def mlperf512(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The 1,721 examples that pick_eval_samples.py picked 300 of; that they are these, another test shows."""
    directory = tmp_path_factory.mktemp("mlperf512")
    output = str(directory / "examples")
    text = unpacked("cleanup/eval.txt", directory)
    write_examples([text], [output], load_vocabulary(VOCABULARY, "first"), options_of_case("mlperf512"))
    return output


def numbered(count: int) -> list[bytes]:
    """Examples with a feature that says which one it is."""
    return [oracle.encode_example({"number": [k]}) for k in range(count)]


def numbers_in(path: Path) -> list[float]:
    return [example["number"][0] for example in oracle.read_examples(path)]


def test_the_reference_picks(mlperf512: str, tmp_path: Path) -> None:
    output = str(tmp_path / "picked")
    written = pick_examples(mlperf512, output, 300, max_seq_length=512, max_predictions_per_seq=76)
    assert oracle.read_examples(Path(output)) == oracle.read_examples(PICKED)
    assert written.size == Path(output).stat().st_size == 798766
    # Picking all of what the reference wrote, whose feature maps have another order, gives the same bytes.
    again = pick_examples(str(PICKED), str(tmp_path / "again"), 300)
    assert again.sha256 == written.sha256
    packed = pick_examples(str(PICKED), str(tmp_path / "again.gz"), 300)
    assert gzip.decompress(Path(packed.path).read_bytes()) == Path(output).read_bytes()


def test_several_files_are_read_as_one(mlperf512: str, tmp_path: Path) -> None:
    records = list(read_records(mlperf512))
    parts = [
        write_records(tmp_path / f"part{k}", records[start:end])
        for k, (start, end) in enumerate([(0, 7), (7, 7), (7, 1721)])
    ]
    (tmp_path / "part0.gz").write_bytes(gzip.compress(Path(parts[0]).read_bytes()))
    whole = pick_examples(mlperf512, str(tmp_path / "whole"), 300)
    assert pick_examples(parts, str(tmp_path / "parts"), 300).sha256 == whole.sha256
    parts[0] = str(tmp_path / "part0.gz")
    assert pick_examples(parts, str(tmp_path / "packed"), 300).sha256 == whole.sha256


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_which_examples_are_picked(count: int, tmp_path: Path) -> None:
    pick_examples(write_records(tmp_path / "all", numbered(10)), str(tmp_path / "some"), count)
    assert numbers_in(tmp_path / "some") == [int(k * (10 / count)) for k in range(count)]


@tries(50, **WITH_FOLDER)
@hypothesis.given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4), share=st.floats(0, 1))
def test_any_files_and_counts(sizes: list[int], share: float, tmp_path: Path) -> None:
    hypothesis.assume(sum(sizes))
    records = numbered(sum(sizes))
    files, start = [], 0
    for place, size in enumerate(sizes):
        files.append(write_records(tmp_path / f"part{place}", records[start : start + size]))
        start += size
    count = max(1, int(share * len(records)))
    pick_examples(files, str(tmp_path / "picked"), count)
    expected = oracle.pick([{"number": [k]} for k in range(len(records))], count)
    assert oracle.read_examples(tmp_path / "picked") == expected


def test_more_examples_than_there_are_is_one_sentence(tmp_path: Path) -> None:
    path = write_records(tmp_path / "records", [oracle.encode_example({"a": [1]})] * 3)
    with pytest.raises(UnusableInputError, match=r"records: there are 3 examples, 4 cannot be picked; pick fewer, or"):
        pick_examples(path, str(tmp_path / "picked"), 4)
    with pytest.raises(UnusableInputError, match="0 examples to pick: this must be 1 or more"):
        pick_examples(path, str(tmp_path / "picked"), 0)
    assert not (tmp_path / "picked").exists()


def test_examples_of_another_length_are_one_sentence(tmp_path: Path) -> None:
    for options, sentence in (
        ({"max_seq_length": 128}, "record 1 has 512 values in input_ids, not 128; give the lengths"),
        ({"max_predictions_per_seq": 20}, "record 1 has 76 values in masked_lm_positions, not 20"),
    ):
        with pytest.raises(UnusableInputError, match=sentence):
            pick_examples(str(PICKED), str(tmp_path / "picked"), 3, **options)
    path = write_records(tmp_path / "records", [oracle.encode_example({"input_ids": [1, 2]})])
    with pytest.raises(UnusableInputError, match="record 1 has no such feature in input_mask, not 2"):
        pick_examples(path, str(tmp_path / "picked"), 1, max_seq_length=2)


@pytest.mark.parametrize(
    "record",
    [b"\x0b", b"\x10\x01", b"\x0a\x05", b"\xff" * 12, b"\x0a\x02\x10\x01", b"\x0a\x06\x0a\x04\x12\x02\x22\x00"],
)
def test_records_that_are_no_examples_are_one_sentence(record: bytes, tmp_path: Path) -> None:
    path = write_records(tmp_path / "records", [record])
    with pytest.raises(UnusableInputError, match=r"records: record 1 is not a tf\.train\.Example \("):
        pick_examples(path, str(tmp_path / "picked"), 1)


@pytest.mark.parametrize("end", [1, 30, -1])
def test_a_truncated_file_leaves_nothing(end: int, tmp_path: Path) -> None:
    path = Path(write_records(tmp_path / "records", numbered(3)))
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(UnusableInputError, match=r"records: record \d at byte \d+ is truncated; make or fetch"):
        pick_examples(str(path), str(tmp_path / "picked"), 1)
    assert [p.name for p in tmp_path.iterdir()] == ["records"]


def test_a_file_that_becomes_shorter_meanwhile_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_records(tmp_path / "records", numbered(3))

    def count_and_cut(path: str) -> int:
        write_records(Path(path), numbered(2))
        return 3

    monkeypatch.setattr(eval_picking, "count_records", count_and_cut)
    with pytest.raises(RunFailedError, match=r"records: these files changed while they were read; run it again\."):
        pick_examples(path, str(tmp_path / "picked"), 3)
    assert not (tmp_path / "picked").exists()


@pytest.mark.parametrize("available", [3, 5])
def test_another_number_of_examples_than_is_known_is_an_error(available: int, tmp_path: Path) -> None:
    path = write_records(tmp_path / "records", numbered(4))
    expected = pick_examples(path, str(tmp_path / "counted"), 2)
    assert pick_examples(path, str(tmp_path / "known"), 2, available=4).sha256 == expected.sha256
    with pytest.raises(RunFailedError, match=r"records: these files changed while they were read; run it again\."):
        pick_examples(path, str(tmp_path / "picked"), 2, available=available)
    assert not (tmp_path / "picked").exists()
