"""What the rows of a file give while they are checked: what is wrong with them, and what they look like."""

import collections
import csv
import dataclasses
import functools
import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.kernels.memory import exposed_address
from maskmill.verification.findings import Finding, finding
from maskmill.verification.kernels import row_checking as kernels
from maskmill.verification.pieces import RowStatistics

AGAIN = "make the examples again, or fetch the file again"
SKETCH = 1024
_MOST_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)
_GATHERED = 8 * SKETCH  # hashes of openings that are put into the sketch together


class Faults:
    """The faults of a file."""

    def __init__(self, path: str) -> None:
        """There are none yet."""
        self._path = path
        self._first: dict[tuple[str, str], Finding] = {}
        self._counts: collections.Counter[tuple[str, str]] = collections.Counter()

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """The check and the kind of each finding."""
        return tuple(self._first)

    def add(
        self,
        check: str,
        kind: str,
        record: int | None,
        expected: str,
        found: str,
        what: str,
        *,
        advice: str = AGAIN,
        count: int = 1,
    ) -> None:
        """Keeps a fault that so many records have, of which it describes the first.

        Args:
          check, expected, found: as in Finding.
          kind: findings of one kind are one, with a count.
          record: number of the record, from 0; None: it is about the file.
          what: what is wrong, as a clause without the place: "its data does not fit its checksum".
          advice: what to do, as a clause.
          count: how many records have it.
        """
        key = check, kind
        first = self._first.get(key)
        if first is None or (first.record is not None and record is not None and record + 1 < first.record):
            at = None if record is None else ("record", record + 1)
            self._first[key] = finding(check, self._path, expected, found, f"{what}; {advice}", at=at)
        self._counts[key] += count

    def counts_again(self, check: str, kind: str) -> bool:
        """Counts one more of a kind, if there is one; whether there is."""
        is_there = (check, kind) in self._first
        self._counts[check, kind] += is_there
        return is_there

    def add_problems(self, problems: npt.NDArray[np.int64]) -> None:
        """Adds what kernels found; problems: int64[CODES, LINE], see kernels/row_checking.py."""
        for name, problem in _problems().items():
            count, record, *values, _ = problems[getattr(kernels, name)].tolist()
            if count:
                shown = dict(zip(("place", "expected", "found"), (f"{value:,}" for value in values), strict=True))
                expected, found, what = (problem[key].format(**shown) for key in ("expected", "found", "what"))
                self.add(problem["check"], problem["kind"], record, expected, found, what, count=count)

    def findings(self) -> tuple[Finding, ...]:
        """One for each kind."""
        return tuple(dataclasses.replace(first, count=self._counts[key]) for key, first in self._first.items())


@functools.cache
def _problems() -> Mapping[str, Mapping[str, str]]:
    """What the problems of kernels/row_checking.py mean: texts with {place} (from 0), {expected} and {found}."""
    table = importlib.resources.files("maskmill.verification").joinpath("data/row_problems.tsv").read_text()
    return {
        line["problem"]: line for line in csv.DictReader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    }


class RowCounter:
    """Counts and hashes rows, block by block.

    Attributes:
      problems: int64[CODES, LINE], see kernels/row_checking.py.
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
        counts = (self.problems, self._lengths, self._masks_at, self._masks, self._piece_counts, self._totals)
        arrays = (*counts, self._hashes, self._openings, self._original)
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
        rows, totals = int(self._lengths.sum()), self._totals.copy()
        return RowStatistics(
            rows=rows,
            lengths=self._lengths,
            # A row of n pieces has one at each of the positions below n.
            pieces_at=rows - np.cumsum(self._lengths)[:-1],
            masks_at=self._masks_at[: len(self._lengths) - 1],
            masked=int(totals[kernels.MASKED]),
            masked_kept=int(totals[kernels.KEPT]),
            masked_random=int(totals[kernels.RANDOM]),
            masks=self._masks,
            second_label=int(totals[kernels.SECOND_LABELS]),
            piece_counts=self._piece_counts,
            sketch=self._sketch,
            sequences=int(totals[kernels.SEQUENCES]),
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
