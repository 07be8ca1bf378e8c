"""The local runner: it runs a graph step by step in this process, the work that is spread in worker processes."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

from transforms.collection import Collection, Graph

# Takes a description and what work has given for it; gives descriptions for which the work is to be done next.
Follow = Callable[[Any, Any], Iterable[Any]]
# Does work for descriptions, and for those that follow.
Spread = Callable[[Callable[[Any], Any], Iterable[Any], Follow], None]


def one_by_one(work: Callable[[Any], Any], descriptions: Iterable[Any], follow: Follow) -> None:
    """Does all work in this thread."""
    left = collections.deque(descriptions)
    while left:
        description = left.popleft()
        left.extendleft(follow(description, work(description)))


def in_threads(count: int) -> Spread:
    """Does work in so many threads of this process, which wait for a store."""

    def spread(work: Callable[[Any], Any], descriptions: Iterable[Any], follow: Follow) -> None:
        left = collections.deque(descriptions)
        running: dict[Future[Any], Any] = {}
        with ThreadPoolExecutor(count) as threads:
            while left or running:
                while left and len(running) < count:
                    description = left.popleft()
                    running[threads.submit(work, description)] = description
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    left.extendleft(follow(running.pop(future), future.result()))

    return spread


@dataclasses.dataclass(frozen=True)
class _Work:
    """A piece of work with all of its arguments but the first."""

    work: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self, description: Any) -> Any:
        return self.work(description, *self.arguments)


@dataclasses.dataclass(frozen=True)
class _Each:
    """What is done for each description, without being spread; gives any number of descriptions."""

    work: Callable[[Any], Iterable[Any]]


_Place = tuple[int, ...]  # of a description among others
_Piece = tuple[int, _Place, Any]  # the number of a step, and a description with its place


@dataclasses.dataclass(frozen=True)
class _OneOf:
    """The work of several steps."""

    works: tuple[_Work | None, ...]

    def __call__(self, piece: _Piece) -> Any:
        number, _, description = piece
        return cast(_Work, self.works[number])(description)


class LocalGraph(Graph):
    """A graph of this runner's. Nothing is done before it runs, so that all modules are imported before workers are."""

    def __init__(self) -> None:
        self._steps: list[LocalCollection] = []

    def create(self, label: str, descriptions: Iterable[Any]) -> "LocalCollection":
        return LocalCollection(self._steps, (), lambda: descriptions)

    def run(self, spread: Spread, *, beside: bool = False, goes_on: bool = False) -> None:
        """Runs each step once those that it takes from have run, and spreads together what can be spread then.

        Args:
          spread: does work.
          beside: whether steps that nothing takes from, as closing steps, run in threads beside what is spread.
          goes_on: whether work that is spread over what other spread work gives goes on with each description as soon
            as it is there, and does not wait for all.
        """
        with _starting(beside) as start:
            while self._steps:
                self._run_ready(start)
                if steps := self._take_spreads(goes_on):
                    self._spread_together(steps, spread, start)

    def _run_ready(self, start: "_Start") -> None:
        """Runs what is not spread; what nothing takes from is started."""
        taken_from = {id(source) for step in self._steps for source in step.sources}
        for step in list(self._steps):
            if step.is_ready and not isinstance(step.make, _Work):
                self._steps.remove(step)
                if id(step) in taken_from:
                    step.run()
                else:
                    start(step.run)

    def _take_spreads(self, goes_on: bool) -> "list[LocalCollection]":
        """The steps whose work can be spread now, and behind them those that go on with each thing that they give."""
        taken: dict[int, LocalCollection] = {}
        for step in self._steps:
            is_begun = isinstance(step.make, _Work) and step.is_ready
            if is_begun or (goes_on and isinstance(step.make, _Work | _Each) and id(step.sources[0]) in taken):
                taken[id(step)] = step
        for step in reversed(list(taken.values())):  # what leads to no work has time
            if isinstance(step.make, _Each) and not any(step in other.sources for other in taken.values()):
                del taken[id(step)]
        self._steps[:] = [step for step in self._steps if id(step) not in taken]
        return list(taken.values())

    def _spread_together(self, steps: "Sequence[LocalCollection]", spread: Spread, start: "_Start") -> None:
        """Spreads the work of steps, that of the first step first."""
        numbers = {id(step): number for number, step in enumerate(steps)}
        sources = [numbers.get(id(step.sources[0])) for step in steps]
        makes = [step.make for step in steps]
        made: list[dict[_Place, Any]] = [{} for _ in steps]
        wanted = [0] * len(steps)
        pieces: list[_Piece] = []

        def add(number: int, place: _Place, description: Any) -> Iterator[_Piece]:
            """What is to be spread for a description of a step."""
            make = makes[number]
            if not isinstance(make, _Each):
                wanted[number] += 1
                yield number, place, description
                return
            for at, result in enumerate(make.work(description)):
                wanted[number] += 1
                yield from take(number, (*place, at), result)

        def take(number: int, place: _Place, result: Any) -> Iterator[_Piece]:
            """What is to be spread for a result of a step."""
            made[number][place] = result
            for other, source in enumerate(sources):
                if source == number:
                    yield from add(other, place, result)

        def take_whole() -> None:
            for step, source, results, count in zip(steps, sources, made, wanted, strict=True):
                if len(results) == count and not step.is_made and (source is None or steps[source].is_made):
                    step.take(results[place] for place in sorted(results))
            self._run_ready(start)

        def follow(piece: _Piece, result: Any) -> Iterable[_Piece]:
            more = list(take(piece[0], piece[1], result))
            if len(made[piece[0]]) == wanted[piece[0]]:
                take_whole()
            return more

        for number, (step, source) in enumerate(zip(steps, sources, strict=True)):
            for at, one in enumerate(step.sources[0].descriptions if source is None else ()):
                pieces += add(number, (at,), one)
        take_whole()  # those without any description
        spread(_OneOf(tuple(make if isinstance(make, _Work) else None for make in makes)), pieces, follow)


