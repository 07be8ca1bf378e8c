"""Delivery of messages: in their order, again after failures, and never for longer than it may take."""

import threading
import time
from collections.abc import Callable

from maskmill.errors import RunFailedError
from maskmill.storage.web_client import TransientError
from pipelines.events.event_delivery import Delivery


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert is_so()


def test_messages_are_delivered_in_their_order_by_another_thread() -> None:
    delivered: list[tuple[int, str]] = []
    delivery = Delivery[int](lambda message: delivered.append((message, threading.current_thread().name)))
    for number in range(20):
        delivery.give(number)
    assert delivery.close(10) is None
    assert delivered == [(number, "events") for number in range(20)]


def test_a_refused_message_does_not_hold_up_the_next() -> None:
    delivered: list[int] = []

    def send(message: int) -> None:
        if message == 1:
            raise RunFailedError("410 Gone")
        delivered.append(message)

    delivery = Delivery[int](send)
    for number in range(3):
        delivery.give(number)
    assert delivery.close(10) == "1 of 3 events could not be delivered (410 Gone)"
    assert delivered == [0, 2]


def test_a_message_is_given_up_when_its_time_is_over() -> None:
    """Its clock jumps by a minute with each look, so no test waits two."""
    tries: list[int] = []
    now = iter(range(0, 100_000, 60))

    def send(message: int) -> None:
        tries.append(message)
        raise TransientError("503 busy")

    delivery = Delivery[int](send, patience=100.0, clock=lambda: float(next(now)))
    delivery.give(7)
    wait_until(lambda: delivery._failed == 1)
    assert len(tries) == 2
    assert delivery.close(0) == "1 of 1 events could not be delivered (503 busy)"


def test_closing_makes_the_last_tries_at_once() -> None:
    """The pause that a server had asked for does not end before the command; the others do."""
    tries: list[float] = []

    def send(message: str) -> None:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise TransientError("no connection")

    delivery = Delivery[str](send)
    delivery.give("last")
    wait_until(lambda: len(tries) == 1)
    assert delivery.close(10) is None
    assert len(tries) == 3


def test_a_message_on_its_way_counts_as_lost_when_the_time_is_over() -> None:
    answer = threading.Event()
    delivery = Delivery[str](lambda _: [None, answer.wait(30)][0])
    delivery.give("one")
    delivery.give("two")
    assert delivery.close(0.05) == "2 of 2 events could not be delivered (no answer in time)"
    answer.set()


def test_without_messages_there_is_no_thread_and_nothing_to_say() -> None:
    before = threading.enumerate()
    assert Delivery[str](lambda _: None).close(10) is None
    assert not set(threading.enumerate()) - set(before)
