"""TFRecords read by blocks: any file of examples, with any index or none; every damage is named."""

import bz2
import concurrent.futures
import gzip
import itertools
import random
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from data_sets.gold_examples import PICKED
from data_sets.read_blocks import (
    assert_any_part,
    assert_row,
    blocks_of,
    data_set_of,
    empty_rows,
    float_column,
    int_column,
    read_all,
    read_columns,
)
from data_sets.row_blocks import arrays_of, columns_for
from hypothesis import given
from hypothesis import strategies as st
from made_up.rows import made_up_rows
from made_up.tfrecords import write_records
from properties import SEEDED, WITH_FOLDER, tries

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.block_reader import Block, DamagedBlockError
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataSet
from maskmill.reading.kernels import examples, indexes
from maskmill.reading.record_indexes import find_records, first_example, index_blocks, read_index
from maskmill.reading.tfrecords import TfRecordReader
from maskmill.records import tfrecord
from maskmill.records.example_proto import Feature, count_values, encode_example, parse_example
from maskmill.records.tfrecord import index_tfrecord, read_records

COLUMNS = (int_column("ids", 3, 60_000, varies=True), int_column("label", 1, 255))


def example(*ids: int, label: int = 7) -> bytes:
    """An example with the columns above."""
    features = {"label": Feature(), "ids": Feature()}
    features["label"].int64_list.value.append(label)
    features["ids"].int64_list.value.extend(ids)
    return encode_example(features)


def numbered(count: int) -> list[bytes]:
    """Examples that tell their number, of several sizes."""
    return [example(*([n % 50_000] * (n % 4)), label=n % 200) for n in range(count)]


def assert_numbered(data_set: DataSet, reader: TfRecordReader) -> None:
    """The data set has the records of `numbered`, in each of its files."""
    rows = read_all(reader, data_set)
    at = 0
    for file in data_set.files:
        for n in range(file.samples):
            assert_row(COLUMNS, rows, at, {"ids": [n % 50_000] * (n % 4), "label": [n % 200]})
            at += 1


def reader_of(files: dict[str, int], *, index: bool = False) -> tuple[DataSet, TfRecordReader]:
    data_set = data_set_of(files, COLUMNS, index=index)
    return data_set, TfRecordReader(data_set, LocalRanges())


def reversed_example(row: dict[str, npt.NDArray[Any]]) -> bytes:
    """An example with a row's columns, from the last to the first."""
    features = {}
    for name, values in reversed(row.items()):
        features[name] = Feature()
        kind = features[name].float_list if values.dtype.kind == "f" else features[name].int64_list
        kind.value.extend(values.tolist())
    return encode_example(features)


class CountingRanges(LocalRanges):
    """Counts how many files were read from the start to the end in one go."""

    def __init__(self) -> None:
        super().__init__()
        self.whole_files = 0
        self._counting_files = threading.Lock()

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        with self._counting_files:
            self.whole_files += start == 0 and end == self.size(path)
        return super().read(path, start, end)


@pytest.fixture(scope="module")
def numbered_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_records(tmp_path_factory.mktemp("numbered") / "x", numbered(600))


# ---- which rows


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_read_whatever_the_order_of_their_features(seed: int, tmp_path: Path) -> None:
    made = made_up_rows(seed)
    columns = columns_for(made, padded=bool(seed % 2))
    expected = arrays_of(made, columns)
    path = write_records(tmp_path / "x", [reversed_example(row) for row in expected])
    data_set = data_set_of({path: len(expected)}, read_columns(columns, made))
    rows = read_all(TfRecordReader(data_set, LocalRanges()), data_set)
    for n, row in enumerate(expected):
        assert_row(data_set.columns, rows, n, row)


