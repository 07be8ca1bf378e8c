"""Runs whole commands for the tests, and describes the files that they write."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import DATA, ROOT

from command_runs import forked_commands
from maskmill.storage import manifest

DUMP = DATA / "dump" / "enwiki-sample-multistream.xml.bz2"
VOCAB = DATA / "vocab.txt"

IN_MEMORY = ("--workers=1",)
TWO_PROCESSES = ("--workers=2",)


def maskmill(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command `maskmill` in a process of its own; `environment` is added to this process's variables."""
    words = [*map(str, arguments)]
    with open(os.devnull) as nothing, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        files = [file.fileno() for file in (nothing, out, err)]
        code = forked_commands.run(forked_commands.start(), str(ROOT), os.environ | environment, words, files)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(["maskmill", *words], code, out.read(), err.read())


def digests(directory: Path, *, manifests: bool = True) -> dict[str, str]:
    """The sha256 of every output file below a directory, by relative path.

    The work directory and the report are left out: they tell how long a run took, too.
    """
    left_out = {"report.html"} if manifests else {"report.html", "manifest.json"}
    checksums = {}
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_file() and ".maskmill" not in relative.parts and path.name not in left_out:
            checksums[str(relative)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return checksums


def leftovers(directory: Path) -> list[str]:
    """Temporary files that a command left behind."""
    return [str(p) for p in directory.rglob("*.maskmill-tmp")]


def once_claimed(patches: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Has something done when a command claims its output: it has looked at its inputs then, and read none of them."""
    claims = manifest.Claim.write

    def write(claim: manifest.Claim) -> None:
        claims(claim)
        change()

    patches.setattr(manifest.Claim, "write", write)
