"""Formats whose records have marks between them: WikiExtractor's files, JSON lines, plain text.

WikiExtractor's files hold `<doc id="…" url="…" title="…">`, the title as a line, the text, `</doc>`; every element
starts a line. JSON lines are one object a line, one document an object; blank lines count for nothing. Plain text is
one document a file, or documents separated by blank lines, those of which
`str.strip` leaves nothing.

A unit owns the records whose mark lies in it: the line end before an element or a line, the blank line before a text.
The reader imagines one in front of the file. A file that is one document belongs to the file's first unit.
"""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.inputs.html_texts import refuse_html
from maskmill.inputs.items import (
    OR_KEEP,
    CutOff,
    Document,
    RejectedPage,
    check_records,
    document_of_record,
    problem_of_text,
    refuse_missing_columns,
    rejected,
    too_large,
)
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.plain_text import plain_text
from maskmill.inputs.sources import END_OF_FILE, TOO_LARGE, Marks, Source, Window
from maskmill.storage import files
from maskmill.text.file_kinds import BYTE_ORDER_MARK

Items = Iterator[Document | RejectedPage | CutOff]

_CLOSING = b"\n</doc>"
_TAG = re.compile(rb'\n<doc id="([^"\n]*)"(?: \w+="[^"\n]*")*? title="([^\n]*)">[ \r]*\n')
_LONGEST_TAG = 8192
# What `str.strip` takes away, but for line ends. Reversed: what may end the data, with line ends, and before it the
# beginning of a character that is cut off.
_BLANK = (
    rb"(?:[ \t\f\v\x1c-\x1f]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80)"
)
_REVERSED_BLANKS = re.compile(
    rb"(?:\xc2|\x9a?\xe1|[\x80\x81]?\xe2|\x80?\xe3)?"
    rb"(?:[\s\x1c-\x1f]|[\x85\xa0]\xc2|\x80\x9a\xe1|(?:[\x80-\x8a\xa8\xa9\xaf]\x80|\x9f\x81)\xe2|\x80\x80\xe3)*+"
)
# The last byte of a line end: "\r\n" and "\r\r\n" are one, a lone "\r" is one. Two bytes after a "\r" tell.
_LINE_END = rb"(?:\n|\r(?=[^\r\n]|\r[^\n]))"
_LONGEST_LINE_END = 3
_BLANK_LAST_LINE = re.compile(rb"[\r\n]" + _BLANK + rb"*+\Z")
BLANK_LINE = re.compile(_LINE_END + rb"(?:" + _BLANK + rb"|\r(?=\r?\n))*" + _LINE_END)


def _start_of_last_line(data: bytes) -> int:
    """Return the first index from which on `data` may be the beginning of a tag of <doc> that its end cuts off."""
    begin = data.find(b"\n", max(0, len(data) - len(_CLOSING) + 1))
    return begin if begin >= 0 else len(data)


def _start_of_last_blank_lines(data: bytes) -> int:
    """Return the index from which on `data` may be the beginning of a blank line that its end cuts off.

    Of the white space at the end of `data`, these are the last two line ends, of up to three bytes each, and what
    follows them.
    """
    blanks = _REVERSED_BLANKS.match(data[::-1])
    text_end = len(data) - (blanks.end() if blanks else 0)
    begin = len(data)
    for _ in range(2 * _LONGEST_LINE_END):
        earlier = max(data.rfind(b"\n", text_end, begin), data.rfind(b"\r", text_end, begin))
        if earlier < 0:
            break
        begin = earlier
    return begin


_ELEMENTS = Marks(re.compile(rb"\n(?=<doc )"), re.compile(rb"\n<(?:/doc>|doc )"), _start_of_last_line)
_LINES = Marks(re.compile(rb"\n"), re.compile(rb"\n"), len)
_TEXTS = Marks(
    # After it a whole character that is no blank, as far as its first bytes tell.
    re.compile(BLANK_LINE.pattern + rb"(?=" + _BLANK + rb"*+(?:[^\r\n\xc2\xe1-\xe3]|\xc2.|[\xe1-\xe3]..))", re.DOTALL),
    BLANK_LINE,
    _start_of_last_blank_lines,
)


def read_doc_elements(source: Source, path: str, is_first: bool, reading: ReadOptions) -> Items:
    """Return the <doc> elements that start in a source's range, in order.

    Raises:
      UnusableInputError: the file is damaged, or its last element is not closed.
    """
    window = Window(source, b"\n" if is_first else b"")
    for start, end in window.records(_ELEMENTS, reading.largest_page):
        if end == END_OF_FILE:
            if not reading.keep_truncated:
                raise UnusableInputError(
                    f"{path}: the file is cut off: its last <doc> is not closed; fetch or make it again, {OR_KEEP}."
                )
            yield CutOff(title=rejected(window.data[start:], "").title)
        elif end == TOO_LARGE:
            yield rejected(window.data[start:], too_large(reading))
        elif window.data.startswith(b"\n<doc ", end):
            yield rejected(window.data[start:end], "the <doc> is not closed")
        else:
            yield _parse_element(window.data[start:end])


