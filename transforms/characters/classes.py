"""What each character is for the splitters: one table a set of rules, pinned to a Unicode version."""

import functools
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transforms.characters import runs
from transforms.characters.kernels import characters as kernels

CharacterRules = Literal["nltk-3.10.4", "nltk-3.4"]

_DATA = Path(__file__).parent / "data"
_PAGE = 256  # code points a page of the character tables

_UNICODE_SPACES = "\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_SPACES = "\t\n\x0b\x0c\r " + _UNICODE_SPACES
_SEPARATORS = "\x1c\x1d\x1e\x1f"  # white space for str and for the module re, not for the module regex
_CURLY_QUOTES = "‘’“”«»"
_ASCII_NON_WORD = "?!)\";}]*:@'({["
_ASCII_CLOSERS = "\"')]}"
_NO_WORD_START = '("`{[:;&#*@)}]-,'


class _Rules(NamedTuple):
    """What differs between the versions of NLTK."""

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
    """The character tables of one version, int32, laid out as transforms/characters/kernels/characters.py says."""
    entries = np.zeros(runs.NUM_CODE_POINTS, np.int32)
    for run in runs.read_runs((_DATA / f"{rules}.tsv").read_text(encoding="utf-8")):
        bits = sum(_PROPERTY_BITS[letter] for letter in run.letters)
        entries[run.first : run.last + 1] = run.delta << kernels.DELTA_SHIFT | bits
    sets = _RULES[rules]
    for bit, characters in (
        (kernels.SPACE, sets.spaces),
        (kernels.STRIPPED, _SPACES + _SEPARATORS),
        (kernels.NON_WORD, sets.non_word),
        (kernels.CLOSER, sets.closers),
        (kernels.NO_WORD_START, _NO_WORD_START),
        (kernels.CHECK, "-.,"),
    ):
        for character in characters:
            entries[ord(character)] |= bit
    # Equal pages are kept once: most of the planes are empty or all letters. Page 0 comes first.
    pages = entries.reshape(-1, _PAGE)
    kept: dict[bytes, int] = {}
    page_of = [kept.setdefault(page.tobytes(), len(kept)) for page in pages]
    places = kernels.ASCII + _PAGE * np.array(page_of, np.int32)
    head = np.zeros(kernels.PAGES, np.int32)
    return np.concatenate((head, places, np.frombuffer(b"".join(kept), np.int32)), dtype=np.int32)
