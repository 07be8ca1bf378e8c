"""Running a graph: every failure becomes one sentence."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
import pytest
from command_runs.commands import IN_MEMORY, ROOT, TWO_PROCESSES

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage.files import FileInfo
from pipelines.running import runner
from pipelines.settings.stage_options import ExtractOptions
from pipelines.stages.extract_stage import ExtractStage

pytestmark = pytest.mark.long


def refuse(number: int) -> int:
    """A step that finds its input unusable."""
    raise UnusableInputError(f"dump.xml: number {number} is unusable; give another.")


def fail(number: int) -> int:
    """A step that cannot go on."""
    raise RunFailedError(f"shard {number}: the disk is full; make room.")


def stumble(number: int) -> int:
    """A step with a bug."""
    return {1: 2}[number]


def run(step: Callable[[int], int], flags: tuple[str, ...]) -> bool:
    """Run a pipeline with one step in this process."""

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | beam.Create([7]) | beam.Reshuffle() | "Step" >> beam.Map(step)

    return runner.run(build, runner.choose(flags))


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
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kind, text = done.stdout.rstrip("\n").split("\n", 1)
    return kind, text


@pytest.mark.builds
@pytest.mark.parametrize("flags", [IN_MEMORY, TWO_PROCESSES], ids=["in memory", "two processes"])
@pytest.mark.parametrize(
    ("step", "kind", "sentence"),
    [
        (refuse, "UnusableInputError", "dump.xml: number 7 is unusable; give another."),
        (fail, "RunFailedError", "shard 7: the disk is full; make room."),
    ],
    ids=["refuse", "fail"],
)
@pytest.mark.exhaustive_but("refuse-in memory", "fail-two processes")
def test_the_sentence_of_a_step_is_not_changed(
    step: Callable[[int], int], kind: str, sentence: str, flags: tuple[str, ...]
) -> None:
    assert run_elsewhere(step, flags) == (kind, sentence)


@pytest.mark.builds
@pytest.mark.parametrize("flags", [IN_MEMORY, TWO_PROCESSES], ids=["in memory", "two processes"])
@pytest.mark.exhaustive_but("two processes")
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
    found = [FileInfo(path="x", size=0)] * (files - 1) + [FileInfo(path="y", size=size)]
    stage = ExtractStage(options=ExtractOptions(input=("x",), output="out"), read_files=found, formats=["text"])
    assert stage.announcement == line
