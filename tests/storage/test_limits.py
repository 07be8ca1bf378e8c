"""One shard at a time in a process, and no piece of work inside another."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maskmill.storage import completions, turns


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


@pytest.mark.parametrize("inner_is_finished", [False, True])
def test_a_piece_inside_another_is_refused_at_once(inner_is_finished: bool, tmp_path: Path) -> None:
    output = str(tmp_path)

    def inner() -> dict[str, Any]:
        return completions.once(output, "text", "inner", lambda: {"size": 1})

    if inner_is_finished:
        assert outcome(inner) == {"size": 1}
    error = outcome(lambda: completions.once(output, "text", "outer", inner))
    assert isinstance(error, RuntimeError)
    assert "starts a work item inside another one" in str(error)
    # Nothing is written for the outer piece, and the slot is free again.
    assert completions.load(output, "text", "outer") is None
    assert outcome(lambda: completions.once(output, "text", "next", lambda: {"size": 2})) == {"size": 2}


def test_the_slot_is_free_after_a_failure() -> None:
    def fail() -> None:
        with turns.taken():
            raise RuntimeError("the disk is full")

    assert str(outcome(fail)) == "the disk is full"

    def work() -> str:
        with turns.taken():
            return "done"

    assert outcome(work) == "done"


def test_another_thread_waits_for_its_turn() -> None:
    order: list[str] = []
    waits = threading.Event()

    def second() -> None:
        waits.set()
        with turns.taken():
            order.append("second")

    def first() -> None:
        thread = threading.Thread(target=second, daemon=True)
        with turns.taken():
            thread.start()
            assert waits.wait(timeout=300)
            order.append("first")
        thread.join(timeout=300)

    outcome(first)
    assert order == ["first", "second"]


def test_while_one_piece_waits_for_a_store_another_computes_and_no_third_begins() -> None:
    waits, third, done = threading.Event(), threading.Event(), threading.Event()

    def second() -> None:
        with turns.taken(), turns.waiting():
            waits.set()
            done.wait(300)

    def begin_third() -> None:
        with turns.taken():
            third.set()

    def first() -> bool:
        with turns.taken():
            threading.Thread(target=second, daemon=True).start()
            assert not waits.wait(0.1)
            with turns.waiting():
                assert waits.wait(300)
                threading.Thread(target=begin_third, daemon=True).start()
                has_begun = third.wait(0.2)
        done.set()
        return not has_begun and third.wait(300)

    assert outcome(first) is True
