"""LocalRunner: it gives what Beam's FnApiRunner gives, whatever the workers, and fails and counts as a user expects."""

import itertools
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsDict, AsIter, AsList, AsSingleton, TaggedOutput
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms import window
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from pipelines.running.local_runner import LocalRunner
from pipelines.running.local_worker import StepError

# ---- pipelines: each takes a pipeline and gives the collection whose elements are compared


def numbers(pipeline: beam.Pipeline, count: int = 20, label: str = "Numbers") -> beam.PCollection:
    return pipeline | label >> beam.Create(range(count))


def mapped(pipeline: beam.Pipeline) -> beam.PCollection:
    return (
        numbers(pipeline) | beam.Map(lambda x: x * x) | beam.Filter(lambda x: x % 2) | beam.FlatMap(lambda x: x * [x])
    )


def nothing(pipeline: beam.Pipeline) -> beam.PCollection:
    return numbers(pipeline, 0) | beam.Map(str) | beam.Reshuffle() | beam.Map(len)


def begun_by_an_impulse(pipeline: beam.Pipeline) -> beam.PCollection:
    return pipeline | beam.Impulse() | beam.FlatMap(lambda _: range(5))


def of_large_elements(pipeline: beam.Pipeline) -> beam.PCollection:
    return numbers(pipeline, 3) | beam.Map(lambda x: bytes([x]) * (1 << 20)) | beam.Reshuffle() | beam.Map(len)


def of_many_elements(pipeline: beam.Pipeline) -> beam.PCollection:
    return numbers(pipeline, 9000) | beam.Reshuffle() | beam.Map(lambda x: x % 7) | beam.combiners.Count.PerElement()


def grouped(pipeline: beam.Pipeline) -> beam.PCollection:
    keyed = numbers(pipeline) | beam.Reshuffle() | beam.Map(lambda x: (("k", x % 3), x))
    return keyed | beam.GroupByKey() | beam.MapTuple(lambda key, values: (key, sorted(values)))


def combined(pipeline: beam.Pipeline) -> beam.PCollection:
    keyed = numbers(pipeline) | beam.Map(lambda x: (x % 3, x))
    means = keyed | beam.CombinePerKey(beam.combiners.MeanCombineFn())
    sums = numbers(pipeline, label="Others") | beam.CombineGlobally(sum) | beam.Map(lambda x: ("sum", x))
    return (means, sums) | beam.Flatten()


def combined_of_nothing(pipeline: beam.Pipeline) -> beam.PCollection:
    return numbers(pipeline, 0) | beam.CombineGlobally(sum)


def joined(pipeline: beam.Pipeline) -> beam.PCollection:
    one = numbers(pipeline) | "One" >> beam.Map(lambda x: (x % 4, x))
    other = numbers(pipeline, 6, "Others") | "Other" >> beam.Map(lambda x: (x, str(x)))
    return {"one": one, "other": other} | beam.CoGroupByKey() | beam.Map(lambda kv: (kv[0], sorted(map(str, kv[1]))))


def flattened(pipeline: beam.Pipeline) -> beam.PCollection:
    one = numbers(pipeline)
    doubled = one | beam.Map(lambda x: 2 * x)
    return (one, doubled, one, numbers(pipeline, 3, "Others")) | beam.Flatten() | "Text" >> beam.Map(str)


def with_side_inputs(pipeline: beam.Pipeline) -> beam.PCollection:
    few = numbers(pipeline, 3, "Few") | "Spread" >> beam.Reshuffle() | "Texts" >> beam.Map(lambda x: (x, str(x)))
    count = few | beam.combiners.Count.Globally()

    def look(x: int, listed: list[Any], every: Any, by_key: dict[int, str], n: int) -> tuple[Any, ...]:
        return x, len(listed), sum(1 for _ in every), by_key.get(x), n

    views = AsList(few), AsIter(few), AsDict(few), AsSingleton(count)
    return numbers(pipeline) | beam.Reshuffle() | beam.Map(look, *views) | "Again" >> beam.Map(str)


def tagged(pipeline: beam.Pipeline) -> beam.PCollection:
    def part(x: int) -> Iterator[Any]:
        yield TaggedOutput("odd", x) if x % 2 else x
        yield TaggedOutput("unnamed", x)

    parts = numbers(pipeline) | beam.FlatMap(part).with_outputs("odd", main="even")
    counted = parts.odd | beam.combiners.Count.Globally() | beam.Map(lambda n: ("odd", n))
    return (counted, parts.even | beam.Map(lambda x: ("even", x))) | beam.Flatten()


