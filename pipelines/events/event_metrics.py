"""Metrics of a data set's builds in Prometheus' text format, for the textfile collector of node_exporter.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. The file is written whole, so that no
collector reads half of it. What a run does not know stays as an earlier one wrote it: after a build that failed, the
time of the last success is still there.
"""

import dataclasses
import datetime
import re
from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.events.event_summary import Ended

_PREFIX = "maskmill_"
# The metrics in the order of the file, with what they are. All are gauges: none only ever grows.
METRICS = {
    "build_last_success_timestamp_seconds": "When the last successful build ended.",
    "build_last_run_timestamp_seconds": "When the last build ended, whether it failed or not.",
    "build_exit_status": "Of the last build: 0 done, 1 failed, 2 unusable options or input.",
    "build_duration_seconds": "How long the last build took.",
    "build_stage_duration_seconds": "How long a stage's steps took in the last successful build, added up.",
    "build_documents": "Documents of the last successful build.",
    "build_examples": "Examples of the last successful build.",
    "build_bytes": "Bytes of a stage's shards in the last successful build.",
    "build_pages": "Pages that the last successful build extracted or took from the release before.",
    "build_reused_pages": "Pages that the last successful build took from the release before.",
    "build_shards": "Shards of a stage in the last successful build.",
    "build_reused_shards": "Shards of a stage that the last successful build took from the release before.",
    "build_dump_timestamp_seconds": "The date of the dump of the last successful build.",
    "build_info": "1; its labels name the last successful release.",
    "last_check_timestamp_seconds": "When it was last found that nothing is new, or that something is.",
}
_LINE = re.compile(r"(?P<name>[a-z_:][a-z0-9_:]*)\{(?P<labels>.*)\} (?P<value>\S+)")
_OF_STAGES = ("build_stage_duration_seconds", "build_bytes", "build_shards", "build_reused_shards")
_OF_SUCCESS = (*_OF_STAGES, "build_info", "build_documents", "build_examples", "build_pages", "build_reused_pages")


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class Series:
    """A metric's name without its prefix, and its labels as they stand in the file."""

    name: str
    labels: str


Values = dict[Series, str]


def series(name: str, **labels: str) -> Series:
    """A metric with labels in the order in which they are given."""
    return Series(name=name, labels=",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def of_build(output: str, summary: Mapping[str, Any], ended: Ended, *, began: float, now: float) -> Values:
    """The values after a build.

    Args:
      output: the directory of the build file, which tells data sets apart.
      summary: of the build.
      ended: how it ended.
      began, now: seconds since the epoch.
    """
    values = {
        series("build_last_run_timestamp_seconds", output=output): _number(now),
        series("build_exit_status", output=output): str(ended.exit_status),
        series("build_duration_seconds", output=output): _number(now - began),
        series("last_check_timestamp_seconds", output=output): _number(now),
    }
    if ended.exit_status or not summary["complete"]:
        return values  # one stage of several is no success yet
    values[series("build_last_success_timestamp_seconds", output=output)] = _number(now)
    for name, stage in summary["stages"].items():
        values |= _of_stage(output, name, stage)
    release, version = str(summary["release"] or ""), str(summary["maskmill"])
    values[series("build_info", output=output, release=release, version=version)] = "1"
    date = str(summary["dump"].get("date", ""))
    if date:
        try:
            day = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.UTC)
        except ValueError:
            return values  # of a corpus whose date is a name
        values[series("build_dump_timestamp_seconds", output=output)] = _number(day.timestamp())
    return values


def of_check(output: str, now: float) -> Values:
    """The values after a look that found nothing new."""
    return {series("last_check_timestamp_seconds", output=output): _number(now)}


def _of_stage(output: str, name: str, stage: Mapping[str, Any]) -> Values:
    if "counts" not in stage:
        return {series("build_stage_duration_seconds", output=output, stage=name): _number(stage["seconds"])}
    taken = stage["reused"] or {}
    values = {
        series("build_stage_duration_seconds", output=output, stage=name): _number(stage["seconds"]),
        series("build_bytes", output=output, stage=name): str(stage["bytes"]),
        series("build_shards", output=output, stage=name): str(stage["shards"]),
    }
    if taken:
        values[series("build_reused_shards", output=output, stage=name)] = str(taken["reused_shards"])
    counts = stage["counts"]
    if name == "extract":
        values[series("build_documents", output=output)] = str(_total(counts, "documents"))
        if taken:
            values[series("build_pages", output=output)] = str(taken["pages"])
            values[series("build_reused_pages", output=output)] = str(taken["reused_pages"])
    if name == "examples":
        values[series("build_examples", output=output)] = str(_total(counts, "examples"))
    return values


def _total(counts: Mapping[str, Mapping[str, int]], what: str) -> int:
    return sum(counts.get(split, {}).get(what, 0) for split in ("train", "eval"))


def _number(value: float) -> str:
    return f"{value:.3f}"


def update(path: str, output: str, values: Values) -> None:
    """Writes values to a file of metrics, and keeps what else it says of this and other data sets.

    Raises:
      UnusableInputError, RunFailedError: it cannot be read or written.
    """
    kept = read(path)
    if any(one.name in _OF_SUCCESS for one in values):
        # A stage, or a release, that is no more.
        kept = {one: v for one, v in kept.items() if one.name not in _OF_SUCCESS or not _is_of(one, output)}
    files.write_bytes(path, render(kept | values).encode())


def _is_of(one: Series, output: str) -> bool:
    own = series("", output=output).labels
    return one.labels == own or one.labels.startswith(f"{own},")


def read(path: str) -> Values:
    """The values in a file; none where there is no such file.

    Raises:
      UnusableInputError: it is a file of something else.
    """
    if not files.exists(path):
        return {}
    values = {}
    for line in files.read_bytes(path).decode(errors="replace").split("\n"):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        name = match["name"].removeprefix(_PREFIX) if match else ""
        if match is None or name not in METRICS:
            raise UnusableInputError(
                f"{path}: this file holds something else than maskmill's metrics; name another one."
            )
        values[Series(name=name, labels=match["labels"])] = match["value"]
    return values


def render(values: Values) -> str:
    """The file of these values."""
    lines = []
    for name, help in METRICS.items():
        own = sorted(one for one in values if one.name == name)
        if own:
            lines += [f"# HELP {_PREFIX}{name} {help}", f"# TYPE {_PREFIX}{name} gauge"]
            lines += [f"{_PREFIX}{name}{{{one.labels}}} {values[one]}" for one in own]
    return "\n".join([*lines, ""])
