"""The command itself: help, exit codes, what it imports."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from pipelines import cli


@pytest.mark.parametrize(
    "arguments", [["--help"], ["extract", "--help"], ["build", "--help"], ["build", "--print_config"]]
)
def test_help_imports_no_beam(arguments: list[str]) -> None:
    program = (
        "import sys; from pipelines import cli\n"
        "try:\n    code = cli.main(sys.argv[1:])\nexcept SystemExit as ended:\n    code = ended.code\n"
        "assert code == 0, code\n"
        "loaded = {'apache_beam', 'tensorflow', 'numba'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["extrakt"]) == 2
    assert "did you mean extract" in capsys.readouterr().err


def test_no_command_shows_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage: maskmill COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("package", ["pipelines", "transforms", "training"])
def test_foreign_packages_of_the_same_name_are_named(package: str, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    program = "import sys; sys.path.insert(0, sys.argv[1]); sys.path.append(sys.argv[2]); import maskmill\n"
    program += "sys.argv[1:] = ['--help']; sys.exit(maskmill.main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path), str(ROOT)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"another package named '{package}'" in done.stderr
