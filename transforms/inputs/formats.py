"""The format and the container of an input file, recognised by its first bytes and its name."""

import re
from collections.abc import Mapping
from typing import Literal, cast

from transforms.errors import UnusableInputError
from transforms.inputs import lookalikes
from transforms.inputs.lookalikes import Lookalike
from transforms.inputs.sources import Source, container_of, packing_not_read
from transforms.storage import files

_HEAD_BYTES = 64 << 10
_MAGIC_BYTES = 16
_MOST_ZEROS_OF_SHARD = 0.01  # the reference's tokenizer drops zero bytes in a sentence
# Indexes, lists of titles and checksums are texts: wiki-20260301-pages-articles-multistream-index1.txt-p1p2.bz2.
_MAY_LIE_BESIDE_DUMP = re.compile(
    r"(?:\.txt(?:-p\d+p\d+)?|-all-titles(?:-in-ns0)?)(?:\.(?:bz2|gz|xz))?$|(?:md5|sha\d+)(?:sums?)?$", re.IGNORECASE
)
# Names that promise what a plain text is not: packed by …, of the format ….
_NAMED_PACKED = re.compile(
    r"\.(bz2?|bzip2|tbz2?|gz|gzip|tgz|xz|txz|lzma|zst|tzst|zip|7z|lz4|rar|tar|z|br)$", re.IGNORECASE
)
# The containers that have other names as well as their own.
_CONTAINERS_BY_NAME: Mapping[str, str] = {
    "bz": "bz2", "bzip2": "bz2", "tbz": "bz2", "tbz2": "bz2", "gzip": "gz", "tgz": "gz", "txz": "xz"
}  # fmt: skip
_NAMED_XML = re.compile(r"\.xml(?:-p\d+p\d+)?(?:\.\w+)?$")
_NAMED_JSON_LINES = re.compile(r"\.(?:jsonl|ndjson)(?:\.\w+)?$")
_NAMED_FORMAT = re.compile(
    r"\.(parquet|jsonl|ndjson|json|html?|warc|tfrecord|arrow|avro|pdf|docx?|epub)(?:\.(?:bz2|gz|xz))?$", re.IGNORECASE
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EmptyInputError(UnusableInputError):
    """A file has no content but white space."""


InputFormat = Literal["mediawiki", "wikiextractor", "text", "jsonl", "parquet"]

_NAMES: Mapping[str, str] = {
    "mediawiki": "MediaWiki XML dump",
    "wikiextractor": "file of WikiExtractor's <doc> elements",
    "text": "plain text file",
    "jsonl": "JSON lines file",
    "parquet": "Parquet file",
}


def detect_format(path: str, input_format: str = "auto", *, keep_truncated: bool = False) -> InputFormat:
    """The format of a file, by its first bytes (unpacked) and its name, or `input_format` where the file can have it.

    Args:
      input_format: "auto", or the format that the user names.
      keep_truncated: whether a file that is cut off in its first bytes is taken, too.

    Raises:
      UnusableInputError: the file is empty, damaged, UTF-16, of no known format, or of another one than the user names
        or its own name says.
    """
    return detect(path, input_format, keep_truncated=keep_truncated)[0]


def detect(path: str, input_format: str, *, keep_truncated: bool = False) -> tuple[InputFormat, str]:
    """The format of a file as `detect_format` gives it, and its container ("plain", "bz2", "gz", "xz")."""
    packed_head = files.read_range(path, 0, _MAGIC_BYTES)
    if not packed_head:
        raise EmptyInputError(f"{path}: this input is empty.")
    container = container_of(packed_head)
    if packing := packing_not_read(packed_head):
        raise UnusableInputError(f"{path}: this input is packed with {packing}, which is not read; unpack it first.")
    if packed_head.startswith(lookalikes.PARQUET_MAGIC):
        found_format: InputFormat = "parquet"
    else:
        head, is_whole = _read_head(path, container, keep_truncated=keep_truncated)
        if container != "plain" and (inner := container_of(head)) != "plain":
            raise UnusableInputError(f"{path}: this input is packed twice, {container} around {inner}; unpack it once.")
        if not head.strip():
            raise EmptyInputError(f"{path}: this input is empty once it is unpacked.")
        if said := _packing_only_named(path, container):
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
        raise UnusableInputError(f"{path}: this is no {_NAMES[input_format]}, it looks like a {_NAMES[found_format]}.")
    return found_format, container


def _read_head(path: str, container: str, *, keep_truncated: bool) -> tuple[bytes, bool]:
    """The first plain bytes of a file, 64 KiB where it has so many, and whether they are all of it."""
    head = b""
    with Source(path, container, 0, files.size(path), keep_truncated=keep_truncated) as source:
        while len(head) < _HEAD_BYTES:
            chunk = source.read()
            if not chunk:
                return head, True
            head += chunk
    return head, False


def container_of_dump(path: str) -> str | None:
    """How a MediaWiki XML dump is packed; None for any other file, also one that its user takes as text.

    Raises:
      UnusableInputError: the file cannot be read.
    """
    container = container_of(files.read_range(path, 0, _MAGIC_BYTES))
    head, _ = _read_head(path, container, keep_truncated=True)
    return container if _begins_dump(_start_of_text(head)) else None


def lies_beside_dump(path: str) -> str | None:
    """What a file is that Wikimedia publishes beside each dump: "the index of …"; None where it may be an input."""
    if not _MAY_LIE_BESIDE_DUMP.search(path):
        return None
    head, is_whole = _read_head(path, container_of(files.read_range(path, 0, _MAGIC_BYTES)), keep_truncated=True)
    lookalike = lookalikes.of_text(_start_of_text(head), path, is_whole=is_whole) if head.strip() else None
    return lookalike.name if lookalike is not None and lookalike.beside_dump else None


def no_text_shard(path: str) -> str | None:
    """What a file is that its user takes for a text shard: "a JSON array", "a bz2 file"; None where it may be one."""
    head = files.read_range(path, 0, _HEAD_BYTES)
    container = container_of(head)
    if container != "plain":
        return f"a file packed by {container}"
    lookalike = lookalikes.of_bytes(head, most_zeros=_MOST_ZEROS_OF_SHARD)
    if lookalike is not None:
        return lookalike.name
    start = _start_of_text(head)
    if not start:
        return None
    is_whole = len(head) < _HEAD_BYTES
    if _begins_dump(start):
        return f"a {_NAMES['mediawiki']}"
    if start.startswith(b"<doc "):
        return f"a {_NAMES['wikiextractor']}"
    if start.startswith(b"{") and lookalikes.begins_json_lines(start, is_whole=is_whole):
        return f"a {_NAMES['jsonl']}"
    lookalike = lookalikes.of_text(start, path, is_whole=is_whole) or lookalikes.of_json(start)
    if lookalike is not None:
        return lookalike.name
    said = _packing_only_named(path, container) or _format_only_named(path)
    return f"plain text under the name of another file ({said})" if said else None


def _packing_only_named(path: str, container: str) -> str | None:
    """How a file's name says that it is packed, where it is not packed so: "bz2"; None where name and content agree."""
    found = _NAMED_PACKED.search(path)
    said = None if found is None else found[1].lower()
    return None if said is None or _CONTAINERS_BY_NAME.get(said, said) == container else said


def _format_only_named(path: str) -> str | None:
    """Which format the name of a plain text says that it has: "parquet"; None where it says none."""
    found = _NAMED_FORMAT.search(path)
    return "xml" if _NAMED_XML.search(path) else found and found[1].lower()


def _start_of_text(head: bytes) -> bytes:
    return head.removeprefix(BYTE_ORDER_MARK).lstrip()[:_HEAD_BYTES]


def _begins_dump(start: bytes) -> bool:
    return start.startswith(b"<") and b"<mediawiki" in start


def _refuse(lookalike: Lookalike | None, path: str) -> None:
    if lookalike is None:
        return
    anyway = ", or take it as it is with --input_format text" if lookalike.is_text else ""
    raise UnusableInputError(f"{path}: this looks like {lookalike.name}; {lookalike.advice}{anyway}.")


def _format_of(head: bytes, path: str, is_whole: bool) -> InputFormat:
    start = _start_of_text(head)
    if _begins_dump(start):
        return "mediawiki"
    _refuse(lookalikes.of_bytes(head), path)
    if start.startswith(b"<doc "):
        return "wikiextractor"
    _refuse(lookalikes.of_text(start, path, is_whole=is_whole), path)
    is_named_xml = _NAMED_XML.search(path) is not None
    if start.startswith((b"<?xml", b"<!DOCTYPE")) or (is_named_xml and start.startswith(b"<")):
        raise UnusableInputError(
            f"{path}: this is XML, but no MediaWiki dump: it has no <mediawiki>; extract its text first, or take it as "
            "it is with --input_format text."
        )
    is_named_json_lines = _NAMED_JSON_LINES.search(path) is not None
    if not is_named_xml and (start.startswith(b"{") or is_named_json_lines):
        if lookalikes.begins_json_lines(start, is_whole=is_whole) or (is_named_json_lines and start.startswith(b"{")):
            return "jsonl"
        _refuse(lookalikes.of_json(start), path)
    if said := _format_only_named(path):
        raise UnusableInputError(
            f"{path}: this is not {said.upper()}, although its name says so; fetch it again, or take it as it is with "
            "--input_format text."
        )
    return "text"
