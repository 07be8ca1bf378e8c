"""Files that are not training text although they can be read as such: what they look like, and what to do with them.

No rule matches real text: a file that is refused by mistake costs its user an option, one that is taken by mistake
spoils the data silently.
"""

import csv
import dataclasses
import json
import re
from collections.abc import Sequence

import numpy as np

from maskmill.kernels.crc32c import masked_crc32c
from maskmill.storage import files
from maskmill.text.file_kinds import (
    FORMAT_NAMES,
    HEAD_BYTES,
    begins_dump,
    container_of,
    format_only_named,
    packing_not_read,
    packing_only_named,
    start_of_text,
)

_TFRECORD_HEADER = 12  # bytes: a record's length and its checksum
_TAR_MARK = slice(257, 262)
_FEWEST_ROWS = 5  # of a table whose name does not say that it is one
_MOST_ROWS = 50  # rows that are read
_MOST_COLUMNS_OF_PROSE = 2
_SPECIAL_TOKENS = (b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]", b"[MASK]")
_MOST_ZEROS_OF_UTF8 = 0.25
_MOST_ZEROS_OF_SHARD = 0.01  # the reference's tokenizer drops zero bytes in a sentence


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lookalike:
    """A kind of file that can be mistaken for text.

    name: with its article. advice: what its user should do. is_text: whether it can be read as plain text nonetheless.
    beside_dump: whether such files lie beside every dump, so that a glob of the dump's parts matches them, too.
    """

    name: str
    advice: str
    is_text: bool = True
    beside_dump: bool = False


PARQUET_MAGIC = b"PAR1"
_UNPACK = "unpack it first"
_SIGNATURES: Sequence[tuple[bytes, Lookalike]] = [
    (magic, Lookalike(name=name, advice=advice, is_text=False))
    for magic, name, advice in (
        (PARQUET_MAGIC, "a Parquet file", _UNPACK),
        (b"PK\x05\x06", "an empty zip archive", "name another file"),
        (b"Rar!\x1a\x07", "a rar archive", _UNPACK),
        (b"\x1f\x9d", "a file packed by compress", f"{_UNPACK} (gzip -d)"),
        (b"LZIP", "an lzip file", f"{_UNPACK} (lzip -d)"),
        (b"%PDF-", "a PDF", "turn it into text first (pdftotext)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", "save it as text first"),
        (b"SQLite format 3\0", "an SQLite database", "export its text as JSON lines first"),
        (b"Obj\x01", "an Avro file", "turn it into Parquet or JSON lines first"),
        (b"ARROW1\0\0", "an Arrow file", "turn it into Parquet or JSON lines first"),
        (b"\x93NUMPY", "a NumPy array", "name the text"),
        (b"\x89HDF\r\n", "an HDF5 file", "turn it into Parquet or JSON lines first"),
        (b"\x89PNG\r\n", "an image", "name the text"),
        (b"\xff\xd8\xff", "an image", "name the text"),
        (b"GIF8", "an image", "name the text"),
        (b"\x7fELF", "a program", "name the text"),
        (b"\xff\xfe\0\0", "UTF-32 text", "convert it to UTF-8 first (iconv -f UTF-32 -t UTF-8)"),
        (b"\xff\xfe", "UTF-16 text", "convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"),
        (b"\xfe\xff", "UTF-16 text", "convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"),
    )
]
_TAR = Lookalike(name="a tar archive", advice=_UNPACK, is_text=False)
_TFRECORD = Lookalike(name="a TFRecord file", advice="name the text that its records were made from", is_text=False)
_BARE_UTF16 = Lookalike(
    name="UTF-16 text", advice="convert it to UTF-8 first (iconv -f UTF-16LE -t UTF-8)", is_text=False
)
_BINARY = Lookalike(
    name="binary data, neither text nor packed in a way that is read (bz2, gz, xz)", advice=_UNPACK, is_text=False
)
INDEX = Lookalike(name="the index of a multistream dump", advice="name the dump that belongs to it", beside_dump=True)
TITLES = Lookalike(name="a list of a wiki's titles", advice="name the dump that belongs to it", beside_dump=True)
CHECKSUMS = Lookalike(name="a list of checksums", advice="name the files that it lists", beside_dump=True)
_JSON_ARRAY = Lookalike(name="a JSON array", advice="make one object a line of it (jq -c '.[]')")
_JSON_DOCUMENT = Lookalike(name="one JSON document over several lines", advice="make one object a line (jq -c .)")
_SQL = Lookalike(name="an SQL dump", advice="export its text as JSON lines")
_TABLE = Lookalike(name="a CSV or TSV table", advice="turn it into JSON lines or Parquet, which have a column of text")
_HTML = Lookalike(name="HTML", advice="extract its text first")
_LFS_POINTER = Lookalike(name="a pointer of Git LFS", advice="fetch the file that it stands for (git lfs pull)")
_WARC = Lookalike(name="a WARC file", advice="extract its text first")
_RTF = Lookalike(name="RTF", advice="save it as text first")
_POSTSCRIPT = Lookalike(name="PostScript", advice="turn it into text first (ps2ascii)")
_RECORD_INDEX = Lookalike(name="the index of a TFRecord file", advice="name the text")
_VOCABULARY = Lookalike(name="a WordPiece vocabulary", advice="name the text")
_BEGINNINGS = (
    (re.compile(rb"(?:<!--.*?-->\s*)*<(?:!doctype html|(?:html|head|body|title|meta)[\s>])", re.I | re.S), _HTML),
    (re.compile(rb"version https://git-lfs\.github\.com/spec/v1\r?\n"), _LFS_POINTER),
    (re.compile(rb"page_title\n"), TITLES),
    (re.compile(rb"WARC/[01]\.\d\r?\n"), _WARC),
    (re.compile(rb"\{\\rtf\d"), _RTF),
    (re.compile(rb"%!PS"), _POSTSCRIPT),
)
_SQL_START = re.compile(
    rb"-- (?:MySQL|MariaDB|PostgreSQL database|phpMyAdmin SQL) dump\b|/\*M?!\d{5,6} "
    rb"|(?:(?:--[^\n]*|/\*[^\n]*\*/;?)?[ \t\r]*\n)*"
    rb"(?:INSERT INTO [^\s(]+ *(?:\(|VALUES\b)|CREATE TABLE [^\n]*\(|DROP TABLE [^\n]*;|PRAGMA foreign_keys)",
)
_OBJECT_START = re.compile(rb"\{\s*\"(?:[^\"\\\n]|\\.)*\"\s*:")
_ARRAY_OF_OBJECTS = re.compile(rb"\[\s*\{\s*\"(?:[^\"\\\n]|\\.)*\"\s*:")
_NEXT_ELEMENT = re.compile(r"\s*,\s*[\"\[{\d]")
_INDEX_LINE = re.compile(rb"(\d{3,}):\d+:[^\n]{1,255}")
_CHECKSUM_LINE = re.compile(rb"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})(?: [ *]\S[^\n]*)?")
_INDEX_NAME = re.compile(r"-multistream-index\d*\.txt(?:-p\d+p\d+)?(?:\.\w+)?$")
_TABLE_NAME = re.compile(r"\.(?:csv|tsv|tab)(?:\.(?:gz|bz2|xz))?$", re.IGNORECASE)


