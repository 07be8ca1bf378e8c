"""Beam's flags as its source declares them."""

import subprocess
import sys

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from conftest import ROOT

from maskmill.errors import UnusableInputError
from pipelines.commands import cli
from pipelines.settings import beam_flags
from pipelines.settings.beam_flags import BeamFlag


def parser_of_beam() -> object:
    """The parser that Beam's own options fill."""
    parsers: list[object] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    return parsers[0]


def test_the_flags_are_those_of_beams_own_parser() -> None:
    actions = {s[2:]: a for a in parser_of_beam()._actions for s in a.option_strings if s.startswith("--")}  # type: ignore[attr-defined]
    known = beam_flags.read()
    assert set(known) - set(beam_flags.JAVA_FLAGS) == set(actions) - {"help"}
    for name, action in actions.items():
        if name != "help":
            assert known[name].takes_value == (action.nargs != 0), name
            assert known[name].value_is_optional == (action.nargs == "?"), name


def test_reading_them_imports_no_beam() -> None:
    program = (
        "import sys; from pipelines.settings import beam_flags; beam_flags.read(); print('apache_beam' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_flag_of_ours_has_the_name_of_one_of_beams() -> None:
    beam = set(beam_flags.read())
    for name, command in cli.COMMANDS.items():
        if command.beam:
            # Of a build, --dry_run goes on to Beam where another runner than the local one is named (releases.py).
            assert beam & set(command.flags) == ({"dry_run"} & set(command.flags)), name


@pytest.mark.parametrize("name", ["DirectRunner", "directrunner", "direct", "FlinkRunner", "local", "a.b.Runner"])
def test_the_names_of_runners_that_beam_takes(name: str) -> None:
    beam_flags.read()["runner"].check(name)


@pytest.mark.parametrize(
    ("flag", "text", "message"),
    [
        (BeamFlag(name="x", type="int"), "2.5", "--x must be a whole number, not '2.5'"),
        (BeamFlag(name="x", type="float"), "nan", "--x must be a finite number"),
        (BeamFlag(name="x", type="json.loads"), "{", "--x must be JSON"),
        (BeamFlag(name="x", choices=("a", "b")), "c", "--x must be one of a, b"),
        (BeamFlag(name="x"), "\udcff", "--x must be a value"),
        (BeamFlag(name="direct_num_workers", type="int"), "-3", "--direct_num_workers must be 1 or more"),
    ],
)
def test_a_wrong_value_is_refused_before_beam_sees_it(flag: BeamFlag, text: str, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        flag.check(text)


def test_workers_are_processes_of_the_local_runner() -> None:
    assert beam_flags.with_workers(["--streaming"], None) == ["--streaming"]
    assert beam_flags.with_workers([], 3) == ["--direct_num_workers=3"]
    assert beam_flags.with_workers(["--runner=DirectRunner"], 1)[-1] == "--direct_num_workers=1"
    for arguments, message in (
        (["--runner=FlinkRunner"], "give --parallelism"),
        (["--direct_num_workers=1"], "give one of them"),
    ):
        with pytest.raises(UnusableInputError, match=message):
            beam_flags.with_workers(arguments, 3)


def test_a_flag_that_only_beam_refuses_is_one_sentence() -> None:
    refusal = pytest.raises(UnusableInputError, match=r"Beam refuses a flag: argument --flink_version: invalid choice")
    with refusal, beam_flags.one_sentence():
        PipelineOptions(["--flink_version=0.1"]).get_all_options()
