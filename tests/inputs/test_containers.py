"""Where readers are stricter or laxer than Python's libraries, as docs/extraction.md says in a table."""

import bz2
import contextlib
import gzip
import itertools
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from made_up.bzip2_writer import block, stream, with_wrong_checksum
from made_up.input_files import READING, SMALL, write_file

from maskmill.errors import UnusableInputError
from maskmill.inputs.batches import digest_input
from maskmill.inputs.items import RejectedPage
from maskmill.inputs.sources import Source
from maskmill.inputs.units import plan_units, read_unit
from maskmill.storage import files

WRONG = "the checksum of the stream that ends there is wrong"
BLOCKS = [block(b"The quick brown fox"), block(b"jumps over")]


def read(path: str, container: str, cuts: tuple[int, ...] = ()) -> bytes:
    """The bytes that the ranges of a file own, one after the other; `cuts` are the ranges' bounds inside the file."""
    parts = []
    for start, end in itertools.pairwise([0, *cuts, files.size(path)]):
        with Source(path, container, start, end) as source:
            parts.append(b"".join(iter(source.read, b""))[: source.own])
    return b"".join(parts)


def gzip_with_header(flags: int, checksum: bytes = b"") -> bytes:
    """A gzip file with these flags in its header, and what they announce after it."""
    packed = gzip.compress(SMALL, mtime=0)
    return packed[:3] + bytes([flags]) + packed[4:10] + checksum + packed[10:]


HEADER_CHECKSUM = zlib.crc32(gzip_with_header(2)[:10]).to_bytes(4, "little")[:2]


@pytest.mark.parametrize(
    ("container", "unpack", "packed", "sentence"),
    [
        ("bz2", bz2.decompress, bz2.compress(SMALL) + b"garbage", "no further bzip2 stream starts there"),
        ("bz2", bz2.decompress, bz2.compress(SMALL) + bytes(9), "no further bzip2 stream starts there"),
        ("gz", gzip.decompress, gzip_with_header(2, b"xx"), "header crc mismatch"),
        ("gz", gzip.decompress, gzip_with_header(0x80), "unknown header flags"),
        ("xz", lzma.decompress, lzma.compress(SMALL) + b"garbage", "something else follows its last stream"),
    ],
    ids=["bz2-garbage", "bz2-zeros", "gz-header-checksum", "gz-reserved-flags", "xz-garbage"],
)
def test_stricter_than_the_library(
    container: str, unpack: Callable[[bytes], bytes], packed: bytes, sentence: str, tmp_path: Path
) -> None:
    assert unpack(packed) == SMALL
    with pytest.raises(UnusableInputError, match=sentence):
        read(write_file(tmp_path, packed), container)


def test_a_right_checksum_of_a_gzip_header_is_taken(tmp_path: Path) -> None:
    packed = gzip_with_header(2, HEADER_CHECKSUM)
    assert read(write_file(tmp_path, packed), "gz") == gzip.decompress(packed) == SMALL


def test_xz_reads_on_behind_zeros_where_the_library_stops(tmp_path: Path) -> None:
    for zeros in (bytes(4), bytes(5)):
        packed = lzma.compress(b"one") + zeros + lzma.compress(b"two")
        assert lzma.decompress(packed) == b"one"
        assert read(write_file(tmp_path, packed), "xz") == b"onetwo"


def test_the_old_format_of_lzma_is_not_unpacked(tmp_path: Path) -> None:
    packed = lzma.compress(SMALL, lzma.FORMAT_ALONE)
    assert lzma.decompress(packed) == SMALL
    with pytest.raises(UnusableInputError, match="neither text nor packed in a way that is read"):
        plan_units(files.match(write_file(tmp_path, packed)))


def test_the_checksum_of_a_bzip2_stream_is_compared_by_who_reads_all_of_it(tmp_path: Path) -> None:
    good = stream(BLOCKS)
    bad = with_wrong_checksum(good)
    assert read(write_file(tmp_path, good), "bz2") == bz2.decompress(good) == b"The quick brown foxjumps over"
    with pytest.raises(OSError, match="Invalid data stream"):
        bz2.decompress(bad)
    for packed in (
        bad,
        good + bad,
        bad + good,
        with_wrong_checksum(stream([])),
        good + with_wrong_checksum(stream([])),
    ):
        with pytest.raises(UnusableInputError, match=WRONG):
            read(write_file(tmp_path, packed), "bz2")
    # Readers of ranges that cut the stream do not see it; digest_input does.
    middle = len(BLOCKS[0][0]) // 8
    path = write_file(tmp_path, bad)
    with Source(path, "bz2", middle, files.size(path)) as source:
        assert source.read() == b"jumps over"
    for content, sees in ((good, contextlib.nullcontext()), (bad, pytest.raises(UnusableInputError, match=WRONG))):
        path = write_file(tmp_path, content)
        with sees:
            digest_input((0, files.FileInfo(path=path, size=files.size(path))), "2020-01-01")


