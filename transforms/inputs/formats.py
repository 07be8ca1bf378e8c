"""The format and the container of an input file, recognised by its first bytes and its name."""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Literal, cast

from transforms.errors import UnusableInputError
from transforms.inputs.sources import Source, container_of, packing_not_read
from transforms.storage import files

_HEAD_BYTES = 64 << 10
_MAGIC_BYTES = 16
_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

InputFormat = Literal["mediawiki", "wikiextractor", "text", "jsonl", "parquet"]

_NAMES: Mapping[str, str] = {
    "mediawiki": "MediaWiki XML dump",
    "wikiextractor": "file of WikiExtractor's <doc> elements",
    "text": "plain text file",
    "jsonl": "JSON lines file",
    "parquet": "Parquet file",
}


def detect_format(path: str, input_format: str = "auto") -> InputFormat:
    """The format of a file, by its first bytes (unpacked) and its name, or `input_format` where the file can have it.

    Args:
      input_format: "auto", or the format that the user names.

    Raises:
      UnusableInputError: the file is empty, damaged, UTF-16, of no known format, or of another one than the user names.
    """
    return detect(path, input_format)[0]


def detect(path: str, input_format: str) -> tuple[InputFormat, str]:
    """The format of a file as `detect_format` gives it, and its container ("plain", "bz2", "gz", "xz")."""
    packed_head = files.read_range(path, 0, _MAGIC_BYTES)
    if not packed_head:
        raise UnusableInputError(f"{path}: this input is empty.")
    container = container_of(packed_head)
    if packing := packing_not_read(packed_head):
        raise UnusableInputError(f"{path}: this input is packed with {packing}, which is not read; unpack it first.")
    if packed_head.startswith(_PARQUET_MAGIC):
        found_format: InputFormat = "parquet"
    else:
        head = b""
        with Source(path, container, 0, files.size(path)) as source:
            while len(head) < _HEAD_BYTES and (chunk := source.read()):
                head += chunk
        if container != "plain" and (inner := container_of(head)) != "plain":
            raise UnusableInputError(f"{path}: this input is packed twice, {container} around {inner}; unpack it once.")
        if not head.strip():
            raise UnusableInputError(f"{path}: this input is empty once it is unpacked.")
        if input_format in ("text", "jsonl"):
            # Any file can be text, or JSON lines of which some are bad.
            _refuse_other_encodings(head, path)
            return cast(InputFormat, input_format), container
        found_format = _format_of(head[:_HEAD_BYTES], path)
    if input_format not in ("auto", found_format):
        raise UnusableInputError(f"{path}: this is no {_NAMES[input_format]}, it looks like a {_NAMES[found_format]}.")
    return found_format, container


def _refuse_other_encodings(head: bytes, path: str) -> None:
    if head.startswith(_UTF16_MARKS):
        raise UnusableInputError(f"{path}: this input is UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8).")
    if b"\0" in head:
        raise UnusableInputError(
            f"{path}: this input is neither text nor packed in a way that is read (bz2, gz, xz); unpack it first."
        )


def _format_of(head: bytes, path: str) -> InputFormat:
    start = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if start.startswith(b"<") and b"<mediawiki" in start:
        return "mediawiki"
    _refuse_other_encodings(head, path)
    if start.startswith(b"<doc "):
        return "wikiextractor"
    is_named_xml = re.search(r"\.xml(\.\w+)?$", path) is not None
    if start.startswith((b"<?xml", b"<!DOCTYPE", b"<html")) or (is_named_xml and start.startswith(b"<")):
        raise UnusableInputError(f"{path}: this is XML or HTML, but no MediaWiki dump: it has no <mediawiki>.")
    if is_named_xml:
        raise UnusableInputError(f"{path}: this is not XML, although its name says so.")
    if start.startswith(b"{"):
        if re.search(r"\.(jsonl|ndjson|json)(\.\w+)?$", path):
            return "jsonl"
        with contextlib.suppress(ValueError):
            json.loads(start.split(b"\n", 1)[0])
            return "jsonl"
    return "text"
