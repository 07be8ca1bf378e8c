"""The order of the samples of a data set in an epoch.

Files are cut into blocks, the blocks are shuffled and cut into windows, and the samples of each window are shuffled.
So the samples of a window come from all over the data set, but a reader of a window reads whole blocks.
"""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.loading.kernels.shuffling import shuffle
from maskmill.masking.seeds import hash_of
from maskmill.reading.block_reader import Block
from maskmill.reading.data_set import DataSet

WINDOW_BYTES = 32 << 20  # most memory of a window's samples, as they are read

# Numbers of random streams in an epoch. The samples of a window have the window's number.
_WINDOWS = -1
_BLOCKS_OF_FIRST_WIDTH = -2


@dataclasses.dataclass(frozen=True)
class Window:
    """Samples that are shuffled among each other.

    first: the position of its first sample in the epoch. samples: int64[n], numbers of samples, in order. width: of
    their files.
    """

    first: int
    samples: npt.NDArray[np.int64]
    width: int


@dataclasses.dataclass(frozen=True)
class Read:
    """The samples to read of a block.

    samples: int64[n], ascending, counted from the block's first. rows: int64[n], the row for each.
    """

    block: Block
    samples: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class _Epoch:
    """The windows of an epoch.

    blocks: int64[blocks], their numbers, window by window. cuts: int64[windows, 2], the start and the end of each
    window's blocks. starts: int64[windows + 1], the position of each window's first sample.
    """

    blocks: npt.NDArray[np.int64]
    cuts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]


def bounded_window(data_set: DataSet, window: int) -> int:
    """Return the most samples of a window: `window`, or fewer if they would take more than WINDOW_BYTES."""
    row_bytes = sum(column.width * column.dtype.itemsize for column in data_set.columns)
    return max(1, min(window, WINDOW_BYTES // max(1, row_bytes)))


class SampleOrder:
    """The order of the samples of a data set in each epoch: a function of its content, the seed and the window's size.

    Attributes:
      samples: the number of samples of an epoch.
      window: most samples of a window, unless a block has more.
    """

    def __init__(self, data_set: DataSet, block_samples: int, *, seed: int, window: int, shuffle: bool) -> None:
        """Lay out the blocks.

        Args:
          data_set: its files in order.
          block_samples: samples of each block, except the last of a file.
          seed: any integer.
          window: most samples of a window; less if they would take more than WINDOW_BYTES.
          shuffle: whether samples are shuffled; otherwise they come in the order of the files.
        """
        self.samples = data_set.samples
        self.window = bounded_window(data_set, window)
        self._shuffle = shuffle
        self._block_samples = block_samples
        self._seed = np.uint64(hash_of(f"{data_set.fingerprint}:{seed}"))
        counts = np.array([file.samples for file in data_set.files], np.int64)
        self._widths = np.array([file.width for file in data_set.files], np.int64)
        # The numbers of the first sample and of the first block of each file, and one more after the last.
        self._first_samples = _sums(counts)
        self._first_blocks = _sums(-(-counts // block_samples))
        self._epoch = functools.lru_cache(maxsize=2)(self._laid_out)

    def window_at(self, epoch: int, position: int) -> Window:
        """Return the window that holds a position of an epoch."""
        laid_out = self._epoch(epoch)
        number = int(np.searchsorted(laid_out.starts, position, side="right")) - 1
        blocks = laid_out.blocks[slice(*laid_out.cuts[number])]
        first, counts, file = self._of_blocks(blocks)
        ends = np.cumsum(counts)
        samples = np.repeat(first - ends + counts, counts) + np.arange(ends[-1], dtype=np.int64)
        if self._shuffle:
            shuffle(samples, self._seed, epoch, number)
        return Window(int(laid_out.starts[number]), samples, int(self._widths[file[0]]))

    def windows_from(self, epoch: int, start: int, stop: int) -> Iterator[Window]:
        """Yield the windows of an epoch that hold positions [start, stop), each cut off to them."""
        while start < stop:
            window = self.window_at(epoch, start)
            samples = window.samples[start - window.first : stop - window.first]
            yield Window(start, samples, window.width)
            start += len(samples)

    def widths_of(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return int64[n]: the width of each sample's file."""
        return self._widths[self._files_of(samples)]

    def reads(self, samples: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> list[Read]:
        """Return the reads of samples, block by block, in the order of the files.

        Args:
          samples: int64[n], different numbers of samples.
          rows: int64[n], the row for each.
        """
        if not len(samples):
            return []
        order = np.argsort(samples)
        samples, rows = samples[order], rows[order]
        file = self._files_of(samples)
        places = samples - self._first_samples[file]
        blocks = self._first_blocks[file] + places // self._block_samples
        starts = np.flatnonzero(np.diff(blocks, prepend=-1))
        first, counts, _ = self._of_blocks(blocks[starts])
        found = []
        for n, (start, stop) in enumerate(zip(starts, [*starts[1:], len(samples)], strict=True)):
            number = int(file[start])
            block = Block(number, int(first[n] - self._first_samples[number]), int(counts[n]))
            found.append(Read(block, samples[start:stop] - first[n], rows[start:stop]))
        return found

    def _files_of(self, samples: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.searchsorted(self._first_samples, samples, side="right") - 1

    def _of_blocks(self, blocks: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """Return int64[n] each, of blocks: the number of the first sample, the number of samples, and the file."""
        file = np.searchsorted(self._first_blocks, blocks, side="right") - 1
        first = self._first_samples[file] + (blocks - self._first_blocks[file]) * self._block_samples
        return first, np.minimum(self._block_samples, self._first_samples[file + 1] - first), file

    def _laid_out(self, epoch: int) -> _Epoch:
        """Return the windows of an epoch; all samples of a window have the same width."""
        groups = self._groups()
        cuts = []
        before = 0
        for n, blocks in enumerate(groups):
            if self._shuffle:
                shuffle(blocks, self._seed, epoch, _BLOCKS_OF_FIRST_WIDTH - n)
            cuts.append(_cuts(self._of_blocks(blocks)[1], self.window) + before)
            before += len(blocks)
        all_blocks, all_cuts = np.concatenate(groups), np.concatenate(cuts)
        if self._shuffle and len(groups) > 1:
            order = np.arange(len(all_cuts), dtype=np.int64)
            shuffle(order, self._seed, epoch, _WINDOWS)
            all_cuts = all_cuts[order]
        ends = _sums(self._of_blocks(all_blocks)[1])
        return _Epoch(all_blocks, all_cuts, _sums(ends[all_cuts[:, 1]] - ends[all_cuts[:, 0]]))

    def _groups(self) -> list[npt.NDArray[np.int64]]:
        """Return the numbers of blocks that may share windows, int64[n] each."""
        in_file = np.diff(self._first_blocks)
        widths = np.repeat(self._widths, in_file)
        blocks = np.arange(len(widths), dtype=np.int64)
        if not self._shuffle:
            return np.split(blocks, np.flatnonzero(np.diff(widths)) + 1)
        return [blocks[widths == width] for width in np.unique(widths)]


def _cuts(counts: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return int64[windows, 2]: the start and the end of each window's blocks.

    counts: int64[blocks], their samples. A window has at most `most` samples, or one block.
    """
    ends = np.cumsum(counts)
    cuts = []
    start, before = 0, 0
    while start < len(counts):
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        cuts.append((start, stop))
        start, before = stop, int(ends[stop - 1])
    return np.array(cuts, np.int64).reshape(-1, 2)


def _sums(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return int64[n + 1]: the sums of the first 0, 1, … of n numbers."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
