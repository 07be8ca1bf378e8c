"""The decorators of kernels, and their warm-up."""

import contextlib
import gc
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from maskmill.errors import RunFailedError
from maskmill.kernels import cache, processor, sources
from maskmill.kernels.dispatchers import Kernel
from maskmill.kernels.python_mode import IN_PYTHON, in_python

if not IN_PYTHON:
    processor.choose()

_HOME = Path(__file__).resolve().parents[2]

# Nothing calls kernels from C: without `no_cfunc_wrapper` numba compiles a way to do so for each.
_OPTIONS: Mapping[str, Any] = {
    "nopython": True, "boundscheck": None, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True,
}  # fmt: skip

_SECONDS_BETWEEN_LOOKS = 0.1
_MOST_PROCESSES = 8  # each takes up to 400 MB, and more are of no use: one module takes a quarter of the time
# The garbage collector would take a fifth of the time: numba makes millions of objects that live long.
_OBJECTS_BETWEEN_COLLECTIONS = (50_000, 50, 50)

# What a process of `prepare` runs, with the names of modules as arguments.
_COMPILE = "import sys; from maskmill.kernels import compiler; compiler.compile_in_this_process(sys.argv[1:])"

# Called with how many modules of how many are compiled.
Progress = Callable[[int, int], None]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with numba on first call: no Python objects, GIL released, machine code kept on disk.

    Division by zero follows NumPy's rules; nothing checks array bounds.
    """
    return _compiled(function, _nrt=True)


def lean_kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` as `kernel` does, but without counting references to arrays, so that it cannot make any.

    It is for functions that take arrays out of named tuples: each field that is looked at would be counted up and down,
    at several times the cost of the look.
    """
    return _compiled(function, _nrt=False)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Have numba copy `function` into each kernel that calls it, in place of a call.

    It is for a piece of a large kernel that has a name of its own to be read, and one caller or few: a call would pass
    each array of a named tuple as seven arguments. Each copy costs compile time, the more the larger the caller is.
    """
    return _compiled(function, inline="always")


def _compiled(function: Any, **options: Any) -> Any:
    if IN_PYTHON:
        return in_python(function)
    dispatcher: Any = Kernel(function, {**_OPTIONS, **options})
    dispatcher._cache = cache.KernelCache(dispatcher)
    return dispatcher


def kernel_modules() -> list[str]:
    """Return the names of all modules that hold kernels: those in `kernels/`, and in the `kernels/` of each room."""
    found = (folder for package in sources.PACKAGES for folder in sorted((_HOME / package).glob("*/kernels")))
    folders = [_HOME / sources.PACKAGES[0] / "kernels", *found]
    return [
        ".".join((*folder.relative_to(_HOME).parts, module.name))
        for folder in folders
        for module in pkgutil.iter_modules([str(folder)])
        if not module.name.startswith("_")
    ]


def chosen_modules(only: Sequence[str] | None = None) -> list[str]:
    """Return the names of the modules with a warm-up, or of some of them: of those with kernels that Python calls.

    only: rooms (`extraction`), or the beginnings of their modules' names (`extraction.kernels.wikitext`); None: all.

    Raises:
      ValueError: no module has a name of `only`, which would not be compiled before the workers start.
    """
    names = kernel_modules()
    chosen = names if only is None else []
    for one in dict.fromkeys(only or ()):
        found = [name for name in names if f"{name.partition('.')[2]}.".startswith(f"{one}.")]
        if not found:
            raise ValueError(f"{one!r} names no module with kernels; name a room, or the beginning of a module's name.")
        chosen += found
    return [name for name in names if name in chosen and b"\ndef warm_up(" in sources.source(name)]


def prepare(only: Sequence[str] | None = None, progress: Progress | None = None) -> int:
    """Compile what a command will run and no directory has, before it starts, on all cores; tell the user so.

    Worker processes then find all of it. Otherwise each of them would compile it, and none could tell the user.

    Args:
      only: what the command runs, as `chosen_modules`; None: everything.
      progress: called with the numbers of modules that are ready and of all that it compiles.

    Returns:
      The number of modules that were compiled.

    Raises:
      RunFailedError: the compiler did not end well.
    """
    if IN_PYTHON:
        return 0
    cold = [name for name in chosen_modules(only) if not cache.is_ready(name)]
    if not cold or not cache.can_be_written():
        return 0  # if anything is cold, then each process compiles what it calls, and says so
    parts = _parts(cold)
    sys.stderr.write(
        f"maskmill: compiling {len(cold)} of {len(chosen_modules())} modules for this kind of processor, once, "
        f"to be kept in {cache.user_directory()}\n"
    )
    sys.stderr.flush()
    _compile_in_processes(parts, lambda: progress and progress(sum(map(cache.is_ready, cold)), len(cold)))
    return len(cold)


def compile_in_this_process(names: Sequence[str]) -> None:
    """Compile the kernels of some modules, as the work of one process of `prepare`."""
    gc.set_threshold(*_OBJECTS_BETWEEN_COLLECTIONS)
    for name in names:
        module = importlib.import_module(name)
        with cache.making_ready(name):
            module.warm_up()


# CPython keeps the frames of Python's functions in chunks of 16 kB, and gives each back once it is empty. numba's calls
# are deep, and a loop that ends up at the edge of a chunk maps and unmaps one at each call: a million times for
# wikitext, a quarter of its CPU time. A frame that asks for 8 MB gets a chunk of 16, with room for all above it.
compile_in_this_process.__code__ = compile_in_this_process.__code__.replace(co_stacksize=(1 << 20) + 1)


def _work(name: str) -> int:
    """Return how much work a module is to compile: the bytes of all that is compiled into its kernels."""
    return sum(len(sources.source(module)) for module in sources.reached(name))


def _parts(names: Sequence[str]) -> list[list[str]]:
    """Deal modules to processes, the most work first, each to the one that has least to do."""
    parts: list[list[str]] = [[] for _ in range(min(os.cpu_count() or 1, _MOST_PROCESSES, len(names)))]
    for name in sorted(names, key=_work, reverse=True):
        min(parts, key=lambda part: sum(map(_work, part))).append(name)
    return parts


def _compile_in_processes(parts: Sequence[Sequence[str]], look: Callable[[], object]) -> None:
    """Compile each part in a process of its own, and call `look` meanwhile and at the end.

    The processes are not multiprocessing's, which would run the main module of a user's program again. They run with
    `-P`, because the current directory may have packages of the names of ours.
    """
    paths = os.pathsep.join(filter(None, (str(_HOME), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    with contextlib.ExitStack() as opened:
        said = [opened.enter_context(tempfile.TemporaryFile()) for _ in parts]
        running = [
            subprocess.Popen([sys.executable, "-P", "-c", _COMPILE, *part], env=environment, stdin=subprocess.DEVNULL,
                             stdout=file, stderr=file)
            for part, file in zip(parts, said, strict=True)
        ]  # fmt: skip
        try:
            while any(process.poll() is None for process in running):
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                look()
            for process, file in zip(running, said, strict=True):
                if process.returncode != 0:
                    file.seek(0)
                    lines = file.read().decode(errors="replace").split("\n")
                    why = next((line for line in reversed(lines) if line), f"exit code {process.returncode}")
                    raise RunFailedError(f"Compiling failed ({why}); run the command again, or set NUMBA_CACHE_DIR.")
        finally:
            for process in running:
                process.kill()
                process.wait()