def test_a_stream_behind_the_first_of_a_range_is_compared(tmp_path: Path) -> None:
    packed = stream(BLOCKS) + with_wrong_checksum(stream(BLOCKS))
    with (
        pytest.raises(UnusableInputError, match=WRONG),
        Source(write_file(tmp_path, packed), "bz2", 10, len(packed)) as source,
    ):
        while source.read():
            pass


def test_blocks_in_another_order_are_seen(tmp_path: Path) -> None:
    first, second = (bits for bits, _ in BLOCKS)
    whole = stream(BLOCKS)
    bits = "".join(f"{byte:08b}" for byte in whole)
    swapped = bits.replace(first + second, second + first)
    packed = int(swapped, 2).to_bytes(len(whole), "big")
    with pytest.raises(UnusableInputError, match=WRONG):
        read(write_file(tmp_path, packed), "bz2")


def test_a_block_larger_than_the_level_of_its_stream_allows_is_damage(tmp_path: Path) -> None:
    packed = bytearray(bz2.compress(bytes(range(251)) * 800, 9))
    packed[3:4] = b"1"
    with pytest.raises(OSError, match="Invalid data stream"):
        bz2.decompress(packed)
    with pytest.raises(UnusableInputError, match="its checksum or its coding is wrong"):
        read(write_file(tmp_path, bytes(packed)), "bz2")
    packed[3:4] = b"3"
    assert read(write_file(tmp_path, bytes(packed)), "bz2") == bz2.decompress(packed)


def test_the_level_of_a_bzip2_stream_is_not_compared_by_who_reads_a_part_of_it(tmp_path: Path) -> None:
    text = bytes(range(251)) * 8000
    packed = b"BZh1" + bz2.compress(text, 9)[4:]
    with pytest.raises(OSError, match="Invalid data stream"):
        bz2.decompress(packed)
    path = write_file(tmp_path, packed)
    with Source(path, "bz2", 10, len(packed)) as source:
        rest = b"".join(iter(source.read, b""))
    assert len(rest) > 900_000
    assert text.endswith(rest)


def parquet_file(folder: Path, checksums: bool = False) -> tuple[str, bytes]:
    """A Parquet file of one row group that is not packed, and its content."""
    path = str(folder / "x.parquet")
    table = pyarrow.table({"text": [f"some text {k}" for k in range(100)]})
    pyarrow.parquet.write_table(
        table, path, compression="none", use_dictionary=False, write_page_checksum=checksums, store_schema=False
    )
    return path, Path(path).read_bytes()


def texts(path: str) -> list[str | None]:
    return [
        None if isinstance(item, RejectedPage) else item.text.decode()  # type: ignore[union-attr]
        for unit in plan_units(files.match(path), reading=READING)
        for item in read_unit(unit, READING)
    ]


def test_parquet_compares_checksums_where_the_file_has_them(tmp_path: Path) -> None:
    path, content = parquet_file(tmp_path, checksums=True)
    write_file(tmp_path, content.replace(b"some text 7", b"some tent 7", 1), "x.parquet")
    assert pyarrow.parquet.read_table(path)["text"][7].as_py() == "some tent 7"
    with pytest.raises(UnusableInputError, match=r"damaged or cut off \(.*checksum"):
        texts(path)


def test_parquet_rejects_a_row_that_is_not_utf8(tmp_path: Path) -> None:
    path, content = parquet_file(tmp_path)
    write_file(tmp_path, content.replace(b"some text 7", b"some \xffext 7", 1), "x.parquet")
    with pytest.raises(UnicodeDecodeError):
        pyarrow.parquet.read_table(path)["text"].to_pylist()
    found = texts(path)
    assert found[7] is None
    assert found[:7] + found[8:] == [f"some text {k}" for k in range(100) if k != 7]


def test_parquet_counts_the_rows(tmp_path: Path) -> None:
    path, content = parquet_file(tmp_path)
    footer_size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - footer_size : -8]
    hundred = b"\x16\xc8\x01"  # a field of Thrift's compact protocol: 64 bits, 100
    assert footer.count(hundred) >= 2
    first = footer.index(hundred)  # the number of the file's rows stands in front of the row groups
    changed = footer[: first + 1] + b"\xc6\x01" + footer[first + 3 :]
    write_file(tmp_path, content[: -8 - footer_size] + changed + content[-8:], "x.parquet")
    assert pyarrow.parquet.ParquetFile(path).metadata.num_rows == 99
    with pytest.raises(UnusableInputError, match="its row groups have other numbers of rows than the whole"):
        texts(path)
