"""The cache of remote files: bounded, shared by processes, whole ranges only, and never in the way."""

import logging
import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries

from maskmill.reading import disk_cache
from maskmill.reading.disk_cache import CachedRange, DiskCache

Bytes = npt.NDArray[np.uint8]
processes = multiprocessing.get_context("fork")


def cached_range(number: int, size: int = 100, file: str = "f") -> CachedRange:
    """A range of a file."""
    return CachedRange(file=file, start=number * size, end=(number + 1) * size)


def content(wanted: CachedRange) -> Bytes:
    """The bytes of a range."""
    return np.random.default_rng([len(wanted.file), wanted.start]).integers(0, 256, wanted.size, np.uint8)


def get(cache: DiskCache, wanted: CachedRange) -> bool:
    """Get a range, check it, and return whether the cache had it."""
    fetched: list[CachedRange] = []

    def fetch() -> Bytes:
        fetched.append(wanted)
        return content(wanted)

    assert (cache.get(wanted, fetch) == content(wanted)).all()
    return not fetched


def files_in(directory: Path) -> list[Path]:
    """The files of ranges."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "used")


def bytes_in(directory: Path) -> int:
    """The bytes of all ranges."""
    return sum(path.stat().st_size for path in files_in(directory))


def test_a_range_is_fetched_once(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "new" / "cache"), 10_000)
    for number in (0, 1):
        assert [get(cache, cached_range(number, file=file)) for file in ("f", "g", "f")] == [False, False, True]
    assert get(DiskCache(str(tmp_path / "new" / "cache"), 10_000), cached_range(0))
    assert cache.stats() == {"cache_hits": 2, "cache_misses": 4}


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "shorter": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "a bit": lambda data: data[:50] + bytes([data[50] ^ 1]) + data[51:],
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("kind", [*DAMAGES, "another range"])
def test_a_damaged_piece_is_fetched_again(tmp_path: Path, kind: str) -> None:
    cache = DiskCache(str(tmp_path), 10_000)
    get(cache, cached_range(0))
    (path,) = files_in(tmp_path)
    get(cache, cached_range(1))
    (other,) = (file for file in files_in(tmp_path) if file != path)
    path.write_bytes(DAMAGES[kind](path.read_bytes()) if kind in DAMAGES else other.read_bytes())
    assert [get(cache, cached_range(0)) for _ in range(2)] == [False, True]


def test_the_ranges_of_a_file_can_be_dropped(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 10_000)
    for file in ("f", "g"):
        get(cache, cached_range(0, file=file))
    for file in ("f", "none"):
        cache.drop(file)
    assert [get(cache, cached_range(0, file=file)) for file in ("f", "g")] == [False, True]


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 1040)  # ten ranges
    for number in range(10):
        get(cache, cached_range(number))
    assert get(cache, cached_range(0))
    get(cache, cached_range(10))
    assert [number for number in range(11) if (tmp_path / cached_range(number).name).exists()] == [0, *range(3, 11)]


@tries(30, **SEEDED)
@given(sizes=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 400)), max_size=60), most=st.integers(100, 1500))
def test_there_are_never_too_many_bytes(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]], most: int
) -> None:
    directory = tmp_path_factory.mktemp("cache")
    cache = DiskCache(str(directory), most)
    for number, size in sizes:
        get(cache, cached_range(number, size))
        assert bytes_in(directory) <= most
        # A range that is not too large is kept.
        assert (directory / cached_range(number, size).name).exists() == (size + 4 <= most)


def test_processes_share_ranges_and_fetch_each_once(tmp_path: Path) -> None:
    cache, fetched = DiskCache(str(tmp_path / "cache"), 1 << 20), processes.Value("i", 0)

    def fetch(number: int) -> Bytes:
        with fetched.get_lock():
            fetched.value += 1
        time.sleep(0.002)
        return content(cached_range(number))

    def work() -> None:
        threads = [threading.Thread(target=work_in_order, args=(first,)) for first in (0, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def work_in_order(first: int) -> None:
        for number in range(30):
            wanted = (number + first) % 30
            data = cache.get(cached_range(wanted), lambda: fetch(wanted))  # noqa: B023 - called at once
            if not (data == content(cached_range(wanted))).all():
                os._exit(1)

    children = [processes.Process(target=work) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert fetched.value == 30
    assert len(files_in(tmp_path)) == 30


def test_processes_together_keep_the_limit(tmp_path: Path) -> None:
    def work(first: int) -> None:
        cache = DiskCache(str(tmp_path), 5_000)
        for number in range(100):
            get(cache, cached_range(first + number, 100 + number))

    children = [processes.Process(target=work, args=(1000 * n,)) for n in range(4)]
    for child in children:
        child.start()
    while any(child.is_alive() for child in children):
        total = 0
        for path in files_in(tmp_path):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
        # Pieces come and go while they are counted.
        assert total <= 10_000
    assert [child.exitcode for child in children] == [0] * 4
    assert 3_000 < bytes_in(tmp_path) <= 5_000


def test_a_writer_that_is_killed_leaves_nothing_half(tmp_path: Path) -> None:
    cache, is_fetching = DiskCache(str(tmp_path), 10_000), processes.Event()

    def fetch() -> Bytes:
        is_fetching.set()
        time.sleep(600)
        raise AssertionError

    child = processes.Process(target=cache.get, args=(cached_range(0), fetch))
    child.start()
    assert is_fetching.wait(300)
    got: list[bool] = []
    waiting = threading.Thread(target=lambda: got.append(get(cache, cached_range(0))))
    waiting.start()
    waiting.join(0.05)
    assert not got  # it waits for the other process
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    waiting.join()
    child.join()
    assert got == [False]
    assert get(cache, cached_range(0))
    assert [path.name for path in files_in(tmp_path)] == ["0-100"]


@pytest.mark.parametrize("name", ["900-1000.part", "9-10.part"])
def test_what_dead_writers_left_is_deleted(tmp_path: Path, name: str) -> None:
    cache = DiskCache(str(tmp_path), 1000)
    get(cache, cached_range(0))
    abandoned = files_in(tmp_path)[0].with_name(name)
    abandoned.write_bytes(bytes(5000))
    for number in range(1, 12):
        get(cache, cached_range(number))
    assert not abandoned.exists()
    assert bytes_in(tmp_path) > 500


def test_a_range_that_is_being_fetched_is_not_deleted(tmp_path: Path) -> None:
    """Its part is the oldest file when others need room."""
    cache = DiskCache(str(tmp_path), 1000)

    def fetch() -> Bytes:
        for number in range(1, 12):
            get(cache, cached_range(number))
        return content(cached_range(0))

    cache.get(cached_range(0), fetch)
    assert get(cache, cached_range(0))


def test_a_fetch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 1000)

    def fetch() -> Bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.get(cached_range(0), fetch)
    assert files_in(tmp_path) == []
    assert not get(cache, cached_range(0))


@pytest.mark.parametrize("damage", [b"", b"1", bytes(8), b"\xff" * 8, bytes(100)])
def test_the_count_of_bytes_may_be_wrong(tmp_path: Path, damage: bytes) -> None:
    cache = DiskCache(str(tmp_path), 1000)
    get(cache, cached_range(0))
    (tmp_path / "used").write_bytes(damage)
    assert get(cache, cached_range(0))
    for number in range(1, 30):
        get(cache, cached_range(number))
    assert bytes_in(tmp_path) <= 1000 + (0 if damage != bytes(8) else 104)


def test_a_directory_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(str(tmp_path / "file"), 1000)
    with caplog.at_level(logging.WARNING):
        assert [get(cache, cached_range(0)) for _ in range(2)] == [False, False]
    assert caplog.messages == [
        f"{tmp_path}/file: this cache of remote files cannot be used (Not a directory), so each read goes over the "
        "network; make room, or name another directory."
    ]


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        cache = DiskCache(str(tmp_path), 1 << 20)
        assert [get(cache, cached_range(number, 2000)) for number in (0, 0, 1)] == [False] * 3
        os._exit(7)

    child = processes.Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 7
    assert files_in(tmp_path) == []


def test_where_ranges_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert disk_cache.default_directory() == "/cache/maskmill/data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert disk_cache.default_directory() == "/home/someone/.cache/maskmill/data"
