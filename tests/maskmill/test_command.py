"""The start of the command: its version, and somebody else's packages of the same names on the path."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import maskmill


def run(*arguments: object, cwd: Path, path: str = str(ROOT)) -> subprocess.CompletedProcess[str]:
    """Runs Python in `cwd`, with `path` as PYTHONPATH and without the working directory on the module path."""
    return subprocess.run(
        [sys.executable, "-P", *map(str, arguments)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def foreign_package(folder: Path, name: str) -> None:
    """Puts an empty package of that name into a folder."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = run("-m", "maskmill", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"maskmill {maskmill.__version__}\n", "")
    assert re.fullmatch(r"\d+\.\d+\.\d+", maskmill.__version__)


def test_the_package_is_built_with_the_same_version() -> None:
    done = subprocess.run([sys.executable, "setup.py", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"{maskmill.__version__}\n", done.stderr


def test_the_package_imports_nothing_else(tmp_path: Path) -> None:
    program = (
        "import sys; import maskmill.command\n"
        "loaded = {'apache_beam', 'tensorflow', 'numba', 'numpy', 'pipelines', 'transforms', 'training'}\n"
        "print(sorted(loaded & set(sys.modules)))"
    )
    done = run("-c", program, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("package", ["pipelines", "transforms", "training"])
def test_a_foreign_package_earlier_on_the_path_is_named(package: str, tmp_path: Path) -> None:
    foreign_package(tmp_path, package)
    done = run("-m", "maskmill", "--help", cwd=tmp_path, path=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"maskmill: Python finds another package named '{package}' ({tmp_path / package} instead of {ROOT / package}); "
        "take it off the path, or install maskmill in an environment of its own.\n"
    )


def test_a_foreign_package_in_the_place_of_its_own_is_named(tmp_path: Path) -> None:
    """Another distribution has installed a package of the same name over maskmill's."""
    shutil.copytree(ROOT / "maskmill", tmp_path / "maskmill", ignore=shutil.ignore_patterns("__pycache__"))
    foreign_package(tmp_path, "pipelines")
    done = run("-m", "maskmill", "--help", cwd=tmp_path, path=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("maskmill: Python finds another package named 'pipelines' (")


def test_packages_that_the_path_does_not_show_change_nothing(tmp_path: Path) -> None:
    for package in ("pipelines", "transforms", "training"):
        foreign_package(tmp_path, package)
    done = run("-m", "maskmill", "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: maskmill COMMAND")


def test_a_ctrl_c_while_the_command_is_imported_leaves_no_traceback() -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'maskmill.command':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import maskmill.__main__"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_garbage_is_looked_for_less_often_from_the_start() -> None:
    program = (
        "import gc, sys; from maskmill import command\n"
        "before = gc.get_threshold()[0]; sys.argv[1:] = ['--help']; command.main()\n"
        "assert gc.get_threshold()[0] > 10 * before"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
