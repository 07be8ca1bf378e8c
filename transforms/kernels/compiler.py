"""The decorators of kernels, and their warm-up."""

import concurrent.futures
import importlib
import multiprocessing
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numba

from transforms.kernels.cache import KernelCache, say_that_kernels_are_compiled

_HERE = Path(__file__).resolve().parent


# Nothing calls kernels from C: without `no_cfunc_wrapper` numba compiles a way to do so for each.
_OPTIONS: Mapping[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# They take half of the time, so they come first: then no process is left with one of them while the others are done.
_LONGEST = ("transforms.extraction.kernels.wikitext", "transforms.sentences.kernels.boundaries")
_MOST_PROCESSES = 8  # each takes 250 MB, and more are of no use: one module takes a quarter of the time


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles `function` with numba on first call: no Python objects, GIL released, machine code kept on disk.

    Division by zero follows NumPy's rules; nothing checks array bounds.
    """
    return _compiled(function, _nrt=True)


def lean_kernel(function: Callable[..., Any]) -> Any:
    """Compiles `function` as `kernel` does, but without counting references to arrays, so that it cannot make any.

    It is for functions that take arrays out of named tuples: each field that is looked at would be counted up and down,
    at several times the cost of the look.
    """
    return _compiled(function, _nrt=False)


def inlined_kernel(function: Callable[..., Any]) -> Any:
    """Has numba copy `function` into each kernel that calls it, in place of a call.

    It is for a piece of a large kernel that has a name of its own to be read, and one caller or few: a call would pass
    each array of a named tuple as seven arguments. Each copy costs compile time, the more the larger the caller is.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    njit: Any = numba.njit
    dispatcher = njit(**_OPTIONS, **options)(function)
    dispatcher._cache = KernelCache(dispatcher)
    return dispatcher


def kernel_modules() -> list[str]:
    """The names of all modules that hold kernels: `transforms.kernels.*` and `transforms.STEP.kernels.*`."""
    folders = [_HERE, *sorted(_HERE.parent.glob("*/kernels"))]
    return [
        ".".join((*folder.relative_to(_HERE.parent.parent).parts, module.name))
        for folder in folders
        for module in pkgutil.iter_modules([str(folder)])
        if not module.name.startswith("_")
    ]


def prepare(only: Sequence[str]) -> None:
    """Compiles what a command will run, before it starts: `warm`, which tells the user if there is anything to do.

    Worker processes then find all of it. Otherwise each of them would compile it, and none could tell the user.
    """
    if not only:
        return
    said = say_that_kernels_are_compiled.cache_info().misses
    warm(only)
    if say_that_kernels_are_compiled.cache_info().misses > said:
        sys.stderr.write("maskmill: compiled; the next command starts at once\n")
        sys.stderr.flush()


def chosen_modules(only: Sequence[str] = ()) -> list[str]:
    """The names of the modules that hold kernels, or of some of them.

    only: steps (`extraction`), or the beginnings of their modules' names (`extraction.kernels.wikitext`).
    """
    return [
        name
        for name in kernel_modules()
        if not only or any(f"{name}.".startswith((f"transforms.{o}.", f"transforms.{o}_")) for o in only)
    ]


def warm(only: Sequence[str] = ()) -> list[str]:
    """Compiles every kernel (or loads it, where it is cached); returns the modules' names.

    `only` names what to warm instead of all, as `chosen_modules`.
    """
    warmed = []
    for name in chosen_modules(only):
        module = importlib.import_module(name)
        if hasattr(module, "warm_up"):
            module.warm_up()
            warmed.append(name)
    return warmed


def warm_in_parallel(only: Sequence[str]) -> list[str]:
    """Does what `warm` does, in a process for each core, which say nothing."""
    in_order = sorted(chosen_modules(only), key=lambda name: name not in _LONGEST)
    count = min(os.cpu_count() or 1, _MOST_PROCESSES)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(count, mp_context=context) as processes:
        warmed = processes.map(warm, [[name.removeprefix("transforms.")] for name in in_order])
        return sorted(name for of_module in warmed for name in of_module)
