"""How many shards one process works on at a time, whatever threads its runner gives it."""

import contextlib
import functools
import threading
from collections.abc import Iterator

SHARDS_PER_PROCESS = 1


@functools.cache
def _slots(count: int) -> threading.Semaphore:
    return threading.Semaphore(count)


@contextlib.contextmanager
def one_shard_at_a_time(shards_per_process: int = SHARDS_PER_PROCESS) -> Iterator[None]:
    """Waits for a free slot of this process: harness threads on Dataflow and task slots on Flink share its memory."""
    with _slots(shards_per_process):
        yield
