"""How much work a step has and how much of it is done, for a display that watches the build from outside.

A step announces its pieces once it knows them. Its completion records (storage/completions.py) tell how many of them
are finished.
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
    """The work of a step: its number of pieces, the bytes that they read, and when it was announced (epoch seconds)."""

    pieces: int
    bytes: int
    time: float = dataclasses.field(default=0.0, compare=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finished:
    """How many pieces of a step are finished: those that this run has made, and those that it has found.

    last: when the last one was made (epoch seconds); 0 if none was.
    """

    made: int
    found: int
    last: float = dataclasses.field(default=0.0, compare=False)


def announce(output: str, kind: str, *, pieces: int, size: int, part: str = "") -> None:
    """Record the work of the step of a kind: its number of pieces, which together read `size` bytes.

    A step that a build has more than once, for a source each, announces each part under a name of its own. No display
    looks into a store, so nothing is written there.
    """
    if not files.is_local(output):
        return
    completions.store(output, ANNOUNCED, f"{kind}-{part}" if part else kind, {"pieces": pieces, "bytes": size})


def announced(output: str, kind: str) -> Announced | None:
    """Return the work that the step of a kind has announced, all parts together; None before it does.

    Only local outputs are looked at.
    """
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
    """Return how many pieces of a kind were finished, or found finished, since a time in seconds of the epoch.

    Only local outputs are looked at.
    """
    times = list(_records_since(completions.work_path(output, kind, ""), began))
    made = [time for time in times if not completions.is_renewed(time)]
    return Finished(made=len(made), found=len(times) - len(made), last=max(made, default=0) / 1e9)


def _records_since(directory: str, began: float) -> Iterator[int]:
    """Yield when each record was last changed, in nanoseconds of the epoch."""
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            # The closing step may delete a record meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if entry.name.endswith(".json") and entry.stat().st_mtime >= began - _CLOCK_SLACK_SECONDS:
                    yield entry.stat().st_mtime_ns
