"""What a command prints where nobody reads it, where the disk is full, and where it shall be quiet."""

import io
import json
import logging
import os
import sys
import warnings
from pathlib import Path

import pytest
from command_runs.commands import VOCAB

from maskmill.errors import RunFailedError
from pipelines.commands import cli
from pipelines.terminal import console


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The first sentence.\nThe second sentence.\n\nAnother document.\nIts end.\n")
    return path


class Failing(io.StringIO):
    """A stream to which nothing can be written."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


def opened(output: io.StringIO | None) -> console.Console:
    return console.Console(output=console.Stream(output), errors=console.Stream(io.StringIO()))


@pytest.mark.parametrize("output", [Failing(BrokenPipeError(32, "Broken pipe")), None])
def test_work_goes_on_when_nobody_reads_any_more(output: io.StringIO | None) -> None:
    made = opened(output)
    for _ in range(3):
        assert made.output.write("x\n") == 2
    made.finish()
    assert not made.output.isatty()


def test_a_full_disk_is_a_failure() -> None:
    made = opened(Failing(OSError(28, "No space left on device")))
    made.output.write("x\n")
    with pytest.raises(RunFailedError, match=r"cannot be written \(No space left on device\)"):
        made.finish()


def test_a_log_handler_that_closes_its_stream_at_exit_takes_it_from_nobody() -> None:
    console.Stream(None).close()
    written = io.StringIO()
    stream = console.Stream(written)
    stream.close()
    stream.write("x")
    assert written.getvalue() == "x"


def test_characters_that_an_encoding_lacks_are_escaped() -> None:
    raw = io.BytesIO()
    stream = console.Stream(io.TextIOWrapper(raw, encoding="ascii"))
    stream.write("→ \udcff")
    stream.flush()
    assert raw.getvalue() == rb"\u2192 \udcff"


def create(text: Path, *flags: str) -> int:
    return cli.main(
        [
            *flags,
            "create-pretraining-data",
            f"--input_file={text}",
            f"--output_file={text}.out",
            f"--vocab_file={VOCAB}",
        ]
    )


def test_a_quiet_command_prints_nothing(text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert create(text, "--quiet") == 0
    assert capfd.readouterr() == ("", "")
    assert Path(f"{text}.out").stat().st_size > 1000


def test_a_quiet_command_says_what_is_wrong(text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text.unlink()
    assert create(text, "--quiet") == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"maskmill create-pretraining-data: {text}: this input does not exist; check the path.\n"


@pytest.mark.parametrize(
    ("quiet", "level", "seen"), [(False, "INFO", "ours Beam's"), (False, "ERROR", ""), (True, None, "")]
)
def test_the_level_decides_what_is_logged(quiet: bool, level: str | None, seen: str) -> None:
    errors = io.StringIO()
    made = console.Console(output=console.Stream(io.StringIO()), errors=console.Stream(errors))
    with made.listening(quiet=quiet, level=level):
        logging.getLogger("transforms").info("ours")
        logging.getLogger("apache_beam.runners").info("Beam's")
    assert " ".join(line.rpartition(": ")[2] for line in errors.getvalue().splitlines()) == seen
    assert logging.getLogger().level == logging.WARNING


def test_without_a_level_nothing_of_beam_is_logged() -> None:
    made = opened(io.StringIO())
    with made.listening(quiet=False, level=None):
        assert not logging.getLogger("apache_beam.runners").isEnabledFor(logging.ERROR)


# ---- JSON


def lines_of(errors: io.StringIO) -> list[tuple[str, str, str]]:
    """The level, logger and message of each line."""
    records = map(json.loads, errors.getvalue().splitlines())
    return [(record["level"], record["logger"], record["message"]) for record in records]


def test_each_line_is_an_object() -> None:
    errors = io.StringIO()
    made = console.Console(output=console.Stream(io.StringIO()), errors=console.Stream(errors, as_json=True))
    made.errors.write("a line in ")
    made.errors.write("two writes\n\nand \x1b[31m\u2028another\nunfinished")
    made.say("what failed")
    assert lines_of(errors) == [
        ("INFO", "maskmill", "a line in two writes"),
        ("INFO", "maskmill", "and \x1b[31m\u2028another"),
        ("ERROR", "maskmill", "what failed"),
    ]


def test_what_is_logged_is_an_object_with_its_traceback() -> None:
    errors = io.StringIO()
    made = console.Console(output=console.Stream(io.StringIO()), errors=console.Stream(errors, as_json=True))
    with made.listening(quiet=False, level=None):
        logging.getLogger("transforms").info("too low a level")
        warnings.warn("of Python", stacklevel=1)
        try:
            raise ValueError("the cause")
        except ValueError:
            logging.getLogger("transforms").exception("it %s", "failed")
    first, second = map(json.loads, errors.getvalue().splitlines())
    assert (first["level"], first["logger"]) == ("WARNING", "py.warnings")
    assert (second["level"], second["logger"], second["message"]) == ("ERROR", "transforms", "it failed")
    assert second["traceback"].endswith("ValueError: the cause")
    assert second["time"].endswith("+00:00")


@pytest.mark.parametrize("flags", [["--log_format=json"], ["--log_format", "json"], ["-log_format", "json", "--quiet"]])
def test_a_failure_is_an_object(flags: list[str], text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text.unlink()
    assert create(text, *flags) == 2
    out, err = capfd.readouterr()
    assert out == ""
    record = json.loads(err)
    assert record["level"] == "ERROR"
    assert record["message"].endswith("this input does not exist; check the path.")


def test_a_command_line_that_cannot_be_read_is_refused_as_an_object(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["extract", "--log_format=json", "--no_such_flag"]) == 2
    assert "there is no such flag" in json.loads(capfd.readouterr().err)["message"]


def test_warnings_of_the_data_are_objects_and_the_summary_is_not(text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text.write_text("".join(f"Line {n} of a long text without any end of a document" for n in range(200)) + "\n")
    assert create(text, "--log_format=json") == 0
    out, err = capfd.readouterr()
    assert "examples" in out
    (record,) = map(json.loads, err.splitlines())
    assert record["level"] == "WARNING"
    assert record["message"].startswith("maskmill create-pretraining-data: warning: ")


def test_what_is_printed_cannot_steer_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile, plain = "\ta\x1b]0;title\x07\x1b[2J\u202e\n", "\ta\\x1b]0;title\\x07\\x1b[2J\\u202e\n"
    written = io.StringIO()
    stream = console.Stream(written)
    stream.write(f"\x1b[36mname\x1b[0m{hostile}")
    assert written.getvalue() == f"\\x1b[36mname\\x1b[0m{plain}"
    monkeypatch.setattr(sys, "stdout", stream)
    console.Coloured().write(f"\x1b[36mname\x1b[0m{hostile}")
    assert written.getvalue() == f"\\x1b[36mname\\x1b[0m{plain}\x1b[36mname\x1b[0m{plain}"


def test_who_prints_on_and_on_learns_that_the_reader_went_away(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with open(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", console.Stream(pipe))
        print("a")
        assert not console.reader_is_gone()
        os.close(read)
        print("b")
        assert console.reader_is_gone()
