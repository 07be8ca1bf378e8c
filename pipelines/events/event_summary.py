"""What is told of a build: the run, each event, and the summary as JSON: who built what of what, and how it ended.

Its layout has a number, `schema_version`; docs/events.md describes it. A key that is added does not raise the number.
"""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any

from maskmill.releases import fingerprints
from maskmill.storage import completions, files, manifest, timings
from maskmill.storage.outcomes import Result

SCHEMA_VERSION = 1
SUMMARIES = "summaries"  # the folder beside releases
# Sections that shape no data. What is in `events` may be secret: the addresses of webhooks often are.
_NOT_SHOWN = ("events",)
_TRAIN = "train"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ended:
    """How a build ended: its exit status, and the sentence that it ended with; empty where all went well."""

    exit_status: int = 0
    error: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A build whose events are told.

    Attributes:
      id: of this run, a UUID as text; another one when the build is started again.
      output: the build file's `output`: with releases the directory above them all.
      directory: where the stages' directories are: the release's, or `output` itself.
      release: the release's name as text; empty for a plain build.
      config: the path of the build's file.
      options: the build's options as plain values, by section.
      stages: the names of the stages that it runs, in order.
      dump: what is known of the dump (wiki, date, layout, files); empty where it is none.
    """

    id: str
    output: str
    directory: str
    release: str = ""
    config: str = ""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stages: tuple[str, ...] = ()
    dump: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Told:
    """An event.

    Attributes:
      event: its name. time: seconds since the epoch.
      output: the build file's.
      run: the build; None of `nothing.new`.
      summary: of the build so far; empty of `nothing.new`.
      stage: what became of the stage that is finished; None of other events.
      made: the manifest of that stage.
      ended: how the build ended; None while it goes on.
      began: when it began, in seconds since the epoch.
    """

    event: str
    time: float
    output: str
    run: Run | None = None
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stage: Mapping[str, Any] | None = None
    made: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    ended: Ended | None = None
    began: float = 0.0


def folder_of(directory: str, stage: str) -> str:
    """The directory of a stage below that of a build."""
    return files.join(directory, fingerprints.DATA_STAGES.get(stage, stage))


def describe_stage(directory: str, name: str, result: Result) -> dict[str, Any]:
    """What became of a finished stage.

    Args:
      directory: of the build.
      name: of the stage.
      result: what became of it; of the training nothing.

    Raises:
      UnusableInputError, RunFailedError: its files cannot be read.
    """
    output = folder_of(directory, name)
    if name == _TRAIN:
        return {"directory": output, **_describe_training(output)}
    made, outcome, taken = result.made, result.outcome, result.reused
    steps = [dataclasses.asdict(timing) for timing in timings.read(output)]
    # A stage that made nothing has the timings of the run that did.
    has_worked = outcome is None or bool(outcome.made)
    return {
        "directory": output,
        "seconds": round(sum(step["seconds"] for step in steps), 3) if has_worked else 0.0,
        "steps": steps,
        "pieces": None if outcome is None else {"made": dict(outcome.made), "found": dict(outcome.reused)},
        "reused": None if taken is None else dataclasses.asdict(taken),
        "counts": dict(made.get("counts", {})),
        "dump_date": made.get("decided", {}).get("dump_date"),
        "inputs": len(made.get("inputs", ())),
        "shards": len(made.get("shards", ())),
        "bytes": _bytes_of(made),
        "manifest_sha256": files.sha256_of(files.join(output, manifest.MANIFEST)),
    }


def _bytes_of(made: Mapping[str, Any]) -> int:
    listed = [file for shard in made.get("shards", ()) for file in manifest.files_of_shard(shard)]
    return sum(int(file.get("bytes") or 0) for file in listed)


def _describe_training(output: str) -> dict[str, Any]:
    """The newest checkpoint of a training; other training programs have none that is known."""
    found = files.list_directory(output, "step-*.safetensors")
    return {"checkpoint": max(found, key=files.base_name) if found else None, "checkpoints": len(found)}


def config_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """A build's options as they are told: without what may be secret."""
    return {name: value for name, value in options.items() if name not in _NOT_SHOWN}


def iso(seconds: float) -> str:
    """A time in seconds since the epoch as text: 2026-11-23T02:38:35.120Z."""
    time = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def summary_path(output: str, release: str) -> str:
    """Where the summary of a release's last build lies."""
    return files.join(files.join(output, SUMMARIES), f"{release}.json")


def write(path: str, summary: Mapping[str, Any]) -> None:
    """Writes a summary, whole or not at all; raises UnusableInputError or RunFailedError if it cannot be written."""
    files.write_bytes(path, (completions.canonical_json(summary, indent=1) + "\n").encode())
