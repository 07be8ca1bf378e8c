"""Holes: places in a text where the wiki shows something that extraction could not make text of.

A sentence with a hole reads as if it were whole, and says something else: "it rose to million". So it is dropped.
"""

import itertools
import re
from collections.abc import Sequence

from maskmill.extraction.kernels.text import HOLE

MARK = bytes((HOLE,))
_WORD = re.compile(r"\w")
_UNFINISHED = re.compile(r"[\w,:;]\s*\Z")


def without_marks(text: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Return the text without the marks of its holes, and where in it these are: offsets, in order."""
    pieces = text.split(MARK)
    return b"".join(pieces), tuple(itertools.accumulate(map(len, pieces[:-1])))


def drop_broken(text: bytes, holes: Sequence[int], sentences: bytes) -> tuple[bytes, list[bytes]]:
    """Return the sentences of a text that are whole, one a line, and those that have a hole.

    A hole is between words or digits of a sentence, before a small letter that begins it, or after its last word.
    holes: offsets in the text. sentences: all of them, in order, as SentenceSplitter.split_lines gives them.
    """
    if not holes:
        return sentences, []
    whole: list[bytes] = []
    broken: list[bytes] = []
    end = 0
    for sentence in sentences.removesuffix(b"\n").split(b"\n"):
        start = text.index(sentence, end)
        end = start + len(sentence)
        inside = (hole for hole in holes if start <= hole <= end)
        is_broken = any(_breaks(text[start:hole].decode(), text[hole:end].decode()) for hole in inside)
        (broken if is_broken else whole).append(sentence)
    return b"".join(sentence + b"\n" for sentence in whole), broken


def _breaks(before: str, behind: str) -> bool:
    """Return whether a sentence needs what is missing between two parts of it."""
    if not _WORD.search(before):
        return behind.lstrip()[:1].islower()
    return bool(_WORD.search(behind) or _UNFINISHED.search(before))
