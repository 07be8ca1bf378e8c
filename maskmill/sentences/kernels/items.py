"""Items of a list that stand in one line, which no mark ends: "1. The sun 2. The moon", "• sun • moon"."""

from typing import NamedTuple

import numpy as np

from maskmill.characters.kernels.characters import ALPHA, DIGIT, LOWER, character, character_before
from maskmill.kernels import lean_kernel
from maskmill.sentences.kernels.words import DATES, FLAGS, ORDINALS, is_space, skip_space, word_start

_FULL_STOP, _CLOSE, _ZERO = ord("."), ord(")"), ord("0")
_FIRST_SMALL, _LAST_SMALL = ord("a"), ord("z")
_MOST_DIGITS = 2
_LETTER = 1000  # what is added to a letter's number
_POINT, _BRACKET = 1, 2  # the marks after a number or a letter


class _Numbering(NamedTuple):
    """The number of an item. value: -1 for none. marks: `_POINT`, `_BRACKET` or both. end: the byte after them."""

    value: int
    marks: int
    end: int


@lean_kernel
def _numbering(model, data, at, end):
    """Return the number of an item, or its letter, that starts at byte `at`, in front of a word that is not written
    small.
    """
    start = at
    value = 0
    while at < end and at - start < _MOST_DIGITS and _ZERO <= data[at] <= _ZERO + 9:
        value = int(10 * value + np.int64(data[at]) - _ZERO)
        at += 1
    if at == start:
        if at >= end or not _FIRST_SMALL <= data[at] <= _LAST_SMALL:
            return _Numbering(-1, 0, start)
        value = int(_LETTER + np.int64(data[at]))
        at += 1
    marks = 0
    if at < end and data[at] == _FULL_STOP:
        marks = _POINT
        at += 1
    if at < end and data[at] == _CLOSE:
        marks |= _BRACKET
        at += 1
    word = skip_space(model, data, at, end)
    if marks == 0 or word == at or word == end:
        return _Numbering(-1, 0, start)
    first = np.int64(character(model, data, word)[0])
    return _Numbering(-1 if first & LOWER or not first & (ALPHA | DIGIT) else value, marks, at)


@lean_kernel
def is_next_item(model, data, head, begin, mark, end):
    """Return where the number of an item starts whose mark is at byte `mark`, or -1.

    It is one only if the number before it starts the sentence, at byte `head`, with the same marks.
    """
    start = word_start(model, data, begin, mark)
    if start == mark or start <= head or not is_space(model, data, character_before(data, start, begin), end):
        return -1
    first = _numbering(model, data, head, end)
    if first.value < 0 or (model[FLAGS] & (ORDINALS | DATES) and not first.marks & _BRACKET):
        return -1
    following = _numbering(model, data, start, end)
    return start if following.value == first.value + 1 and following.marks == first.marks else -1
