"""The counters of steps, as the pages of Beam's runners show them; work that is done twice counts twice."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import apache_beam as beam
from apache_beam.metrics import Metrics

_NAMESPACE = "maskmill"


def count(name: str, number: int = 1) -> None:
    """Add to a counter of the step that runs."""
    Metrics.counter(_NAMESPACE, name).inc(number)


class Counted(beam.DoFn):
    """Do `work(element, *arguments)` for each element, count what `counts_of` finds in its result, and its seconds."""

    def __init__(
        self, work: Callable[..., Any], counts_of: Callable[[Any], Mapping[str, int]], *arguments: Any
    ) -> None:
        self._work, self._counts_of, self._arguments = work, counts_of, arguments

    def process(self, element: Any) -> Iterator[Any]:
        """Yield the result."""
        start = time.monotonic()
        result = self._work(element, *self._arguments)
        for name, number in self._counts_of(result).items():
            count(name, number)
        Metrics.distribution(_NAMESPACE, "seconds").update(round(time.monotonic() - start))
        yield result
