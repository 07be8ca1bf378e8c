"""The commands of the how-tos in docs/ run, and print what the pages say.

They run in a folder with a vocabulary, `vocab.txt`, and with this checkout's `tests/`. A block of ```console holds
commands after `$ ` (continued after `> `), and what each prints. In what is printed, `…` stands for any text of a line,
and a line of `…` alone for any lines.
"""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import VOCAB
from conftest import ROOT

pytestmark = pytest.mark.long

PAGES = ("getting-started.md", "languages.md", "sources.md", "estimate.md")


@dataclasses.dataclass
class Step:
    """A command of a page, and the lines that the page says it prints."""

    command: str
    printed: list[str]


def steps(page: str) -> list[Step]:
    """The commands of a page, in order."""
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
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


@pytest.mark.parametrize("name", PAGES)
def test_the_page_prints_what_the_commands_print(name: str, tmp_path: Path) -> None:
    shutil.copyfile(VOCAB, tmp_path / "vocab.txt")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    commands = steps((ROOT / "docs" / name).read_text())
    assert commands
    functions = "".join(
        f'{command}() {{ {shlex.quote(sys.executable)} {module} "$@"; }}\n'
        for command, module in (("maskmill", "-m maskmill"), ("python", ""))
    )
    for step in commands:
        done = subprocess.run(
            ["bash", "-c", functions + step.command],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert re.fullmatch(pattern(step.printed), done.stdout), f"$ {step.command}\n{done.stdout}"
