"""What the rows of a file look like, counted while they are checked."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.kernels.memory import exposed_address
from maskmill.verification.kernels import rows as kernels
from maskmill.verification.pieces import RowStatistics

SKETCH = 1024
_MOST_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)
_GATHERED = 8 * SKETCH  # hashes of openings that are put into the sketch together


class RowCounter:
    """Counts and hashes rows, block by block.

    Attributes:
      problems: int64[CODES, LINE], see kernels/rows.py.
    """

    def __init__(self, *, room: int, width: int, predictions: int, vocabulary: int) -> None:
        """Makes room for blocks of so many rows; vocabulary: ids are below it; 0: not known."""
        self.problems = np.zeros((kernels.CODES, kernels.LINE), np.int64)
        self.problems[:, kernels.LAST] = -1
        self._lengths = np.zeros(width + 1, np.int64)
        self._masks_at = np.zeros(max(width, 1), np.int64)
        self._masks = np.zeros(predictions + 1, np.int64)
        self._piece_counts = np.zeros(vocabulary, np.int64)
        self._totals = np.zeros(kernels.TOTALS, np.int64)
        self._hashes = np.zeros((room, 2), np.uint64)
        self._openings = np.zeros(room * (width // (kernels.OPENING + 1) + 1), np.uint64)
        self._original = np.zeros(width + kernels.SPARE, np.int32)
        self._sketch = np.zeros(0, np.uint64)
        self._gathered: list[npt.NDArray[np.uint64]] = []
        self._all_hashes: list[npt.NDArray[np.uint64]] = []
        arrays = (
            self.problems,
            self._lengths,
            self._masks_at,
            self._masks,
            self._piece_counts,
            self._totals,
            self._hashes,
            self._openings,
            self._original,
        )
        self._places = kernels.OutcomePlaces(*(exposed_address(array) for array in arrays))

    def check(self, places: kernels.RowPlaces, count: int, rules: kernels.RuleTable) -> None:
        """Checks and counts the first `count` rows of a block."""
        is_full = len(self._sketch) == SKETCH
        kernels.check_rows(places, count, rules, self._places, self._sketch[-1] if is_full else _MOST_HASH)
        self._all_hashes.append(self._hashes[:count].copy())
        found = int(self._totals[kernels.SKETCHED])
        if found:
            self._totals[kernels.SKETCHED] = 0
            self._gathered.append(self._openings[:found].copy())
            if sum(map(len, self._gathered)) > _GATHERED:
                self._sketch_gathered()

    def _sketch_gathered(self) -> None:
        self._sketch = np.unique(np.concatenate([self._sketch, *self._gathered]))[:SKETCH]
        self._gathered.clear()

    @property
    def sequences(self) -> int:
        """How many there are."""
        return int(self._totals[kernels.SEQUENCES])

    @property
    def special_pieces(self) -> int:
        """How many [CLS] and [SEP] there are in all sequences."""
        return int(self._totals[kernels.SPECIAL])

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """uint64[rows, 2], in the order of the file: of each row with its masks undone, and of the whole row."""
        return np.concatenate([*self._all_hashes, np.zeros((0, 2), np.uint64)])

    def statistics(self) -> RowStatistics:
        """What was counted."""
        self._sketch_gathered()
        rows = int(self._lengths.sum())
        totals = self._totals.copy()
        return RowStatistics(
            rows=rows,
            lengths=self._lengths,
            # A row of n pieces has one at each of the positions below n.
            pieces_at=rows - np.cumsum(self._lengths)[:-1],
            masks_at=self._masks_at[: len(self._lengths) - 1],
            masked=int(self._totals[kernels.MASKED]),
            masked_kept=int(self._totals[kernels.KEPT]),
            masked_random=int(self._totals[kernels.RANDOM]),
            masks=self._masks,
            second_label=int(self._totals[kernels.SECOND_LABELS]),
            piece_counts=self._piece_counts,
            sketch=self._sketch,
            sequences=self.sequences,
            part_pieces=totals[kernels.PARTS : kernels.PARTS + 4].reshape(2, 2),
            half_masks=totals[kernels.FIRST_HALF : kernels.FIRST_HALF + 4].reshape(2, 2),
            continued=totals[kernels.CONTINUED : kernels.CONTINUED + 2],
            redrawn=totals[kernels.REDRAWN :],
            openings=totals[kernels.OPENINGS : kernels.OPENINGS + 2],
            order=totals[kernels.ORDER : kernels.ORDER + 3],
        )


def add_statistics(parts: Sequence[RowStatistics]) -> RowStatistics:
    """The sum of statistics, of which there is at least one; arrays of different lengths are filled up with 0."""
    sums = {field.name: [getattr(part, field.name) for part in parts] for field in dataclasses.fields(RowStatistics)}
    sketch = np.unique(np.concatenate(sums.pop("sketch")))[:SKETCH]
    added: dict[str, Any] = {name: _added(values) for name, values in sums.items()}
    return RowStatistics(sketch=sketch, **added)


def _added(values: Sequence[Any]) -> int | npt.NDArray[np.int64]:
    if isinstance(values[0], int):
        return int(sum(values))
    arrays: list[npt.NDArray[np.int64]] = list(values)
    total = np.zeros([max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)], np.int64)
    for array in arrays:
        total[tuple(slice(size) for size in array.shape)] += array
    return total
