"""Small builds of releases for the tests, and what they leave."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from command_runs.commands import DUMP, VOCAB, digests

from pipelines.commands import cli

SECTIONS: Mapping[str, Mapping[str, Any]] = {
    "extract": {"input": str(DUMP), "num_eval_articles": 4, "shard_size_mb": 0.5, "max_documents": 30},
    "examples": {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1},
    "eval": {"num_examples_to_pick": 20},
}


def config(folder: Path, output: Path | str, **sections: Any) -> Path:
    """Writes the file of a small build into a folder; `sections` add sections, or options to them."""
    content: dict[str, Any] = {"output": str(output), "report": "off", **{n: dict(v) for n, v in SECTIONS.items()}}
    for name, values in sections.items():
        content[name] = content.get(name, {}) | values if isinstance(values, dict) else values
    path = folder / "build.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def release(path: Path, *flags: str) -> int:
    """Builds a release in this process; returns the exit code."""
    return cli.main(["build", str(path), "--release", "--workers=1", *flags])


@dataclasses.dataclass(frozen=True)
class Root:
    """The directory above releases."""

    path: Path

    @property
    def names(self) -> list[str]:
        """The names of the releases that have a directory."""
        releases = self.path / "releases"
        return sorted(p.name for p in releases.iterdir() if p.name[0] != ".") if releases.is_dir() else []

    @property
    def latest(self) -> str | None:
        """The release that latest.json names; the symlink must name it, too."""
        path = self.path / "latest.json"
        if not path.exists():
            assert not (self.path / "latest").is_symlink()
            return None
        name: str = json.loads(path.read_text())["release"]
        assert os.readlink(self.path / "latest") == f"releases/{name}"
        assert (self.path / "latest" / "release.json").exists()
        return name

    def release(self, name: str | None = None) -> Path:
        """A release's directory; without a name that of the only one."""
        if name is None:
            (name,) = self.names
        return self.path / "releases" / name

    def record(self, name: str | None = None) -> dict[str, Any]:
        """The record of a release."""
        content: dict[str, Any] = json.loads((self.release(name) / "release.json").read_text())
        return content


def contents(directory: Path) -> dict[str, str]:
    """The sha256 of a build's files but for the record, with manifests as if the build were elsewhere."""
    found = {name: sha256 for name, sha256 in digests(directory, manifests=False).items() if name != "release.json"}
    for path in sorted(directory.glob("*/manifest.json")):
        found[str(path.relative_to(directory))] = path.read_text().replace(str(directory), "HERE")
    return found


def state_of(directory: Path) -> dict[str, tuple[int, int]]:
    """The inode and the time of each file and link below a directory."""
    return {
        str(path.relative_to(directory)): (path.lstat().st_ino, path.lstat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if not path.is_dir() or path.is_symlink()
    }
