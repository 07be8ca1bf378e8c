"""Statistics of the rows of examples and of the text of text shards, summed over the files that were read."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskmill.inspection.shown_text import shown as harmless
from maskmill.verification.work_items import ItemResult, RowStatistics, TextStatistics, add_statistics

_BINS = 64  # of lengths and positions: as many as a chart as wide as a phone can show
_MOST_REPEATED = 15
_MOST_CHARACTERS = 240
_RANKS = 48  # of pieces by frequency, evenly on a logarithmic scale


class Bin(NamedTuple):
    """Neighbouring lengths, positions or ranks, [first, last], and the value counted for them."""

    first: int
    last: int
    value: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowFacts:
    """Statistics of the rows of a split.

    Attributes:
      rows: the number of rows read.
      width: the most pieces in a row.
      pieces: all pieces of the rows, special ones included.
      lengths: the number of rows that are not full, by their number of pieces.
      full_rows: the number of rows without padding.
      masks_at: by position, the share of pieces that are predicted.
      masked, masked_kept, masked_random: the number of predicted positions; of these, those that keep their piece, and
        those that got another one than [MASK].
      masks: the number of rows by their number of masks.
      vocabulary: the number of ids; used: the number of ids that occur.
      ranks: ranks from 1, the most frequent piece first, each with the mean occurrences of a piece.
    """

    rows: int
    width: int
    pieces: int
    lengths: tuple[Bin, ...]
    full_rows: int
    masks_at: tuple[Bin, ...]
    masked: int
    masked_kept: int
    masked_random: int
    masks: tuple[Bin, ...]
    vocabulary: int
    used: int
    ranks: tuple[Bin, ...]


def row_facts_of(results: Iterable[Any], *, directory: str | None) -> dict[str, RowFacts]:
    """Return statistics of the rows of each split, from the files of one directory, so that no row counts twice."""
    found: dict[str, list[RowStatistics]] = {}
    for result in results:
        if isinstance(result, ItemResult) and result.rows is not None and result.item.directory == directory:
            found.setdefault(result.item.split, []).append(result.rows)
    return {split: _row_facts(statistics) for split, statistics in sorted(found.items(), reverse=True)}


def _row_facts(statistics: Sequence[RowStatistics]) -> RowFacts:
    whole = add_statistics(statistics)
    lengths, pieces_at, counts, rows = whole.lengths, whole.pieces_at, whole.piece_counts, whole.rows
    width = len(pieces_at)
    pieces = int((lengths * np.arange(len(lengths))).sum())
    sorted_counts = np.sort(counts[counts > 0])[::-1]
    return RowFacts(
        rows=rows,
        width=width,
        pieces=pieces,
        lengths=_sums(lengths, _edges(0, min(width, len(lengths)) - 1)),
        full_rows=int(lengths[width]) if len(lengths) > width else 0,
        masks_at=_ratios(whole.masks_at, pieces_at, _edges(0, width - 1)),
        masked=whole.masked,
        masked_kept=whole.masked_kept,
        masked_random=whole.masked_random,
        masks=_sums(whole.masks, _edges(0, len(whole.masks) - 1)),
        vocabulary=len(counts),
        used=len(sorted_counts),
        ranks=_of_ranks(sorted_counts),
    )


def _edges(first: int, last: int) -> list[tuple[int, int]]:
    """Return neighbouring ranges [a, b] of equal size that cover [first, last]: at most _BINS."""
    step = max(1, -(-(last - first + 1) // _BINS))
    return [(start, min(last, start + step - 1)) for start in range(first, last + 1, step)]


def _sums(values: Any, edges: Sequence[tuple[int, int]]) -> tuple[Bin, ...]:
    return tuple(Bin(a, b, int(values[a : b + 1].sum())) for a, b in edges)


def _ratios(parts: Any, wholes: Any, edges: Sequence[tuple[int, int]]) -> tuple[Bin, ...]:
    return tuple(Bin(a, b, float(parts[a : b + 1].sum() / max(1, wholes[a : b + 1].sum()))) for a, b in edges)


def _of_ranks(counts: Any) -> tuple[Bin, ...]:
    """Return the mean counts of ranges of ranks from 1 on, evenly spaced on a logarithmic scale."""
    ends = sorted({round(len(counts) ** (step / (_RANKS - 1))) for step in range(_RANKS)}) if len(counts) else []
    return tuple(Bin(a + 1, b, float(counts[a:b].mean())) for a, b in itertools.pairwise([0, *ends]))


@dataclasses.dataclass(frozen=True)
class TextFacts:
    """Statistics of the text of a split.

    Attributes:
      characters, markup: counts; markup in marks of wikitext and HTML.
      repeated: the longer lines that most documents have in common: the number of documents, and the line's beginning.
    """

    characters: int
    markup: int
    repeated: tuple[tuple[int, str], ...]

    @property
    def often(self) -> int:
        """The number of documents with the line that most documents have."""
        return self.repeated[0][0] if self.repeated else 1


def text_facts_of(results: Iterable[Any]) -> dict[str, TextFacts]:
    """Return statistics of the text of each split."""
    found: dict[str, list[TextStatistics]] = {}
    for result in results:
        if isinstance(result, ItemResult) and result.text is not None:
            found.setdefault(result.item.split, []).append(result.text)
    return {split: _text_facts(statistics) for split, statistics in sorted(found.items(), reverse=True)}


def _text_facts(statistics: Sequence[TextStatistics]) -> TextFacts:
    repeated: dict[str, int] = {}
    for one in statistics:
        for count, line in one.shared_lines:
            repeated[line] = repeated.get(line, 0) + count
    often = sorted(((count, line) for line, count in repeated.items() if count > 1), key=lambda e: (-e[0], e[1]))
    shown_lines = tuple((count, harmless(line, _MOST_CHARACTERS)) for count, line in often[:_MOST_REPEATED])
    return TextFacts(
        characters=sum(one.characters for one in statistics),
        markup=sum(one.markup for one in statistics),
        repeated=shown_lines,
    )
