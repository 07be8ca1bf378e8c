"""Which kernels a command runs. They are compiled before it starts, on all cores, with a bar on a terminal.

A stage that is checked says exactly what it runs (Stage.kernels). Checks may run a kernel before that, to look into a
bz2 file, say; then all that the options ask for is compiled, so that the user waits once.
"""

import importlib
import sys
import time
from collections.abc import Callable, Sequence

from maskmill import compilation
from maskmill.errors import RunFailedError
from pipelines.terminal import console
from pipelines.terminal.progress import Counter, Progress

OF_VERIFY = ("reading.kernels", "records.kernels.frames")
OF_READING = (
    "kernels.crc32c",
    "reading.kernels",
    "masking.kernels.row_masks",
    "masking.kernels.packing",
    "records.kernels.frames",
)


def expect(names: Callable[[], Sequence[str]]) -> None:
    """Say which kernels a command will run, in case that a check runs one; `names` gives them as to `prepare`."""
    compilation.before_first(lambda: prepare(names()))


def warm_up(only: Sequence[str] | None = None) -> None:
    """Remove old machine code, compile what is missing, and say where it is kept. only: as to `prepare`."""
    from maskmill.kernels import cache, compiler

    start = time.monotonic()
    if removed := cache.remove_old():
        print(f"removed {removed} files that were older than {cache.KEPT_DAYS} days")
    count = prepare(only)
    where = ", ".join(map(str, cache.cache_directories()))
    missing = [name for name in compiler.chosen_modules(only) if not cache.is_ready(name)]
    if missing:
        raise RunFailedError(f"Nothing can be kept in {where}; name another directory in NUMBA_CACHE_DIR.")
    took = f"compiled in {time.monotonic() - start:.0f} s" if count else "nothing to compile"
    print(f"{took}; machine code is in {where}")


def load(only: Sequence[str]) -> None:
    """Load the machine code of kernels into this process, for workers that are forks of it. only: as to `prepare`."""
    from maskmill.kernels import compiler
    from maskmill.kernels.python_mode import IN_PYTHON

    if not IN_PYTHON:
        for name in compiler.chosen_modules(only):
            importlib.import_module(name).warm_up()


def prepare(only: Sequence[str] | None) -> int:
    """Compile what is not compiled yet, with a bar; return how many modules of kernels were.

    only: whose kernels, as `maskmill.kernels.compiler.chosen_modules`; None: everything.
    """
    from maskmill.kernels import compiler

    if not (sys.stderr.isatty() and console.is_showing()):
        return compiler.prepare(only)
    step = Counter("compiling")
    with Progress([step]):
        return compiler.prepare(only, lambda done, count: step.tell(done, count, 0))
