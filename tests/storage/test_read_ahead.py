"""Files that are fetched ahead of use: the right bytes in any order, in bounds, and errors when their turn comes."""

import gc
import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries

from maskmill.errors import RunFailedError
from maskmill.storage import read_ahead
from maskmill.storage.read_ahead import ReadAhead

CONTENT = os.urandom(100_000)


@pytest.fixture(name="small", autouse=True)
def fixture_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes all sizes 10,000 times smaller."""
    for name, value in {"LOOK_BYTES": 50, "PART_BYTES": 800}.items():
        monkeypatch.setattr(read_ahead, name, value)


class Store:
    """Gives ranges of the content, and notes what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.fails_at = -1

    def fetch(self, start: int, end: int) -> bytes:
        """Takes a moment; fails once for a certain byte."""
        self.asked.append((start, end))
        time.sleep(start % 7 / 20_000)
        if start <= self.fails_at < end:
            self.fails_at = -1
            raise RunFailedError("x: the server is gone")
        return CONTENT[start:end]


def read(ahead: ReadAhead, start: int, end: int) -> bytes:
    """Bytes of the file."""
    content = b""
    while start + len(content) < end:
        block = ahead.read(start + len(content), end)
        assert block
        content += block
    return content


@tries(60, **SEEDED)
@given(
    reads=st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 99_999)), st.integers(1, 3000)), max_size=40),
    certain=st.one_of(st.none(), st.tuples(st.integers(0, 100_000), st.integers(0, 200_000))),
)
def test_any_reads_give_what_a_slice_has(reads: list[tuple[int | None, int]], certain: tuple[int, int] | None) -> None:
    store, at = Store(), 0
    ahead = ReadAhead(len(CONTENT), store.fetch, *(certain or ()))
    for place, count in reads:  # None: on from the last one
        start = at if place is None else place
        at = min(len(CONTENT), start + count)
        assert read(ahead, start, at) == CONTENT[start:at]
        assert ahead._under_way <= 4


@pytest.mark.parametrize("certain", [(), (0, 1 << 62)])
def test_a_file_is_read_in_few_large_parts_side_by_side(certain: tuple[int, int] | tuple[()]) -> None:
    store, together = Store(), threading.Barrier(3)

    def fetch(start: int, end: int) -> bytes:
        if 20_000 <= start < 20_000 + 3 * 800:
            together.wait(30)
        return store.fetch(start, end)

    ahead = ReadAhead(len(CONTENT), fetch, *certain)
    assert b"".join(read(ahead, at, min(at + 70, 100_000)) for at in range(0, 100_000, 70)) == CONTENT
    assert len(store.asked) < 100_000 / 800 + 5
    assert sum(end - start for start, end in store.asked) == len(CONTENT)


def test_a_look_fetches_little() -> None:
    store = Store()
    ahead = ReadAhead(len(CONTENT), store.fetch)
    for start, end in ((0, 8), (8, 12), (99_990, 100_000), (500, 520)):
        assert read(ahead, start, end) == CONTENT[start:end]
    assert store.asked == [(0, 50), (99_990, 100_000), (500, 550)]


def test_nothing_behind_the_end_of_a_certain_part_is_fetched_ahead() -> None:
    store = Store()
    ahead = ReadAhead(len(CONTENT), store.fetch, 4_000, 9_000)
    for at in range(4_000, 9_000, 50):
        assert read(ahead, at, at + 50) == CONTENT[at : at + 50]
    assert max(end for _, end in store.asked) == 9_000
    assert sum(end - start for start, end in store.asked) == 5_000


@pytest.mark.parametrize("at", [0, 60, 5_000, 99_999])
def test_what_cannot_be_fetched_is_said_when_its_turn_comes(at: int) -> None:
    store = Store()
    store.fails_at = at
    ahead = ReadAhead(len(CONTENT), store.fetch)
    done = 0
    with pytest.raises(RunFailedError, match="x: the server is gone"):
        for done in range(0, 100_000, 100):
            assert read(ahead, done, done + 100) == CONTENT[done : done + 100]
    assert done <= at
    assert read(ahead, done, 100_000) == CONTENT[done:]  # a reader that goes on gets the rest


def test_threads_end_with_the_file() -> None:
    before = threading.enumerate()
    ahead = ReadAhead(len(CONTENT), Store().fetch)
    read(ahead, 0, 900)
    begun = [thread for thread in threading.enumerate() if thread not in before]
    assert begun
    del ahead
    gc.collect()
    for thread in begun:
        thread.join(300)
        assert not thread.is_alive()
