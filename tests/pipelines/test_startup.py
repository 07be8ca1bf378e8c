"""Commands import what they need and no more."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_runs.commands import ROOT

from pipelines.commands import cli

# Packages of which each takes longer to import than all of a help.
LARGE = {
    "apache_beam", "asyncio", "jax", "jinja2", "keras", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "rich",
    "scipy", "tensorflow",
}  # fmt: skip
# What a help and most mistakes can do without.
SMALL = {"concurrent.futures", "gzip", "hmac", "importlib.metadata", "socket", "tempfile", "tomllib._types", "yaml"}


def run(program: str, *arguments: str) -> str:
    """Runs a program in a process of its own; returns what it printed."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


_COMMAND = """
import sys
from pipelines.commands import cli
code = cli.main(sys.argv[1:])
print(code, *sorted(sys.modules))
"""


def after_command(*arguments: str) -> tuple[int, set[str]]:
    """The exit code of a command, and the modules that it has imported."""
    code, *modules = run(_COMMAND, *arguments).splitlines()[-1].split()
    return int(code), set(modules)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--quiet", "--version"]])
def test_the_programs_help_imports_no_options(arguments: list[str]) -> None:
    code, modules = after_command(*arguments)
    assert code == cli.DONE
    assert not modules & (LARGE | SMALL | {"argparse", "difflib", "hashlib"})
    assert not {module for module in modules if module.endswith("options") or module.startswith("training")}


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_the_help_of_a_command_imports_nothing_that_takes_long(name: str) -> None:
    code, modules = after_command(name, "--help")
    assert code == cli.DONE
    assert not modules & (LARGE | SMALL - {"tomllib._types"})


def test_a_build_is_printed_without_beam_and_numba() -> None:
    code, modules = after_command("build", "--print_config")
    assert code == cli.DONE
    assert not modules & {"apache_beam", "numba", "tensorflow"}


@pytest.mark.parametrize(
    "line",
    [
        "exrtact",
        "extract --inptu x",
        "extract --input /nowhere --output OUT",
        "examples --input /nowhere --output OUT --vocab_file v",
        "examples --input DATA/vocab.txt --output OUT --vocab_file /nowhere",
        "vocabulary --input /nowhere --output OUT",
        "build /nowhere.yaml",
        "estimate /nowhere.yaml",
        "verify /nowhere",
        "index /nowhere",
        "pick-eval --input_tfrecord /nowhere --output_tfrecord OUT",
        "create-pretraining-data --input_file /nowhere --output_file OUT --vocab_file DATA/vocab.txt",
        "create-pretraining-data --input_file DATA/vocab.txt --output_file OUT --vocab_file /nowhere",
        "train --input_file /nowhere --output_dir OUT --preset base",
    ],
)
def test_a_mistake_is_told_before_anything_large_is_imported(line: str, tmp_path: Path) -> None:
    data = ROOT / "tests" / "data"
    code, modules = after_command(*line.replace("OUT", str(tmp_path / "out")).replace("DATA", str(data)).split())
    assert code == cli.UNUSABLE
    assert not modules & LARGE


@pytest.mark.parametrize(
    "line",
    [
        "create-pretraining-data --input_file OUT.txt --output_file OUT --vocab_file DATA/vocab.txt --dupe_factor 1",
        "verify OUT.txt --workers 2",
    ],
)
def test_on_this_machine_a_command_imports_neither_beam_nor_a_library_for_others(line: str, tmp_path: Path) -> None:
    text = tmp_path / "out.txt"
    text.write_text(
        "".join(f"The first line of text {n}.\nThe next, {n * 7}, is longer than it.\n\n" for n in range(40))
    )
    data = ROOT / "tests" / "data"
    code, modules = after_command(*line.replace("OUT", str(tmp_path / "out")).replace("DATA", str(data)).split())
    assert code == cli.DONE
    # numba looks for scipy's version.
    large = LARGE | {"grpc", "google.auth", "botocore", "requests", "nltk"}
    assert modules & large == {"numba", "numpy", "scipy"}


@pytest.mark.parametrize(
    "line",
    [
        "extract --input OUT.txt --output OUT",
        "examples --input OUT.txt --output OUT --vocab_file DATA/vocab.txt --dupe_factor 1",
        "vocabulary --input OUT.txt --output OUT --size 200",
    ],
)
def test_a_pipeline_imports_beam_and_nothing_that_beam_does_not(line: str, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("One line of text.\nAnother, longer one.\n\nA line of its own.\n")
    data = ROOT / "tests" / "data"
    code, modules = after_command(*line.replace("OUT", str(tmp_path / "out")).replace("DATA", str(data)).split())
    assert code == cli.DONE
    of_beam = set(run("import sys, apache_beam; print(*sys.modules)").split())
    assert "apache_beam" in modules
    assert (modules - of_beam) & LARGE <= {"numba", "scipy"}


def test_a_process_ends_without_a_search_for_garbage() -> None:
    program = """
import atexit, gc
from pipelines.running import startup
startup.collect_garbage_rarely()
atexit._run_exitfuncs()
print(gc.get_freeze_count() > 1000)
"""
    assert run(program) == "True\n"