def test_records_of_the_reference_are_read() -> None:
    """Gzipped, written by TensorFlow."""
    records = list(read_records(str(PICKED)))
    features = [parse_example(record) for record in records]
    columns = [
        float_column(name, count_values(feature))
        if feature.WhichOneof("kind") == "float_list"
        else int_column(name, count_values(feature), 30521)
        for name, feature in features[0].items()
    ]
    data_set = data_set_of({str(PICKED): len(records)}, columns)
    rows = read_all(TfRecordReader(data_set, LocalRanges()), data_set)
    for n, of_record in enumerate(features):
        values = {name: getattr(f, str(f.WhichOneof("kind"))).value for name, f in of_record.items()}
        assert_row(columns, rows, n, values)


@tries(60, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_any_part_of_a_block_goes_to_any_rows(seed: int, numbered_file: str) -> None:
    data_set, reader = reader_of({numbered_file: 600})
    assert_any_part(random.Random(seed), reader, data_set, lambda n: {"ids": [n] * (n % 4), "label": [n % 200]})


def test_several_threads_share_a_reader(numbered_file: str, tmp_path: Path) -> None:
    """Each file is looked through once, however many threads ask for it at the same time."""
    paths = [numbered_file, *(str(shutil.copy(numbered_file, tmp_path / str(n))) for n in range(3))]
    ranges = CountingRanges()
    data_set = data_set_of(dict.fromkeys(paths, 600), COLUMNS)
    reader = TfRecordReader(data_set, ranges)
    rows, single = empty_rows(COLUMNS, 2400), read_all(reader_of(dict.fromkeys(paths, 600))[1], data_set)
    start = threading.Barrier(8)

    def read(worker: int) -> None:
        start.wait()
        for block in blocks_of(data_set, reader.block_samples)[worker::8]:
            wanted = np.arange(block.count)
            reader.decode(reader.fetch(block), block, wanted, wanted + block.first + 600 * block.file, rows)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(8)))
    for feature, array in single.arrays.items():
        np.testing.assert_array_equal(rows.arrays[feature], array)
    assert ranges.whole_files == len(paths)


def test_kernels_are_compiled_for_the_types_that_are_read(numbered_file: str) -> None:
    for module, kernel in ((examples, examples.read_examples), (indexes, indexes.read_index)):
        module.warm_up()
        compiled = len(kernel.signatures)
        index_tfrecord(numbered_file, f"{numbered_file}.idx")
        assert_numbered(*reader_of({numbered_file: 600}, index=True))
        assert len(kernel.signatures) == compiled


