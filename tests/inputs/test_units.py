"""Units: their sizes, and input that cannot be used, in one sentence."""

import bz2
import gzip
from pathlib import Path

import pytest
from made_up.dump_files import tiny_blocks
from made_up.input_files import READING, SMALL, write_file

from maskmill.errors import UnusableInputError
from maskmill.inputs.units import Unit, plan_units, read_unit
from maskmill.storage import files


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xml", b"", "this input is empty"),
        ("a.xml.gz", gzip.compress(b"", mtime=0), "empty once it is unpacked"),
        ("a.xml.bz2", bz2.compress(b" \n"), "empty once it is unpacked"),
        ("a.xml", SMALL.decode().encode("utf-16"), "UTF-16 text; convert it to UTF-8"),
        ("a.xml", b"<html><body></body></html>", "looks like HTML"),
        ("a.xml", b"<?xml version='1.0'?><rss></rss>", "no MediaWiki dump"),
        ("a.xml.bz2", bz2.compress(b"Just text."), "not XML, although its name says so"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "unpack it first"),
        ("a.xml", SMALL[:-40], "the XML is cut off: it does not end with </mediawiki>"),
        ("a.xml", SMALL.replace(b"</mediawiki>", b""), "the XML is cut off"),
        ("a.xml", SMALL + b"<page>", "the XML is cut off"),
        ("a.xml.bz2", bz2.compress(SMALL[:-40]), "the XML is cut off"),
        ("a.xml.bz2", bz2.compress(SMALL)[:-40], "the file is cut off: it ends at byte"),
        ("a.xml.bz2", tiny_blocks(200)(SMALL)[:-40], "the file is cut off: it ends at byte"),
        ("a.xml.bz2", bz2.compress(SMALL) + b"garbage", "no further bzip2 stream starts there"),
        ("a.xml.bz2", b"BZh9 is no bzip2", "starts with neither a block nor its end"),
        ("a.xml.gz", b"\x1f\x8b is no gzip", "the gzip data is damaged"),
        ("a.xml.xz", b"\xfd7zXZ\0 is no xz file", "the xz data is damaged"),
    ],
)
def test_unusable_input_is_seen_when_units_are_planned(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, content, name)
    with pytest.raises(UnusableInputError) as caught:
        plan_units(files.match(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_units_are_of_a_good_size(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"text", "x.txt")

    def sizes(size: int) -> set[int]:
        units = plan_units([files.FileInfo(path=path, size=size)])
        assert (units[0].start, units[-1].end) == (0, size)
        return {unit.end - unit.start for unit in units}

    assert sizes(10 << 30) == {64 << 20}
    assert sizes(80 << 20) == {16 << 20}
    assert sizes(100) == {100}


def test_a_file_that_is_gone() -> None:
    with pytest.raises(UnusableInputError, match="does not exist"):
        list(read_unit(Unit(path="/no/such", start=0, end=9, format="mediawiki", container="plain"), READING))
