"""Corpora that are no dump: WikiExtractor's <doc> files, plain text, JSON lines and Parquet.

What a unit owns: the <doc> elements whose "<" lies in it; the lines, and the texts separated by blank lines, whose
preceding "\\n" lies in it (one is thought in front of the file). So every record is owned once, whatever the cuts.
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

from transforms.characters.utf8 import is_utf8
from transforms.errors import RunFailedError, UnusableInputError
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import Source, Window
from transforms.storage import files

_BOM = b"\xef\xbb\xbf"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """One document. `document_id` is empty where the input gives none, `title` too; texts are UTF-8."""

    document_id: str
    title: bytes
    text: bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedPage:
    """A page or document that cannot be used: its title (or id, or beginning), and why."""

    title: str
    reason: str


def read_documents(
    source: Source, input_format: str, path: str, is_first: bool, reading: ReadOptions
) -> Iterator[Document | RejectedPage]:
    """The documents that start in a source's range, in order.

    Args:
      source: the plain bytes.
      input_format: "wikiextractor", "text" or "jsonl".
      path: the file's name, for messages.
      is_first: whether the range is the file's first.

    Raises:
      RunFailedError: the file is damaged or cut off.
    """
    if input_format == "wikiextractor":
        return _read_doc_elements(source, path, is_first, reading)
    if input_format == "jsonl":
        return _read_json_lines(source, is_first, reading)
    if reading.text_documents == "file":
        return _read_whole(source, path, reading) if is_first else iter(())
    return _read_blank_separated(source, is_first, reading)


_DOC = b"\n<doc "
_DOC_END = b"\n</doc>"
_NEXT_DOC_TAG = re.compile(rb"\n<(?:/doc>|doc )")
_DOC_TAG = re.compile(rb'\n<doc id="([^"\n]*)"(?: \w+="[^"\n]*")*? title="([^\n]*)">[ \r]*\n')
_LONGEST_DOC_TAG = 8192


def _read_doc_elements(
    source: Source, path: str, is_first: bool, reading: ReadOptions
) -> Iterator[Document | RejectedPage]:
    window = Window(source, b"\n" if is_first else b"")
    at = 0
    while True:
        start = window.data.find(_DOC, at)
        if start < 0:
            keep = max(at, len(window.data) - len(_DOC) + 1)
            begin = window.data.find(b"\n", keep)
            keep = begin if begin >= 0 else len(window.data)
            if not window.is_own(keep) or not window.slide(keep):
                return
            at = 0
            continue
        if not window.is_own(start):
            return
        end, start = _find_end(window, start, _NEXT_DOC_TAG, len(_DOC_END), reading.largest_page)
        if end is None:
            raise RunFailedError(f"{path}: the file is cut off: its last <doc> is not closed; fetch or make it again.")
        if end < 0:
            yield _too_large(window.data[start:], reading)
            at = start + 1
        elif window.data.startswith(_DOC, end):
            # Where a document is not closed, the next one starts inside it.
            yield _rejected(window.data[start:end], "the <doc> is not closed")
            at = end
        else:
            yield _parse_doc(window.data[start:end])
            at = end


def _find_end(
    window: Window, start: int, mark: re.Pattern[bytes], longest: int, largest: int
) -> tuple[int | None, int]:
    """Looks for a mark of at most `longest` bytes behind `start`, taking in more where it must.

    Returns:
      Where the mark stands, -1 when that is too far, None when the file ends before it; and where `start` is then.
    """
    found = mark.search(window.data, start + 1)
    while found is None:
        held = len(window.data) - start
        if held > largest:
            return -1, start
        if not window.slide(start):
            return None, 0
        start = 0
        found = mark.search(window.data, max(1, held - longest + 1))
    end = found.start()
    return (end if end - start <= largest else -1), start


def _parse_doc(data: bytes) -> Document | RejectedPage:
    tag = _DOC_TAG.match(data[:_LONGEST_DOC_TAG])
    if tag is None:
        return _rejected(data, "the <doc> tag has no id and title")
    title = tag[2]
    body = data[tag.end() :].replace(b"\r\n", b"\n")
    # WikiExtractor writes the title once more as the first line.
    first, _, rest = body.partition(b"\n")
    text = rest if first.strip() == title.strip() else body
    if not is_utf8(title + text):
        return _rejected(data, _NOT_UTF8)
    return Document(document_id=tag[1].decode("utf-8", "replace"), title=title, text=text.strip())


# A blank line followed by one that is not; and the first blank line after a text.
_BLANK = b" \t\r\f\v"
_BEFORE_TEXT = re.compile(rb"\n[ \t\r\f\v]*\n(?=[ \t\r\f\v]*[^ \t\r\f\v\n])")
_BEHIND_TEXT = re.compile(rb"\n[ \t\r\f\v]*\n")


def _read_blank_separated(source: Source, is_first: bool, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    window = Window(source, b"\n\n" if is_first else b"")
    at = 0
    while True:
        before = _BEFORE_TEXT.search(window.data, at)
        if before is None:
            keep = max(at, _behind_lines(window.data))
            if not window.is_own(keep) or not window.slide(keep):
                return
            at = 0
            continue
        if not window.is_own(before.start()):
            return
        start = before.end() - 1
        searched = start
        while True:
            behind = _BEHIND_TEXT.search(window.data, searched)
            if behind is not None or len(window.data) - start > reading.largest_page:
                break
            searched = max(start, _behind_lines(window.data)) - start
            if not window.slide(start):
                start = 0
                break
            start = 0
        end = behind.start() if behind else len(window.data)
        if end - start > reading.largest_page:
            yield _too_large(window.data[start:end], reading)
            at = end if behind else start + 1
            continue
        text = window.data[start:end].strip().removeprefix(_BOM).replace(b"\r\n", b"\n")
        if text:
            yield Document(document_id="", title=b"", text=text) if is_utf8(text) else _rejected(text, _NOT_UTF8)
        at = end


def _behind_lines(data: bytes) -> int:
    """How much of `data` cannot be the beginning of blank lines that go on behind it: its last two line ends can."""
    text_end = len(data.rstrip(_BLANK + b"\n"))
    last = data.rfind(b"\n", text_end)
    if last < 0:
        return len(data)
    last_but_one = data.rfind(b"\n", text_end, last)
    return last_but_one if last_but_one >= 0 else last


def _read_whole(source: Source, path: str, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    parts = []
    size = 0
    while size <= reading.largest_page and (chunk := source.read()):
        parts.append(chunk)
        size += len(chunk)
    text = b"".join(parts).removeprefix(_BOM).replace(b"\r\n", b"\n").strip()
    name = files.base_name(path)
    if size > reading.largest_page:
        yield RejectedPage(title=name, reason=_too_large(text, reading).reason)
    elif not is_utf8(text):
        yield RejectedPage(title=name, reason=_NOT_UTF8)
    else:
        yield Document(document_id="", title=name.split(".", 1)[0].encode(), text=text)


_LINE_END = re.compile(rb"\n")


def _read_json_lines(source: Source, is_first: bool, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    window = Window(source, b"\n" if is_first else b"")
    at = 0
    while True:
        start = window.data.find(b"\n", at)
        if start < 0:
            if not window.is_own(len(window.data)) or not window.slide(len(window.data)):
                return
            at = 0
            continue
        if not window.is_own(start):
            return
        end, start = _find_end(window, start, _LINE_END, 1, reading.largest_page)
        if end is None:
            end = len(window.data)
        if end < 0:
            yield _too_large(window.data[start:], reading)
            at = start + 1
            continue
        line = window.data[start + 1 : end].strip()
        if line:
            yield _parse_json_line(line, reading)
        at = end


def _parse_json_line(line: bytes, reading: ReadOptions) -> Document | RejectedPage:
    try:
        record = json.loads(line.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        return _rejected(line, f"the line is not JSON ({error})")
    if not isinstance(record, dict):
        return _rejected(line, "the line is no JSON object")
    return _document_of(record, line, reading)


def _document_of(record: dict[str, Any], line: bytes, reading: ReadOptions) -> Document | RejectedPage:
    text = record.get(reading.text_column)
    if not isinstance(text, str):
        what = "is no text" if reading.text_column in record else "is missing"
        return _rejected(line, f'the column "{reading.text_column}" {what}')
    values = []
    for column in (reading.id_column, reading.title_column):
        value = "" if column is None else record.get(column)
        if isinstance(value, bool) or not isinstance(value, str | int):
            return _rejected(line, f'the column "{column}" is missing, or neither text nor a whole number')
        values.append(str(value))
    try:
        title, encoded = values[1].encode(), text.replace("\r\n", "\n").encode()
    except UnicodeEncodeError:
        return _rejected(line, "it holds half a surrogate pair, which is no character")
    return Document(document_id=values[0], title=title, text=encoded)


_NOT_UTF8 = "it is not valid UTF-8"


def _rejected(data: bytes, reason: str) -> RejectedPage:
    beginning = " ".join(data[:200].decode("utf-8", "replace").split())
    return RejectedPage(title=beginning[:60], reason=reason)


def _too_large(data: bytes, reading: ReadOptions) -> RejectedPage:
    return _rejected(data, f"the document is larger than {reading.largest_page} bytes")


def parquet_bounds(path: str, size: int, reading: ReadOptions | None, unit_bytes: int) -> list[int]:
    """Byte offsets at which a Parquet file is cut into units: 0, starts of row groups, its size.

    Raises:
      UnusableInputError: the file is damaged, or lacks a column that `reading` names.
    """
    with files.open_input(path) as file:
        parquet = _open_parquet(file, path)
        if reading is not None:
            _check_columns(parquet, path, reading)
        bounds = [0]
        for start in _row_group_starts(parquet.metadata)[1:]:
            if start - bounds[-1] >= unit_bytes:
                bounds.append(start)
    return [*bounds, size]


def read_parquet(path: str, start: int, end: int, reading: ReadOptions) -> Iterator[Document | RejectedPage]:
    """The documents of the row groups that start in bytes [start, end), in order.

    Raises:
      UnusableInputError: a column is missing.
      RunFailedError: the file is damaged.
    """
    import pyarrow

    with files.open_input(path) as file:
        parquet = _open_parquet(file, path)
        columns = _check_columns(parquet, path, reading)
        groups = [k for k, at in enumerate(_row_group_starts(parquet.metadata)) if start <= at < end]
        for group in groups:
            try:
                for batch in parquet.iter_batches(_PARQUET_ROWS, row_groups=[group], columns=columns):
                    for record in batch.to_pylist():
                        yield _document_of(record, str(record).encode("utf-8", "replace"), reading)
            except (pyarrow.ArrowException, OSError) as error:
                raise RunFailedError(
                    f"{path}: the Parquet data of row group {group} is damaged ({_first_line(error)})."
                ) from error


_PARQUET_ROWS = 64


def _open_parquet(file: Any, path: str) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise UnusableInputError(f"{path}: this Parquet file is damaged or cut off ({_first_line(error)}).") from error


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")


def _check_columns(parquet: Any, path: str, reading: ReadOptions) -> list[str]:
    schema = parquet.schema_arrow
    columns = [c for c in (reading.text_column, reading.id_column, reading.title_column) if c is not None]
    for column in columns:
        if column not in schema.names:
            raise UnusableInputError(
                f'{path}: there is no column "{column}"; its columns are {", ".join(schema.names)}.'
            )
    return columns


def _row_group_starts(metadata: Any) -> list[int]:
    starts = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        offsets = []
        for c in range(group.num_columns):
            column = group.column(c)
            offsets.append(column.data_page_offset)
            if column.has_dictionary_page:
                offsets.append(column.dictionary_page_offset)
        starts.append(min(offsets))
    return starts
