"""What the kernels of WikiExtractor's text share: names of bytes, names compared in any case, copying.

The modules of this folder hold WikiExtractor's steps on the bytes of a page:
what it drops, in its order, with its idea of what is balanced. Each step takes the text (uint8, UTF-8) and writes what
is left to `out`, which is at least as long; it returns how many bytes it wrote, or NOTHING_TO_DO and leaves `out`
untouched. All take time linear in the text: a search that found nothing is not made again.

The text is the page's own, with the XML's references resolved. WikiExtractor works on the references and resolves them
between its links and its tags; the difference only shows in the double quotes that italics become, and in the tag
around a failed calculation. QUOTE_MARK, LESS_MARK and GREATER_MARK, three control characters that XML does not allow,
stand for these characters until references are resolved.

`model` has the character tables, laid out as maskmill/characters/kernels/characters.py says, of the Unicode version
of Python 3.7.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.kernels.characters import SPACE, character
from maskmill.kernels import lean_kernel
from maskmill.kernels.ascii import LOWER_CASE, UPPER_A, UPPER_Z

NOTHING_TO_DO = -1

QUOTE_MARK, LESS_MARK, GREATER_MARK = 1, 2, 3


def packed(names: Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names one behind another, uint8; and where each starts and the last one ends, int64 [names + 1]."""
    names = list(names)
    starts = np.concatenate(([0], np.cumsum([len(name) for name in names])))
    return np.frombuffer(b"".join(names), np.uint8).copy(), starts


@lean_kernel
def lower(byte):
    """A byte, in lower case if it is an ASCII letter."""
    return byte | LOWER_CASE if UPPER_A <= byte <= UPPER_Z else byte


@lean_kernel
def copy(data, start, end, out, written):
    """Copies bytes `start:end` behind what is written to `out`; returns how many bytes are written then."""
    for at in range(start, end):
        out[written] = data[at]
        written += 1
    return written


@lean_kernel
def letter_at(data, at):
    """The character at byte `at` as Python's patterns compare it in either case, and its size; 0 for others."""
    byte = data[at]
    if byte < 0x80:
        return lower(byte), 1
    if at + 1 < data.size:
        if byte == 0xC4 and data[at + 1] in (0xB0, 0xB1):  # U+0130, U+0131
            return ord("i"), 2
        if byte == 0xC5 and data[at + 1] == 0xBF:  # U+017F
            return ord("s"), 2
        if byte == 0xE2 and at + 2 < data.size and data[at + 1] == 0x84 and data[at + 2] == 0xAA:  # U+212A
            return ord("k"), 3
    return 0, 1


@lean_kernel
def match(data, at, names, starts, number):
    """Where the packed name of this number ends that starts at byte `at`, in whatever case; -1 if it is not there."""
    for i in range(starts[number], starts[number + 1]):
        if at >= data.size:
            return -1
        letter, size = letter_at(data, at)
        if letter != names[i]:
            return -1
        at += size
    return at


@lean_kernel
def skip_space(model, data, at):
    """Where the white space ends that starts at byte `at`."""
    while at < data.size:
        properties, size = character(model, data, at)
        if not properties & SPACE:
            break
        at += size
    return at
