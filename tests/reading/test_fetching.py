"""Blocks fetched ahead of use: in their order, within a limit of bytes, and once more where they are damaged."""

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import data_sets as made_up_data_sets
from properties import SEEDED, tries

from maskmill.errors import RunFailedError
from maskmill.reading.block_reader import Block, BlockReader, DamagedBlockError, Rows
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataSet
from maskmill.reading.fetching import BlockFetcher

SAMPLE_BYTES = 10


class FakeReader(BlockReader):
    """Fetches numbers of samples, and notes what happens.

    Attributes:
      in_flight, most_in_flight: bytes of blocks that are fetched or being fetched and not decoded; the most of them.
      fetched, forgotten: the blocks.
      fetching, decoding: called with a block and how often it was fetched before; may raise.
    """

    block_samples = 4

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.in_flight = self.most_in_flight = 0
        self.fetched: list[Block] = []
        self.forgotten: list[Block] = []
        self.fetching: Callable[[Block, int], object] = lambda block, before: None
        self.decoding: Callable[[Block, int], object] = lambda block, before: None
        self.may_forget = True

    @staticmethod
    def count_samples(path: str, ranges: ByteRanges) -> int:
        raise NotImplementedError

    def fetch(self, block: Block) -> Any:
        with self.lock:
            before = self.fetched.count(block)
            self.fetched.append(block)
            self.in_flight += block.count * SAMPLE_BYTES
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.fetching(block, before)
        return np.arange(block.first, block.first + block.count)

    def decode(
        self, fetched: Any, block: Block, wanted: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], into: Rows
    ) -> None:
        self.decoding(block, self.fetched.count(block) - 1)
        with self.lock:
            self.in_flight -= block.count * SAMPLE_BYTES
        into.arrays["input_ids"][rows] = fetched[wanted][:, None]

    def forget(self, block: Block) -> bool:
        self.forgotten.append(block)
        return self.may_forget


def data_set(samples: Sequence[int]) -> DataSet:
    """One whose samples have SAMPLE_BYTES bytes each."""
    made = made_up_data_sets.data_set(samples)
    return dataclasses.replace(
        made, files=tuple(dataclasses.replace(file, size=file.samples * SAMPLE_BYTES) for file in made.files)
    )


def blocks_of(made: DataSet) -> list[Block]:
    """All blocks, in the order of the files."""
    step = FakeReader.block_samples
    return [
        Block(number, first, min(step, file.samples - first))
        for number, file in enumerate(made.files)
        for first in range(0, file.samples, step)
    ]


def decode(fetcher: BlockFetcher, made: DataSet, block: Block) -> list[int]:
    """Decodes all samples of the next block, which should be this one."""
    rows, all_of_it = Rows(made.columns, block.count), np.arange(block.count)
    assert fetcher.decode(all_of_it, all_of_it, rows) == block
    return [int(row[0]) for row in rows.arrays["input_ids"]]


@tries(60, **SEEDED)
@given(
    samples=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    threads=st.integers(0, 5),
    most=st.integers(1, 300),
    seed=st.integers(0, 1000),
)
def test_blocks_come_in_the_order_in_which_they_were_asked_for(
    samples: list[int], threads: int, most: int, seed: int
) -> None:
    made, reader, random = data_set(samples), FakeReader(), np.random.default_rng(seed)
    waits = random.integers(0, 3, 64)
    reader.fetching = lambda block, before: time.sleep(waits[(block.file + block.first) % 64] / 5000)
    fetcher = BlockFetcher(made, reader, threads, most)
    blocks = [blocks_of(made)[n] for n in random.permutation(len(blocks_of(made)))]
    asked = 0
    for done, block in enumerate(blocks):
        if asked == done or random.integers(2):
            more = int(random.integers(1, 5))
            fetcher.ask(blocks[asked : asked + more])
            asked = min(len(blocks), asked + more)
        assert decode(fetcher, made, block) == list(range(block.first, block.first + block.count))
    assert sorted(map(str, reader.fetched)) == sorted(map(str, blocks))
    assert reader.most_in_flight <= max(most, FakeReader.block_samples * SAMPLE_BYTES)
    assert fetcher.stats()["blocks"] == len(blocks)
    fetcher.close()


