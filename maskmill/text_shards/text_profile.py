"""The profile of written text: how long its lines are, how they begin, and which scripts its letters belong to.

Sentences that are split by the rules of another language show here: lines become long. Lines that were cut at some
width, in the middle of sentences, begin with small letters. The record of a fragment holds a
profile of each input's text; they are added up for the manifest.
"""

import collections
import functools
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

# Lines are counted by their length in steps of so many characters, up to the greatest; longer ones count together.
STEP = 10
_STEPS = 400

# Of lines that are sentences 1 to 2 % begin with a small letter, of lines of prose cut at a width 60 to 80 %. A text
# that was lower-cased as a whole has no capitals.
_MANY_SMALL, _SOME_CAPITALS = 0.3, 0.03
_SMALL, _CAPITAL = 1, 2

_COMMON_SCRIPT = 0.01  # the share of the letters that a script must have to be named

_NEWLINE = ord("\n")
_LAST_CONTINUATION = -65  # as a signed byte; bytes in the middle of a character are up to here
# The first byte of a character of several bytes: of two from here to 0xDF, of three to 0xEF, else of four.
_FIRST_OF_TWO, _FIRST_OF_THREE, _FIRST_OF_FOUR = 0xC0, 0xE0, 0xF0
_BITS_OF_CONTINUATION = 6
_SECOND_PLANE = 0x20000  # of rare ideographs


class TextProfile:
    """Profiles text block by block, at a millisecond for a megabyte of English.

    lengths: how many lines have `STEP * k` to `STEP * (k + 1) - 1` characters, [400]; the last counts all longer ones.
    Blank lines do not count. longest: the characters of the longest line. begin_small, begin_capital: how many lines
    begin with such a letter.
    """

    def __init__(self) -> None:
        self.lengths = np.zeros(_STEPS, np.int64)
        self.longest = self.begin_small = self.begin_capital = 0
        self._ascii_letters = 0
        # How many characters begin with two bytes, [65536], by the bytes as a big-endian number.
        self._beginnings = np.zeros(1 << 16, np.int64)

    def add(self, block: bytes) -> None:
        """Add whole lines of UTF-8."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        if not len(ends):
            return
        starts = np.concatenate(([0], ends[:-1] + 1))
        is_first_byte = (data.view(np.int8) > _LAST_CONTINUATION).view(np.uint8)
        characters: npt.NDArray[np.int32] = np.add.reduceat(is_first_byte, starts, dtype=np.int32) - 1
        characters = characters[characters > 0]
        self.lengths += np.bincount(np.minimum(characters // STEP, _STEPS - 1), minlength=_STEPS)
        self.longest = max(self.longest, int(characters.max(initial=0)))
        begin = _cases()[data[starts].astype(np.intp) << 8 | data[np.minimum(starts + 1, len(data) - 1)]]
        self.begin_small += int(np.count_nonzero(begin == _SMALL))
        self.begin_capital += int(np.count_nonzero(begin == _CAPITAL))
        self._ascii_letters += int(np.count_nonzero((data | 32) - ord("a") < 26))  # unsigned: what is below wraps round
        firsts = np.flatnonzero(data >= _FIRST_OF_TWO)
        beginnings = data[firsts].astype(np.intp) << 8 | data[firsts + 1]
        self._beginnings += np.bincount(beginnings, minlength=len(self._beginnings))

    @property
    def record(self) -> dict[str, Any]:
        """The profile as JSON has it, without the zeros after the longest line."""
        last = int(self.lengths.nonzero()[0].max(initial=-1))
        return {
            "lengths": self.lengths[: last + 1].tolist(),
            "longest": self.longest,
            "begin_small": self.begin_small,
            "begin_capital": self.begin_capital,
            "scripts": self._scripts(),
        }

    def _scripts(self) -> dict[str, int]:
        scripts = collections.Counter({"LATIN": self._ascii_letters} if self._ascii_letters else {})
        for beginning in self._beginnings.nonzero()[0].tolist():
            script = _script_of(beginning)
            if script:
                scripts[script] += int(self._beginnings[beginning])
        return dict(scripts)


@functools.cache
def _cases() -> npt.NDArray[np.uint8]:
    """Return whether the letter that begins with two bytes is small or a capital, [65536]; those of three bytes have
    none.
    """
    cases = np.zeros(1 << 16, np.uint8)
    for point in range(1 << 11):
        character = chr(point)
        case = _SMALL if character.islower() else _CAPITAL if character.isupper() else 0
        first, *second = character.encode()
        cases[first << 8 | second[0] if second else slice(first << 8, first + 1 << 8)] = case
    return cases


def _script_of(beginning: int) -> str:
    """Return the script of the letters that begin with two bytes, as rules.scripts_of names it; empty if none does.

    The two bytes of a longer character leave 64 or 4,096 characters open: it counts for the first letter among them if
    most of them are letters. What stands in the plane of the dead scripts counts for none.
    """
    first, second = divmod(beginning, 1 << 8)
    continuation = second & (1 << _BITS_OF_CONTINUATION) - 1
    if first < _FIRST_OF_THREE:
        start, size = (first & 0x1F) << 6 | continuation, 1
    elif first < _FIRST_OF_FOUR:
        start, size = (first & 0x0F) << 12 | continuation << 6, 1 << 6
    else:
        start, size = (first & 0x07) << 18 | continuation << 12, 1 << 12
        if start < _SECOND_PLANE:
            return ""
    row = [chr(point) for point in range(start, start + size)]
    letters = [character for character in row if unicodedata.category(character)[0] in "LM"]
    if 2 * len(letters) < size:
        return ""
    return unicodedata.name(next((c for c in letters if c.isalpha()), letters[0]), "").split(" ")[0]


def add_up(records: Iterable[Mapping[str, Any]]) -> tuple[dict[str, int], dict[str, int]]:
    """Add up the profiles of fragments.

    Returns:
      The counts of lines: how many, the characters of the median line (rounded down to STEP) and of the longest, and
      how many begin with a small letter and with a capital; empty if there is no line. And how many letters of the text
      belong to each script, the commonest first, those of few letters left out.
    """
    lengths = np.zeros(_STEPS, np.int64)
    longest = 0
    begin: collections.Counter[str] = collections.Counter()
    scripts: collections.Counter[str] = collections.Counter()
    for record in records:
        lengths[: len(record["lengths"])] += np.array(record["lengths"], np.int64)
        longest = max(longest, record["longest"])
        begin.update({name: record[name] for name in ("begin_small", "begin_capital")})
        scripts.update(record["scripts"])
    lines = int(lengths.sum())
    if not lines:
        return {}, {}
    median = STEP * int(np.searchsorted(np.cumsum(lengths), (lines + 1) // 2))
    letters = sum(scripts.values())
    common = [(script, number) for script, number in scripts.items() if number >= _COMMON_SCRIPT * letters]
    common.sort(key=lambda script: (-script[1], script[0]))
    counts = {"lines": lines, "median_characters": median, "longest_characters": longest, **begin}
    return counts, dict(common)


def is_cut(lines: Mapping[str, int]) -> bool:
    """Return whether lines, counted as by `add_up`, seem to be cut at some width, so that they are no sentences."""
    return (
        lines.get("begin_small", 0) >= max(1, _MANY_SMALL * lines.get("lines", 0))
        and lines["begin_capital"] >= _SOME_CAPITALS * lines["lines"]
    )
