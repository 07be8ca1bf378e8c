"""What every process of maskmill's does first."""

import gc
import logging

# Objects between two collections of the youngest generation, and of those between two of the next.
_THRESHOLDS = (50_000, 50, 50)


def collect_garbage_rarely() -> None:
    """Makes Python look for cycles of garbage less often.

    The imports of Beam, NumPy and numba make hundreds of thousands of objects that live as long as the process. At its
    default Python walks through all of them again and again while they are made: 0.4 s of 3 s of CPU.
    """
    gc.set_threshold(*_THRESHOLDS)


def hide_bigquery_warning() -> None:
    """Hides what Beam logs when it is imported without its extra [gcp]: that it has no client for BigQuery."""
    logging.getLogger().addFilter(lambda record: not record.getMessage().startswith("apitools not found"))


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
