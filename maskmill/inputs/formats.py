"""The format and the container of an input file, recognised by its first bytes and its name."""

import re
from typing import BinaryIO, cast

from maskmill.errors import UnusableInputError
from maskmill.inputs.sources import Source
from maskmill.storage import files
from maskmill.text import lookalikes
from maskmill.text.file_kinds import (
    FORMAT_NAMES,
    HEAD_BYTES,
    NAMED_JSON_LINES,
    NAMED_XML,
    InputFormat,
    begins_dump,
    container_of,
    format_only_named,
    packing_not_read,
    packing_only_named,
    start_of_text,
)
from maskmill.text.lookalikes import Lookalike

_MAGIC_BYTES = 16
# Indexes, lists of titles and checksums are texts: wiki-20260301-pages-articles-multistream-index1.txt-p1p2.bz2.
_MAY_LIE_BESIDE_DUMP = re.compile(
    r"(?:\.txt(?:-p\d+p\d+)?|-all-titles(?:-in-ns0)?)(?:\.(?:bz2|gz|xz))?$|(?:md5|sha\d+)(?:sums?)?$", re.IGNORECASE
)


class EmptyInputError(UnusableInputError):
    """A file has no content but white space."""


def detect(path: str, input_format: str = "auto", *, keep_truncated: bool = False) -> tuple[InputFormat, str]:
    """Return the format of a file, and its container ("plain", "bz2", "gz", "xz"), by its first bytes and its name.

    The unpacked bytes decide the format; it is `input_format`, which the user names, if the file can have it.
    keep_truncated: whether a file that is cut off in its first bytes is taken, too.

    Raises:
      UnusableInputError: the file is empty, damaged, UTF-16, of no known format, or of another one than the user names
        or its own name says.
    """
    with files.open_input(path) as raw:
        packed_head = raw.read(_MAGIC_BYTES)
        if not packed_head:
            raise EmptyInputError(f"{path}: this input is empty.")
        container = container_of(packed_head)
        if packing := packing_not_read(packed_head):
            raise UnusableInputError(
                f"{path}: this input is packed with {packing}, which is not read; unpack it first."
            )
        is_parquet = packed_head.startswith(lookalikes.PARQUET_MAGIC)
        head, is_whole = (b"", False) if is_parquet else _read_head(raw, path, container, keep_truncated=keep_truncated)
    if is_parquet:
        found_format: InputFormat = "parquet"
    else:
        if container != "plain" and (inner := container_of(head)) != "plain":
            raise UnusableInputError(f"{path}: this input is packed twice, {container} around {inner}; unpack it once.")
        if not head.strip():
            raise EmptyInputError(f"{path}: this input is empty once it is unpacked.")
        if said := packing_only_named(path, container):
            # The format that the user names says nothing of how the file is packed.
            _refuse(lookalikes.of_bytes(head), path)
            raise UnusableInputError(
                f"{path}: this is no {said} file, although its name says so; fetch it again, or give it its right name."
            )
        if input_format in ("text", "jsonl"):
            # Any text can be plain text, or JSON lines of which some are bad.
            _refuse(lookalikes.of_bytes(head), path)
            return cast(InputFormat, input_format), container
        found_format = _format_of(head, path, is_whole)
    if input_format not in ("auto", found_format):
        raise UnusableInputError(
            f"{path}: this is no {FORMAT_NAMES[input_format]}, it looks like a {FORMAT_NAMES[found_format]}."
        )
    return found_format, container


def _read_head(raw: BinaryIO, path: str, container: str, *, keep_truncated: bool) -> tuple[bytes, bool]:
    """Return the first plain bytes of a file, 64 KiB where it has so many, and whether they are all of it.

    Of a larger file that begins with blank lines it is what follows these.
    """
    head = b""
    with Source(path, container, 0, None, keep_truncated=keep_truncated, raw=raw) as source:
        while len(head) < HEAD_BYTES or head.isspace():
            chunk = source.read()
            if not chunk:
                return head, True
            head = chunk if len(head) >= HEAD_BYTES and head.isspace() else head + chunk
    return head, False


def container_of_dump(raw: BinaryIO, path: str) -> str | None:
    """Return how a MediaWiki XML dump is packed; None for any other file, also one that its user takes as text.

    raw: the file, open at its start.

    Raises:
      UnusableInputError: the file cannot be read.
    """
    container = container_of(raw.read(_MAGIC_BYTES))
    head, _ = _read_head(raw, path, container, keep_truncated=True)
    return container if begins_dump(start_of_text(head)) else None


def lies_beside_dump(path: str) -> str | None:
    """Return what a file is that Wikimedia publishes beside each dump: "the index of …"; None where it may be an
    input.
    """
    if not _MAY_LIE_BESIDE_DUMP.search(path):
        return None
    with files.open_input(path) as raw:
        head, is_whole = _read_head(raw, path, container_of(raw.read(_MAGIC_BYTES)), keep_truncated=True)
    lookalike = lookalikes.of_text(start_of_text(head), path, is_whole=is_whole) if head.strip() else None
    return lookalike.name if lookalike is not None and lookalike.beside_dump else None


def _refuse(lookalike: Lookalike | None, path: str) -> None:
    if lookalike is None:
        return
    anyway = ", or take it as it is with --input_format text" if lookalike.is_text else ""
    raise UnusableInputError(f"{path}: this looks like {lookalike.name}; {lookalike.advice}{anyway}.")


def _format_of(head: bytes, path: str, is_whole: bool) -> InputFormat:
    start = start_of_text(head)
    if begins_dump(start):
        return "mediawiki"
    _refuse(lookalikes.of_bytes(head), path)
    if start.startswith(b"<doc "):
        return "wikiextractor"
    _refuse(lookalikes.of_text(start, path, is_whole=is_whole), path)
    is_named_xml = NAMED_XML.search(path) is not None
    if start.startswith((b"<?xml", b"<!DOCTYPE")) or (is_named_xml and start.startswith(b"<")):
        raise UnusableInputError(
            f"{path}: this is XML, but no MediaWiki dump: it has no <mediawiki>; extract its text first, or take it as "
            "it is with --input_format text."
        )
    is_named_json_lines = NAMED_JSON_LINES.search(path) is not None
    if not is_named_xml and (start.startswith(b"{") or is_named_json_lines):
        if lookalikes.begins_json_lines(start, is_whole=is_whole) or (is_named_json_lines and start.startswith(b"{")):
            return "jsonl"
        _refuse(lookalikes.of_json(start), path)
    if said := format_only_named(path):
        raise UnusableInputError(
            f"{path}: this is not {said.upper()}, although its name says so; fetch it again, or take it as it is with "
            "--input_format text."
        )
    return "text"
