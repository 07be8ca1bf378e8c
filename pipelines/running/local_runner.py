"""The local runner: it runs a graph step by step in this process, the work that is spread in worker processes."""

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

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


class LocalGraph(Graph):
    """A graph of this runner's. Nothing is done before it runs, so that all modules are imported before workers are."""

    def __init__(self) -> None:
        self._steps: collections.deque[LocalCollection] = collections.deque()

    def create(self, label: str, descriptions: Iterable[Any]) -> "LocalCollection":
        return LocalCollection(self._steps, lambda _: descriptions)

    def run(self, spread: Spread) -> None:
        """Runs the steps in the order in which they were added."""
        while self._steps:
            self._steps.popleft().run(spread)


class LocalCollection(Collection):
    """Descriptions, there once the step that makes them has run; `make` is that step."""

    def __init__(self, steps: "collections.deque[LocalCollection]", make: Callable[[Spread], Iterable[Any]]) -> None:
        self._steps, self._make = steps, make
        self.descriptions: Sequence[Any] = ()
        steps.append(self)

    def run(self, spread: Spread) -> None:
        """Makes the descriptions, and forgets how: what they were made of is not needed any more."""
        self.descriptions = list(self._make(spread))
        del self._make

    def flat_map(self, label: str, work: Callable[..., Iterable[Any]], *arguments: Any) -> "LocalCollection":
        return self._then(lambda _: (made for one in self.descriptions for made in work(one, *arguments)))

    def map(self, label: str, work: Callable[..., Any], *arguments: Any) -> "LocalCollection":
        return self._then(lambda _: (work(one, *arguments) for one in self.descriptions))

    def spread(self, label: str, work: Callable[..., Any], *arguments: Any) -> "LocalCollection":
        return self._then(lambda spread: spread(_Work(work, arguments), self.descriptions))

    def together(self, label: str = "Together") -> "LocalCollection":
        return self._then(lambda _: [self.descriptions])

    def joined(self, label: str, *others: Collection) -> "LocalCollection":
        joined = cast(Sequence[LocalCollection], (self, *others))
        return self._then(lambda _: (one for made in joined for one in made.descriptions))

    def step(self, step: Callable[..., Collection], label: str | None = None, **settings: Any) -> Collection:
        return step(self, **settings)

    def _then(self, make: Callable[[Spread], Iterable[Any]]) -> "LocalCollection":
        return LocalCollection(self._steps, make)
