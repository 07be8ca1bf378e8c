"""Running a graph: every failure becomes one sentence, and lines show the progress."""

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from commands import IN_MEMORY, ROOT, TWO_PROCESSES

from pipelines import runner
from pipelines.checks import Workload
from pipelines.runner import Progress, ProgressLine
from transforms.errors import RunFailedError, UnusableInputError
from transforms.storage import completions, progress

pytestmark = pytest.mark.long

HERE = Workload(input_bytes=0, pieces=None, paths=())


def refuse(number: int) -> int:
    """A step that finds its input unusable."""
    raise UnusableInputError(f"dump.xml: number {number} is unusable; give another.")


def fail(number: int) -> int:
    """A step that cannot go on."""
    raise RunFailedError(f"shard {number}: the disk is full; make room.")


def stumble(number: int) -> int:
    """A step with a bug."""
    return {1: 2}[number]


def fail_beside_a_long_piece(number: int) -> int:
    time.sleep(600 if number else 1)
    return fail(number)


def run(step: Callable[[int], int], flags: tuple[str, ...]) -> bool:
    """Runs a graph with one step in this process."""

    def build_graph(pipeline: beam.Pipeline) -> Any:
        numbers = pipeline | "Numbers" >> beam.Create([7] if step is not fail_beside_a_long_piece else [0, 1])
        return numbers | "Spread" >> beam.Reshuffle() | "Step" >> beam.Map(step)

    return runner.run(build_graph, runner.pipeline_options(flags, HERE))


def run_elsewhere(step: Callable[[int], int], flags: tuple[str, ...]) -> tuple[str, str]:
    """Runs a graph with one step in a new process. Returns the type and the text of the exception."""
    program = (
        "import sys, test_runner\n"
        "try:\n    test_runner.run(getattr(test_runner, sys.argv[1]), tuple(sys.argv[2:]))\n"
        "except Exception as error:\n    print(type(error).__name__)\n    print(error)\n"
    )
    paths = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-c", program, step.__name__, *flags],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kind, text = done.stdout.rstrip("\n").split("\n", 1)
    return kind, text


@pytest.mark.parametrize("flags", [IN_MEMORY, TWO_PROCESSES], ids=["in memory", "two processes"])
@pytest.mark.parametrize(
    ("step", "kind", "sentence"),
    [
        (refuse, "UnusableInputError", "dump.xml: number 7 is unusable; give another."),
        (fail, "RunFailedError", "shard 7: the disk is full; make room."),
    ],
)
def test_the_sentence_of_a_step_is_not_changed(
    step: Callable[[int], int], kind: str, sentence: str, flags: tuple[str, ...]
) -> None:
    assert run_elsewhere(step, flags) == (kind, sentence)


@pytest.mark.parametrize("flags", [IN_MEMORY, TWO_PROCESSES], ids=["in memory", "two processes"])
def test_any_other_error_is_a_sentence_that_names_the_file_of_the_whole_story(flags: tuple[str, ...]) -> None:
    kind, text = run_elsewhere(stumble, flags)
    assert kind == "RunFailedError"
    sentence = re.fullmatch(r"The run failed: [^\n]*KeyError[^\n]*\. The whole story is in (\S+)\.", text)
    assert sentence is not None, text
    story = Path(sentence[1])
    try:
        assert "in stumble" in story.read_text()
    finally:
        story.unlink()


def test_a_run_that_ends_returns_true() -> None:
    assert run(abs, IN_MEMORY) is True


# ---- progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finish(output: Path, *keys: str) -> None:
    """Marks pieces of work as finished."""
    for key in keys:
        completions.store(str(output), "text", key, {})


def shown(output: Path, stream: io.StringIO) -> str:
    """The progress that is shown while one piece is finished."""
    with Progress([ProgressLine(label="text shards", output=str(output), kind="text")], stream):
        finish(output, "a")
    return stream.getvalue()


def test_a_step_that_has_announced_no_work_shows_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path, io.StringIO()) == ""


def test_pieces_rate_and_time_left_are_shown(tmp_path: Path) -> None:
    progress.announce(str(tmp_path), "text", pieces=4, size=8_000_000)
    assert re.fullmatch(r"text shards 1/4, \d+\.\d MB/s, \d+ s left\n", shown(tmp_path, io.StringIO()))


def test_a_terminal_gets_one_line_that_is_overwritten(tmp_path: Path) -> None:
    progress.announce(str(tmp_path), "text", pieces=4, size=8_000_000)
    assert re.fullmatch(r"\r\x1b\[Ktext shards 1/4, [^\r\n]*\n", shown(tmp_path, Terminal()))


def test_pieces_that_an_earlier_run_finished_do_not_count(tmp_path: Path) -> None:
    progress.announce(str(tmp_path), "text", pieces=2, size=1)
    finish(tmp_path, "old")
    os.utime(completions.work_path(str(tmp_path), "text", "old.json"), (1, 1))
    assert shown(tmp_path, io.StringIO()).startswith("text shards 1/2")


def test_a_step_that_is_done_has_no_time_left(tmp_path: Path) -> None:
    progress.announce(str(tmp_path), "text", pieces=1, size=1)
    assert shown(tmp_path, io.StringIO()) == "text shards 1/1\n"


@pytest.mark.parametrize(("seconds", "text"), [(4.9, "4 s"), (61, "1 min 1 s"), (7325, "2 h 2 min")])
def test_durations(seconds: float, text: str) -> None:
    assert runner._duration(seconds) == text
