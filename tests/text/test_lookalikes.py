"""Files that are no training text: each is told by what it has, and no text is taken for one of them."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from command_runs.commands import DUMP, VOCAB
from conftest import DATA
from made_up.input_files import SMALL, format_of, write_file
from made_up.tfrecords import write_records

from maskmill.errors import UnusableInputError
from maskmill.inputs.formats import lies_beside_dump
from maskmill.text.lookalikes import no_text_shard

INDEX = b"627:1:Title\n627:2:A title: with colons\n90210:3:Ein Titel\n"
CSV = b"id,title,text\n" + b"".join(b'%d,T%d,"Some text, and more."\n' % (k, k) for k in range(9))
TSV = b"".join(b"%d\tSome text, and more.\n" % k for k in range(9))
SQL = b"-- MySQL dump 10.19\n--\n-- Host: db\n\nCREATE TABLE `page` (\n"
TITLES = b"page_title\n!\n!!\nA_Title\n"
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"
MD5 = b"d41d8cd98f00b204e9800998ecf8427e  enwiki-20260301-pages-articles.xml.bz2\n"


def packed_in(archive: Callable[[io.BytesIO], object]) -> bytes:
    content = io.BytesIO()
    archive(content)
    return content.getvalue()


def make_zip(content: io.BytesIO) -> None:
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.txt", "text")


def make_tar(content: io.BytesIO) -> None:
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(VOCAB, "vocab.txt")


TAR = packed_in(make_tar)


def _short(value: object) -> str | None:
    """The name of a parameter's value: packed bytes hold the time, and differ from process to process."""
    return "content" if isinstance(value, bytes) else None


