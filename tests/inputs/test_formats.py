"""The format of a file, by its content, its name and what the user says."""

import gzip
from pathlib import Path

import pytest
from input_files import SMALL, write_file

from transforms.errors import UnusableInputError
from transforms.inputs.formats import detect_format


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
    assert detect_format(write_file(tmp_path, content, name)) == found


def test_a_format_that_is_asked_for(tmp_path: Path) -> None:
    path = write_file(tmp_path, SMALL, "a.xml")
    assert detect_format(path, "mediawiki") == "mediawiki"
    assert detect_format(path, "text") == "text"
    assert detect_format(write_file(tmp_path, b"<html> is a tag", "x.xml"), "text") == "text"
    path = write_file(tmp_path, SMALL, "a.xml")
    with pytest.raises(UnusableInputError, match="is no Parquet file, it looks like a MediaWiki XML dump"):
        detect_format(path, "parquet")
