"""The local runner: it runs a graph step by step in this process, the work that is spread in worker processes."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from maskmill.storage import files
from transforms.collection import Collection, Graph

# Gives what work gives for each description, in their order.
Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class _Work:
    """A piece of work with all of its arguments but the first."""

    work: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self, description: Any) -> Any:
        return self.work(description, *self.arguments)


@dataclasses.dataclass(frozen=True)
class _OneOf:
    """Pieces of work of several steps, each given by the number of its step and its description."""

    works: tuple[_Work, ...]

    def __call__(self, piece: tuple[int, Any]) -> Any:
        number, description = piece
        return self.works[number](description)


class LocalGraph(Graph):
    """A graph of this runner's. Nothing is done before it runs, so that all modules are imported before workers are."""

    def __init__(self) -> None:
        self._steps: list[LocalCollection] = []

    def create(self, label: str, descriptions: Iterable[Any]) -> "LocalCollection":
        return LocalCollection(self._steps, (), lambda: descriptions)

    def run(self, spread: Spread, place: str = "") -> None:
        """Runs each step once those that it takes from have run, and spreads together what can be spread then.

        place: a path, local or not, where steps write. Those that nothing takes from, as closing steps, wait for a
        store side by side with what is spread.
        """
        while self._steps:
            left: list[LocalCollection] = []
            spreads: list[LocalCollection] = []
            ends: list[LocalCollection] = []
            taken_from = {id(source) for step in self._steps for source in step.sources}
            for step in self._steps:
                if not all(source.is_made for source in step.sources):
                    left.append(step)
                elif isinstance(step.make, _Work):
                    spreads.append(step)
                elif files.is_local(place) or id(step) in taken_from:
                    step.run()
                else:
                    ends.append(step)
            self._steps = left
            waiting: list[Callable[[], object]] = [step.run for step in ends]
            if spreads:
                waiting.append(functools.partial(_spread_together, spreads, spread))
            files.each(place, lambda wait: wait(), waiting)


def _spread_together(steps: Sequence["LocalCollection"], spread: Spread) -> None:
    """Spreads the work of steps, those of the first step first."""
    given = [step.sources[0].descriptions for step in steps]
    pieces = [(number, one) for number, descriptions in enumerate(given) for one in descriptions]
    made = iter(spread(_OneOf(tuple(cast(_Work, step.make) for step in steps)), pieces))
    for step, descriptions in zip(steps, given, strict=True):
        step.take(itertools.islice(made, len(descriptions)))


class LocalCollection(Collection):
    """Descriptions, there once the step that makes them has run.

    sources: what the step takes from. make: the step; or work for each description of the only source, which is spread.
    """

    def __init__(
        self,
        steps: "list[LocalCollection]",
        sources: "Sequence[LocalCollection]",
        make: Callable[[], Iterable[Any]] | _Work,
    ) -> None:
        self._steps, self.sources, self.make = steps, sources, make
        self.is_made, self.descriptions = False, cast(Sequence[Any], ())
        steps.append(self)

    def run(self) -> None:
        """Makes the descriptions of a step that is not spread."""
        self.take(cast(Callable[[], Iterable[Any]], self.make)())

    def take(self, made: Iterable[Any]) -> None:
        """Takes the descriptions, and forgets how they are made: what they were made of is not needed any more."""
        self.descriptions, self.is_made = list(made), True
        self.sources, self.make = (), tuple

    def flat_map(self, label: str, work: Callable[..., Iterable[Any]], *arguments: Any) -> "LocalCollection":
        return self._then(lambda: (made for one in self.descriptions for made in work(one, *arguments)))

    def map(self, label: str, work: Callable[..., Any], *arguments: Any) -> "LocalCollection":
        return self._then(lambda: (work(one, *arguments) for one in self.descriptions))

    def spread(self, label: str, work: Callable[..., Any], *arguments: Any) -> "LocalCollection":
        return self._then(_Work(work, arguments))

    def together(self, label: str = "Together") -> "LocalCollection":
        return self._then(lambda: [self.descriptions])

    def joined(self, label: str, *others: Collection) -> "LocalCollection":
        joined = cast(Sequence[LocalCollection], (self, *others))
        return LocalCollection(self._steps, joined, lambda: (one for made in joined for one in made.descriptions))

    def step(self, step: Callable[..., Collection], label: str | None = None, **settings: Any) -> Collection:
        return step(self, **settings)

    def _then(self, make: Callable[[], Iterable[Any]] | _Work) -> "LocalCollection":
        return LocalCollection(self._steps, (self,), make)
