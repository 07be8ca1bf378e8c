"""Beam's flags as its source declares them."""

import contextlib

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from maskmill.errors import UnusableInputError
from pipelines.commands import cli
from pipelines.settings import beam_flags

PRISM = "apache_beam.runners.portability.prism_runner.PrismRunner"


def parser_of_beam() -> object:
    """The parser that Beam's own options fill."""
    parsers: list[object] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    return parsers[0]


def test_the_flags_are_those_of_beams_own_parser() -> None:
    actions = {s[2:]: a for a in parser_of_beam()._actions for s in a.option_strings if s.startswith("--")}  # type: ignore[attr-defined]
    known = beam_flags.BeamFlags()
    found = {name for name in known if name in known}
    assert found - set(beam_flags.JAVA_FLAGS) == set(actions) - {"help"}
    for name, action in actions.items():
        if name != "help":
            assert known[name].takes_value == (action.nargs != 0), name
            assert known[name].value_is_optional == (action.nargs == "?"), name


def test_no_flag_of_ours_has_the_name_of_one_of_beams() -> None:
    beam = set(beam_flags.BeamFlags())
    for name, command in cli.COMMANDS.items():
        if command.beam:
            # Of a build, --dry_run goes on to Beam where another runner than the local one is named (releases.py).
            assert beam & set(command.flags) == ({"dry_run"} & set(command.flags)), name


@pytest.mark.parametrize(
    ("given", "runner"),
    [
        ("DirectRunner", "DirectRunner"), ("directrunner", "DirectRunner"), ("direct", "DirectRunner"),
        ("flinkrunner", "FlinkRunner"), ("fnapi", "FnApiRunner"), ("local", "LocalRunner"),
        (PRISM, PRISM),
    ],
)  # fmt: skip
def test_a_runner_is_the_one_that_is_named_in_any_case(given: str, runner: str) -> None:
    checked = beam_flags.checked([f"--runner={given}"])
    assert checked == [f"--runner={runner}"]
    assert beam_flags.runner_of(checked) == runner


@pytest.mark.parametrize(
    ("flags", "is_used"),
    [
        ("--direct_num_workers=2", True),
        ("--job_name=x", False),
        ("--runner=flink --job_name=x --flink_master=h:1 --execution_retry_delay=5", True),
        ("--runner=flink --region=x", False),
        ("--runner=dataflow --region=x --dry_run=True", True),
        ("--runner=dataflow --flink_master=h:1", False),
        ("--runner=spark --spark_version=3", True),
    ],
)
def test_a_flag_that_a_runner_does_not_use_is_refused(flags: str, is_used: bool) -> None:
    with contextlib.nullcontext() if is_used else pytest.raises(UnusableInputError, match="has no use with"):
        beam_flags.checked(flags.split())


def test_workers_are_processes_of_the_local_runner() -> None:
    assert beam_flags.with_workers(["--streaming"], None) == ["--streaming"]
    assert beam_flags.with_workers([], 3) == ["--direct_num_workers=3"]
    assert beam_flags.with_workers(["--runner=LocalRunner"], 1)[-1] == "--direct_num_workers=1"
    for arguments, message in (
        (["--runner=FlinkRunner"], "give --parallelism"),
        (["--runner=DirectRunner"], "counts the processes of LocalRunner"),
        (["--direct_num_workers=1"], "give one of them"),
    ):
        with pytest.raises(UnusableInputError, match=message):
            beam_flags.with_workers(arguments, 3)


def test_a_flag_that_only_beam_refuses_is_one_sentence() -> None:
    refusal = pytest.raises(UnusableInputError, match=r"Beam refuses a flag: argument --flink_version: invalid choice")
    with refusal, beam_flags.one_sentence():
        PipelineOptions(["--flink_version=0.1"]).get_all_options()