def _parse_element(element: bytes) -> Document | RejectedPage:
    """Return the document of an element, given from the line end in front of its start tag up to its closing tag."""
    tag = _TAG.match(element[:_LONGEST_TAG])
    if tag is None:
        return rejected(element, "the <doc> tag has no id and title")
    document_id, title = tag.groups()
    if problem := problem_of_text(title + element[tag.end() :]):
        return rejected(element, problem)
    title, body = b" ".join(plain_text(title).split(b"\n")), plain_text(element[tag.end() :])
    # WikiExtractor repeats the title as the first line.
    first, _, rest = body.partition(b"\n")
    text = rest if first.strip() == title.strip() else body
    return Document(document_id=document_id.decode("utf-8", "replace"), title=title, text=text.strip())


def check_columns(path: str, container: str, size: int, reading: ReadOptions, *, takes_html: bool) -> None:
    """Check the lines at a file's beginning (1 MB) for the columns that `reading` names, before the run begins.

    A single bad line is rejected while the file is read; this finds what is wrong with all lines.

    Raises:
      UnusableInputError: no line there is a JSON object, or all lack a column or have something else in it; or the
        texts are HTML, unless `takes_html`.
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
    if is_whole:
        refuse_missing_columns(list(dict.fromkeys(itertools.chain(*records))), path, reading)
    if not takes_html:
        refuse_html((record.get(reading.text_column) for record in records), path, reading.text_column, "jsonl")


def _object(line: bytes) -> Any:
    try:
        return json.loads(line.strip().removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        return None


def read_json_lines(source: Source, path: str, is_first: bool, reading: ReadOptions) -> Items:
    """Return the documents of the lines that start in a source's range, in order.

    Raises:
      UnusableInputError: the file is damaged or cut off.
    """
    window = Window(source, b"\n" if is_first else b"")
    for start, end in window.records(_LINES, reading.largest_page):
        if end == TOO_LARGE:
            yield rejected(window.data[start:], too_large(reading))
            continue
        # A plain file that is cut off ends like any other.
        is_cut = end == END_OF_FILE and (window.is_truncated or reading.keep_truncated)
        line = window.data[start + 1 : end if end != END_OF_FILE else None].strip()
        if line:
            document = _parse_line(line, reading)
            yield CutOff(title=document.title) if is_cut and isinstance(document, RejectedPage) else document


def _parse_line(line: bytes, reading: ReadOptions) -> Document | RejectedPage:
    try:
        record = json.loads(line.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        return rejected(line, f"the line is not JSON ({error})")
    if not isinstance(record, dict):
        return rejected(line, "the line is no JSON object")
    return document_of_record(record, line, reading)


def read_texts(source: Source, path: str, is_first: bool, reading: ReadOptions) -> Items:
    """Return the texts that start in a source's range, in order; `reading.text_documents` says what a document is.

    Raises:
      UnusableInputError: the file is damaged or cut off.
    """
    if reading.text_documents == "file":
        if is_first:
            yield _read_whole(source, path, reading)
        return
    window = Window(source, b"\n\n" if is_first else b"")
    for start, end in window.records(_TEXTS, reading.largest_page):
        if end == TOO_LARGE:
            yield rejected(window.data[start:], too_large(reading))
            continue
        text = _without_mark(window.data[start : end if end != END_OF_FILE else None].strip())
        text = _BLANK_LAST_LINE.sub(b"", text) if end == END_OF_FILE else text
        if text and window.is_truncated and end == END_OF_FILE:
            yield CutOff(title=rejected(text, "").title)
        elif text:
            problem = problem_of_text(text)
            yield rejected(text, problem) if problem else Document(document_id="", title=b"", text=plain_text(text))


def _read_whole(source: Source, path: str, reading: ReadOptions) -> Document | RejectedPage | CutOff:
    parts = []
    size = 0
    while size <= reading.largest_page and (chunk := source.read()):
        parts.append(chunk)
        size += len(chunk)
    name = files.base_name(path)
    if size > reading.largest_page:
        return RejectedPage(title=name, reason=too_large(reading))
    if source.is_truncated:
        return CutOff(title=name)
    text = _without_mark(b"".join(parts)).strip()
    if problem := problem_of_text(text):
        return RejectedPage(title=name, reason=problem)
    return Document(document_id="", title=name.split(".", 1)[0].encode(), text=plain_text(text))


def _without_mark(text: bytes) -> bytes:
    return text.removeprefix(BYTE_ORDER_MARK)
