"""The properties of characters that Punkt uses, pinned to a Unicode version: every machine splits the same sentences.

NLTK takes them from the Python (and, from 3.10.4 on, from the `regex` package) that it runs on. This package reads them
from `data/NAME.tsv`, which this module wrote:

    python3.7 -m maskmill.characters.runs re  > maskmill/characters/data/nltk-3.4.tsv
    python3.13 -m maskmill.characters.runs regex > maskmill/characters/data/nltk-3.10.4.tsv

A line is a run of code points with the same properties: the first and the last one (hexadecimal), a letter for each
property, and the distance to the lower-case letter. Code points without property and lower-case letter have no line.
"""

from __future__ import annotations  # this module also runs on Python 3.7, for the table of its Unicode version

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

# a: [^\W\d] of the regular expressions, d: \d, u: str.isupper, l: str.islower; c: cased and i: case-ignorable, by which
# str.lower decides on the form of a final sigma.
PROPERTIES = "adulci"
NUM_CODE_POINTS = 0x110000
_SURROGATES = range(0xD800, 0xE000)
_NOTHING = ("", 0)  # the answer for a code point without property and lower-case letter


class Run(NamedTuple):
    """Code points `first` to `last` have the properties `letters`; their lower-case letters are `delta` away."""

    first: int
    last: int
    letters: str
    delta: int


def _properties(character: str, alpha: Any, digit: Any) -> tuple[str, int]:
    # str.lower writes the final form of a capital sigma after a cased letter where no cased letter follows; it skips
    # case-ignorable characters. So the form of a sigma in front of a character tells whether it is cased or ignorable.
    is_neither = ("A\u03a3" + character + "A").lower()[1] == "\u03c2"
    is_ignorable = not is_neither and ("A\u03a3" + character).lower()[1] == "\u03c2"
    lower = character.lower()
    values = (
        *(alpha.match(character), digit.match(character), character.isupper(), character.islower()),
        *(not is_neither and not is_ignorable, is_ignorable),
    )
    letters = "".join([letter for letter, holds in zip(PROPERTIES, values) if holds])  # noqa: B905 (Python 3.7)
    # Only U+0130 becomes two characters; the sentence splitter's kernel handles it.
    return letters, (ord(lower) - ord(character)) if len(lower) == 1 else 0


def _patterns(engine: str) -> tuple[Any, Any]:
    module = importlib.import_module(engine)
    return module.compile(r"[^\W\d]"), module.compile(r"\d")


def running_answer(engine: str, character: str) -> tuple[str, int]:
    """Return the answer of `running_answers` for one character, which is not a surrogate."""
    return _properties(character, *_patterns(engine))


def running_answers(engine: str) -> Iterator[tuple[str, int]]:
    """Yield the properties and the distance to the lower-case letter of each code point, on the running Python.

    Args:
      engine: the module whose regular expressions decide what a letter and a digit is: "re" or "regex".
    """
    alpha, digit = _patterns(engine)
    for code in range(NUM_CODE_POINTS):
        if code in _SURROGATES:
            yield "", 0
            continue
        character = chr(code)
        yield _properties(character, alpha, digit)


def runs(answers: Iterable[tuple[str, int]]) -> Iterator[Run]:
    """Join neighbours with equal answers to runs; leave out those without property and lower-case letter."""
    first, shared = 0, _NOTHING
    code = 0
    for code, answer in enumerate(answers):
        if answer != shared:
            if shared != _NOTHING:
                yield Run(first, code - 1, *shared)
            first, shared = code, answer
    if shared != _NOTHING:
        yield Run(first, code, *shared)


def read_runs(text: str) -> Iterator[Run]:
    """Yield the runs of a file that this module has written."""
    for line in text.splitlines():
        if not line.startswith("#"):
            first, last, letters, delta = line.split("\t")
            yield Run(int(first, 16), int(last, 16), letters, int(delta))


def main() -> None:
    """Write the table of the running Python to standard output."""
    engine = sys.argv[1]
    version = importlib.import_module("unicodedata").unidata_version
    print(f"# Python {sys.version.split()[0]} (Unicode {version}), letters and digits as the module {engine} has them")
    for run in runs(running_answers(engine)):
        print(f"{run.first:x}\t{run.last:x}\t{run.letters}\t{run.delta}")


if __name__ == "__main__":
    main()