def test_blocks_are_fetched_side_by_side() -> None:
    made, reader = data_set([40]), FakeReader()
    together = threading.Barrier(4)
    reader.fetching = lambda block, before: together.wait(30)
    fetcher = BlockFetcher(made, reader, 4)
    fetcher.ask(blocks_of(made)[:8])
    for block in blocks_of(made)[:8]:
        decode(fetcher, made, block)
    fetcher.close()


def raises(error: Exception, wanted: Block, times: int) -> Callable[[Block, int], None]:
    """Raises an error for the first fetches of a block."""

    def check(block: Block, before: int) -> None:
        if block == wanted and before < times:
            raise error

    return check


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("when", ["fetching", "decoding"])
def test_a_damaged_block_is_fetched_once_more(threads: int, when: str) -> None:
    made, reader = data_set([10, 10]), FakeReader()
    blocks = blocks_of(made)
    setattr(reader, when, raises(DamagedBlockError("x: damaged"), blocks[2], 1))
    fetcher = BlockFetcher(made, reader, threads)
    fetcher.ask(blocks)
    assert [decode(fetcher, made, block)[0] for block in blocks] == [block.first for block in blocks]
    assert reader.forgotten == [blocks[2]]
    assert fetcher.stats()["blocks_refetched"] == 1
    fetcher.close()


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("when", ["fetching", "decoding"])
@pytest.mark.parametrize("may_forget", [False, True])
def test_a_block_that_stays_damaged_is_named(threads: int, when: str, may_forget: bool) -> None:
    made, reader = data_set([10, 10]), FakeReader()
    blocks, reader.may_forget = blocks_of(made), may_forget
    setattr(reader, when, raises(DamagedBlockError("x: damaged"), blocks[2], 2))
    fetcher = BlockFetcher(made, reader, threads)
    fetcher.ask(blocks)
    for block in blocks[:2]:
        decode(fetcher, made, block)
    with pytest.raises(DamagedBlockError, match="x: damaged"):
        decode(fetcher, made, blocks[2])
    assert reader.fetched.count(blocks[2]) == 1 + may_forget
    decode(fetcher, made, blocks[3])  # the others are as they were
    fetcher.close()


@pytest.mark.parametrize("threads", [0, 3])
def test_what_cannot_be_fetched_is_said_when_its_turn_comes(threads: int) -> None:
    made, reader = data_set([10, 10]), FakeReader()
    blocks = blocks_of(made)
    reader.fetching = raises(RunFailedError("x: the server is gone"), blocks[1], 1)
    fetcher = BlockFetcher(made, reader, threads)
    fetcher.ask(blocks)
    decode(fetcher, made, blocks[0])
    with pytest.raises(RunFailedError, match="x: the server is gone"):
        decode(fetcher, made, blocks[1])
    assert reader.forgotten == []
    fetcher.close()


@pytest.mark.parametrize("threads", [0, 3])
def test_what_was_asked_for_can_be_dropped(threads: int) -> None:
    made, reader = data_set([40, 40]), FakeReader()
    blocks = blocks_of(made)
    fetcher = BlockFetcher(made, reader, threads, 100)
    for turn in range(3):
        fetcher.ask(blocks)
        for block in blocks[: 3 * turn]:
            decode(fetcher, made, block)
        fetcher.drop()
    with pytest.raises(IndexError):
        decode(fetcher, made, blocks[0])
    fetcher.ask(blocks[4:6])
    assert [decode(fetcher, made, block)[0] for block in blocks[4:6]] == [16, 20]
    fetcher.close()


def test_threads_end_when_the_fetcher_is_closed() -> None:
    before = threading.enumerate()
    made = data_set([40])
    fetcher = BlockFetcher(made, FakeReader(), 3)
    fetcher.ask(blocks_of(made))
    decode(fetcher, made, blocks_of(made)[0])
    fetcher.close()
    deadline = time.monotonic() + 300
    while set(threading.enumerate()) - set(before):
        assert time.monotonic() < deadline
        time.sleep(0.001)
