"""Metrics of a data set's builds in Prometheus' text format, for the textfile collector of node_exporter.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. The file is written whole, so that no
collector reads half of it. What a run does not know stays as an earlier one wrote it: after a build that failed, the
time of the last success is still there.
"""

import datetime
import re
from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.events.event_summary import Ended, Told

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
_LINE = re.compile(r"maskmill_(\w+)\{.*\} \S+")
_OF_STAGES = ("build_stage_duration_seconds", "build_bytes", "build_shards", "build_reused_shards")
_OF_SUCCESS = (*_OF_STAGES, "build_info", "build_documents", "build_examples", "build_pages", "build_reused_pages")

# A metric with its labels, as they stand in the file, and its value.
Values = dict[str, str]


def _series(name: str, **labels: str) -> str:
    """A metric with labels in the order in which they are given."""
    return f"{_PREFIX}{name}{{{_labels(**labels)}}}"


def _labels(**labels: str) -> str:
    return ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def of_build(output: str, told: Told, ended: Ended) -> Values:
    """The values after a build.

    output: the directory of the build file, which tells data sets apart. told: of the build. ended: how it ended.
    """
    summary, now = told.summary, _number(told.time)
    values = of_check(output, told.time) | {
        _series("build_last_run_timestamp_seconds", output=output): now,
        _series("build_exit_status", output=output): str(ended.exit_status),
        _series("build_duration_seconds", output=output): _number(told.time - told.began),
    }
    if ended.exit_status or not summary["complete"]:
        return values  # one stage of several is no success yet
    values[_series("build_last_success_timestamp_seconds", output=output)] = now
    for name, stage in summary["stages"].items():
        values |= _of_stage(output, name, stage)
    release, version = str(summary["release"] or ""), str(summary["maskmill"])
    values[_series("build_info", output=output, release=release, version=version)] = "1"
    date = str(summary["dump"].get("date", ""))
    if date:
        try:
            day = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.UTC)
        except ValueError:
            return values  # of a corpus whose date is a name
        values[_series("build_dump_timestamp_seconds", output=output)] = _number(day.timestamp())
    return values


def of_check(output: str, now: float) -> Values:
    """The values after a look that found nothing new."""
    return {_series("last_check_timestamp_seconds", output=output): _number(now)}


def _of_stage(output: str, name: str, stage: Mapping[str, Any]) -> Values:
    of_stage = {"build_stage_duration_seconds": _number(stage["seconds"])}
    of_build = {}
    if "counts" in stage:
        counts, taken = stage["counts"], stage["reused"] or {}
        of_stage |= {"build_bytes": str(stage["bytes"]), "build_shards": str(stage["shards"])}
        if taken:
            of_stage["build_reused_shards"] = str(taken["reused_shards"])
        if name == "extract":
            of_build["build_documents"] = _total(counts, "documents")
        if name == "extract" and taken:
            of_build |= {f"build_{what}": str(taken[what]) for what in ("pages", "reused_pages")}
        if name == "examples":
            of_build["build_examples"] = _total(counts, "examples")
    return {_series(metric, output=output, stage=name): value for metric, value in of_stage.items()} | {
        _series(metric, output=output): value for metric, value in of_build.items()
    }


def _total(counts: Mapping[str, Mapping[str, int]], what: str) -> str:
    return str(sum(counts.get(split, {}).get(what, 0) for split in ("train", "eval")))


def _number(value: float) -> str:
    return f"{value:.3f}"


def update(path: str, output: str, values: Values) -> None:
    """Writes values to a file of metrics, and keeps what else it says of this and other data sets.

    Raises:
      UnusableInputError, RunFailedError: it cannot be read or written.
    """
    kept = read(path)
    of_success = tuple(f"{_PREFIX}{name}{{" for name in _OF_SUCCESS)
    if any(one.startswith(of_success) for one in values):
        # A stage, or a release, that is no more.
        own = tuple(f"{name}{_labels(output=output)}{end}" for name in of_success for end in ",}")
        kept = {one: value for one, value in kept.items() if not one.startswith(own)}
    files.write_bytes(path, render(kept | values).encode())


def read(path: str) -> Values:
    """The values in a file; none if there is no such file.

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
        if match is None or match[1] not in METRICS:
            raise UnusableInputError(
                f"{path}: this file holds something else than maskmill's metrics; name another one."
            )
        one, _, value = line.rpartition(" ")
        values[one] = value
    return values


def render(values: Values) -> str:
    """The file of these values."""
    lines = []
    for name, help in METRICS.items():
        own = sorted(one for one in values if one.startswith(f"{_PREFIX}{name}{{"))
        if own:
            lines += [f"# HELP {_PREFIX}{name} {help}", f"# TYPE {_PREFIX}{name} gauge"]
            lines += [f"{one} {values[one]}" for one in own]
    return "\n".join([*lines, ""])