# Runs something, or starts a thread for it.
_Start = Callable[[Callable[[], object]], None]


@contextlib.contextmanager
def _starting(beside: bool) -> Iterator[_Start]:
    """Starts threads, for which the block waits at its end, and raises what one has raised; or runs all at once."""
    started: list[Future[object]] = []

    def start(run: Callable[[], object]) -> None:
        for future in started:
            if future.done():
                future.result()
        started.append(threads.submit(run))

    if not beside:
        yield lambda run: cast(None, run())
        return
    with ThreadPoolExecutor() as threads:
        yield start
    for future in started:
        future.result()


class LocalCollection(Collection):
    """Descriptions, there once the step that makes them has run.

    sources: what the step takes from. make: the step; or what is done for each description of the only source.
    """

    def __init__(
        self,
        steps: "list[LocalCollection]",
        sources: "Sequence[LocalCollection]",
        make: Callable[[], Iterable[Any]] | _Work | _Each,
    ) -> None:
        self._steps, self.sources, self.make = steps, sources, make
        self.is_made, self.descriptions = False, cast(Sequence[Any], ())
        steps.append(self)

    @property
    def is_ready(self) -> bool:
        """Whether all that the step takes from is there."""
        return all(source.is_made for source in self.sources)

    def run(self) -> None:
        """Makes the descriptions of a step that is not spread."""
        if isinstance(self.make, _Each):
            (source,) = self.sources
            self.take(itertools.chain.from_iterable(map(self.make.work, source.descriptions)))
        else:
            self.take(cast(Callable[[], Iterable[Any]], self.make)())

    def take(self, made: Iterable[Any]) -> None:
        """Takes the descriptions, and forgets how they are made: what they were made of is not needed any more."""
        self.descriptions, self.is_made = list(made), True
        self.sources, self.make = (), tuple

    def flat_map(self, label: str, work: Callable[..., Iterable[Any]], *arguments: Any) -> "LocalCollection":
        return self._then(_Each(lambda one: work(one, *arguments)))

    def map(self, label: str, work: Callable[..., Any], *arguments: Any) -> "LocalCollection":
        return self._then(_Each(lambda one: (work(one, *arguments),)))

    def spread(self, label: str, work: Callable[..., Any], *arguments: Any) -> "LocalCollection":
        return self._then(_Work(work, arguments))

    def together(self, label: str = "Together") -> "LocalCollection":
        return self._then(lambda: [self.descriptions])

    def joined(self, label: str, *others: Collection) -> "LocalCollection":
        joined = cast(Sequence[LocalCollection], (self, *others))
        return LocalCollection(self._steps, joined, lambda: (one for made in joined for one in made.descriptions))

    def step(self, step: Callable[..., Collection], label: str | None = None, **settings: Any) -> Collection:
        return step(self, **settings)

    def _then(self, make: Callable[[], Iterable[Any]] | _Work | _Each) -> "LocalCollection":
        return LocalCollection(self._steps, (self,), make)
