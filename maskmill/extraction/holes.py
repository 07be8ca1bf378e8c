"""Holes: places in a text where the wiki shows something that extraction could not turn into text.

A sentence with a hole looks whole but says something else: "it rose to million". So it is dropped.
"""

import itertools
import re
from collections.abc import Sequence

from maskmill.extraction.kernels.text import HOLE

MARK = bytes((HOLE,))
_WORD = re.compile(r"\w")
_UNFINISHED = re.compile(r"[\w,:;]\s*\Z")


def without_marks(text: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Return the text without the marks of its holes, and the offsets of the holes in it, in order."""
    parts = text.split(MARK)
    return b"".join(parts), tuple(itertools.accumulate(map(len, parts[:-1])))


def drop_broken(text: bytes, holes: Sequence[int], sentences: bytes) -> tuple[bytes, list[bytes]]:
    """Return the whole sentences of a text, one a line, and those with a hole.

    A sentence has a hole between its words or digits, before a small letter that begins it, or after its last word.
    holes: offsets in the text. sentences: all of them, in order, from SentenceSplitter.split_lines.
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


def _breaks(before: str, after: str) -> bool:
    """Return whether a sentence needs the missing text between two parts of it."""
    if not _WORD.search(before):
        return after.lstrip()[:1].islower()
    return bool(_WORD.search(after) or _UNFINISHED.search(before))
