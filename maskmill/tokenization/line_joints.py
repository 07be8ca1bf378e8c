"""Classify characters, to decide whether two lines of a document are joined with a space or with nothing.

Lines are joined with nothing if the first ends, and the second begins, with a script that is written without spaces
between words. The last, or first, character of the line that has a script decides: digits, marks and signs that all
scripts share are skipped. The blocks are those of Unicode 16.0; `LETTER` is that of pre_token_classes.py.
"""

import functools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from maskmill.tokenization import pre_token_classes

NEUTRAL = 0  # shared by all scripts: digits, full stops, signs
SPACED = 1  # letters of scripts that are written with spaces
UNSPACED = 2  # scripts that are written without, and East Asian punctuation
LINE_END = 3  # the newline

NO_LINE = 0  # in place of SPACED or UNSPACED for the line before: there is none, a document starts

_UNSPACED_BLOCKS = (
    (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue, Khmer symbols
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x2E80, 0x303F),  # radicals, East Asian punctuation
    (0x3040, 0x312F),  # kana, Bopomofo
    (0x3190, 0x31FF),  # kanbun, Bopomofo, strokes, kana
    (0x3400, 0x4DBF),  # ideographs
    (0x4E00, 0xA4CF),  # ideographs, Yi
    (0xA980, 0xA9FF),  # Javanese, Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0xF900, 0xFAFF),  # ideographs
    (0xFE30, 0xFE4F),  # East Asian punctuation
    (0xFF00, 0xFF9F),  # full-width forms, half-width kana
    (0xFFE0, 0xFFEF),  # full-width signs
    (0x116D0, 0x116FF),  # Myanmar
    (0x11700, 0x1174F),  # Ahom
    (0x16FE0, 0x18DFF),  # Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # kana, Nushu
    (0x20000, 0x3FFFF),  # ideographs
)


@functools.cache
def load() -> npt.NDArray[np.uint8]:
    """Return the kind of each code point: uint8[0x110000]."""
    kinds = np.where(pre_token_classes.load() == pre_token_classes.LETTER, SPACED, NEUTRAL).astype(np.uint8)
    for first, last in _UNSPACED_BLOCKS:
        kinds[first : last + 1] = UNSPACED
    kinds[ord("\n")] = LINE_END
    return kinds


def kind_of(characters: Iterable[str]) -> int:
    """Return UNSPACED if the first character that has a script has one without spaces, else SPACED."""
    kinds = load()
    return next((int(kind) for c in characters if (kind := kinds[ord(c)]) != NEUTRAL), SPACED)
