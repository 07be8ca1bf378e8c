"""A runner for Beam pipelines on one machine: forked workers, each running one work item after the other.

    with beam.Pipeline(runner=LocalRunner(workers=8)) as pipeline:
        pipeline | beam.io.ReadFromText("notes/*.txt") | beam.Map(str.upper) | beam.io.WriteToText("upper")

It runs bounded pipelines in the global window. If a pipeline needs more (other windows, state, timers, splittable
DoFns, external transforms), all of it runs on Beam's FnApiRunner, and one line says so.

The pipeline is built before the workers are forked, so they have its DoFns without unpickling them; only elements are
sent. ParDos are fused into stages. A stage starts at a *root*: a collection whose elements may go to any worker (the
output of Create, Read, GroupByKey and Reshuffle, and the input of a ParDo with side inputs). A work item is a few
elements of a root; its result holds the elements of each collection that other stages need. Elements that pass a
Reshuffle are handed out as soon as they exist; GroupByKey and side inputs wait until their inputs are complete. Each
element carries its place in the order in which one worker would make it, so groups do not depend on the workers.
"""

import collections
import contextlib
import dataclasses
import functools
import logging
import os
import pickle
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import util
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.coders import registry
from apache_beam.io.iobase import BoundedSource, Read
from apache_beam.metrics.execution import MetricsContainer
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import PCollection
from apache_beam.runners import common
from apache_beam.runners.direct.direct_metrics import DirectMetrics
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState
from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core, sideinputs
from apache_beam.transforms.util import Reshuffle, ReshufflePerKey
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints import typehints

from pipelines.running.local_worker import Workers

_LOGGER = logging.getLogger(__name__)

_SINGLE = 4096  # Up to so many elements of a root become a work item each.
_BUNDLES = 64  # Otherwise each worker gets about so many work items.
_READ_BYTES = 16 << 20  # The size of a BoundedSource's work items.

_Place = tuple[int, ...]
_Placed = tuple[_Place, Any]


class _UnsupportedError(Exception):
    """The pipeline has a step that this runner does not support; the message names it."""


@dataclasses.dataclass(eq=False)
class _Root:
    """A collection at which a stage starts. Collections are numbers.

    values: the output of Create, Impulse or Read. inputs: the collections that it is made from otherwise. key_coder: of
    a GroupByKey. waits: side inputs that must be complete first. kept: the stage's collections that other stages need.
    """

    values: Iterable[Any] = ()
    inputs: Sequence[int] = ()
    key_coder: Any = None
    steps: list["_Step"] = dataclasses.field(default_factory=list)
    waits: set[int] = dataclasses.field(default_factory=set)
    kept: set[int] = dataclasses.field(default_factory=set)


class _Step(NamedTuple):
    """A ParDo. sides: views, each with the collection that it reads. outputs: by tag."""

    label: str
    transform: Any
    input: int
    sides: Sequence[tuple[Any, int]]
    outputs: Mapping[str | None, int]


def _read(bundle: Any) -> Iterator[Any]:
    yield from bundle.source.read(bundle.source.get_range_tracker(bundle.start_position, bundle.stop_position))


