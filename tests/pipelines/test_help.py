"""The help of every command: all flags, those that are needed most first, and an example that the parser takes."""

import shlex

import pytest

from pipelines.commands import cli
from pipelines.settings import beam_flags, flags, help

COMMANDS = pytest.mark.parametrize("name", sorted(cli.COMMANDS))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return str(out)


@COMMANDS
def test_the_help_has_every_flag_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, name, "--help")
    lines = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    assert sorted(lines) == sorted(f"--{flag}" for flag in cli.COMMANDS[name].flags)


@COMMANDS
def test_the_example_is_a_command_line_that_is_taken(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = cli.COMMANDS[name]
    assert command.example in printed(capsys, name, "--help")
    program, subcommand, *arguments = shlex.split(command.example)
    assert (program, subcommand) == ("maskmill", name)
    line = flags.parse(arguments, command.flags, beam_flags.BeamFlags, takes_names=command.takes_names)
    required = {flag for flag, option in command.flags.items() if option.is_required}
    assert required <= set(line.values) or name in ("build", "watch", "estimate")


@COMMANDS
def test_required_flags_stand_first_and_those_of_every_command_last(name: str) -> None:
    groups = help.in_groups(cli.COMMANDS[name].flags)
    first, last = next(iter(groups.values())), list(groups.values())[-1]
    assert all(not option.is_required for group in list(groups.values())[1:] for option in group)
    assert first
    assert [option.name for option in last][-3:] == ["quiet", "log_level", "log_format"]


def test_the_flags_of_extract_are_grouped_by_step() -> None:
    groups = help.in_groups(cli.COMMANDS["extract"].flags)
    assert len(groups) == 7
    assert [option.name for option in next(iter(groups.values()))] == ["input", "output", "compat", "input_format"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["extract", "--help"],
        ["extract", "-h"],
        ["-h", "extract"],
        ["help", "extract"],
        ["extract", "--shard_size_mb", "abc", "--no_such_flag", "-h"],
        ["--quiet", "extract", "--help"],
        ["--log_format", "json", "extract", "--help"],
    ],
)
def test_help_is_given_wherever_it_is_asked_for(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *arguments).startswith("usage: maskmill extract --input VALUE --output VALUE")


@pytest.mark.parametrize("arguments", [["--version"], ["extract", "--version"], ["--quiet", "--version"]])
def test_the_version_is_given_wherever_it_is_asked_for(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments, version="1.2.3") == 0
    assert capsys.readouterr().out == "maskmill 1.2.3\n"
