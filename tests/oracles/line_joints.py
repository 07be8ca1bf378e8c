"""What stands between two lines of a document, in plain Python."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from maskmill.tokenization import line_joints

# U+0085 is white space to the library, U+001C to U+001F are not.
_BLANK = re.compile(r"(?:(?![\x1c-\x1f])\s)*")


def joint(before: str, behind: str) -> str:
    """What stands between two lines."""
    return "" if _is_unspaced(before[::-1]) and _is_unspaced(behind) else " "


def _is_unspaced(text: str) -> bool:
    kinds = [line_joints.load()[ord(character)] for character in text]
    return [kind for kind in kinds if kind != line_joints.NEUTRAL][:1] == [line_joints.UNSPACED]


def with_joints(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a document, each with what stands before it."""
    for number, line in enumerate(lines):
        yield (joint(lines[number - 1], line) if number else "") + line


def joined(lines: Sequence[str]) -> str:
    """The text of a document."""
    return "".join(with_joints(lines))


def documents_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """The documents of a text: lines that are not blank, between blank ones."""
    for is_blank, found in itertools.groupby(lines, key=lambda line: _BLANK.fullmatch(line) is not None):
        if not is_blank:
            yield list(found)
