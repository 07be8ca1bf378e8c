"""One shard at a time in a process, whatever threads its runner gives it."""

import contextlib
import threading
from collections.abc import Iterator

_slot = threading.Lock()
_thread = threading.local()  # `holds_slot`: whether this thread is inside one_shard_at_a_time


def refuse_nesting() -> None:
    """Raises RuntimeError where this thread works on a shard already: it would wait for itself for ever."""
    if getattr(_thread, "holds_slot", False):
        raise RuntimeError(
            "This thread already makes a piece of work and starts another inside it; it would wait for itself for "
            "ever. Finish one piece before the next: call completions.once from no function that completions.once "
            "calls."
        )


@contextlib.contextmanager
def one_shard_at_a_time() -> Iterator[None]:
    """Waits until no other thread of this process works on a shard: they would share the memory of one.

    Harness threads on Dataflow and task slots on Flink are threads of one process.

    Raises:
      RuntimeError: this thread is inside it already; it is not re-entrant.
    """
    refuse_nesting()
    with _slot:
        _thread.holds_slot = True
        try:
            yield
        finally:
            _thread.holds_slot = False