class _Stages:
    """A pipeline, divided into stages."""

    def __init__(self, pipeline: beam.Pipeline) -> None:
        self.roots: dict[int, _Root] = {}
        self.homes: dict[int, int] = {}  # the root in whose stage a collection is made
        self.views: set[int] = set()  # collections that are side inputs
        self._numbers: dict[PCollection, int] = {}
        for applied in pipeline.transforms_stack[0].parts:
            self._add(applied)
        for collection in self.views.union(*(root.inputs for root in self.roots.values())):
            if collection not in self.roots:
                self.roots[self.homes[collection]].kept.add(collection)

    def _add(self, applied: Any) -> None:
        transform, outputs = applied.transform, applied.outputs
        if isinstance(transform, beam.Create | beam.Impulse):
            self._numbers[outputs[None]] = self._add_root(_Root(getattr(transform, "values", (b"",))))
        elif isinstance(transform, beam.GroupByKey):
            coder = registry.get_coder(typehints.coerce_to_kv_type(applied.inputs[0].element_type).tuple_types[0])
            self._numbers[outputs[None]] = self._add_root(_Root(inputs=self._inputs(applied), key_coder=coder))
        elif isinstance(transform, Reshuffle | ReshufflePerKey | beam.Flatten):
            self._numbers[outputs[None]] = self._add_root(_Root(inputs=self._inputs(applied)))
        elif isinstance(transform, Read) and isinstance(transform.source, BoundedSource):
            bundles = self._add_root(_Root(transform.source.split(_READ_BYTES)))
            self._add_step(applied, core.FlatMap(_read), bundles)
        elif applied.parts:
            for part in applied.parts:
                self._add(part)
        elif isinstance(transform, beam.ParDo):
            self._add_par_do(applied)
        elif any(isinstance(one, PCollection) and one not in self._numbers for one in outputs.values()):
            raise _UnsupportedError(applied.full_label)

    def _add_par_do(self, applied: Any) -> None:
        transform, signature = applied.transform, applied.transform._signature
        is_windowed = isinstance(transform, beam.WindowInto) and transform.windowing.windowfn != GlobalWindows()
        if is_windowed or signature.is_stateful_dofn() or signature.is_splittable_dofn():
            raise _UnsupportedError(applied.full_label)
        (taken,) = self._inputs(applied)
        sides = [(side, self._numbers[side.pvalue]) for side in applied.side_inputs]
        if sides:
            shown = {number for _, number in sides}
            taken = self._add_root(_Root(inputs=[taken], waits=shown))
            self.views |= shown
        self._add_step(applied, transform, taken, sides)

    def _inputs(self, applied: Any) -> list[int]:
        return [self._numbers[one] for one in applied.inputs]

    def _add_root(self, root: _Root) -> int:
        number = len(self.homes)
        self.roots[number], self.homes[number] = root, number
        return number

    def _add_step(self, applied: Any, transform: Any, taken: int, sides: Sequence[tuple[Any, int]] = ()) -> None:
        home = self.homes[taken]
        outputs = {tag: len(self.homes) + place for place, tag in enumerate(applied.outputs)}
        self._numbers |= {applied.outputs[tag]: number for tag, number in outputs.items()}
        self.homes |= dict.fromkeys(outputs.values(), home)
        self.roots[home].steps.append(_Step(applied.full_label, transform, taken, sides, outputs))


# ---- In a worker: runs a stage.


class _Item(NamedTuple):
    """Elements of a root, and the place of the first one. sides: the file with the stage's side inputs, or empty."""

    root: int
    place: _Place
    elements: Sequence[Any]
    sides: str


class _Result(NamedTuple):
    """The result of a work item: elements by collection, and the counters of its steps."""

    outputs: Mapping[int, Sequence[Any]]
    counted: Sequence[Any]


class _Tracker:
    """Provides Beam's metrics with the container of the step that runs in this thread."""

    metrics_container: Any = None

    def current_state(self) -> "_Tracker":
        return self

    def update_metric(self, name: Any, value: Any) -> None:
        self.metrics_container.get_metric_cell(name).update(value)


class _Out(common.Receiver):
    """A collection: passes each element to the steps that take it, and keeps it if another stage needs it."""

    def __init__(self, tracker: _Tracker, is_kept: bool) -> None:
        self._tracker = tracker
        self._is_kept = is_kept
        self.takers: list[tuple[Callable[[Any], Any], MetricsContainer]] = []
        self.elements: list[Any] = []

    def receive(self, windowed_value: Any) -> None:
        if self._is_kept:
            self.elements.append(windowed_value.value)
        tracker = self._tracker
        for process, container in self.takers:
            before, tracker.metrics_container = tracker.metrics_container, container
            process(windowed_value)
            tracker.metrics_container = before


class _Outs(dict[str | None, _Out]):
    """The outputs of a step by tag; elements for a tag that the pipeline does not name are dropped, as in Beam."""

    def __missing__(self, tag: str | None) -> _Out:
        return _Out(_Tracker(), is_kept=False)


class _Program:
    """The steps of a stage, set up, for one thread."""

    def __init__(self, root: int, stage: _Root, sides: Mapping[int, Sequence[Any]]) -> None:
        self._tracker, self._windowing = _Tracker(), core.Windowing(GlobalWindows())
        self._outs = {root: _Out(self._tracker, is_kept=False)}
        self._root, self._kept = self._outs[root], stage.kept
        self._steps = [self._set_up(step, sides) for step in stage.steps]

    def _set_up(self, step: _Step, sides: Mapping[int, Sequence[Any]]) -> tuple[Any, MetricsContainer]:
        outs = _Outs()
        for tag, number in step.outputs.items():
            outs[tag] = self._outs[number] = _Out(self._tracker, number in self._kept)
        views = [
            sideinputs.SideInputMap(
                type(view),
                view._view_options(),
                [GlobalWindows.windowed_value(element) for element in sides[number]],
            )
            for view, number in step.sides
        ]
        transform, container = step.transform, MetricsContainer(step.label)
        runner = common.DoFnRunner(
            transform.fn, transform.args, transform.kwargs, views, self._windowing, outs, step_name=step.label
        )
        self._outs[step.input].takers.append((runner.process, container))
        self._call(runner.setup, container)
        return runner, container

    def _call(self, function: Callable[[], object], container: MetricsContainer) -> None:
        statesampler.set_current_tracker(self._tracker)
        self._tracker.metrics_container = container
        function()

    def run(self, elements: Sequence[Any]) -> _Result:
        """Run a work item."""
        for runner, container in self._steps:
            self._call(runner.start, container)
        for element in elements:
            self._root.receive(GlobalWindows.windowed_value(element))
        for runner, container in self._steps:
            self._call(runner.finish, container)
        counted = [container.get_cumulative() for _, container in self._steps if container.metrics]
        for _, container in self._steps:
            container.reset()
        outputs = {number: self._outs[number].elements for number in self._kept}
        for number in self._kept:
            self._outs[number].elements = []
        return _Result(outputs, counted)

    def tear_down(self) -> None:
        """Call the steps' teardown."""
        for runner, container in self._steps:
            self._call(runner.teardown, container)


