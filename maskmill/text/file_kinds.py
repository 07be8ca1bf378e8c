"""What a file is, by its first bytes and its name: how it is packed, and whether it may be text."""

import re
from collections.abc import Mapping
from typing import Literal

CONTAINERS = ("plain", "bz2", "gz", "xz")
# Packings that are not read, by the first bytes of a file.
_UNREAD = {b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf\x27\x1c": "7z", b"\x04\x22\x4d\x18": "lz4"}
_MAGIC = {"bz2": rb"BZh[1-9]", "gz": rb"\x1f\x8b", "xz": rb"\xfd7zXZ\x00"}
HEAD_BYTES = 64 << 10  # what is looked at of a file
# Names that promise what a plain text is not: packed by …, of the format ….
_NAMED_PACKED = re.compile(
    r"\.(bz2?|bzip2|tbz2?|gz|gzip|tgz|xz|txz|lzma|zst|tzst|zip|7z|lz4|rar|tar|z|br)$", re.IGNORECASE
)
# The containers that have other names as well as their own.
_CONTAINERS_BY_NAME: Mapping[str, str] = {
    "bz": "bz2", "bzip2": "bz2", "tbz": "bz2", "tbz2": "bz2", "gzip": "gz", "tgz": "gz", "txz": "xz"
}  # fmt: skip
NAMED_XML = re.compile(r"\.xml(?:-p\d+p\d+)?(?:\.\w+)?$")
NAMED_JSON_LINES = re.compile(r"\.(?:jsonl|ndjson)(?:\.\w+)?$")
_NAMED_FORMAT = re.compile(
    r"\.(parquet|jsonl|ndjson|json|html?|warc|tfrecord|arrow|avro|pdf|docx?|epub)(?:\.(?:bz2|gz|xz))?$", re.IGNORECASE
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

InputFormat = Literal["mediawiki", "wikiextractor", "text", "jsonl", "parquet"]

FORMAT_NAMES: Mapping[str, str] = {
    "mediawiki": "MediaWiki XML dump",
    "wikiextractor": "file of WikiExtractor's <doc> elements",
    "text": "plain text file",
    "jsonl": "JSON lines file",
    "parquet": "Parquet file",
}


def container_of(head: bytes) -> str:
    """Return how a file is packed, by its first bytes: one of CONTAINERS."""
    for name, magic in _MAGIC.items():
        if re.match(magic, head):
            return name
    return "plain"


def packing_not_read(head: bytes) -> str | None:
    """Return the name of the packing of a file that no Source unpacks, by the file's first bytes; None where there is
    none.
    """
    return next((name for magic, name in _UNREAD.items() if head.startswith(magic)), None)


def packing_only_named(path: str, container: str) -> str | None:
    """Return how a file's name says that it is packed, where it is not packed so: "bz2"; None where name and content
    agree.
    """
    found = _NAMED_PACKED.search(path)
    said = None if found is None else found[1].lower()
    return None if said is None or _CONTAINERS_BY_NAME.get(said, said) == container else said


def format_only_named(path: str) -> str | None:
    """Return which format the name of a plain text says that it has: "parquet"; None where it says none."""
    found = _NAMED_FORMAT.search(path)
    return "xml" if NAMED_XML.search(path) else found and found[1].lower()


def start_of_text(head: bytes) -> bytes:
    """Return the first bytes of a file from its text on, without a byte order mark and white space."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip()[:HEAD_BYTES]


def begins_dump(start: bytes) -> bool:
    """Return whether a text begins as a MediaWiki XML dump does."""
    return start.startswith(b"<") and b"<mediawiki" in start
