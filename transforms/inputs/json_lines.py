"""JSON lines: one object a line, one document an object; blank lines count for nothing.

A unit owns the lines whose preceding line end lies in it; the reader imagines one in front of the file.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.text.file_kinds import BYTE_ORDER_MARK
from transforms.inputs.items import (
    CutOff,
    Document,
    RejectedPage,
    check_records,
    document_of_record,
    rejected,
    too_large,
)
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import END_OF_FILE, TOO_LARGE, Source, Window

_LINE_END = re.compile(rb"\n")


def check_columns(path: str, container: str, size: int, reading: ReadOptions) -> None:
    """Checks the lines at a file's beginning (1 MB) for the columns that `reading` names, before the run begins.

    A single bad line is rejected while the file is read; this finds what is wrong with all lines.

    Raises:
      UnusableInputError: no line there is a JSON object, or all lack a column or have something else in it.
    """
    with Source(path, container, 0, size, keep_truncated=reading.keep_truncated) as source:
        head = source.read()
        is_whole = not source.read()
    lines = head.split(b"\n")
    lines = [line for line in (lines if is_whole and not source.is_truncated else lines[:-1]) if line.strip()]
    records = [record for record in map(_object, lines) if isinstance(record, dict)]
    if lines and not records:
        beginning = rejected(lines[0], "").title
        raise UnusableInputError(
            f"{path}: this is no JSON lines file, for none of its first lines is a JSON object (the first one begins "
            f"with {beginning!r}); if it is text, say so with --input_format text."
        )
    if not is_whole:  # the text may be null by chance
        records = [record for record in records if record.get(reading.text_column, "") is not None]
    check_records(records, path, reading)


def _object(line: bytes) -> Any:
    try:
        return json.loads(line.strip().removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return None


def read_documents(
    source: Source, path: str, is_first: bool, reading: ReadOptions
) -> Iterator[Document | RejectedPage | CutOff]:
    """The documents of the lines that start in a source's range, in order.

    Raises:
      UnusableInputError: the file is damaged or cut off.
    """
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
        end, start = window.find_end(start, _LINE_END, longest_mark=1, largest=reading.largest_page)
        if end == TOO_LARGE:
            yield rejected(window.data[start:], too_large(reading))
            at = start + 1
            continue
        if end == END_OF_FILE:
            end = len(window.data)
            is_cut = window.is_truncated or reading.keep_truncated  # a plain file that is cut off ends like any other
        else:
            is_cut = False
        line = window.data[start + 1 : end].strip()
        if line:
            document = _parse(line, reading)
            yield CutOff(title=document.title) if is_cut and isinstance(document, RejectedPage) else document
        at = end


def _parse(line: bytes, reading: ReadOptions) -> Document | RejectedPage:
    try:
        record = json.loads(line.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        return rejected(line, f"the line is not JSON ({error})")
    if not isinstance(record, dict):
        return rejected(line, "the line is no JSON object")
    return document_of_record(record, line, reading)
