"""Data sets without files: readers that make up their rows, so that each sample can be told from its row."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.loading.loader import Source
from maskmill.reading.block_reader import Block, BlockReader, Rows
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn

FIRST_ID = 10


class MadeUpReader(BlockReader):
    """Row n of the data set has n % 50000 + FIRST_ID in each place of input_ids; rows are as wide as their file."""

    def __init__(self, data_set: DataSet, block_samples: int) -> None:
        self.block_samples = block_samples
        self.read: list[tuple[Block, int]] = []
        self._files = data_set.files
        self._first = np.cumsum([0, *(file.samples for file in data_set.files)])

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        raise NotImplementedError

    def fetch(self, block: Block) -> Any:
        assert block.first % self.block_samples == 0
        assert block.first + block.count <= self._files[block.file].samples
        return np.arange(block.count) + block.first + self._first[block.file]

    def decode(
        self, fetched: Any, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        assert (np.diff(wanted) > 0).all()
        self.read.append((block, len(wanted)))
        width = self._files[block.file].width
        for feature, values in (("input_ids", fetched[wanted] % 50000 + FIRST_ID), ("input_mask", 1)):
            array = into.arrays[feature]
            array[rows] = 0
            array[rows, :width] = np.reshape(values, (-1, 1))
            if feature in into.counts:
                into.counts[feature][rows] = width

    def forget(self, block: Block) -> bool:
        return False


def data_set(
    files: Sequence[int], *, widths: Sequence[int] = (), fingerprint: str = "f", path: str = "made/up"
) -> DataSet:
    """One whose files have so many samples and such widths (8 if none are given)."""
    widths = widths or [8] * len(files)
    return DataSet(
        path=path,
        format="tfrecord",
        files=tuple(
            DataFile(
                path=f"{path}/{n}",
                samples=samples,
                size=None,
                sha256=None,
                index=None,
                width=width,
                digest=f"{fingerprint}{n:08}",
            )
            for n, (samples, width) in enumerate(zip(files, widths, strict=True))
        ),
        columns=tuple(
            ReadColumn(name=name, feature=name, width=max(widths), varies=len(set(widths)) > 1, dtype=np.dtype(kind))
            for name, kind in (("input_ids", np.uint16), ("input_mask", np.uint8))
        ),
        width=max(widths),
        fingerprint=fingerprint,
        vocabulary_size=None,
        special_ids={},
        packed=False,
        mask_rules=None,
        predictions=0,
    )


def source(made: DataSet, block_samples: int = 4) -> Source:
    """The open data set."""
    ranges: ByteRanges = LocalRanges()
    return Source(made, MadeUpReader(made, block_samples), ranges, functools.partial(source, made, block_samples))


def samples_in(batch: dict[str, npt.NDArray[np.generic]]) -> list[int]:
    """The numbers of the samples of a batch, read off its rows; -1 for padding."""
    ids, mask = batch["input_ids"][:, 0], batch["input_mask"][:, 0]
    return [int(number) - FIRST_ID if is_sample else -1 for number, is_sample in zip(ids, mask, strict=True)]