# ---- where records lie


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("count", [1, 255, 256, 257, 600])
def test_the_records_of_a_file_are_found_with_and_without_its_index(
    count: int, is_packed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_records(tmp_path / "x", numbered(count))
    index_tfrecord(path, f"{path}.idx")
    if is_packed:
        Path(path).write_bytes(gzip.compress(Path(path).read_bytes()))
    for index in (True, False):
        assert_numbered(*reader_of({path: count}, index=index))
        blocks = index_blocks(path, LocalRanges(), f"{path}.idx" if index else None)
        told = read_index(f"{path}.idx", LocalRanges())
        assert blocks.samples == count == TfRecordReader.count_samples(path, LocalRanges())
        assert told is not None
        assert blocks.starts.tolist() == told.starts.tolist()
    # A thread of another test may log, too.
    said = [text for record in caplog.records if (text := record.getMessage()).startswith(path)]
    assert said == [
        f"{path}: files of this data set are packed with gzip, and each process unpacks those that it reads "
        f"into {tempfile.gettempdir()}; make the examples without --packed."
    ] * (2 * is_packed)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: b"",
        lambda text: text[: len(text) // 2],
        lambda text: text[:-1],
        lambda text: b"\n".join(text.splitlines()[:-1]) + b"\n",
        lambda text: text.replace(b" ", b"  ", 1),
        lambda text: text + b"garbage\n",
        lambda text: b"1" + text,
        lambda text: b"0 " + b"9" * 30 + b"\n",
        lambda text: None,
    ],
    ids=["empty", "half", "no newline", "a line short", "spaces", "garbage", "shifted", "huge", "missing"],
)
def test_an_index_that_does_not_fit_is_not_used(
    spoil: Callable[[bytes], bytes | None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_records(tmp_path / "x", numbered(300))
    index_tfrecord(path, f"{path}.idx")
    spoilt = spoil(Path(f"{path}.idx").read_bytes())
    if spoilt is None:
        Path(f"{path}.idx").unlink()
    else:
        Path(f"{path}.idx").write_bytes(spoilt)
    assert_numbered(*reader_of({path: 300}, index=True))
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{path}.idx: this index is missing or does not fit {path}, which is read once more to find its records; make "
        "the index again."
    )


def test_an_index_that_seems_to_fit_is_dropped_with_the_first_damage(tmp_path: Path) -> None:
    """It has the right number of records and the right size, as that of another build may have."""
    records = [example(1, 2, 3)] * 256 + [example()] * 44
    other = write_records(tmp_path / "other", records[::-1])
    path = write_records(tmp_path / "x", records)
    index_tfrecord(other, f"{path}.idx")
    _, reader = reader_of({path: 300}, index=True)
    block = Block(0, 256, 44)
    rows, wanted = empty_rows(COLUMNS, 44), np.arange(44)
    with pytest.raises(DamagedBlockError, match=r"x, record 257 has a length .*: the file or its index is damaged;"):
        reader.decode(reader.fetch(block), block, wanted, wanted, rows)
    assert reader.forget(block)
    reader.decode(reader.fetch(block), block, wanted, wanted, rows)
    assert_row(COLUMNS, rows, 43, {"ids": [], "label": [7]})
    assert not reader.forget(block)


@tries(100, **WITH_FOLDER)
@given(sizes=st.lists(st.integers(0, 40), max_size=40), block=st.integers(1, 9), part=st.sampled_from([16, 50, 4096]))
def test_an_index_and_the_file_tell_the_same_blocks(sizes: list[int], block: int, part: int, tmp_path: Path) -> None:
    path = write_records(tmp_path / "x", [bytes(size) for size in sizes])
    offsets = [0, *itertools.accumulate(size + 16 for size in sizes)]
    lines = [f"{start} {end - start}\n" for start, end in itertools.pairwise(offsets)]
    Path(f"{path}.idx").write_text("".join(lines))
    expected = [*offsets[:-1:block], offsets[-1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfrecord, "_BLOCK_BYTES", part)
        with open(path, "rb") as file:
            found = find_records(file, path, block)
    told = read_index(f"{path}.idx", LocalRanges(), block)
    assert told is not None
    for blocks in (found, told):
        assert (blocks.samples, blocks.starts.tolist()) == (len(sizes), expected)


def test_what_is_unpacked_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write_records(tmp_path / name, numbered(300)) for name in "xyz"]
    for path in paths:
        Path(path).write_bytes(gzip.compress(Path(path).read_bytes()))
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    data_set, reader = reader_of(dict.fromkeys(paths, 300))
    assert_numbered(data_set, reader)
    assert not list((tmp_path / "room").iterdir())
    # It is unpacked once.
    for path in paths:
        Path(path).write_bytes(b"")
    assert_numbered(data_set, reader)
    reader.close()


def test_no_room_to_unpack_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_records(tmp_path / "x", numbered(3))
    Path(path).write_bytes(gzip.compress(Path(path).read_bytes()))
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/none")
    sentence = r"x: this file is packed and cannot be unpacked in /dev/null/none \(Not a directory\); set TMPDIR to a"
    with pytest.raises(RunFailedError, match=sentence):
        assert_numbered(*reader_of({path: 3}))


# ---- damage


@pytest.mark.parametrize("has_index", [True, False], ids=["indexed", "not indexed"])
def test_any_damaged_byte_names_its_record(has_index: bool, tmp_path: Path) -> None:
    """A damaged length stops the reading of its block; damaged data only that of its record."""
    records = numbered(300)
    path = write_records(tmp_path / "x", records)
    index_tfrecord(path, f"{path}.idx")
    size = len(records[290]) + 16
    start = sum(len(record) + 16 for record in records[:290])
    content = Path(path).read_bytes()
    block, rows, wanted = Block(0, 256, 44), empty_rows(COLUMNS, 44), np.arange(44)
    for place in range(size):
        damaged = bytearray(content)
        damaged[start + place] ^= 1 << random.Random(place).randrange(8)
        Path(path).write_bytes(damaged)
        _, reader = reader_of({path: 300}, index=has_index)
        what = "a length" if place < 12 else "data"
        where = "x, record 291" if has_index else f"x: record 291 at byte {start:,}"
        with pytest.raises(UnusableInputError, match=f"{where} has {what} that does not fit its checksum"):
            reader.decode(reader.fetch(block), block, wanted, wanted, rows)
        others = np.delete(wanted, 290 - 256)
        if has_index and place >= 12:
            reader.decode(reader.fetch(block), block, others, others, rows)
            assert_row(COLUMNS, rows, 43, {"ids": [299] * 3, "label": [99]})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: content[:-5], r"x: record 300 at byte [0-9,]+ is truncated; make or fetch the file again\."),
        (lambda content: content + content, r"x: this file has 600 records instead of 300; make or fetch it again\."),
        (lambda content: b"", r"x: this file has 0 records instead of 300; make or fetch it again\."),
        (lambda content: bytes(100), r"x: record 1 at byte 0 has a length that does not fit its checksum: the file is"),
        (lambda content: gzip.compress(content)[:-9], r"x: this gzip file is truncated or damaged \(.*\); make or"),
        (bz2.compress, r"x: this file is packed with bzip2; a TFRecord is read plain or gzipped, so unpack it first\."),
    ],
    ids=["truncated", "twice", "empty", "zeros", "truncated gzip", "bzip2"],
)
@pytest.mark.parametrize("has_index", [True, False], ids=["indexed", "not indexed"])
def test_a_file_that_is_not_what_it_was_is_one_sentence(
    has_index: bool, change: Callable[[bytes], bytes], sentence: str, tmp_path: Path
) -> None:
    path = write_records(tmp_path / "x", numbered(300))
    index_tfrecord(path, f"{path}.idx")
    Path(path).write_bytes(change(Path(path).read_bytes()))
    with pytest.raises(UnusableInputError, match=sentence):
        assert_numbered(*reader_of({path: 300}, index=has_index))


