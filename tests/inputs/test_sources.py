"""Sources: the plain bytes of a range in every container; damage is one sentence."""

import bz2
import gzip
import itertools
import lzma
import zlib
from pathlib import Path

import pytest
from made_up.dump_files import CONTAINERS
from made_up.input_files import SMALL, read_units, write_file
from oracles import dump as oracle_dump

from maskmill.errors import UnusableInputError
from maskmill.inputs.sources import Source, is_splittable
from maskmill.text.file_kinds import container_of


def test_zeros_may_follow_gzip_and_xz_data(tmp_path: Path) -> None:
    for packed in (gzip.compress(SMALL, mtime=0) + b"\0" * 100, lzma.compress(SMALL) + b"\0" * 4):
        assert read_units(write_file(tmp_path, packed)) == oracle_dump.read_pages(SMALL)


@pytest.mark.builds
@pytest.mark.parametrize("container", ["plain", "gz", "xz"])
def test_a_bomb_is_unpacked_in_pieces(container: str, tmp_path: Path) -> None:
    packed = CONTAINERS[container](b"\n" * 50_000_000)
    path = write_file(tmp_path, packed)
    with Source(path, container, 0, len(packed)) as source:
        sizes = []
        while chunk := source.read():
            sizes.append(len(chunk))
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= 1 << 20


def drain(source: Source) -> bytes:
    return b"".join(iter(source.read, b""))


@pytest.mark.parametrize(
    ("head", "container"),
    [
        (b"BZh91AY&SY", "bz2"),
        (b"BZh0", "plain"),
        (b"\x1f\x8b\x08\x00", "gz"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"<mediawiki", "plain"),
        (b"", "plain"),
    ],
)
def test_the_container_of_a_file(head: bytes, container: str) -> None:
    assert container_of(head) == container
    assert is_splittable(container) == (container in ("plain", "bz2"))


@pytest.mark.parametrize("name", ["gz", "gz members", "xz", "xz streams"])
def test_a_file_that_cannot_be_cut_owns_all_its_bytes(name: str, tmp_path: Path) -> None:
    packed = CONTAINERS[name](SMALL)
    with Source(write_file(tmp_path, packed), name[:2], 0, len(packed)) as source:
        assert source.own is None
        assert drain(source) == SMALL
        assert source.own == len(SMALL)
        assert source.read() == b""


@pytest.mark.parametrize(("name", "container"), [("plain", "plain"), ("tiny blocks", "bz2"), ("many streams", "bz2")])
@pytest.mark.parametrize("size", [1, 90, 1000])
def test_ranges_own_every_byte_once_and_read_on_behind_them(
    name: str, container: str, size: int, tmp_path: Path
) -> None:
    packed = CONTAINERS[name](SMALL)
    path = write_file(tmp_path, packed)
    owned = []
    for start, end in itertools.pairwise([*range(0, len(packed), size), len(packed)]):
        with Source(path, container, start, end) as source:
            plain = drain(source)
            assert source.own is not None
            assert SMALL.endswith(plain)
            owned.append(plain[: source.own])
    assert b"".join(owned) == SMALL


def test_a_range_without_a_block_owns_nothing(tmp_path: Path) -> None:
    packed = bz2.compress(SMALL)
    with Source(write_file(tmp_path, packed), "bz2", 10, 20) as source:
        assert source.own == 0


def test_an_xz_file_may_not_take_more_memory_than_a_limit(tmp_path: Path) -> None:
    # The size of the dictionary stands in the header of the block, which its own checksum guards.
    packed = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}])
    block_header = slice(12, 24)
    header = bytearray(packed[block_header])
    header[4] = 39  # 3 GB
    header[8:12] = zlib.crc32(bytes(header[:8])).to_bytes(4, "little")
    path = write_file(tmp_path, packed[:12] + bytes(header) + packed[24:])
    with (
        pytest.raises(UnusableInputError, match=r"the xz data is damaged .*[Mm]emory"),
        Source(path, "xz", 0, Path(path).stat().st_size) as source,
    ):
        source.read()