def of_bytes(head: bytes, *, most_zeros: float = 0.0) -> Lookalike | None:
    """Return the kind of a file that is not text, packed or not, by its first bytes; None if they may be text.

    Args:
      head: at least 512 bytes, or the whole file.
      most_zeros: the share of zero bytes that a text may have.
    """
    for magic, lookalike in _SIGNATURES:
        if head.startswith(magic):
            return lookalike
    packing = packing_not_read(head)
    if packing is not None:
        return Lookalike(name=f"a file packed with {packing}, which is not read", advice=_UNPACK, is_text=False)
    if b"\0" not in head:
        return None
    if head[_TAR_MARK] == b"ustar":
        return _TAR
    if _is_tfrecord(head):
        return _TFRECORD
    if head.count(0) <= most_zeros * len(head):
        return None
    if max(head[::2].count(0), head[1::2].count(0)) > _MOST_ZEROS_OF_UTF8 * len(head):
        return _BARE_UTF16 if min(head[::2].count(0), head[1::2].count(0)) == 0 else _BINARY
    return _BINARY


def _is_tfrecord(head: bytes) -> bool:
    header = np.frombuffer(head[:_TFRECORD_HEADER], np.uint8)
    if len(header) < _TFRECORD_HEADER:
        return False
    return int(masked_crc32c(header, 0, 8)) == int.from_bytes(head[8:_TFRECORD_HEADER], "little")


def of_text(start: bytes, path: str, *, is_whole: bool) -> Lookalike | None:
    """Return the kind of a text that nobody should train on; None if it may be training text.

    Args:
      start: the file's first bytes, unpacked, without a byte order mark and leading white space.
      path: the file's name.
      is_whole: whether this is all of the file.
    """
    for pattern, lookalike in _BEGINNINGS:
        if pattern.match(start):
            return lookalike
    if _SQL_START.match(start):
        return _SQL
    if _is_json_array(start, is_whole):
        return _JSON_ARRAY
    lines = _whole_lines(start, is_whole)
    if _INDEX_NAME.search(path) or _is_index(lines):
        return INDEX
    if all(_CHECKSUM_LINE.fullmatch(line) for line in lines):
        return CHECKSUMS
    if lines[0].startswith(b"0 ") and all(re.fullmatch(rb"\d+ \d+", line) for line in lines):
        return _RECORD_INDEX
    if sum(token in lines for token in _SPECIAL_TOKENS) == len(_SPECIAL_TOKENS):
        return _VOCABULARY
    return _TABLE if _is_table(lines, path) else None


