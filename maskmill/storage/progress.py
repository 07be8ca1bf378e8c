"""Announce and count the work of steps, for a display that watches the build from outside.

A step announces its work items when it knows them. Its completion records (storage/completions.py) show how many of
them are finished.
"""

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator

from maskmill.storage import completions, files

ANNOUNCED = "plan"  # the kind of the records of announcements
_CLOCK_SLACK_SECONDS = 1  # a file system may round the times of files down


@dataclasses.dataclass(frozen=True, kw_only=True)
class Announced:
    """The work of a step: the number of its items, the bytes that they read, and the time of announcement (epoch s)."""

    pieces: int
    bytes: int
    time: float = dataclasses.field(default=0.0, compare=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finished:
    """The numbers of finished work items of a step: those that this run has made, and those that it has found.

    last: the time when the last one was made (epoch seconds); 0 if none was.
    """

    made: int
    found: int
    last: float = dataclasses.field(default=0.0, compare=False)


def announce(output: str, kind: str, *, pieces: int, size: int, part: str = "") -> None:
    """Record the work of a step: the number of its work items, which together read `size` bytes.

    A step that runs once for each source announces each part under its own name. Displays read local directories only,
    so nothing is written to a store.
    """
    if not files.is_local(output):
        return
    completions.store(output, ANNOUNCED, f"{kind}-{part}" if part else kind, {"pieces": pieces, "bytes": size})


def announced(output: str, kind: str) -> Announced | None:
    """Return the work that a step has announced, all parts together; None before that, and in a store."""
    parts = []
    with contextlib.suppress(OSError), os.scandir(completions.work_path(output, ANNOUNCED, "")) as entries:
        for entry in entries:
            key = entry.name.removesuffix(".json")
            record = completions.load(output, ANNOUNCED, key) if re.fullmatch(rf"{kind}(-.*)?", key) else None
            if record is not None:
                parts.append((record["pieces"], record["bytes"], entry.stat().st_mtime))
    if not parts:
        return None
    pieces, sizes, times = zip(*parts, strict=True)
    return Announced(pieces=sum(pieces), bytes=sum(sizes), time=min(times))


def finished_since(output: str, kind: str, began: float) -> Finished:
    """Return the numbers of work items finished, or found finished, since a time (epoch s), in a local directory."""
    times = list(_records_since(completions.work_path(output, kind, ""), began))
    made = [time for time in times if not completions.is_renewed(time)]
    return Finished(made=len(made), found=len(times) - len(made), last=max(made, default=0) / 1e9)


def _records_since(directory: str, began: float) -> Iterator[int]:
    """Yield the modification time of each record, in nanoseconds of the epoch."""
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            # The closing step may delete a record meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if entry.name.endswith(".json") and entry.stat().st_mtime >= began - _CLOCK_SLACK_SECONDS:
                    yield entry.stat().st_mtime_ns
