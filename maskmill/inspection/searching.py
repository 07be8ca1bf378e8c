"""Finds examples and documents in which words stand."""

import re
from collections.abc import Iterator

import numpy as np

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.opened_examples import OpenedExamples
from maskmill.inspection.opened_texts import OpenedTexts, TextDocument

_ROWS = 1024  # read at a time
_PART = re.compile(r"\w+|[^\w\s]")


def pattern_of(words: str) -> re.Pattern[str]:
    """What finds words in a text, in capitals or not, however it is tokenized.

    "U.S. Army" finds "u . s . army", "the U.S. Army," and "the u.s. army's". A word is found where it begins one: "art"
    is found in "artist", but not in "start".

    Raises:
      UnusableInputError: there is no word.
    """
    groups = [_PART.findall(group) for group in words.split()]
    if not groups:
        raise UnusableInputError("The word to search for is empty; name one: --example search WORD.")
    text = r"\s+".join(r"\s*".join(map(re.escape, parts)) for parts in groups)
    starts = r"\b" if re.match(r"\w", groups[0][0]) else ""
    return re.compile(starts + text, re.IGNORECASE)


@checked
def search_examples(opened: OpenedExamples, words: str) -> Iterator[int]:
    """The samples, from 0, in whose text the words stand, masks undone.

    Args:
      opened: the examples.
      words: one or several, found in capitals or not, where they begin a word.

    Raises:
      UnusableInputError: there is no word, or a record is damaged.
    """
    wanted = _Wanted(words)
    at, end = opened.first, opened.first + opened.count
    while at < end:
        count = min(_ROWS, end - at)
        for row, text in enumerate(opened.decoder.texts(opened.rows(at, count), np.arange(count))):
            if wanted.stands_in(text):
                yield at + row
        at += count


@checked
def search_texts(opened: OpenedTexts, words: str) -> Iterator[TextDocument]:
    """The documents in which the words stand within a line.

    Args:
      opened: the text shards.
      words: as for `search_examples`.

    Raises:
      UnusableInputError: there is no word.
      RunFailedError: a file cannot be read.
    """
    wanted = _Wanted(words)
    for document in opened.all():
        if any(map(wanted.stands_in, document.lines)):
            yield document


class _Wanted:
    """Words to search for in many texts."""

    def __init__(self, words: str) -> None:
        self._pattern = pattern_of(words)
        self._longest = max(_PART.findall(words), key=len).lower()

    def stands_in(self, text: str) -> bool:
        # Patterns take ten times as long as this.
        return self._longest in text.lower() and self._pattern.search(text) is not None
