"""Settings that every process of maskmill makes first."""

import atexit
import gc
import logging

# Allocations before a collection of the youngest generation; collections of it before one of the next; and so on.
_THRESHOLDS = (50_000, 50, 50)


def collect_garbage_rarely() -> None:
    """Make Python look for cycles of garbage less often, and not at all when the process ends.

    The imports of Beam, NumPy and numba make hundreds of thousands of objects that live as long as the process. With
    its defaults, Python walks through all of them again and again meanwhile (0.4 s of 3 s of CPU), and takes another
    0.5 s at its end.
    """
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)


def _is_not_of_bigquery(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("apitools not found")


def hide_bigquery_warning() -> None:
    """Hide Beam's log message of its import without the extra [gcp]: that it has no client for BigQuery."""
    logging.getLogger().addFilter(_is_not_of_bigquery)
