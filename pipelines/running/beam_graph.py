"""A graph on Beam, for the runners that work elsewhere."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, cast

import apache_beam as beam

from transforms.collection import Collection, Graph


@dataclasses.dataclass(frozen=True)
class BeamGraph(Graph):
    """The graph of a pipeline."""

    pipeline: beam.Pipeline

    def create(self, label: str, descriptions: Iterable[Any]) -> "BeamCollection":
        return BeamCollection(self.pipeline | label >> beam.Create(descriptions))


@dataclasses.dataclass(frozen=True)
class BeamCollection(Collection):
    """Beam's collection of descriptions."""

    descriptions: beam.PCollection

    def flat_map(self, label: str, work: Callable[..., Iterable[Any]], *arguments: Any) -> "BeamCollection":
        return BeamCollection(self.descriptions | label >> beam.FlatMap(work, *arguments))

    def map(self, label: str, work: Callable[..., Any], *arguments: Any) -> "BeamCollection":
        return BeamCollection(self.descriptions | label >> beam.Map(work, *arguments))

    def spread(self, label: str, work: Callable[..., Any], *arguments: Any) -> "BeamCollection":
        return BeamCollection(self.descriptions | f"Spread{label}" >> beam.Reshuffle()).map(label, work, *arguments)

    def together(self, label: str = "Together") -> "BeamCollection":
        return BeamCollection(self.descriptions | label >> _Together())

    def joined(self, label: str, *others: Collection) -> "BeamCollection":
        return BeamCollection(
            [cast(BeamCollection, made).descriptions for made in (self, *others)] | label >> beam.Flatten()
        )

    def step(self, step: Callable[..., Collection], label: str | None = None, **settings: Any) -> "BeamCollection":
        return BeamCollection(self.descriptions | (label or step.__name__) >> _Step(step, settings))


class _Together(beam.PTransform):
    def expand(self, descriptions: beam.PCollection) -> beam.PCollection:
        return (
            descriptions
            | "OneKey" >> beam.Map(lambda description: (0, description))
            | "Group" >> beam.GroupByKey()
            | "List" >> beam.Map(lambda keyed: list(keyed[1]))
        )


class _Step(beam.PTransform):
    def __init__(self, step: Callable[..., Collection], settings: dict[str, Any]) -> None:
        super().__init__()
        self._step, self._settings = step, settings

    def expand(self, descriptions: beam.PCollection) -> beam.PCollection:
        return cast(BeamCollection, self._step(BeamCollection(descriptions), **self._settings)).descriptions
