"""Turns: in a process one piece of work computes at a time, whatever threads the process has; while it waits for a
store, a second one may.

Harness threads on Dataflow, task slots on Flink and threads of a local worker would share the memory of one shard.
"""

import contextlib
import threading
from collections.abc import Iterator

_begun = threading.BoundedSemaphore(2)
_computing = threading.Lock()
_thread = threading.local()  # `computes`: whether this thread holds _computing; None: it has begun no piece


def refuse_nesting() -> None:
    """Raise RuntimeError where this thread is at a piece of work already: it would wait for itself for ever."""
    if getattr(_thread, "computes", None) is not None:
        raise RuntimeError(
            "This thread already makes a piece of work and starts another inside it; it would wait for itself for "
            "ever. Finish one piece before the next: call completions.once from no function that completions.once "
            "calls."
        )


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Take a turn for the block.

    Raises:
      RuntimeError: this thread is inside it already; it is not re-entrant.
    """
    refuse_nesting()
    with _begun, _computing:
        _thread.computes = True
        try:
            yield
        finally:
            _thread.computes = None


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Let another thread compute while this one waits for a store."""
    if not getattr(_thread, "computes", None):
        yield
        return
    _thread.computes = False
    _computing.release()
    try:
        yield
    finally:
        _computing.acquire()
        _thread.computes = True
