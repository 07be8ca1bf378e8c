"""Worker processes of the local runner in a working directory with packages of the same names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, ROOT, TWO_PROCESSES, VOCAB, digests

from pipelines.commands import cli
from pipelines.running import local_worker

pytestmark = pytest.mark.long

# A module that fails when it is imported.
UNUSABLE = 'raise ImportError("somebody else\'s package")\n'


@pytest.fixture
def foreign_folder(tmp_path: Path) -> Path:
    """A folder with packages of somebody else that have the names of ours."""
    for package in ("pipelines", "transforms", "training"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(UNUSABLE)
    return tmp_path


def build_file(folder: Path) -> Path:
    """Writes the file of a small build whose output is `folder`/out."""
    path = folder / "build.yaml"
    extract = {"input": str(DUMP), "num_eval_articles": 7, "shard_size_mb": 0.5}
    examples = {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    path.write_text(
        yaml.safe_dump({"output": str(folder / "out"), "report": "off", "extract": extract, "examples": examples})
    )
    return path


@pytest.mark.builds
def test_a_build_runs_in_a_folder_with_packages_of_the_same_names(
    foreign_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert cli.main(["build", str(build_file(elsewhere)), *IN_MEMORY]) == 0
    # The console script, too, starts without the working directory on the module path.
    command = [sys.executable, "-P", "-m", "maskmill", "build", str(build_file(foreign_folder)), *TWO_PROCESSES]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=foreign_folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = digests(elsewhere / "out", manifests=False)
    assert len(expected) > 5
    assert digests(foreign_folder / "out", manifests=False) == expected


def test_a_worker_takes_over_its_parents_module_path(foreign_folder: Path) -> None:
    # A module in the place of Beam's writes down the module path that the worker sees.
    answer = foreign_folder / "answer"
    beam = foreign_folder / "beam" / "apache_beam" / "runners" / "worker"
    beam.mkdir(parents=True)
    core = beam.parents[1] / "transforms"
    core.mkdir()
    (core / "core.py").write_text("def get_function_args_defaults(function):\n    pass\n")
    for package in (core, beam, *list(beam.parents)[:2]):
        (package / "__init__.py").write_text("")
    (beam / "sdk_worker_main.py").write_text(
        "import importlib.util, sys\n"
        "def main(arguments):\n"
        f"    with open({str(answer)!r}, 'w') as file:\n"
        "        print(sys.path, importlib.util.find_spec('pipelines').origin, arguments[1:], file=file)\n"
    )
    path = [str(foreign_folder / "beam"), str(ROOT), *sys.path]
    program = (
        "import subprocess, sys\n"
        f"sys.path[:] = {path!r}\n"
        "from pipelines.running import local_worker\n"
        "subprocess.run(local_worker.command(sys.argv[1]), shell=True, check=True)\n"
    )
    log = foreign_folder / "a log"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(log)], cwd=foreign_folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + log.read_text()
    assert answer.read_text() == f"{path} {ROOT / 'pipelines' / '__init__.py'} []\n"
    assert log.read_text() == ""


def test_a_worker_is_recognised_by_its_command_line() -> None:
    assert local_worker.is_worker(["python", "-P", local_worker.__file__, "1", "[]"])
    assert not local_worker.is_worker(["python", "-m", "maskmill"])
