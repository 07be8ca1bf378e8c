"""How long devices wait for batches, with a clock of the test's own."""

import pytest

from training.loop import InputMeter


class Batches:
    """Batches of which each is ready, or comes after some seconds."""

    def __init__(self, clock, seconds):
        self.clock, self.seconds = clock, iter(seconds)
        self.wait = next(self.seconds)

    @property
    def is_ready(self):
        return self.wait == 0

    def __next__(self):
        self.clock.time += self.wait
        self.wait = next(self.seconds, 0)
        return {}


class Clock:
    time = 100.0

    def __call__(self):
        return self.time


def test_waiting_counts_from_when_the_devices_have_nothing_to_do():
    clock = Clock()
    meter, batches = InputMeter(clock), Batches(clock, [2, 0, 3])
    finished = []

    def finish():
        clock.time += 5
        finished.append(clock.time)

    waited = []
    for _ in range(3):
        meter.take(batches, finish)
        waited.append(meter.waited)
    assert waited == [2, 2, 5]
    # While a batch is there, nobody waits for the devices.
    assert len(finished) == 2


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([(1, 1)] * 9, [None] * 9),
        ([(4, 0), (4, 2), (4, 0)], [None, None, pytest.approx(2 / 12)]),
        ([(10, 1.0), (10, 1.1), (10, 9)], [None, pytest.approx(0.11), None]),
        ([(20, 0), (5, 5), (5, 5)], [None, None, 1.0]),
    ],
    ids=["short", "added-up", "told-once", "each-window-anew"],
)
def test_a_tenth_of_ten_seconds_is_told_once(windows, expected):
    meter = InputMeter()
    assert [meter.told(seconds, waited) for seconds, waited in windows] == expected
