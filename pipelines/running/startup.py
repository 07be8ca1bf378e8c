"""What every process of maskmill's does first."""

import atexit
import gc
import logging

# Objects between two collections of the youngest generation, and of those between two of the next.
_THRESHOLDS = (50_000, 50, 50)


def collect_garbage_rarely() -> None:
    """Make Python look for cycles of garbage less often, and not at all when the process ends.

    The imports of Beam, NumPy and numba make hundreds of thousands of objects that live as long as the process. At its
    default Python walks through all of them again and again while they are made, 0.4 s of 3 s of CPU, and another 0.5 s
    to take them apart at its end.
    """
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)


def hide_bigquery_warning() -> None:
    """Hide what Beam logs when it is imported without its extra [gcp]: that it has no client for BigQuery."""
    logging.getLogger().addFilter(lambda record: not record.getMessage().startswith("apitools not found"))
