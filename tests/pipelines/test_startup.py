"""Commands import what they need and no more; what Beam is imported without is there when it is needed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from command_runs.commands import ROOT

from pipelines.commands import cli
from pipelines.running import startup

# Packages of which each takes longer to import than all of a help.
LARGE = {"apache_beam", "asyncio", "jinja2", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "rich", "scipy"}
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


_LEAN = """
import sys
from pipelines.running import startup
startup.import_beam_for_local_runner()
left_out = {*startup.UNUSED_BY_BEAM, "google.cloud.storage", "pymongo"}
print(*left_out & set(sys.modules))
import apache_beam.io.gcp.gcsfilesystem
from apache_beam.io.filesystems import FileSystems
print(FileSystems.join("gs://bucket/folder", "name"))
import pandas, pyarrow
"""


@pytest.mark.builds
def test_beam_is_imported_without_what_it_does_not_need_and_that_can_be_imported_later() -> None:
    assert run(_LEAN) == "\ngs://bucket/folder/name\n"


_HAS_GOOGLE_CLOUD = importlib.util.find_spec("google.cloud") is not None
_LOOKED_FOR = """
import sys
names = []
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        names.append(name)
sys.meta_path.insert(0, Finder)
import apache_beam.runners.portability.fn_api_runner
print(*names)
"""


def test_beam_still_looks_for_what_is_left_out() -> None:
    """Where this fails after an update, take the name off the list."""
    looked_for = set(run(_LOOKED_FOR).split())
    # Without the extra [gcp] there is no `google.cloud`, and nothing looks further.
    left_out = {name for name in startup.UNUSED_BY_BEAM if not name.startswith("google.cloud.") or _HAS_GOOGLE_CLOUD}
    assert not left_out - looked_for


def test_a_process_ends_without_a_search_for_garbage() -> None:
    program = """
import atexit, gc
from pipelines.running import startup
startup.collect_garbage_rarely()
atexit._run_exitfuncs()
print(gc.get_freeze_count() > 1000)
"""
    assert run(program) == "True\n"
