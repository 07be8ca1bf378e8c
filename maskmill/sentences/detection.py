"""The language of a text, by the commonest words of the languages that have rules (data/common_words.tsv).

A table rather than a library: it covers exactly the languages with rules, takes a microsecond for a document, and gives
the same result on any machine. The confidence is the share of the nearest language's words among those that only one of
the two nearest languages has.
"""

import functools
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from maskmill.sentences.kernels import common_words
from maskmill.sentences.punkt import model_of_words
from maskmill.sentences.rules import entry_of

# A detection is sure if so large a share of the distinguishing words is of the language, so large a share of all words
# is common in it (8 to 60 % are, in any text), and so many of them are different.
SURE = 0.8
_LEAST_SHARE = 0.08
_FEWEST_DISTINCT = 4
FEWEST_WORDS = 30  # a text with fewer words and no sure language counts as unknown


@dataclass(frozen=True, kw_only=True)
class Detection:
    """The language detected from a text's words.

    language: the code of the most likely one, "" for none. sure: confidence, 0 to 1. words: the number of words.
    """

    language: str
    sure: float
    words: int

    @property
    def is_sure(self) -> bool:
        """True if the text counts as one in this language."""
        return self.sure >= SURE


@functools.cache
def _rows() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the rows of the table, one a language: code, ISO 639-3 code, words."""
    path = resources.files("maskmill.sentences") / "data" / "common_words.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return tuple((code, long_code, tuple(words.split())) for code, long_code, words in rows)


def codes_by_long_code() -> dict[str, str]:
    """Return the codes of the table's languages by their ISO 639-3 codes."""
    return {long_code: code for code, long_code, _ in _rows()}


@functools.cache
def _tables() -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.uint64], NDArray[np.int64]]:
    """Return the codes of the languages in the order of their bits, and the kernel's tables."""
    masks: dict[str, int] = {}
    for number, (_, _, words) in enumerate(_rows()):
        for word in words:
            masks[word] = masks.get(word, 0) | 1 << number
    model = model_of_words({word: row for row, word in enumerate(masks, 1)})
    codes = [code for code, _, _ in _rows()]
    entries = [entry_of(code) for code in codes]
    groups = np.arange(common_words.MOST_LANGUAGES)
    groups[: len(codes)] = [entries.index(entry) for entry in entries]
    return tuple(codes), model, np.array(list(masks.values()), np.uint64), groups


def detect_language(text: bytes) -> Detection:
    """Return the language of a text in valid UTF-8. All of `text` is read; pass only as much as should decide."""
    codes, model, masks, groups = _tables()
    found = common_words.nearest_language(model, masks, groups, np.frombuffer(text, np.uint8))
    if found.language < 0:
        return Detection(language="", sure=0.0, words=found.words)
    sure = (found.own + 1) / (found.own + found.other + 2)
    if found.distinct < _FEWEST_DISTINCT or found.common < _LEAST_SHARE * found.words:
        sure = min(sure, 0.5)
    return Detection(language=codes[found.language], sure=round(sure, 2), words=found.words)


def is_plainly_in(language: str, text: bytes, limit: int) -> bool:
    """Return whether the first `limit` bytes of a text have a few words that no other language of the table has.

    This is a cheap test before `detect_language`; False means that the language is undecided.
    """
    codes, model, masks, _ = _tables()
    if language not in codes:
        return False
    data = np.frombuffer(text, np.uint8)
    return bool(common_words.has_own_words(model, masks, codes.index(language), data, min(limit, data.size)))
