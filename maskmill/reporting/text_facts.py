"""What text shards look like, summed over the files that were read."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maskmill.reporting import shown
from maskmill.verification.pieces import PieceResult, TextStatistics

_MOST_REPEATED = 15
_MOST_CHARACTERS = 240


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextFacts:
    """What the text of a split looks like.

    Attributes:
      documents, empty_documents, lines, characters, words, size, markup: counts; size in bytes, markup in marks of
        wikitext and HTML.
      document_lines: (fewest lines, most lines, documents), in powers of 2.
      longest_line: bytes.
      repeated: the lines of ten words and more that are there most often: how often, and the line's beginning.
    """

    documents: int
    empty_documents: int
    lines: int
    characters: int
    words: int
    size: int
    markup: int
    document_lines: tuple[tuple[int, int, int], ...]
    longest_line: int
    repeated: tuple[tuple[int, str], ...]


def text_facts_of(results: Iterable[Any]) -> dict[str, TextFacts]:
    """What the text of each split looks like."""
    found: dict[str, list[TextStatistics]] = {}
    for result in results:
        if isinstance(result, PieceResult) and result.text is not None:
            found.setdefault(result.piece.split, []).append(result.text)
    return {split: _facts(statistics) for split, statistics in sorted(found.items(), reverse=True)}


def _facts(statistics: Sequence[TextStatistics]) -> TextFacts:
    lines = np.sum([one.document_lines for one in statistics], axis=0)
    last = int(np.flatnonzero(lines)[-1]) if lines.any() else -1
    repeated: dict[str, int] = {}
    for one in statistics:
        for count, line in one.repeated_lines:
            repeated[line] = repeated.get(line, 0) + count
    often = sorted(((count, line) for line, count in repeated.items() if count > 1), key=lambda e: (-e[0], e[1]))
    return TextFacts(
        **{
            name: sum(getattr(one, name) for one in statistics)
            for name in ("documents", "empty_documents", "lines", "characters", "words", "size", "markup")
        },
        document_lines=tuple((1 << bit, (2 << bit) - 1, int(lines[bit])) for bit in range(last + 1)),
        longest_line=max(one.longest_line for one in statistics),
        repeated=tuple((count, shown.beginning(line, _MOST_CHARACTERS)) for count, line in often[:_MOST_REPEATED]),
    )
