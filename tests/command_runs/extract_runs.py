"""Runs `maskmill extract` on folders of dumps for the tests."""

import json
from pathlib import Path
from typing import Any

from command_runs.commands import IN_MEMORY
from pipelines.commands import cli


def extract(folder: Path, output: Path, *flags: str) -> int:
    """Extracts the dumps `*.xml` of a folder in this process; returns the exit code."""
    return cli.main(["extract", f"--input={folder}/*.xml", f"--output={output}", *IN_MEMORY, *flags])


def extract_all(folder: Path, output: Path, *flags: str) -> int:
    """As `extract`, with nothing held out."""
    return extract(folder, output, "--eval_fraction=0", *flags)


def read_manifest(output: Path) -> dict[str, Any]:
    """The manifest of an output directory."""
    manifest: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return manifest