TEXT_LOOKALIKES = {
    "index": ("a.txt", INDEX, "the index of a multistream dump"),
    "packed-index": ("a.txt.bz2", bz2.compress(INDEX), "the index of a multistream dump"),
    "index-by-name": ("wiki-20260301-pages-articles-multistream-index1.txt-p1p2", b"x", "the index of a multistream"),
    "checksums": ("md5sums.txt", MD5 * 3, "a list of checksums"),
    "eval-md5": ("eval.md5", b"d41d8cd98f00b204e9800998ecf8427e\n" * 2, "a list of checksums"),
    "json-array": ("a.json", json.dumps([{"text": "a"}, {"text": "b"}]).encode(), "a JSON array"),
    "long-json-array": ("a", json.dumps([{"text": "word " * 30_000}]).encode(), "a JSON array"),
    "array-of-texts": ("a", json.dumps(["text " * 9] * 9_000, indent=1).encode(), "a JSON array"),
    "json-document": ("a.json", json.dumps({"pages": [{"text": "a"}]}, indent=2).encode(), "one JSON document"),
    "csv": ("a.csv", b"title;text\nA;B\n", "a CSV or TSV table"),
    "csv-by-content": ("a", CSV, "a CSV or TSV table"),
    "tsv-by-content": ("a.txt", TSV, "a CSV or TSV table"),
    "mysql": ("a.sql", SQL, "an SQL dump"),
    "insert": ("a", b"\n-- a comment\n\nINSERT INTO `page` VALUES (1,'a');\n", "an SQL dump"),
    "html": ("a", b"<!doctype HTML>\n<html><body>", "HTML"),
    "titles": ("wiki-20260301-all-titles-in-ns0.gz", gzip.compress(TITLES), "a list of a wiki's titles"),
    "lfs-pointer": ("a.txt", LFS_POINTER, "a pointer of Git LFS; fetch the file"),
    "lfs-pointer-for-parquet": ("a.parquet", LFS_POINTER, "a pointer of Git LFS; fetch the file"),
    "warc": ("a.warc", b"WARC/1.0\r\nWARC-Type: warcinfo\r\n", "a WARC file"),
    "rtf": ("a.rtf", b"{\\rtf1\\ansi Hello}", "RTF"),
    "postscript": ("a.ps", b"%!PS-Adobe-3.0\n", "PostScript"),
    "record-index": ("a.tfrecord.idx", b"0 315\n315 315\n630 315\n", "the index"),
    "vocabulary": ("v.txt", VOCAB.read_bytes(), "a WordPiece vocabulary"),
}
BINARY_LOOKALIKES = {
    "zip": ("a.zip", packed_in(make_zip), "packed with zip, which is not read; unpack it first"),
    "tar": ("a.tar", TAR, "a tar archive; unpack it first"),
    "tar-xz": ("a.tar.xz", lzma.compress(TAR), "a tar archive; unpack it first"),
    "7z": ("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "packed with 7z, which is not read; unpack it first"),
    "zstd": ("a.zst", b"\x28\xb5\x2f\xfd\x04\0", "packed with zstd, which is not read; unpack"),
    "pdf": ("a.pdf", b"%PDF-1.7\n%\xe2\xe3\n", r"a PDF; turn it into text first \(pdftotext\)"),
    "utf-16": ("a.txt", "Some text.".encode("utf-16"), r"UTF-16 text; convert it to UTF-8 first \(iconv -f UTF-16"),
    "bare-utf-16": ("a.txt", "Some text.\n".encode("utf-16-le"), "UTF-16 text; convert it"),
    "utf-32": ("a.txt", "Some text.".encode("utf-32"), "UTF-32 text; convert it"),
    "bytes": ("a", bytes(range(256)) * 9, "binary data"),
}
# Beginnings of texts that come near to one of the lookalikes.
TEXTS = {
    "footnote": b"[1] A footnote stands here.\n[2] Another one.\n",
    "brackets": b'["Hello," she said, and left.]\n',
    "braces": b"{ this is how a text in a strange language begins }\n",
    "verses": b"1:1:In the beginning was the word.\n1:2:And so on.\n",
    "times": b"12:30:45 the train arrives.\n12:31:00 it leaves.\n",
    "numbers": b"1 2\n3 4\n5 6\n",
    "commas": b"The first, the second, the third.\n" * 60,
    "one-comma": b"Roses are red,violets are blue\n" * 60,
    "indented": b"\tA paragraph begins with a tab.\n" * 60,
    "sql-prose": b"INSERT INTO the machine a coin, and wait.\n",
    "dashes": b"-- What is it? --\n-- A dump of thoughts --\n" + b"\n" * 5_000,
    "less-than": b"<3 is a heart. <html> is a tag.\n",
    "hash": b"d41d8cd98f00b204e9800998ecf8427e is the checksum of nothing.\n",
    "percent": b"%PDF is how a PDF begins.\n",
    "pieces": b"[CLS] and [SEP] are special.\n[PAD]\n[MASK]\n[UNK]\n",
    "lone-quote": b'"A quote, that, is, never closed.\n' * 9,
    "zip": b"PK is the name of a park.\n",
    "version": b"version https://example.org/spec/v1 is the newest.\n",
    "page-title": b"page_title is a column.\n",
}


@pytest.mark.parametrize("case", TEXT_LOOKALIKES)
def test_what_is_no_text_is_named_and_taken_only_when_it_is_asked_for(case: str, tmp_path: Path) -> None:
    name, content, says = TEXT_LOOKALIKES[case]
    path = write_file(tmp_path, content, name)
    with pytest.raises(UnusableInputError, match=rf": this looks like {says}.*, or take it .* --input_format text\.$"):
        format_of(path)
    assert format_of(path, "text") == "text"


@pytest.mark.parametrize("case", BINARY_LOOKALIKES)
def test_binary_data_is_named_and_never_taken(case: str, tmp_path: Path) -> None:
    name, content, says = BINARY_LOOKALIKES[case]
    path = write_file(tmp_path, content, name)
    for input_format in ("auto", "text", "jsonl", "mediawiki"):
        with pytest.raises(UnusableInputError, match=rf": this .*{says}"):
            format_of(path, input_format)


def test_tfrecords_are_told_by_their_checksum(tmp_path: Path) -> None:
    path = write_records(tmp_path / "a", [b"record", b"another"])
    with pytest.raises(UnusableInputError, match="this looks like a TFRecord file; name the text"):
        format_of(path)


@pytest.mark.parametrize("case", TEXTS)
def test_texts_that_come_near_are_texts(case: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, TEXTS[case], "a.txt")
    assert format_of(path) == "text"
    assert no_text_shard(path) is None
    assert lies_beside_dump(path) is None


def test_the_samples_of_this_repository_are_what_they_are() -> None:
    shards = list((DATA / "gold" / "pretraining").glob("*.txt"))
    assert shards
    assert [path.name for path in shards if no_text_shard(str(path)) is not None] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (SMALL, "a MediaWiki XML dump"),
        (DUMP.read_bytes(), "a file packed by bz2"),
        (b'<doc id="1" url="" title="A">\nA\n\n</doc>\n', "a file of WikiExtractor's <doc> elements"),
        (b'{"text": "a"}\n{"text": "b"}\n', "a JSON lines file"),
        (INDEX, "the index of a multistream dump"),
        (CSV, "a CSV or TSV table"),
        (TAR, "a tar archive"),
    ],
    ids=_short,
)
def test_what_is_no_text_shard_is_named(content: bytes, says: str, tmp_path: Path) -> None:
    assert no_text_shard(write_file(tmp_path, content, "part-00000-of-00001")) == says


def test_a_parquet_file_is_no_text_shard(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), tmp_path / "a")
    assert no_text_shard(os.fspath(tmp_path / "a")) == "a Parquet file"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("x-20260301-all-titles-in-ns0.gz", gzip.compress(TITLES), "a list of a wiki's titles"),
        (
            "x-20260301-multistream-index.txt.bz2",
            bz2.compress(INDEX),
            "the index of a multistream dump",
        ),
        ("x-multistream-index1.txt-p1p41242.bz2", bz2.compress(INDEX), "the index of a multistream dump"),
        ("x-multistream-index1.txt-p1p41242", INDEX, "the index of a multistream dump"),
        ("renamed.txt", INDEX, "the index of a multistream dump"),
        ("enwiki-20260301-md5sums.txt", MD5, "a list of checksums"),
        ("book.txt", b"Just text.\n", None),
        ("dump.xml", SMALL, None),
        ("articles.jsonl", b'{"text": "a"}', None),
    ],
    ids=_short,
)
def test_what_lies_beside_a_dump(name: str, content: bytes, what: str | None, tmp_path: Path) -> None:
    assert lies_beside_dump(write_file(tmp_path, content, name)) == what
