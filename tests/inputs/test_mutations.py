"""Damaged files of every format: each gives what Python's library reads from it, or one sentence."""

import bz2
import gzip
import io
import json
import lzma
import random
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from data_sets.damage import mutations
from made_up import bzip2_writer
from made_up.input_files import READING, SMALL, write_file
from oracles import dump as oracle_dump

from maskmill.errors import UnusableInputError
from maskmill.inputs.items import Document, RejectedPage
from maskmill.inputs.mediawiki import Page
from maskmill.inputs.plain_text import plain_text
from maskmill.inputs.sources import Source
from maskmill.inputs.units import plan_units, read_unit
from maskmill.storage import files

pytestmark = pytest.mark.long

TEXTS = [" ".join(random.Random(k).choices(["apple", "pear", "Äpfel", "語"], k=k % 20 + 1)) for k in range(60)]


def check_sentence(error: UnusableInputError, path: str) -> None:
    assert str(error).startswith(f"{path}: ")
    assert "\n" not in str(error)


def unpacked(path: str, container: str) -> bytes | None:
    """What a whole file holds; None where it is unusable."""
    try:
        with Source(path, container, 0, files.size(path)) as source:
            return b"".join(iter(source.read, b""))
    except UnusableInputError as error:
        check_sentence(error, path)
        return None


def by_library(unpack: Callable[[bytes], bytes], packed: bytes) -> bytes | None:
    try:
        return unpack(packed)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error):
        return None


@pytest.mark.parametrize(
    ("container", "pack", "unpack"),
    [
        ("bz2", bz2.compress, bz2.decompress),
        ("bz2", lambda text: bz2.compress(text[:900], 1) + bz2.compress(text[900:]), bz2.decompress),
        (
            "bz2",
            lambda text: bzip2_writer.stream([bzip2_writer.block(b) for b in (text[:99], text[:9])]),
            bz2.decompress,
        ),
        ("gz", lambda text: gzip.compress(text, mtime=0), gzip.decompress),
        ("gz", lambda text: gzip.compress(text[:900], mtime=0) + gzip.compress(text[900:], mtime=0), gzip.decompress),
        ("xz", lzma.compress, lzma.decompress),
        ("xz", lambda text: lzma.compress(text[:900]) + lzma.compress(text[900:]), lzma.decompress),
    ],
    ids=["bz2", "bz2-streams", "bz2-blocks", "gz", "gz-members", "xz", "xz-streams"],
)
def test_damaged_containers(
    container: str, pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    whole = pack(SMALL)
    for damaged in mutations(whole, 1):
        found = unpacked(write_file(tmp_path, damaged, "x"), container)
        assert found is None or found == by_library(unpack, damaged)


def read(path: str) -> list[Page | Document | RejectedPage] | None:
    """What the units of a file give; None where it is unusable."""
    try:
        return [item for unit in plan_units(files.match(path), reading=READING) for item in read_unit(unit, READING)]
    except UnusableInputError as error:
        check_sentence(error, path)
        return None


def test_damaged_json_lines(tmp_path: Path) -> None:
    whole = "".join(json.dumps({"id": k, "text": text}, ensure_ascii=k % 2 == 0) + "\n" for k, text in enumerate(TEXTS))
    for damaged in mutations(whole.encode(), 3):
        found = read(write_file(tmp_path, damaged, "x.jsonl"))
        if found is not None:
            lines = [line for line in damaged.split(b"\n") if line.strip()]
            assert found == [
                expected if isinstance(item, Document) else item
                for item, expected in zip(found, map(json_document, lines), strict=True)
            ]


def json_document(line: bytes) -> Document | None:
    """The document of a line by Python's library; None where it has none."""
    try:
        return Document(document_id="", title=b"", text=plain_text(json.loads(line)["text"].encode()), language="")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def test_damaged_dumps(tmp_path: Path) -> None:
    for damaged in mutations(SMALL, 4):
        found = read(write_file(tmp_path, damaged, "x.xml"))
        try:
            pages = oracle_dump.read_pages(damaged)
        except (ElementTree.ParseError, ValueError, IndexError):
            continue  # a whole XML parser gives up where one page is damaged
        if found is not None:
            assert [item for item in found if isinstance(item, Page)] == [
                page for item, page in zip(found, pages, strict=True) if isinstance(item, Page)
            ]


# ---- Parquet

PARQUET_OPTIONS = {
    "snappy": {"row_group_size": 20},
    "zstd": {"compression": "zstd", "data_page_version": "2.0"},
    "gzip": {"compression": "gzip", "use_dictionary": False},
    "plain": {"compression": "none", "use_dictionary": False, "store_schema": False},
    "delta": {"compression": "lz4", "use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
}
# Reads the files that it is told, in a process of its own, since the library may abort.
BY_LIBRARY = """
import json, sys
import pyarrow.parquet
for path in map(str.strip, sys.stdin):
    try:
        with open(path, "rb") as file:
            print(json.dumps(pyarrow.parquet.ParquetFile(file).read(columns=["text"])["text"].to_pylist()), flush=True)
    except Exception:
        print("null", flush=True)
"""


def texts_by_library(paths: list[str]) -> list[list[str | None] | None]:
    """The texts of Parquet files as pyarrow reads them; None where it cannot."""
    texts: list[list[str | None] | None] = []
    while len(texts) < len(paths):
        done = subprocess.run(
            [sys.executable, "-c", BY_LIBRARY],
            input="\n".join(paths[len(texts) :]).encode(),
            capture_output=True,
            check=False,
        )
        texts += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode and len(texts) < len(paths):  # it may crash when it has answered all, too
            texts.append(None)
    return texts


@pytest.mark.builds
@pytest.mark.parametrize("name", PARQUET_OPTIONS)
def test_damaged_parquet(name: str, tmp_path: Path) -> None:
    whole = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": TEXTS}), whole, **PARQUET_OPTIONS[name])
    paths = [write_file(tmp_path, damaged, f"{k}.parquet") for k, damaged in enumerate(mutations(whole.getvalue(), 5))]
    # A file that does not start with its mark is another format.
    paths = [path for path in paths if files.read_range(path, 0, 4) == b"PAR1"]
    for path, expected in zip(paths, texts_by_library(paths), strict=True):
        found = read(path)
        if found is not None and expected is not None:
            texts = [item.text.decode() if isinstance(item, Document) else None for item in found]
            assert texts == [text if text is None else plain_text(text.encode()).decode() for text in expected]
