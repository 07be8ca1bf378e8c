"""Writing, reading, verifying and indexing TFRecords."""

import bz2
import gzip
import hashlib
import lzma
import random
import struct
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from data_sets.gold_examples import PICKED
from hypothesis import strategies as st
from made_up.tfrecords import write_records
from oracles import pretraining as oracle
from properties import WITH_FOLDER, tries

from maskmill.errors import UnusableInputError
from maskmill.records import tfrecord
from maskmill.records.tfrecord import (
    RecordBlock,
    WrittenFile,
    count_records,
    frame,
    index_tfrecord,
    read_records,
    write_tfrecord,
)

RECORDS = [b"", b"a", bytes(300), b"bc", bytes(range(256)) * 30]


def blocks(records: list[bytes], size: int) -> list[RecordBlock]:
    """Blocks of `size` records each."""
    framed = [oracle.encode_tfrecord(record) for record in records]
    runs = [framed[start : start + size] for start in range(0, len(framed), size)]
    return [RecordBlock(memoryview(b"".join(run)), np.array([len(record) for record in run])) for run in runs]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_blocks_are_written_with_an_index_of_all(size: int, tmp_path: Path) -> None:
    path = str(tmp_path / "records")
    written = write_tfrecord(path, blocks(RECORDS, size), index=True, packed=False, checksum=True)
    assert list(read_records(path)) == RECORDS
    index_tfrecord(path, str(tmp_path / "index"))
    assert (tmp_path / "records.idx").read_bytes() == (tmp_path / "index").read_bytes()
    assert [file.path for file in written] == [path, f"{path}.idx"]
    for file in written:
        content = Path(file.path).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_a_packed_file_has_the_index_of_what_it_holds(tmp_path: Path) -> None:
    plain, packed = str(tmp_path / "plain"), str(tmp_path / "packed")
    write_tfrecord(plain, blocks(RECORDS, 2), index=True, packed=False, checksum=False)
    (file, _) = write_tfrecord(packed, blocks(RECORDS, 2), index=True, packed=True, checksum=True)
    content = Path(packed).read_bytes()
    assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert gzip.decompress(content) == Path(plain).read_bytes()
    assert Path(f"{packed}.idx").read_bytes() == Path(f"{plain}.idx").read_bytes()


def test_neither_index_nor_checksum_where_none_is_wanted(tmp_path: Path) -> None:
    path = str(tmp_path / "records")
    written = write_tfrecord(path, blocks(RECORDS, 2), index=False, packed=False, checksum=False)
    assert written == [WrittenFile(path=path, size=Path(path).stat().st_size, sha256=None)]
    assert [p.name for p in tmp_path.iterdir()] == ["records"]


@tries(100)
@hypothesis.given(st.one_of(st.binary(max_size=20), st.integers(0, 5000).map(bytes)))
def test_a_frame_is_that_of_the_format(record: bytes) -> None:
    assert frame(record) == oracle.encode_tfrecord(record)


def test_an_index_has_a_line_for_each_record(tmp_path: Path) -> None:
    content = gzip.decompress(PICKED.read_bytes())
    (tmp_path / "plain").write_bytes(content)
    index_tfrecord(str(tmp_path / "plain"), str(tmp_path / "plain.idx"))
    sizes = [len(record) + 16 for record in oracle.split_tfrecord(content)]
    lines = [line.split() for line in (tmp_path / "plain.idx").read_text().splitlines()]
    assert [int(size) for _, size in lines] == sizes
    assert int(lines[-1][0]) == sum(sizes[:-1])


