"""Running a graph: every failure becomes one sentence, and lines show the progress."""

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from commands import IN_MEMORY, ROOT, TWO_PROCESSES

from pipelines import local_runner, local_worker, runner, startup
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


def test_without_room_for_temporary_files_a_run_ends_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(
        RunFailedError, match=r"^There is no directory for temporary files \(No such file or directory\)"
    ):
        run(abs, IN_MEMORY)


# ---- progress


class Terminal(io.StringIO):
    """A terminal; one that Python knows the width of has a file descriptor as well."""

    def isatty(self) -> bool:
        return True


def finish(output: Path, *keys: str) -> None:
    """Marks pieces of work as finished."""
    for key in keys:
        completions.store(str(output), "text", key, {})


def announce(output: Path, kind: str = "text", *, pieces: int = 4, seconds_ago: float = 10.0) -> None:
    """Announces pieces of 2 MB each."""
    progress.announce(str(output), kind, pieces=pieces, size=pieces * 2_000_000)
    then = time.time() - seconds_ago
    os.utime(completions.work_path(str(output), "plan", f"{kind}.json"), (then, then))


def shown(output: Path, stream: io.StringIO, *labels: str) -> str:
    """The progress that is shown of a run that began a minute ago, when it ends."""
    lines = [
        ProgressLine(label=label, output=str(output), kind=label.split()[0]) for label in labels or ["text shards"]
    ]
    display = Progress(lines, stream)
    display._began -= 60
    with display:
        pass
    return stream.getvalue()


def test_a_step_that_has_announced_no_work_shows_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path, io.StringIO()) == ""
    announce(tmp_path, pieces=0)
    assert shown(tmp_path, io.StringIO()) == ""


def test_a_step_is_shown_before_its_first_piece_is_finished(tmp_path: Path) -> None:
    announce(tmp_path)
    assert shown(tmp_path, io.StringIO()) == "text shards 0/4\n"


def test_rate_and_time_left_count_from_the_announcement(tmp_path: Path) -> None:
    announce(tmp_path)
    finish(tmp_path, "a")
    # 2 MB of 8 in a bit more than 10 s, although the display looks for the first time when the piece is finished.
    found = re.fullmatch(r"text shards 1/4, 0\.(\d) MB/s, (\d+) s left\n", shown(tmp_path, io.StringIO()))
    assert found is not None
    assert int(found[1]) <= 2
    assert int(found[2]) >= 29


@pytest.mark.parametrize(
    ("made", "found", "seconds", "text"),
    [
        (0, 0, 50, "text 0/100"),
        (0, 60, 50, "text 60/100"),
        (10, 0, 50, "text 10/100, 4.0 MB/s, 7 min 30 s left"),
        (10, 60, 50, "text 70/100, 4.0 MB/s, 2 min 30 s left"),
        (100, 0, 50, "text 100/100"),
        (40, 60, 50, "text 100/100"),
        (100, 60, 50, "text 100/100"),
        (50, 0, 0, "text 50/100"),
    ],
)
def test_pieces_that_were_found_take_no_time(made: int, found: int, seconds: float, text: str) -> None:
    announced = progress.Announced(pieces=100, bytes=2_000_000_000)
    assert runner._step_text("text", announced, progress.Finished(made=made, found=found), seconds) == text


def test_large_numbers_are_grouped() -> None:
    announced = progress.Announced(pieces=20_000, bytes=20_000_000)
    finished = progress.Finished(made=10_000, found=0)
    assert runner._step_text("text", announced, finished, 1) == "text 10,000/20,000, 10.0 MB/s, 1 s left"


def test_a_terminal_gets_one_line_that_is_overwritten(tmp_path: Path) -> None:
    announce(tmp_path)
    assert shown(tmp_path, Terminal()) == "\r\x1b[Ktext shards 0/4\n"


def test_the_line_fits_into_80_columns(tmp_path: Path) -> None:
    labels = [f"{name} of a step with a long name" for name in ("first", "second", "third")]
    for label in labels:
        announce(tmp_path, label.split()[0])
    for stream in (io.StringIO(), Terminal()):
        text = shown(tmp_path, stream, *labels)
        line = text.rpartition("\x1b[K")[2].rstrip("\n")
        assert line == "second of a step with a long name 0/4 · third of a step with a long name 0/4"
        assert len(line) < 80


def test_the_line_fits_into_a_narrow_terminal(tmp_path: Path) -> None:
    announce(tmp_path)
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 10))
    with open(child, "w", encoding="utf-8") as stream, Progress([], stream) as display:
        assert display._fit(["extract 8/8", "text shards 0/4"]) == "text shar"
    os.close(parent)


def test_a_stream_without_the_dot_gets_bars(tmp_path: Path) -> None:
    announce(tmp_path, "first")
    announce(tmp_path, "second")
    raw = io.BytesIO()
    stream: Any = io.TextIOWrapper(raw, encoding="ascii")
    with Progress(
        [ProgressLine(label=n, output=str(tmp_path), kind=n) for n in ("first", "second")], stream
    ) as display:
        display._began -= 60
    assert raw.getvalue() == b"first 0/4 | second 0/4\n"


def test_pieces_and_work_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    announce(tmp_path, pieces=2)
    finish(tmp_path, "old")
    os.utime(completions.work_path(str(tmp_path), "text", "old.json"), (1, 1))
    assert shown(tmp_path, io.StringIO()) == "text shards 0/2\n"
    announce(tmp_path, pieces=2, seconds_ago=100)
    assert shown(tmp_path, io.StringIO()) == ""


def test_a_step_that_is_done_has_no_time_left(tmp_path: Path) -> None:
    announce(tmp_path, pieces=1)
    finish(tmp_path, "a")
    assert shown(tmp_path, io.StringIO()) == "text shards 1/1\n"


@pytest.mark.parametrize(("seconds", "text"), [(4.9, "4 s"), (61, "1 min 1 s"), (7325, "2 h 2 min")])
def test_durations(seconds: float, text: str) -> None:
    assert runner._duration(seconds) == text


@pytest.mark.parametrize(
    ("files", "size", "line"),
    [
        (1, 0, "extract: 1 file, 0 bytes, into out"),
        (3, 999, "extract: 3 files, 999 bytes, into out"),
        (1, 29_386_698, "extract: 1 file, 29.4 MB, into out"),
        (1_200, 999_600, "extract: 1,200 files, 1 MB, into out"),
    ],
)
def test_the_first_line_of_a_command(files: int, size: int, line: str) -> None:
    assert startup.first_line("extract", files=files, size=size, output="out") == line


# A worker that takes a minute to end, and like every ending Python has no handler for signals any more.
ENDS_SLOWLY = (
    "import atexit, runpy, signal, sys, time\n"
    "sys.argv.pop(0)\n"
    "atexit.register(lambda: (signal.signal(signal.SIGTERM, signal.SIG_DFL), time.sleep(60)))\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)


def test_a_worker_that_ends_slowly_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    start, file = local_worker.command, os.path.abspath(local_worker.__file__)
    slow = f"-c {shlex.quote(ENDS_SLOWLY)} {file}"
    monkeypatch.setattr(local_worker, "command", lambda log: start(log).replace(file, slow, 1))
    monkeypatch.setattr(local_runner, "_GRACE_SECONDS", 1.0)
    assert run(abs, TWO_PROCESSES) is True