class WithLife(beam.DoFn):
    """A DoFn that gives how often each method was called before an element."""

    def setup(self) -> None:
        self.calls = ["setup"]

    def start_bundle(self) -> None:
        self.calls = ["setup", "start"]

    def process(self, element: int) -> Iterator[Any]:
        yield element, tuple(self.calls)

    def finish_bundle(self) -> Iterator[Any]:
        yield window.GlobalWindows.windowed_value(("finished", True))


def with_a_life(pipeline: beam.Pipeline) -> beam.PCollection:
    # How many bundles there are is the runner's.
    return numbers(pipeline) | beam.ParDo(WithLife()) | beam.Distinct()


def read(pipeline: beam.Pipeline) -> beam.PCollection:
    return pipeline | beam.io.ReadFromText(os.environ["TEXTS"]) | beam.Map(len)


class Stateful(beam.DoFn):
    """A DoFn with state, which LocalRunner leaves to FnApiRunner."""

    SEEN = ReadModifyWriteStateSpec("seen", beam.coders.VarIntCoder())

    def process(self, element: Any, seen: Any = beam.DoFn.StateParam(SEEN)) -> Iterator[Any]:  # noqa: B008 - Beam's way
        seen.write((seen.read() or 0) + 1)
        yield element


def with_state(pipeline: beam.Pipeline) -> beam.PCollection:
    return numbers(pipeline) | beam.Map(lambda x: (x % 2, x)) | beam.ParDo(Stateful())


def with_windows(pipeline: beam.Pipeline) -> beam.PCollection:
    stamped = numbers(pipeline) | beam.Map(lambda x: window.TimestampedValue((0, x), x))
    return stamped | beam.WindowInto(window.FixedWindows(5)) | beam.GroupByKey() | beam.MapTuple(lambda _, v: sorted(v))


PIPELINES = (
    mapped, nothing, begun_by_an_impulse, of_large_elements, of_many_elements, grouped, combined, combined_of_nothing,
    joined, flattened, with_side_inputs, tagged, with_a_life, read,
)  # fmt: skip
UNKNOWN = (with_state, with_windows)  # steps of these LocalRunner does not know