@pytest.mark.parametrize(
    ("pack", "sentence"),
    [
        (lambda _: b"", r"x: this file is empty; it has no record to index\."),
        (gzip.compress, r"x: this TFRecord is packed with gzip, and an index is of use only for one that is not; "),
        (bz2.compress, r"x: this file is packed with bzip2; a TFRecord is read plain or gzipped, so unpack it first\."),
        (lzma.compress, r"x: this file is packed with xz; a TFRecord is read plain or gzipped, so unpack it first\."),
    ],
    ids=["empty", "gzip", "bzip2", "xz"],
)
def test_what_is_empty_or_packed_gets_no_index(pack: Callable[[bytes], bytes], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack(oracle.encode_tfrecord(b"record")))
    with pytest.raises(UnusableInputError, match=sentence):
        index_tfrecord(str(path), str(tmp_path / "index"))
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@tries(100, **WITH_FOLDER)
@hypothesis.given(
    records=st.lists(st.one_of(st.binary(max_size=3), st.integers(0, 5000).map(bytes)), max_size=30),
    block=st.sampled_from([16, 17, 100, 4096, 4 << 20]),
    room=st.sampled_from([1, 3, 1 << 16]),
)
def test_any_records_and_blocks(records: list[bytes], block: int, room: int, tmp_path: Path) -> None:
    path = write_records(tmp_path / "records", records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfrecord, "_BLOCK_BYTES", block)
        patch.setattr(tfrecord, "_BLOCK_RECORDS", room)
        assert list(read_records(path)) == records
        assert count_records(path) == len(records)
        if records:
            index_tfrecord(path, str(tmp_path / "index"))
    expected, offset = [], 0
    for record in records:
        expected.append(f"{offset} {len(record) + 16}\n")
        offset += len(record) + 16
    if records:
        assert (tmp_path / "index").read_text() == "".join(expected)


def test_a_plain_file_that_starts_like_gzip_is_read(tmp_path: Path) -> None:
    record = bytes(0x088B1F)  # its length has gzip's first bytes
    path = write_records(tmp_path / "records", [record])
    assert Path(path).read_bytes()[:3] == b"\x1f\x8b\x08"
    assert list(read_records(path)) == [record]


@pytest.mark.parametrize("end", [1, 11, 12, 15, 16 + 100 - 1, -1, -4, -5, -116 + 3])
def test_a_truncated_file_is_one_sentence(end: int, tmp_path: Path) -> None:
    path = write_records(tmp_path / "records", [bytes(100), bytes(100), bytes(100)])
    content = Path(path).read_bytes()[:end]
    Path(path).write_bytes(content)
    number = len(content) // 116
    sentence = rf"records: record {number + 1} at byte {116 * number} is truncated; make or fetch the file again\."
    with pytest.raises(UnusableInputError, match=sentence):
        index_tfrecord(path, str(tmp_path / "index"))
    with pytest.raises(UnusableInputError, match=sentence):
        count_records(path)
    assert {p.name for p in tmp_path.iterdir()} == {"records"}


@pytest.mark.parametrize("place", range(116))
def test_any_damaged_byte_is_one_sentence(place: int, tmp_path: Path) -> None:
    path = write_records(tmp_path / "records", [bytes(100), bytes(100)])
    content = bytearray(Path(path).read_bytes())
    content[116 + place] ^= 1 << random.Random(place).randrange(8)
    Path(path).write_bytes(content)
    what = "a length" if place < 12 else "data"
    with pytest.raises(UnusableInputError, match=f"record 2 at byte 116 has {what} that does not fit its checksum"):
        list(read_records(path))


@pytest.mark.parametrize("size", [1 << 40, 1 << 62, (1 << 63) - 16, (1 << 63) - 1])
def test_a_length_that_no_file_has_is_one_sentence(size: int, tmp_path: Path) -> None:
    length = struct.pack("<Q", size)
    (tmp_path / "records").write_bytes(length + struct.pack("<I", oracle.masked_crc(length)) + bytes(100))
    with pytest.raises(UnusableInputError, match=r"record 1 at byte 0 has [0-9,]+ bytes; no reader takes"):
        list(read_records(str(tmp_path / "records")))


def test_a_damaged_gzip_file_is_one_sentence(tmp_path: Path) -> None:
    content = PICKED.read_bytes()
    for damaged in (content[:1000], content[:5000] + bytes(100) + content[5100:]):
        (tmp_path / "x.gz").write_bytes(damaged)
        with pytest.raises(UnusableInputError, match=r"x\.gz: (this gzip file is truncated or damaged|record \d+ at)"):
            count_records(str(tmp_path / "x.gz"))


def test_text_is_no_tfrecord(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a sentence that is no record\n" * 9)
    with pytest.raises(UnusableInputError, match="the file is damaged, or no TFRecord"):
        count_records(str(tmp_path / "text"))


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert count_records(str(tmp_path / "empty")) == 0
