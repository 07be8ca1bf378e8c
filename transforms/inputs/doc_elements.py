"""WikiExtractor's files: `<doc id="…" url="…" title="…">`, the title as a line, the text, `</doc>`.

A unit owns the elements whose "<" lies in it. Every element starts a line.
"""

import re
from collections.abc import Iterator

from maskmill.errors import UnusableInputError
from transforms.inputs.items import OR_KEEP, CutOff, Document, RejectedPage, problem_of_text, rejected, too_large
from transforms.inputs.options import ReadOptions
from transforms.inputs.sources import END_OF_FILE, TOO_LARGE, Source, Window

_START = b"\n<doc "
_CLOSING = b"\n</doc>"
_NEXT_TAG = re.compile(rb"\n<(?:/doc>|doc )")
_TAG = re.compile(rb'\n<doc id="([^"\n]*)"(?: \w+="[^"\n]*")*? title="([^\n]*)">[ \r]*\n')
_LONGEST_TAG = 8192


def read_documents(
    source: Source, path: str, is_first: bool, reading: ReadOptions
) -> Iterator[Document | RejectedPage | CutOff]:
    """The <doc> elements that start in a source's range, in order.

    Raises:
      UnusableInputError: the file is damaged, or its last element is not closed.
    """
    window = Window(source, b"\n" if is_first else b"")
    at = 0
    while True:
        start = window.data.find(_START, at)
        if start < 0:
            keep = _start_of_last_line(window.data, at)
            if not window.is_own(keep) or not window.slide(keep):
                return
            at = 0
            continue
        if not window.is_own(start):
            return
        end, start = window.find_end(start, _NEXT_TAG, longest_mark=len(_CLOSING), largest=reading.largest_page)
        if end == END_OF_FILE:
            if not reading.keep_truncated:
                raise UnusableInputError(
                    f"{path}: the file is cut off: its last <doc> is not closed; fetch or make it again, {OR_KEEP}."
                )
            yield CutOff(title=rejected(window.data[start:], "").title)
            return
        if end == TOO_LARGE:
            yield rejected(window.data[start:], too_large(reading))
            at = start + 1
            continue
        if window.data.startswith(_START, end):
            yield rejected(window.data[start:end], "the <doc> is not closed")
        else:
            yield _parse(window.data[start:end])
        at = end


def _start_of_last_line(data: bytes, at: int) -> int:
    """The first index at or behind `at` from which on `data` may be the beginning of a start tag."""
    begin = data.find(b"\n", max(at, len(data) - len(_START) + 1))
    return begin if begin >= 0 else len(data)


def _parse(element: bytes) -> Document | RejectedPage:
    """The document of an element, given from the line end in front of its start tag up to its closing tag."""
    tag = _TAG.match(element[:_LONGEST_TAG])
    if tag is None:
        return rejected(element, "the <doc> tag has no id and title")
    document_id, title = tag.groups()
    body = element[tag.end() :].replace(b"\r\n", b"\n")
    # WikiExtractor repeats the title as the first line.
    first, _, rest = body.partition(b"\n")
    text = rest if first.strip() == title.strip() else body
    if problem := problem_of_text(title + text):
        return rejected(element, problem)
    return Document(document_id=document_id.decode("utf-8", "replace"), title=title, text=text.strip())