_RUNNING: dict[int, _Stages] = {}  # Workers are forked while their pipeline is here.
_PROGRAMS: dict[tuple[int, int, int], _Program] = {}  # by pipeline, root and thread


def _work(pipeline: int, item: _Item) -> _Result:
    """Run a work item, in a worker or in the process of the command."""
    key = pipeline, item.root, threading.get_ident()
    if key not in _PROGRAMS:
        sides = {}
        if item.sides:
            with open(item.sides, "rb") as file:
                sides = pickle.load(file)
        _PROGRAMS[key] = _Program(item.root, _RUNNING[pipeline].roots[item.root], sides)
        util.Finalize(None, _tear_down, (pipeline,), exitpriority=10)  # a worker calls it when it ends
    return _PROGRAMS[key].run(item.elements)


def _tear_down(pipeline: int) -> None:
    for key in [key for key in _PROGRAMS if key[0] == pipeline]:
        _PROGRAMS.pop(key).tear_down()


# ---- In the command's process: makes work items from the results of others.


class _Run:
    """Hands out the work items of a pipeline. bundles: the number of work items of a large collection."""

    def __init__(self, stages: _Stages, folder: str, bundles: int) -> None:
        self._roots, self._homes, self._views = stages.roots, stages.homes, stages.views
        self._folder, self._bundles = folder, bundles
        self._takers: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)  # a root, which of its inputs
        for number, root in self._roots.items():
            for place, one in enumerate(root.inputs):
                self._takers[one].append((number, place))
        self._waiting: dict[int, list[_Placed]] = collections.defaultdict(list)  # elements for a stage or a group
        self._shown: dict[int, list[_Placed]] = collections.defaultdict(list)  # elements of side inputs
        self._sides: dict[int, str] = {}
        self._fed: set[int] = set()  # roots whose elements are all known
        self._running: collections.Counter[int] = collections.Counter()  # work items by root
        self.metrics = DirectMetrics()

    def begin(self) -> list[_Item]:
        """Return the first work items."""
        for number, root in self._roots.items():
            self._put(number, [((at,), value) for at, value in enumerate(root.values)])
        return self._advance()

    def follow(self, item: _Item, result: _Result) -> list[_Item]:
        """Take the result of a work item; return the items that can be handed out now."""
        self._running[item.root] -= 1
        for counted in result.counted:
            self.metrics.commit_logical(None, counted)
        for collection, values in result.outputs.items():
            self._give(collection, [((*item.place, at), value) for at, value in enumerate(values)])
        return self._advance()

    def _give(self, collection: int, elements: list[_Placed]) -> None:
        """Pass elements of a collection to the roots and side inputs that need them."""
        if collection in self._views:
            self._shown[collection] += elements
        for root, which in self._takers[collection]:
            taken = [((which, *place), value) for place, value in elements]
            if self._roots[root].key_coder is None:
                self._put(root, taken)
            else:
                self._waiting[root] += taken

    def _put(self, root: int, elements: list[_Placed]) -> None:
        """Pass elements of a root to its stage."""
        if self._roots[root].steps:
            self._waiting[root] += elements
        self._give(root, elements)

    def _advance(self) -> list[_Item]:
        """Return the work items that can be handed out, and record which collections are complete."""
        items: list[_Item] = []
        is_changed = True
        while is_changed:
            is_changed = False
            for number, root in self._roots.items():
                if number not in self._fed and all(map(self._is_complete, root.inputs)):
                    self._fed.add(number)
                    is_changed = True
                    if root.key_coder is not None:
                        self._put(number, _grouped(root.key_coder, self._waiting.pop(number, [])))
                is_there = root.key_coder is None or number in self._fed
                if is_there and number in self._waiting and self._is_open(number):
                    items += self._cut(number, self._waiting.pop(number))
                    is_changed = True
        return items

    def _is_open(self, number: int) -> bool:
        """Return True if all side inputs of a stage are complete; write them to a file once."""
        waits = self._roots[number].waits
        if not waits or number in self._sides:
            return True
        if not all(map(self._is_complete, waits)):
            return False
        self._sides[number] = os.path.join(self._folder, f"sides-{number}")
        with open(self._sides[number], "wb") as file:
            pickle.dump({one: [value for _, value in sorted(self._shown[one], key=_place)] for one in waits}, file)
        return True

    def _is_complete(self, collection: int) -> bool:
        home = self._homes[collection]
        return home in self._fed and (home == collection or (not self._running[home] and home not in self._waiting))

    def _cut(self, root: int, elements: list[_Placed]) -> Iterator[_Item]:
        size = 1 if len(elements) <= _SINGLE else -(-len(elements) // self._bundles)
        if self._roots[root].waits:  # as Beam's sinks, which write a file for each bundle
            size = max(size, -(-len(elements) // (self._bundles // 16)))
        for at in range(0, len(elements), size):
            self._running[root] += 1
            bundle = elements[at : at + size]
            yield _Item(root, bundle[0][0], [value for _, value in bundle], self._sides.get(root, ""))


def _place(placed: _Placed) -> _Place:
    return placed[0]


def _grouped(key_coder: Any, elements: list[_Placed]) -> list[_Placed]:
    """Group pairs by their encoded keys, in the order of their places."""
    groups: dict[bytes, tuple[Any, list[Any]]] = {}
    for _, (key, value) in sorted(elements, key=_place):
        groups.setdefault(key_coder.encode(key), (key, []))[1].append(value)
    return [((at,), group) for at, group in enumerate(groups.values())]


def _one_by_one(work: Callable[[Any], Any], items: Iterable[Any], follow: Callable[[Any, Any], Iterable[Any]]) -> None:
    """Do all work in this thread; otherwise like Workers.spread."""
    left = collections.deque(items)
    while left:
        item = left.popleft()
        left.extend(follow(item, work(item)))


class LocalResult(PipelineResult):
    """The result of a pipeline that has run to its end."""

    def __init__(self, metrics: DirectMetrics) -> None:
        super().__init__(PipelineState.DONE)
        self._metrics = metrics

    def wait_until_finish(self, duration: int | None = None) -> str:
        """Return DONE, because `run` has waited."""
        return str(PipelineState.DONE)

    def metrics(self) -> DirectMetrics:
        """Return the pipeline's counters."""
        return self._metrics


class LocalRunner(PipelineRunner):
    """Runs pipelines in forked workers.

    Start it before the process has other threads: a lock that a thread holds stays locked in a fork.

    Args:
      workers: processes; 0 runs everything in this process. By default --direct_num_workers, or one for each core.
      threads: work items that a worker runs at a time, for work that waits for a store.
      log: file for the output of workers; by default it is discarded.
      forked: entered after the workers are forked, left after the pipeline has run; it may start threads.

    Raises (from `run`):
      RunFailedError: a worker died.
      StepError: a step raised in a worker, with its message; UnusableInputError and RunFailedError keep their type.
        Without workers each error keeps its type.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        threads: int = 1,
        log: str = os.devnull,
        forked: contextlib.AbstractContextManager[Any] | None = None,
    ) -> None:
        self._workers, self._threads, self._log, self._forked = workers, threads, log, forked

    def run_pipeline(self, pipeline: beam.Pipeline, options: PipelineOptions) -> PipelineResult:
        """Run a pipeline to its end."""
        try:
            stages = _Stages(pipeline)
        except _UnsupportedError as step:
            _LOGGER.warning("%s: LocalRunner does not know this step; the pipeline runs on FnApiRunner.", step)
            from apache_beam.runners.portability.fn_api_runner import FnApiRunner  # imports gRPC

            return FnApiRunner().run_pipeline(pipeline, options)
        workers, number = self._workers, id(stages)
        if workers is None:
            workers = int(options.view_as(DirectOptions).direct_num_workers) or len(os.sched_getaffinity(0))
        _RUNNING[number] = stages
        try:
            with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
                spread: Callable[..., None] = _one_by_one
                if workers:
                    spread = ending.enter_context(Workers(workers, self._log, self._threads)).spread
                ending.enter_context(self._forked or contextlib.nullcontext())
                run = _Run(stages, folder, _BUNDLES * max(1, workers))
                spread(functools.partial(_work, number), run.begin(), run.follow)
        finally:
            del _RUNNING[number]
            _tear_down(number)
        return LocalResult(run.metrics)
