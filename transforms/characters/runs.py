"""What Punkt asks of a character, pinned to a Unicode version, so that every machine splits the same sentences.

NLTK takes these answers from the Python (and, from 3.10.4 on, the `regex` package) it happens to run on. Here they
are read from `data/NAME.tsv`, which this module wrote:

    python3.7 -m transforms.characters.runs re  > transforms/characters/data/nltk-3.4.tsv
    python3.13 -m transforms.characters.runs regex > transforms/characters/data/nltk-3.10.4.tsv

A line is a run of code points with the same answers: first, last (hexadecimal), the letters of the properties that
hold, and how far away the lower-case letter is. Runs with no property and no lower-case letter are left out.
"""

from __future__ import annotations  # this module also runs on Python 3.7, for the table of its Unicode version

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

# a: [^\W\d] of the regular expressions, d: \d, u: str.isupper, l: str.islower, c: cased and i: case-ignorable as
# str.lower sees them when it decides on the form of a final sigma.
PROPERTIES = "adulci"
NUM_CODE_POINTS = 0x110000
_SURROGATES = range(0xD800, 0xE000)


class Run(NamedTuple):
    """Code points `first` to `last` have the properties `letters`; their lower case is `delta` further."""

    first: int
    last: int
    letters: str
    delta: int


def _properties(character: str, alpha: Any, digit: Any) -> tuple[str, int]:
    # str.lower writes the final form of a capital sigma when a cased letter stands before it and none follows,
    # case-ignorable characters not counted. What comes after the sigma tells them apart.
    neither = ("A\u03a3" + character + "A").lower()[1] == "\u03c2"
    ignorable = not neither and ("A\u03a3" + character).lower()[1] == "\u03c2"
    lower = character.lower()
    held = (
        *(alpha.match(character), digit.match(character), character.isupper(), character.islower()),
        *(not neither and not ignorable, ignorable),
    )
    letters = "".join([letter for letter, holds in zip(PROPERTIES, held) if holds])  # noqa: B905 (Python 3.7)
    # U+0130 alone becomes two characters; the kernel knows it.
    return letters, (ord(lower) - ord(character)) if len(lower) == 1 else 0


def running_answers(engine: str) -> Iterator[tuple[str, int]]:
    """The properties and the distance to the lower case of each code point, on the running Python.

    `engine` is the module whose regular expressions decide what a letter and a digit is: "re" or "regex".
    """
    module = importlib.import_module(engine)
    alpha, digit = module.compile(r"[^\W\d]"), module.compile(r"\d")
    for code in range(NUM_CODE_POINTS):
        if code in _SURROGATES:
            yield "", 0
            continue
        character = chr(code)
        yield _properties(character, alpha, digit)


def runs(answers: Iterable[tuple[str, int]]) -> Iterator[Run]:
    """Gathers equal answers of neighbours into runs; those without any property are left out."""
    first, held = 0, ("", 0)
    code = 0
    for code, answer in enumerate(answers):
        if answer != held:
            if held != ("", 0):
                yield Run(first, code - 1, *held)
            first, held = code, answer
    if held != ("", 0):
        yield Run(first, code, *held)


def read_runs(text: str) -> Iterator[Run]:
    """The runs of a file that this module wrote."""
    for line in text.splitlines():
        if not line.startswith("#"):
            first, last, letters, delta = line.split("\t")
            yield Run(int(first, 16), int(last, 16), letters, int(delta))


def main() -> None:
    """Writes the table of the running Python to standard output."""
    engine = sys.argv[1]
    version = importlib.import_module("unicodedata").unidata_version
    print(f"# Python {sys.version.split()[0]} (Unicode {version}), letters and digits as the module {engine} has them")
    for run in runs(running_answers(engine)):
        print(f"{run.first:x}\t{run.last:x}\t{run.letters}\t{run.delta}")


if __name__ == "__main__":
    main()
