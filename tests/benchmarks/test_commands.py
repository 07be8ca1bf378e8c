"""The measurements' commands start: a module that moved is noticed here, not when somebody measures."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
COMMANDS = sorted(
    path.stem for path in (ROOT / "benchmarks").glob("*.py") if "\nif __name__ ==" in path.read_text(encoding="utf-8")
)
NEED_TENSORFLOW = {"learning", "training"}


pytestmark = pytest.mark.builds


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NEED_TENSORFLOW])
def test_command_prints_its_help(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--help"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "usage:" in run.stdout
