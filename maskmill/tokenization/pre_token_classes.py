"""The classes of characters in GPT-2's pre-tokenizer: letters, numbers, white space, others.

The source is the library `tokenizers`, whose ByteLevel puts each character of a word into one of these classes: \\p{L},
\\p{N} and \\s of Oniguruma with Unicode 16.0. This package reads them from `data/pre-tokens-16.0.0.tsv`, which this
module wrote, so that words are split alike with all versions of the library:

    python -m maskmill.tokenization.pre_token_classes > maskmill/tokenization/data/pre-tokens-16.0.0.tsv

A line is a run of code points of one class: the first and the last one (hexadecimal) and the letter of the class. Code
points without a line are OTHER.
"""

import functools
from collections.abc import Iterable, Iterator
from importlib import resources

import numpy as np
import numpy.typing as npt

OTHER = 0
LETTER = 1
NUMBER = 2
WHITE = 3
LINE_END = 4  # the newline

NUM_CODE_POINTS = 0x110000
_LETTERS = {LETTER: "L", NUMBER: "N", WHITE: "S"}
_SURROGATES = range(0xD800, 0xE000)
_CHUNK = 1 << 14


@functools.cache
def load() -> npt.NDArray[np.uint8]:
    """Return the class of each code point: uint8[NUM_CODE_POINTS]; that of the newline is LINE_END."""
    classes = np.full(NUM_CODE_POINTS, OTHER, np.uint8)
    numbers = {letter: number for number, letter in _LETTERS.items()}
    name = resources.files("maskmill.tokenization").joinpath("data", "pre-tokens-16.0.0.tsv")
    for line in name.read_text(encoding="ascii").splitlines():
        first, last, letter = line.split("\t")
        classes[int(first, 16) : int(last, 16) + 1] = numbers[letter]
    classes[ord("\n")] = LINE_END
    return classes


def library_classes() -> npt.NDArray[np.uint8]:
    """Return the class of each code point as the installed `tokenizers` has it: uint8[NUM_CODE_POINTS].

    A character belongs to a class if the library keeps it together with another of that class before it.
    """
    from tokenizers.pre_tokenizers import ByteLevel  # imported only to make and to test the file

    split = ByteLevel(add_prefix_space=False).pre_tokenize_str

    def is_kept_together(points: Iterable[int], before: str) -> Iterator[tuple[int, bool]]:
        """Yield each character, and whether it forms one word with the character `before`, put before it."""
        points = [point for point in points if point not in _SURROGATES]
        text = "".join(before + chr(point) for point in points)
        starts = {start for _, (start, _) in split(text)}
        for k, point in enumerate(points):
            yield point, 2 * k + 1 not in starts

    classes = np.full(NUM_CODE_POINTS, OTHER, np.uint8)
    for first in range(0, NUM_CODE_POINTS, _CHUNK):
        rest = [point for point, other in is_kept_together(range(first, first + _CHUNK), "!") if not other]
        for number, before in ((LETTER, "x"), (NUMBER, "1")):
            found = {point for point, same in is_kept_together(rest, before) if same}
            classes[list(found)] = number
            rest = [point for point in rest if point not in found]
        classes[rest] = WHITE
    return classes


def lines_of(classes: npt.NDArray[np.uint8]) -> Iterator[str]:
    """Yield the lines of the file; classes: uint8[NUM_CODE_POINTS], of all code points."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(classes)) + 1))
    ends = np.append(starts[1:], len(classes)) - 1
    for first, last in zip(starts.tolist(), ends.tolist(), strict=True):
        if classes[first] != OTHER:
            yield f"{first:x}\t{last:x}\t{_LETTERS[int(classes[first])]}"


if __name__ == "__main__":
    print(*lines_of(library_classes()), sep="\n")
