"""Steps of a graph, and their two ways with descriptions: each goes to some worker, or all of them come together."""

from collections.abc import Callable
from typing import Any

import apache_beam as beam


def step(expand: Callable[..., beam.PCollection]) -> Callable[..., beam.PTransform]:
    """Makes a step of a function of a collection; the function's other arguments are the settings of the step."""
    made: Callable[..., beam.PTransform] = beam.ptransform_fn(expand)
    return made


@step
def GroupAll(elements: beam.PCollection) -> beam.PCollection:
    """Brings all descriptions of a collection together as one list (order not given): they are small and few."""
    return (
        elements
        | "OneKey" >> beam.Map(lambda element: (0, element))
        | "Group" >> beam.GroupByKey()
        | "List" >> beam.Map(lambda keyed: list(keyed[1]))
    )


def spread(elements: beam.PCollection, label: str, work: Callable[..., Any], *arguments: Any) -> beam.PCollection:
    """What `work` makes of each description, on any worker."""
    return elements | "Spread" >> beam.Reshuffle() | label >> beam.Map(work, *arguments)


def together(elements: beam.PCollection, label: str, work: Callable[..., Any], *arguments: Any) -> beam.PCollection:
    """All that `work` makes of the list of all descriptions."""
    return elements | "Together" >> GroupAll() | label >> beam.FlatMap(work, *arguments)
