"""The measurements' commands start: a module that moved is noticed here, not when somebody measures."""

import json
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


# Asks commands for their help, each in a fork of one process that has imported what they import. It writes what a
# command prints to FOLDER/name, and prints as JSON how each ended.
ASK = """
import importlib, json, os, runpy, sys
folder, *names = sys.argv[1:]
for name in names:
    importlib.import_module(f"benchmarks.{name}")
codes = {}
for name in names:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY), 1)
        sys.argv[1:] = ["--help"]
        code = 0
        try:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
        os._exit(code)  # Python's own way out takes longer than the command
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(codes))
"""


def test_commands_print_their_help(tmp_path: Path) -> None:
    names = [name for name in COMMANDS if name not in NEED_TENSORFLOW]
    command = [sys.executable, "-W", "ignore", "-c", ASK, str(tmp_path), *names]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == dict.fromkeys(names, 0), run.stderr
    assert [name for name in names if "usage:" not in (tmp_path / name).read_text()] == []