def test_a_file_cut_while_it_is_read_is_one_sentence(tmp_path: Path) -> None:
    path = write_records(tmp_path / "x", numbered(300))
    _, reader = reader_of({path: 300})
    reader.fetch(Block(0, 0, 256))
    Path(path).write_bytes(Path(path).read_bytes()[:-5])
    with pytest.raises(UnusableInputError, match="x: this file was changed while it was read"):
        reader.fetch(Block(0, 256, 44))


# ---- files without a manifest


def test_a_first_example_tells_its_features(tmp_path: Path) -> None:
    features = {name: Feature() for name in ("long", "text", "weights", "none")}
    features["long"].int64_list.value.extend([1] * 100_000)
    features["text"].bytes_list.value.append(b"text")
    features["weights"].float_list.value.extend([1.0, 2.0])
    path = write_records(tmp_path / "x", [encode_example(features), b"no example"])
    expected = {"long": (100_000, "int64"), "none": (0, "int64"), "text": (1, "bytes"), "weights": (2, "float")}
    assert first_example(path, LocalRanges()) == expected
    Path(path).write_bytes(gzip.compress(Path(path).read_bytes()))
    assert first_example(path, LocalRanges()) == expected
    assert first_example(write_records(tmp_path / "empty", []), LocalRanges()) == {}
    with pytest.raises(UnusableInputError, match=r"other: this is no TFRecord of examples\."):
        first_example(write_records(tmp_path / "other", [b"no example"]), LocalRanges())
