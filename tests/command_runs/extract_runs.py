"""Runs `maskmill extract` on folders of dumps for the tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from made_up import dump_files

from command_runs.commands import IN_MEMORY, TWO_PROCESSES, leftovers, maskmill
from pipelines.commands import cli


def extract(folder: Path, output: Path, *flags: str) -> int:
    """Extracts the dumps `*.xml` of a folder in this process; returns the exit code."""
    return cli.main(["extract", f"--input={folder}/*.xml", f"--output={output}", *IN_MEMORY, *flags])


def extract_with_two_processes(
    pages: Sequence[str], pages_a_file: int, folder: Path, output: Path, *flags: str
) -> None:
    """Extracts pages that are cut into several dumps, units which two processes take in any order; it must succeed."""
    for first in range(0, len(pages), pages_a_file):
        (folder / f"part{first:02}.xml").write_bytes(dump_files.dump(pages[first : first + pages_a_file]))
    done = maskmill(
        "extract", f"--input={folder}/part*.xml", f"--output={output}", "--dump_date=2010-01-02", *flags, *TWO_PROCESSES
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert leftovers(output) == []


def read_manifest(output: Path) -> dict[str, Any]:
    """The manifest of an output directory."""
    manifest: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return manifest
