"""The command itself: its help, its exit codes and its imports."""

import errno
import re

import pytest

from pipelines.commands import cli


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["extrakt"]) == 2
    assert "did you mean extract" in capsys.readouterr().err


def test_without_a_command_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage: maskmill COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EMFILE, "Too many open files", "x"), "Too few files may be open at once .* `ulimit -n 1024`"),
        (ImportError("x.so: failed to map segment from shared object"), "There is not enough memory .*`ulimit -v`"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "There is not enough memory"),
    ],
)
def test_a_machine_with_too_little_is_one_sentence(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    assert cli.main(["index", "x"]) == 1
    assert re.fullmatch(rf"maskmill index: {says}.*\n", capsys.readouterr().err)
