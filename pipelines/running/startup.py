"""What every process of maskmill's does first."""

import atexit
import contextlib
import functools
import gc
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

# Objects between two collections of the youngest generation, and of those between two of the next.
_THRESHOLDS = (50_000, 50, 50)

# What Beam imports if it is installed, and does without if it is not; the local runner needs none of it.
UNUSED_BY_BEAM = (
    # Google's client libraries; apitools is the old one, whose errors Beam looks for.
    *(f"apache_beam.io.gcp.{name}" for name in ("bigquery", "gcsfilesystem", "gcsio", "pubsub")),
    "google.cloud.dataflow",
    "apitools",
    # Elements that are data frames or Arrow's tables, sources and sinks that are databases or Parquet.
    "pandas",
    "pyarrow",
    "bson",
)


def collect_garbage_rarely() -> None:
    """Makes Python look for cycles of garbage less often, and not at all when the process ends.

    The imports of Beam, NumPy and numba make hundreds of thousands of objects that live as long as the process. At its
    default Python walks through all of them again and again while they are made, 0.4 s of 3 s of CPU, and another 0.5 s
    to take them apart at its end.
    """
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)


def hide_bigquery_warning() -> None:
    """Hides what Beam logs when it is imported without its extra [gcp]: that it has no client for BigQuery."""
    logging.getLogger().addFilter(lambda record: not record.getMessage().startswith("apitools not found"))


@functools.cache
def import_beam_for_local_runner() -> None:
    """Imports Beam without what the local runner does not need: 0.3 s of CPU instead of 1 s if all is installed.

    What is left out can be imported afterwards.
    """
    with _as_if_missing(UNUSED_BY_BEAM):
        logging.disable(logging.WARNING)  # Beam would warn that it cannot read MongoDB
        try:
            import apache_beam.transforms.core
        finally:
            logging.disable(logging.NOTSET)
    # Beam looks at the signatures of each method of each step a dozen times: 0.15 s of CPU in `extract`.
    core: Any = apache_beam.transforms.core
    core.get_function_args_defaults = _remembered(core.get_function_args_defaults)


def _remembered(look: Callable[[Callable[..., Any]], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Remembers what `look` says of a function."""
    known = functools.cache(look)

    def look_once(function: Callable[..., Any]) -> Any:
        return known(function) if isinstance(function, (FunctionType, MethodType)) else look(function)

    return look_once


@contextlib.contextmanager
def _as_if_missing(names: Sequence[str]) -> Iterator[None]:
    """Lets imports of modules fail in this block as if they were not installed, which Beam is prepared for.

    Modules that are imported already stay.
    """
    left_out = [name for name in names if name not in sys.modules]
    sys.modules |= dict.fromkeys(left_out)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in left_out:
            del sys.modules[name]
