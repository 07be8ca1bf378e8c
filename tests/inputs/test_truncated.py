"""Files that are cut off: what stands before the cut is taken where the user wants it, in every container."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up.dump_files import CONTAINERS
from made_up.input_files import SMALL, write_file
from oracles import dump as oracle_dump

from maskmill.errors import UnusableInputError
from maskmill.inputs.items import CutOff, Document
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import plan_units, read_unit
from maskmill.storage import files

KEEPING = ReadOptions(keep_truncated=True)
UNPACKERS: dict[str, Callable[[], object]] = {
    "plain": lambda: None,
    "tiny blocks": bz2.BZ2Decompressor,
    "many streams": bz2.BZ2Decompressor,
    "bz2": bz2.BZ2Decompressor,
    "gz": lambda: zlib.decompressobj(wbits=31),
    "xz": lzma.LZMADecompressor,
}


def before_the_cut(container: str, packed: bytes) -> bytes:
    """The plain bytes in front of the cut of a packed file, as Python's library gives them."""
    plain = b""
    while packed and (unpacker := UNPACKERS[container]()) is not None:
        plain += unpacker.decompress(packed)  # type: ignore[attr-defined]
        packed = unpacker.unused_data  # type: ignore[attr-defined]
    return plain or packed


def read(path: str, unit_bytes: int = 1 << 20, reading: ReadOptions = KEEPING) -> tuple[list[object], list[CutOff]]:
    """What the units of a file give, and what they say of its cut."""
    units = plan_units(files.match(path), unit_bytes=unit_bytes, reading=reading)
    items = [item for unit in units for item in read_unit(unit, reading)]
    return [item for item in items if not isinstance(item, CutOff)], [
        item for item in items if isinstance(item, CutOff)
    ]


@pytest.mark.builds
@pytest.mark.parametrize("container", UNPACKERS)
def test_the_pages_before_the_cut_of_a_dump(container: str, tmp_path: Path) -> None:
    pages = oracle_dump.read_pages(SMALL)
    packed = CONTAINERS[container](SMALL)
    first = SMALL.index(b"<page>")
    for size in range(len(packed) // 3, len(packed), max(1, len(packed) // 60)):
        plain = before_the_cut(container, packed[:size])
        if len(plain) <= first:
            continue
        whole = plain.count(b"</page>")
        whole -= SMALL[: len(plain)].count(b"&lt;/page>")
        path = write_file(tmp_path, packed[:size])
        for unit_bytes in (100, 1 << 20):
            found, cuts = read(path, unit_bytes)
            assert found == pages[:whole], size
            assert cuts or b"</mediawiki>" in plain
            assert sum(cut.title is not None for cut in cuts) <= 1
        with pytest.raises(UnusableInputError, match=r"cut off.*--keep_truncated"):
            read(path, reading=ReadOptions())


def test_the_page_that_is_cut_is_named(tmp_path: Path) -> None:
    last = SMALL.rindex(b"<page>")
    in_title = SMALL.index(b"<title>Long") + 9
    for size, title in ((in_title, "Lo"), (last + 200, "Long"), (last + 8, "(no title)"), (last, None)):
        assert read(write_file(tmp_path, SMALL[:size]))[1] == [CutOff(title=title)]


def test_a_whole_dump_has_no_cut(tmp_path: Path) -> None:
    for container, pack in CONTAINERS.items():
        for unit_bytes in (7, 100, 1 << 20):
            found, cuts = read(write_file(tmp_path, pack(SMALL)), unit_bytes)
            assert (found, cuts) == (oracle_dump.read_pages(SMALL), []), (container, unit_bytes)


LINES = b"".join(b'{"text": "line %d"}\n' % k for k in range(500))
BLOCKS = b"\n\n".join(b"Block %d." % k for k in range(500))
DOCS = b"".join(b'<doc id="%d" url="" title="T%d">\nT%d\n\nText.\n</doc>\n' % (k, k, k) for k in range(500))


@pytest.mark.parametrize("pack", [lambda c: gzip.compress(c, mtime=0), lzma.compress, lambda c: bz2.compress(c, 1)])
@pytest.mark.parametrize("content", [LINES, BLOCKS, DOCS], ids=["jsonl", "text", "docs"])
def test_documents_before_the_cut(content: bytes, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    whole, _ = read(write_file(tmp_path, content))
    two_streams = pack(content) + pack(content)[:-7]
    found, cuts = read(write_file(tmp_path, two_streams))
    assert len(found) >= len(whole) - 1  # where the streams meet, two blocks of plain text are one
    assert all(isinstance(item, Document) for item in found)
    assert len(cuts) == 1


def test_a_plain_file_whose_last_record_is_cut(tmp_path: Path) -> None:
    assert read(write_file(tmp_path, LINES[:-4]))[1] == [CutOff(title='{"text": "line 49')]
    assert read(write_file(tmp_path, DOCS[:-4]))[1] == [
        CutOff(title='<doc id="499" url="" title="T499"> T499 Text. </d')
    ]
    whole = ReadOptions(keep_truncated=True, text_documents="file")
    assert read(write_file(tmp_path, gzip.compress(BLOCKS)[:-9], "a.txt.gz"), reading=whole) == (
        [],
        [CutOff(title="a.txt.gz")],
    )
