"""Runs the commands of the how-tos in docs/, and compares what they print with what the pages say.

A block of ```console holds commands after `$ ` (continued after `> `), and what each prints. A block of ```python with
a block of ```text directly after it is a program and what it prints; other blocks of ```python do not run. In what is
printed, `…` stands for any text of a line, and a line of `…` alone for any lines.
"""

import dataclasses
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from command_runs import forked_commands
from command_runs.commands import DUMP, VOCAB
from conftest import ROOT, SHARED

NEW_LANGUAGE = "vocabularies.md"
_LATGALIAN = SHARED / "data" / "dumps" / "ltgwiki-pages-articles-multistream.xml.bz2"
_NEEDS_KERAS = "maskmill train"


@dataclasses.dataclass
class Step:
    """A command of a page, and the lines that the page says it prints."""

    command: str
    printed: list[str]


def steps(page: str) -> list[Step]:
    """The commands of a page, in order."""
    found: list[Step] = []
    blocks = r"^```(console|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
    for kind, block, printed in re.findall(blocks, page, re.MULTILINE | re.DOTALL):
        if kind == "python":
            if printed:
                found.append(Step(f"python -c {shlex.quote(block)}", printed.splitlines()))
            continue
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            elif line.startswith(">") and not found[-1].printed:
                found[-1].command += "\n" + line[1:].removeprefix(" ")
            else:
                found[-1].printed.append(line)
    return found


def pattern(printed: list[str]) -> str:
    """A regular expression for what a command prints."""
    lines = [r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in printed]
    return "".join(lines)


def run_page(name: str, folder: Path, *, compare: bool = True) -> None:
    """Runs the commands of a page in a folder with vocab.txt and this checkout's tests/.

    Training is left out where Keras is missing. With compare=False the commands must succeed, whatever they print.
    """
    shutil.copyfile(VOCAB, folder / "vocab.txt")
    (folder / "tests").symlink_to(ROOT / "tests")
    commands = steps((ROOT / "docs" / name).read_text())
    assert commands
    python = shlex.quote(sys.executable)
    forks = f"-S {shlex.quote(forked_commands.__file__)} {shlex.quote(forked_commands.start())}"
    function = f'maskmill() {{ {python} {forks} "$@"; }}\n'
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for step in commands:
        if step.command.startswith(_NEEDS_KERAS) and not importlib.util.find_spec("keras"):
            continue
        done = subprocess.run(
            ["bash", "-c", function + step.command],
            cwd=folder,
            # Both standard files go into one, in the order in which they are written, as on a terminal.
            env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        as_expected = re.fullmatch(pattern(step.printed), done.stdout) if compare else done.returncode == 0
        assert as_expected, f"$ {step.command}\n{done.stdout}"


def run_new_language(folder: Path) -> None:
    """Runs docs/vocabularies.md on Latgalian's dump; where that is missing, on the sample dump."""
    found = _LATGALIAN.exists()
    (folder / "ltgwiki-latest-pages-articles.xml.bz2").symlink_to(_LATGALIAN if found else DUMP)
    run_page(NEW_LANGUAGE, folder, compare=found)