def elements_of(build: Callable[[beam.Pipeline], beam.PCollection], runner: Any, folder: Path) -> list[str]:
    """Run a pipeline; return its elements as text, sorted. Workers are other processes, so elements go by files."""
    folder.mkdir()
    serial = itertools.count()

    def keep(element: Any) -> None:
        name = folder / f"{os.getpid()}-{time.monotonic_ns()}-{random.random()}-{next(serial)}"
        name.write_text(repr(element))

    with beam.Pipeline(runner=runner) as pipeline:
        build(pipeline) | "Keep" >> beam.Map(keep)
    return sorted(path.read_text() for path in folder.iterdir())


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTS", f"{tmp_path}/*.txt")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n" * 9 + "\nlast")


@pytest.mark.long
@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize("build", [*PIPELINES, *UNKNOWN])
def test_it_gives_what_beam_gives(
    build: Callable[[beam.Pipeline], beam.PCollection], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = elements_of(build, FnApiRunner(), tmp_path / "beam")
    assert expected or build is nothing
    for name, runner in {
        "none": LocalRunner(0),
        "one": LocalRunner(1),
        "two": LocalRunner(2),
        "threads": LocalRunner(2, threads=3),
    }.items():
        with caplog.at_level(logging.WARNING):
            assert elements_of(build, runner, tmp_path / name) == expected, name
        fell_back = [r.getMessage() for r in caplog.records if "FnApiRunner" in r.getMessage()]
        assert len(fell_back) == (build in UNKNOWN)
        caplog.clear()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sink_gets_more_than_one_element_at_a_time(workers: int, tmp_path: Path) -> None:
    with beam.Pipeline(runner=LocalRunner(workers)) as pipeline:
        numbers(pipeline, 1) | beam.FlatMap(lambda _: range(500)) | beam.io.WriteToText(str(tmp_path / "out"))
    files = list(tmp_path.iterdir())
    assert len(files) <= 4 * max(1, workers)
    assert sorted(int(line) for file in files for line in file.read_text().split()) == list(range(500))


@pytest.mark.long
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_groups_have_one_order_for_any_number_of_workers(workers: int, tmp_path: Path) -> None:
    def doze(x: int) -> tuple[int, int]:
        time.sleep(random.random() / 50)
        return x % 2, x

    with beam.Pipeline(runner=LocalRunner(workers)) as pipeline:
        groups = (numbers(pipeline), numbers(pipeline, 5, "Others")) | beam.Flatten() | beam.Map(doze)
        groups | beam.GroupByKey() | "Keep" >> beam.MapTuple(lambda key, v: (tmp_path / str(key)).write_text(str([*v])))
    assert (tmp_path / "0").read_text() == str([*range(0, 20, 2), 0, 2, 4])
    assert (tmp_path / "1").read_text() == str([*range(1, 20, 2), 1, 3])


def wait_for(ours: Path, other: Path) -> None:
    ours.touch()
    for _ in range(600):
        if other.exists():
            return
        time.sleep(0.05)
    raise TimeoutError(f"{other} never came")


@pytest.mark.long
def test_what_passes_a_reshuffle_goes_on_and_closing_runs_beside_what_follows(tmp_path: Path) -> None:
    def first(x: int) -> int:
        # The second element waits until the step after the Reshuffle has the first.
        wait_for(tmp_path / f"first-{x}", tmp_path / ("after-0" if x else "first-0"))
        return x

    def after(x: int) -> int:
        (tmp_path / f"after-{x}").touch()
        return x

    with beam.Pipeline(runner=LocalRunner(3)) as pipeline:
        made = numbers(pipeline, 2) | beam.Map(first) | beam.Reshuffle() | "After" >> beam.Map(after)
        close = beam.Map(lambda _: wait_for(tmp_path / "close", tmp_path / "next-0"))
        made | beam.combiners.ToList() | "Close" >> close
        go = beam.Map(lambda x: wait_for(tmp_path / f"next-{x}", tmp_path / "close"))
        made | "Next" >> beam.Reshuffle() | "Go" >> go


def end_badly(how: str) -> None:
    if how == "refused":
        raise MissingFileError("x: there is no such file.")
    if how == "full":
        raise RunFailedError("shard 0: the disk is full; make room.")
    os._exit(3) if how == "ended" else {}[how]


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "workers", "kind", "said"),
    [
        ("refused", 2, UnusableInputError, "x: there is no such file"),
        ("full", 2, RunFailedError, "the disk is full"),
        ("ended", 2, RunFailedError, "A worker process ended with code 3; run the same command again"),
        ("stumbled", 2, StepError, r"KeyError: .stumbled \[while running .End.\]"),
        ("stumbled", 0, KeyError, r"stumbled \[while running .End.\]"),
    ],
)
def test_a_step_that_fails(how: str, workers: int, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said), beam.Pipeline(runner=LocalRunner(workers)) as pipeline:
        pipeline | beam.Create([how]) | beam.Reshuffle() | "End" >> beam.Map(end_badly)


@pytest.mark.long
@pytest.mark.parametrize("runner", [LocalRunner(0), LocalRunner(2), FnApiRunner()])
def test_what_steps_count(runner: Any) -> None:
    def count(x: int) -> None:
        Metrics.counter("tests", "odd").inc(x % 2)
        Metrics.distribution("tests", "size").update(x)

    pipeline = beam.Pipeline(runner=runner)
    numbers(pipeline) | beam.Reshuffle() | "Count" >> beam.Map(count)
    result = pipeline.run()
    assert result.wait_until_finish() == "DONE"
    found = result.metrics().query()
    assert [(c.key.step, c.key.metric.name, c.committed) for c in found["counters"]] == [("Count", "odd", 10)]
    (size,) = found["distributions"]
    assert (size.committed.min, size.committed.max, size.committed.count) == (0, 19, 20)


@pytest.mark.long
def test_workers_tear_down_what_they_set_up(tmp_path: Path) -> None:
    class Kept(beam.DoFn):
        def setup(self) -> None:
            (tmp_path / f"setup-{os.getpid()}").touch()

        def process(self, element: int) -> None:
            pass

        def teardown(self) -> None:
            (tmp_path / f"teardown-{os.getpid()}").touch()

    for workers in (0, 2):
        with beam.Pipeline(runner=LocalRunner(workers)) as pipeline:
            numbers(pipeline) | beam.ParDo(Kept())
    made = [path.name for path in tmp_path.iterdir()]
    assert made
    assert {name.replace("setup", "teardown") for name in made} == {n for n in made if n.startswith("teardown")}


@pytest.mark.long
def test_a_thread_beside_the_main_one_runs_a_pipeline(tmp_path: Path) -> None:
    def run() -> None:
        with beam.Pipeline(runner=LocalRunner(workers=2)) as pipeline:
            pipeline | beam.Create(["text"]) | beam.io.WriteToText(str(tmp_path / "out"))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [path.read_text() for path in tmp_path.glob("out*")] == ["text\n"]


def test_the_number_of_workers_is_the_option_of_beam_by_default(tmp_path: Path) -> None:
    with beam.Pipeline(runner=LocalRunner(), argv=["--direct_num_workers=3"]) as pipeline:
        wait = beam.Map(lambda x: wait_for(tmp_path / str(x), tmp_path / str((x + 1) % 3)))
        numbers(pipeline, 3) | beam.Reshuffle() | wait