def of_json(start: bytes) -> Lookalike | None:
    """Return the kind of a text that begins with a brace and is not JSON lines; None if it is not JSON at all."""
    return _JSON_DOCUMENT if _OBJECT_START.match(start) else None


def begins_json_lines(start: bytes, *, is_whole: bool) -> bool:
    """Return whether one of a text's first lines is a JSON object; a cut line counts by its beginning."""
    if not is_whole and b"\n" not in start:
        return _OBJECT_START.match(start) is not None
    return any(line.startswith(b"{") and _is_object(line) for line in _whole_lines(start, is_whole)[:_MOST_ROWS])


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _whole_lines(start: bytes, is_whole: bool) -> list[bytes]:
    """Return the lines of a text, without the last one if it may be cut off."""
    if is_whole or b"\n" not in start:
        return start.rstrip().splitlines()
    return start[: start.rindex(b"\n")].splitlines()


def _is_json_array(start: bytes, is_whole: bool) -> bool:
    if _ARRAY_OF_OBJECTS.match(start):
        return True
    if not start.startswith(b"["):
        return False
    text = start.decode("utf-8", "ignore")
    try:
        if is_whole:
            return isinstance(json.loads(text), list)
        _, end = json.JSONDecoder().raw_decode(text, len(text) - len(text[1:].lstrip()))
        return _NEXT_ELEMENT.match(text, end) is not None
    except (ValueError, RecursionError):
        return False


def _is_index(lines: Sequence[bytes]) -> bool:
    """Return whether each line is offset:page:title, and the offsets never fall."""
    found = [_INDEX_LINE.fullmatch(line) for line in lines]
    offsets = [int(match[1]) for match in found if match]
    return len(offsets) == len(lines) and offsets == sorted(offsets)


def _is_table(lines: Sequence[bytes], path: str) -> bool:
    """Return whether lines are rows of a table: by the file's name, or because all have the same separators."""
    rows = [line.decode("utf-8", "replace") for line in lines[:_MOST_ROWS]]
    if _TABLE_NAME.search(path):
        return any(separator in rows[0] for separator in ",;\t|")
    if len(rows) < _FEWEST_ROWS or not all(row.strip() for row in rows):
        return False
    tabs = {row.count("\t") for row in rows}
    if len(tabs) == 1 and tabs != {0} and all(row.split("\t")[0].strip() for row in rows):
        return True
    return any(_has_columns(rows, separator) for separator in ",;")


def _has_columns(rows: Sequence[str], separator: str) -> bool:
    """Return whether rows have the same number of columns, more than a sentence would have by chance."""
    records = list(csv.reader(rows, delimiter=separator))[:-1]  # the last one may be cut off
    is_prose = any(field.startswith(" ") for record in records for field in record[1:])
    widths = {len(record) for record in records}
    return (
        len(records) >= _FEWEST_ROWS - 1 and len(widths) == 1 and max(widths) > _MOST_COLUMNS_OF_PROSE and not is_prose
    )


def no_text_shard(path: str) -> str | None:
    """Return the kind of a file that cannot be a text shard ("a JSON array", "a bz2 file"); None if it may be one."""
    head = files.read_range(path, 0, HEAD_BYTES)
    container = container_of(head)
    if container != "plain":
        return f"a file packed by {container}"
    lookalike = of_bytes(head, most_zeros=_MOST_ZEROS_OF_SHARD)
    if lookalike is not None:
        return lookalike.name
    start = start_of_text(head)
    if not start:
        return None
    is_whole = len(head) < HEAD_BYTES
    if begins_dump(start):
        return f"a {FORMAT_NAMES['mediawiki']}"
    if start.startswith(b"<doc "):
        return f"a {FORMAT_NAMES['wikiextractor']}"
    if start.startswith(b"{") and begins_json_lines(start, is_whole=is_whole):
        return f"a {FORMAT_NAMES['jsonl']}"
    lookalike = of_text(start, path, is_whole=is_whole) or of_json(start)
    if lookalike is not None:
        return lookalike.name
    promised = packing_only_named(path, container) or format_only_named(path)
    return f"plain text under the name of another file ({promised})" if promised else None
