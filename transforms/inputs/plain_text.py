"""Plain text: one document a file, or documents separated by blank lines.

A unit owns the documents whose preceding line end lies in it; the reader imagines one in front of the file. A file
that is one document belongs to the file's first unit.
"""

import re
from collections.abc import Iterator

from maskmill.storage import files
from maskmill.text.file_kinds import BYTE_ORDER_MARK
from transforms.inputs.items import CutOff, Document, RejectedPage, problem_of_text, rejected, too_large
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import TOO_LARGE, Source, Window

_WHITE_SPACE = b" \t\r\f\v\n"
_BLANK_LINE = re.compile(rb"\n[ \t\r\f\v]*\n")
_BLANK_LINE_BEFORE_TEXT = re.compile(rb"\n[ \t\r\f\v]*\n(?=[ \t\r\f\v]*[^ \t\r\f\v\n])")


def read_documents(
    source: Source, path: str, is_first: bool, reading: ReadOptions
) -> Iterator[Document | RejectedPage | CutOff]:
    """The documents that start in a source's range, in order; `reading.text_documents` says what a document is.

    Raises:
      UnusableInputError: the file is damaged or cut off.
    """
    if reading.text_documents == "blank_line":
        yield from _read_blank_separated(source, is_first, reading)
    elif is_first:
        yield _read_whole(source, path, reading)


def _read_blank_separated(
    source: Source, is_first: bool, reading: ReadOptions
) -> Iterator[Document | RejectedPage | CutOff]:
    window = Window(source, b"\n\n" if is_first else b"")
    at = 0
    while True:
        before = _BLANK_LINE_BEFORE_TEXT.search(window.data, at)
        if before is None:
            keep = max(at, _start_of_last_blank_lines(window.data))
            if not window.is_own(keep) or not window.slide(keep):
                return
            at = 0
            continue
        if not window.is_own(before.start()):
            return
        end, start = _find_end_of_text(window, before.end() - 1, reading.largest_page)
        if end == TOO_LARGE:
            yield rejected(window.data[start:], too_large(reading))
            at = start + 1
            continue
        text = _normalized(window.data[start:end].strip())
        if text and window.is_truncated and end == len(window.data):
            yield CutOff(title=rejected(text, "").title)
        elif text:
            problem = problem_of_text(text)
            yield rejected(text, problem) if problem else Document(document_id="", title=b"", text=text)
        at = end


def _find_end_of_text(window: Window, start: int, largest: int) -> tuple[int, int]:
    """Looks for the blank line behind the text at data[start], and reads more where it must.

    A blank line may have any length, so `Window.find_end` cannot look for it.

    Returns:
      The index of the blank line (of the file's end where none follows), or TOO_LARGE; and the index of the text, which
      changes when the window slides.
    """
    searched = start
    while True:
        blank = _BLANK_LINE.search(window.data, searched)
        end = blank.start() if blank else len(window.data)
        if end - start > largest:
            return TOO_LARGE, start
        if blank:
            return end, start
        searched = max(start, _start_of_last_blank_lines(window.data)) - start
        if not window.slide(start):
            return len(window.data), 0
        start = 0


def _start_of_last_blank_lines(data: bytes) -> int:
    """The index from which on `data` may be the beginning of a blank line that its end cuts off.

    Of the white space at the end of `data`, these are the last two line ends and what follows them.
    """
    text_end = len(data.rstrip(_WHITE_SPACE))
    last = data.rfind(b"\n", text_end)
    if last < 0:
        return len(data)
    last_but_one = data.rfind(b"\n", text_end, last)
    return last_but_one if last_but_one >= 0 else last


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
    text = _normalized(b"".join(parts)).strip()
    if problem := problem_of_text(text):
        return RejectedPage(title=name, reason=problem)
    return Document(document_id="", title=name.split(".", 1)[0].encode(), text=text)


def _normalized(text: bytes) -> bytes:
    return text.removeprefix(BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
