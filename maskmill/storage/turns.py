"""Let one work item compute at a time in a process, whatever threads the process has; while it waits for a store, a
second one may compute.

Otherwise harness threads on Dataflow, task slots on Flink and threads of a local worker would each need the memory of
a shard.
"""

import contextlib
import threading
from collections.abc import Iterator

_begun = threading.BoundedSemaphore(2)
_computing = threading.Lock()
_thread = threading.local()  # `computes`: whether this thread holds _computing; None: it has no work item


def refuse_nesting() -> None:
    """Raise RuntimeError if this thread already has a work item: it would wait for itself for ever."""
    if getattr(_thread, "computes", None) is not None:
        raise RuntimeError(
            "This thread starts a work item inside another one, so it would wait for itself for ever. Finish one item "
            "before the next: call completions.once from no function that completions.once calls."
        )


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Take a turn for the block.

    Raises:
      RuntimeError: this thread has a turn already.
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
