"""The properties of characters for sentence splitting: a table for each set of rules, pinned to a Unicode version."""

import functools
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.characters import runs
from maskmill.characters.kernels import characters as kernels

CharacterRules = Literal["nltk-3.10.4", "nltk-3.4"]

_DATA = Path(__file__).parent / "data"

_UNICODE_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_SPACES = "\t\n\x0b\x0c\r " + _UNICODE_SPACES
_SEPARATORS = "\x1c\x1d\x1e\x1f"  # white space for str and for the module re, not for the module regex
_CURLY_QUOTES = "‘’“”«»"
_ASCII_NON_WORD = "?!)\";}]*:@'({["
_ASCII_CLOSERS = "\"')]}"
_NO_WORD_START = '("`{[:;&#*@)}]-,'


class _Rules(NamedTuple):
    """The characters in which the versions of NLTK differ."""

    spaces: str
    non_word: str
    closers: str


# NLTK 3.4.5 compiles its regular expressions with the module re, 3.10.4 with regex; 3.10.2 counts curly quotes as
# closing marks.
_RULES: dict[CharacterRules, _Rules] = {
    "nltk-3.4": _Rules(_SPACES + _SEPARATORS, _ASCII_NON_WORD, _ASCII_CLOSERS),
    "nltk-3.10.4": _Rules(_SPACES, _ASCII_NON_WORD + _CURLY_QUOTES, _ASCII_CLOSERS + _CURLY_QUOTES),
}
_PROPERTY_BITS = dict(
    zip(
        runs.PROPERTIES,
        (kernels.ALPHA, kernels.DIGIT, kernels.UPPER, kernels.LOWER, kernels.CASED, kernels.IGNORABLE),
        strict=True,
    )
)


@functools.cache
def character_tables(rules: CharacterRules) -> NDArray[np.int32]:
    """Return the character tables of a set of rules: one int32 array, laid out as kernels/characters.py says."""
    entries = np.zeros(runs.NUM_CODE_POINTS, np.int32)
    for run in runs.read_runs((_DATA / f"{rules}.tsv").read_text(encoding="utf-8")):
        bits = sum(_PROPERTY_BITS[letter] for letter in run.letters)
        entries[run.first : run.last + 1] = run.delta << kernels.DELTA_SHIFT | bits
    version = _RULES[rules]
    for bit, characters in (
        (kernels.SPACE, version.spaces),
        (kernels.STRIPPED, _SPACES + _SEPARATORS),
        (kernels.NON_WORD, version.non_word),
        (kernels.CLOSER, version.closers),
        (kernels.NO_WORD_START, _NO_WORD_START),
        (kernels.CHECK, "-.,"),
    ):
        for character in characters:
            entries[ord(character)] |= bit
    # Equal pages are stored once: most planes are empty or have only letters. Page 0 comes first.
    pages = entries.reshape(-1, kernels.PAGE)
    distinct: dict[bytes, int] = {}
    numbers = [distinct.setdefault(page.tobytes(), len(distinct)) for page in pages]
    starts = kernels.ASCII + kernels.PAGE * np.array(numbers, np.int32)
    reserved = np.zeros(kernels.PAGES, np.int32)
    return np.concatenate((reserved, starts, np.frombuffer(b"".join(distinct), np.int32)), dtype=np.int32)
