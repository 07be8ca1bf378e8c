"""The format of a file, by its content, its name and what the user says."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up.input_files import SMALL, format_of, write_file

from maskmill.errors import UnusableInputError
from maskmill.text.lookalikes import no_text_shard


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("a.xml", SMALL, "mediawiki"),
        ("a", SMALL, "mediawiki"),
        ("a.txt", b'<doc id="1" url="" title="A">\nA\n\n</doc>\n', "wikiextractor"),
        ("a.jsonl", b'{"text": "a"}\n', "jsonl"),
        ("a", b'{"text": "a"}\n{}', "jsonl"),
        ("a.txt", b"{ a brace\n", "text"),
        ("a.txt", b"< 3 apples", "text"),
        ("a", gzip.compress(b"text", mtime=0), "text"),
        ("a", b"BZhang wrote this", "text"),
    ],
)
def test_formats_are_told_by_content(name: str, content: bytes, found: str, tmp_path: Path) -> None:
    assert format_of(write_file(tmp_path, content, name)) == found


ERROR_PAGE = b"503 Service Unavailable. Try again later.\n"


@pytest.mark.parametrize(
    "suffix",
    [
        *("bz2", "gz", "xz", "zst", "7z", "zip", "lz4", "GZ", "tgz", "tbz2", "txz", "tar", "lzma", "Z", "rar", "br"),
        *("bz", "bzip2", "gzip", "tbz", "tzst"),
    ],
)
def test_a_name_that_says_packed_is_no_plain_file(suffix: str, tmp_path: Path) -> None:
    kind = suffix.lower()
    for content in (ERROR_PAGE, b"<!DOCTYPE html><html>404</html>", b'{"text": "a"}\n', SMALL):
        path = write_file(tmp_path, content, f"enwiki-20260301-pages-articles1.xml-p1p2.{suffix}")
        # However the text is to be taken, it was to be unpacked first.
        for input_format in ("auto", "text", "jsonl", "mediawiki"):
            with pytest.raises(UnusableInputError, match=f"this is no {kind} file, although its name says so"):
                format_of(path, input_format)
        shard = write_file(tmp_path, ERROR_PAGE, f"part-00000-of-00001.{suffix}")
        assert no_text_shard(shard) == f"plain text under the name of another file ({kind})"


@pytest.mark.parametrize(("suffix", "pack"), [("tgz", gzip.compress), ("gzip", gzip.compress), ("bz", bz2.compress)])
def test_a_container_has_several_names(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    assert format_of(write_file(tmp_path, pack(SMALL), f"a.{suffix}")) == "mediawiki"


def test_a_name_that_says_packed_otherwise_does_not_agree(tmp_path: Path) -> None:
    path = write_file(tmp_path, gzip.compress(SMALL), "a.xml.bz2")
    with pytest.raises(UnusableInputError, match="this is no bz2 file, although its name says so"):
        format_of(path)


@pytest.mark.parametrize(
    "name",
    [
        "a.parquet", "a.xml", "a.xml-p1p41242", "a.jsonl", "a.ndjson", "a.json", "a.html", "a.pdf", "a.tfrecord",
        *(f"a.{inner}.gz" for inner in ("xml", "xml-p1p41242", "parquet", "jsonl")),
    ],
)  # fmt: skip
def test_a_name_that_says_a_format_is_no_plain_text(name: str, tmp_path: Path) -> None:
    packed = gzip.compress(ERROR_PAGE) if name.endswith(".gz") else ERROR_PAGE
    path = write_file(tmp_path, packed, name)
    with pytest.raises(UnusableInputError, match=r"this is not [A-Z]+, although its name .* --input_format text\.$"):
        format_of(path)
    assert format_of(path, "text") == "text"


def test_json_lines_may_begin_with_a_bad_one(tmp_path: Path) -> None:
    assert format_of(write_file(tmp_path, b'garbage\n{"text": "a"}\n', "a.jsonl")) == "jsonl"
    assert format_of(write_file(tmp_path, b'{"text": "a\n', "a.jsonl")) == "jsonl"


@pytest.mark.parametrize("start", [b"<!-- made by x -->\n<html>", b"<head><title>", b"<BODY bgcolor=white>"])
def test_a_page_is_html_without_its_doctype(start: bytes, tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="this looks like HTML"):
        format_of(write_file(tmp_path, start + b"404 Not Found", "a"))


def test_a_format_that_is_asked_for(tmp_path: Path) -> None:
    path = write_file(tmp_path, SMALL, "a.xml")
    assert format_of(path, "mediawiki") == "mediawiki"
    assert format_of(path, "text") == "text"
    assert format_of(write_file(tmp_path, b"<html> is a tag", "x.xml"), "text") == "text"
    path = write_file(tmp_path, SMALL, "a.xml")
    with pytest.raises(UnusableInputError, match="is no Parquet file, it looks like a MediaWiki XML dump"):
        format_of(path, "parquet")
