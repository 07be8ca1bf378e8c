"""The kind of a file by its first bytes and its name: how it is packed, and whether it may be text."""

import re
from collections.abc import Mapping
from typing import Literal

CONTAINERS = ("plain", "bz2", "gz", "xz")
# Packings that are not read, by the first bytes of a file.
_UNREAD = {b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf\x27\x1c": "7z", b"\x04\x22\x4d\x18": "lz4"}
_MAGIC = {"bz2": rb"BZh[1-9]", "gz": rb"\x1f\x8b", "xz": rb"\xfd7zXZ\x00"}
HEAD_BYTES = 64 << 10  # bytes at a file's beginning that decide its kind
# Names that a plain text should not have: they end in that of a packing or of another format.
_NAMED_PACKED = re.compile(
    r"\.(bz2?|bzip2|tbz2?|gz|gzip|tgz|xz|txz|lzma|zst|tzst|zip|7z|lz4|rar|tar|z|br)$", re.IGNORECASE
)
# The containers that have further names.
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
    """Return the packing of a file, by its first bytes: one of CONTAINERS."""
    for name, magic in _MAGIC.items():
        if re.match(magic, head):
            return name
    return "plain"


def packing_not_read(head: bytes) -> str | None:
    """Return the name of a file's packing, by its first bytes, if no Source can unpack it; else None."""
    return next((name for magic, name in _UNREAD.items() if head.startswith(magic)), None)


def packing_only_named(path: str, container: str) -> str | None:
    """Return the packing that a file's name promises ("bz2") if the file is not packed so; None if they agree."""
    found = _NAMED_PACKED.search(path)
    named = None if found is None else found[1].lower()
    return None if named is None or _CONTAINERS_BY_NAME.get(named, named) == container else named


def format_only_named(path: str) -> str | None:
    """Return the format that the name of a plain text promises ("parquet"); None if it promises none."""
    found = _NAMED_FORMAT.search(path)
    return "xml" if NAMED_XML.search(path) else found and found[1].lower()


def start_of_text(head: bytes) -> bytes:
    """Return the first bytes of a file, without its byte order mark and leading white space."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip()[:HEAD_BYTES]


def begins_dump(start: bytes) -> bool:
    """Return whether a text begins as a MediaWiki XML dump does."""
    return start.startswith(b"<") and b"<mediawiki" in start
