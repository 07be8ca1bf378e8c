"""What every process of maskmill's does first."""

import contextlib
import gc
import logging
import sys
from collections.abc import Iterator

# Objects between two collections of the youngest generation, and of those between two of the next.
_THRESHOLDS = (50_000, 50, 50)

# Modules of Beam that import Google's client libraries.
_OF_GOOGLE = tuple(f"apache_beam.io.gcp.{name}" for name in ("bigquery", "gcsfilesystem", "gcsio", "pubsub"))


def collect_garbage_rarely() -> None:
    """Makes Python look for cycles of garbage less often.

    The imports of Beam, NumPy and numba make hundreds of thousands of objects that live as long as the process. At its
    default Python walks through all of them again and again while they are made: 0.4 s of 3 s of CPU.
    """
    gc.set_threshold(*_THRESHOLDS)


def hide_bigquery_warning() -> None:
    """Hides what Beam logs when it is imported without its extra [gcp]: that it has no client for BigQuery."""
    logging.getLogger().addFilter(lambda record: not record.getMessage().startswith("apitools not found"))


@contextlib.contextmanager
def without_cloud_libraries() -> Iterator[None]:
    """Leaves Google's client libraries out where Beam is imported in this block: 0.4 s of 0.9 s of CPU.

    transforms/storage/files.py imports them when the first path needs them.
    """
    left_out = [name for name in _OF_GOOGLE if name not in sys.modules]
    # An import of them now fails as if they were not installed, which Beam is prepared for.
    sys.modules |= dict.fromkeys(left_out)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]


def first_line(name: str, *, files: int, size: int, output: str) -> str:
    """What a command that takes long says before it imports Beam, so that something is seen at once.

    >>> first_line("extract", files=1, size=29_386_698, output="out")
    'extract: 1 file, 29.4 MB, into out'
    """
    amount, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{name}: {files:,} file{'' if files == 1 else 's'}, {amount:.3g} {unit}, into {output}"
