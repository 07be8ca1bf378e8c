"""One shard at a time in a process, and no piece of work inside another."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maskmill.storage import completions
from maskmill.storage.completions import one_shard_at_a_time


def outcome(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises in a thread of its own; a thread that hangs fails the test, not the run."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except RuntimeError as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=300)
    assert results, "the thread waits for itself"
    return results[0]


@pytest.mark.parametrize("computes", [False, True])
@pytest.mark.parametrize("inner_is_finished", [False, True])
def test_a_piece_inside_another_is_refused_at_once(inner_is_finished: bool, computes: bool, tmp_path: Path) -> None:
    output = str(tmp_path)

    def inner() -> dict[str, Any]:
        return completions.once(output, "text", "inner", lambda: {"size": 1})

    if inner_is_finished:
        assert outcome(inner) == {"size": 1}
    error = outcome(lambda: completions.once(output, "text", "outer", inner, computes=computes))
    assert isinstance(error, RuntimeError)
    assert "starts another inside it" in str(error)
    # Nothing is written for the outer piece, and the slot is free again.
    assert completions.load(output, "text", "outer") is None
    assert outcome(lambda: completions.once(output, "text", "next", lambda: {"size": 2})) == {"size": 2}


def test_the_slot_is_free_after_a_failure() -> None:
    def fail() -> None:
        with one_shard_at_a_time():
            raise RuntimeError("the disk is full")

    assert str(outcome(fail)) == "the disk is full"

    def work() -> str:
        with one_shard_at_a_time():
            return "done"

    assert outcome(work) == "done"


def test_another_thread_waits_for_its_turn() -> None:
    order: list[str] = []
    waits = threading.Event()

    def second() -> None:
        waits.set()
        with one_shard_at_a_time():
            order.append("second")

    def first() -> None:
        thread = threading.Thread(target=second, daemon=True)
        with one_shard_at_a_time():
            thread.start()
            assert waits.wait(timeout=300)
            order.append("first")
        thread.join(timeout=300)

    outcome(first)
    assert order == ["first", "second"]
