"""How much a step has to do and how much of it is done, for whoever watches the build from outside.

A step announces its pieces once it knows them. Its completion records (storage/completions.py) say how many of them
are finished.
"""

import contextlib
import dataclasses
import os
from collections.abc import Iterator

from transforms.storage import completions

_ANNOUNCED = "plan"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Announced:
    """What a step has to do: its number of pieces, and the bytes that they read."""

    pieces: int
    bytes: int


def announce(output: str, kind: str, *, pieces: int, size: int) -> None:
    """Writes down what the step of a kind has to do: so many pieces, which read `size` bytes."""
    completions.store(output, _ANNOUNCED, kind, {"pieces": pieces, "bytes": size})


def announced(output: str, kind: str) -> Announced | None:
    """What the step of a kind has announced, or None where it has not yet."""
    record = completions.load(output, _ANNOUNCED, kind)
    return None if record is None else Announced(pieces=record["pieces"], bytes=record["bytes"])


def finished_since(output: str, kind: str, began: float) -> int:
    """How many pieces of a kind were finished, or found finished, since a moment (seconds of the epoch)."""
    return sum(1 for _ in _records_since(completions.work_path(output, kind, ""), began))


def _records_since(directory: str, began: float) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            # A record can go while we look: the closing step sweeps what no longer fits.
            with contextlib.suppress(FileNotFoundError):
                if entry.name.endswith(".json") and entry.stat().st_mtime >= began - 1:
                    yield entry.name
