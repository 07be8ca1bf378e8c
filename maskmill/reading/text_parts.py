"""Read lines of a text shard by their numbers: read only the parts that have them, and verify their checksums."""

import dataclasses

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import WrongChecksumError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.kernels.text_parts import checksums_of
from maskmill.records.spans import Numbers, places_in

_NEWLINE = 10


@dataclasses.dataclass(frozen=True)
class TextParts:
    """The parts of a text, see records/spans.py.

    firsts: int32[parts], the first line of each. starts: int64[parts + 1], its first byte; last, the text's size.
    checksums: uint32[parts], the CRC-32C of each.
    """

    firsts: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    checksums: npt.NDArray[np.uint32]

    @property
    def bytes(self) -> int:
        """The bytes of the arrays."""
        return self.firsts.nbytes + self.starts.nbytes + self.checksums.nbytes


@dataclasses.dataclass(frozen=True)
class LineRuns:
    """Ascending runs of lines that do not touch, int64[runs] each: [starts, stops) in the text.

    places: the number of each run's first line among the lines of all runs.
    """

    starts: Numbers
    stops: Numbers
    places: Numbers

    def place_of(self, lines: Numbers) -> Numbers:
        """Return int64[n]: the numbers of lines, all within runs, among the lines of all runs."""
        run = np.searchsorted(self.starts, lines, side="right") - 1
        place: Numbers = self.places[run] + lines - self.starts[run]
        return place


def line_runs_of(firsts: Numbers, stops: Numbers) -> LineRuns:
    """Return the union of ranges [firsts, stops) of lines, at least one, as runs."""
    order = np.argsort(firsts, kind="stable")
    firsts, reached = firsts[order], np.maximum.accumulate(stops[order])
    is_first = np.ones(len(firsts), np.bool_)
    is_first[1:] = firsts[1:] > reached[:-1]
    starts, ends = firsts[is_first], reached[np.append(np.flatnonzero(is_first)[1:] - 1, len(firsts) - 1)]
    sizes = ends - starts
    return LineRuns(starts, ends, np.cumsum(sizes) - sizes)


def parts_and_ranges(parts: TextParts, runs: LineRuns) -> tuple[Numbers, Numbers, Numbers]:
    """Return the numbers of the parts with runs of lines, and the byte ranges of consecutive ones: starts, ends."""
    first = np.searchsorted(parts.firsts, runs.starts, side="right") - 1
    stop = np.searchsorted(parts.firsts, runs.stops, side="left")
    which = np.unique(places_in(first, stop - first))
    gaps = np.flatnonzero(np.diff(which, prepend=-2) > 1)
    last = which[np.append(gaps[1:], len(which)) - 1]
    return which, parts.starts[which[gaps]], parts.starts[last + 1]


class PreloadedRanges(ByteRanges):
    """Ranges of a file in memory, read once, from which parts are read again."""

    def __init__(self, path: str, starts: Numbers, ends: Numbers, ranges: ByteRanges) -> None:
        """Read ranges [starts, ends), ascending and apart, through `ranges`."""
        self._starts, self._end = starts, int(ends[-1])
        self._places = np.cumsum(ends - starts) - (ends - starts)
        self._data = ranges.read_many(path, starts, ends)

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        run = np.searchsorted(self._starts, start, side="right") - 1
        place = int(self._places[run]) + start - int(self._starts[run])
        return self._data[place : place + end - start]

    def size(self, path: str) -> int:
        return self._end  # at least


def read_lines(path: str, ranges: ByteRanges, parts: TextParts, runs: LineRuns) -> bytes:
    """Return the lines of runs, one after the other, each with its newline.

    Raises:
      WrongChecksumError: the text has changed.
      UnusableInputError: the text is missing, or is shorter.
      RunFailedError: it cannot be read.
    """
    which, starts, ends = parts_and_ranges(parts, runs)
    data = ranges.read_many(path, starts, ends)
    ends = np.cumsum(parts.starts[which + 1] - parts.starts[which])
    found = np.zeros(len(which), np.uint32)
    checksums_of(data, np.append(np.zeros(1, np.int64), ends[:-1]), ends, found)
    wrong = np.flatnonzero(found != parts.checksums[which])
    if len(wrong):
        part = which[wrong[0]]
        raise WrongChecksumError(
            f"{path}: bytes {parts.starts[part]:,} to {parts.starts[part + 1]:,} of this text are not those that the "
            "rows were made of; fetch it again, or make the examples again"
        )
    line_ends = np.flatnonzero(data == _NEWLINE) + 1
    if not len(line_ends) or line_ends[-1] < len(data):
        line_ends = np.append(line_ends, len(data))
    line_starts = np.append(np.zeros(1, np.int64), line_ends)
    before = np.searchsorted(line_ends, ends, side="right")  # the number of lines up to the end of each part
    before = np.append(np.zeros(1, np.int64), before[:-1])

    def place_of(lines: Numbers) -> Numbers:
        part = np.searchsorted(which, np.searchsorted(parts.firsts, lines, side="right") - 1)
        place: Numbers = before[part] + lines - parts.firsts[which[part]]
        return place

    stops = place_of(runs.stops - 1) + 1
    if stops.max() > len(line_ends):
        raise UnusableInputError(f"{path}: this text has fewer lines than its index says; make the examples again.")
    starts = line_starts[place_of(runs.starts)]
    lines = [data[start:stop].data for start, stop in zip(starts.tolist(), line_starts[stops].tolist(), strict=True)]
    return b"".join(lines)
