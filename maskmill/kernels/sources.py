"""The hash of what the machine code of a module of kernels depends on: its sources and the compiler.

numba compiles into a kernel all that it reaches: functions and constants of its module and of those that are imported.
The hash covers the sources of all of these, whole. Tables that are read from data files are not covered: kernels take
those as arguments.
"""

import functools
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import numba
import numpy as np

# What decides about machine code beside the sources and the processor.
_FLAGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "DISABLE_INTEL_SVML",
    "LLVM_REFPRUNE_FLAGS",
    "LLVM_REFPRUNE_PASS",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
)

# The packages that hold kernels.
PACKAGES = ("maskmill",)
_OURS = rf"(?:{'|'.join(PACKAGES)})\b[\w.]*"
_IMPORT = re.compile(rf"^(?:from ({_OURS}) import (\([^)]*\)|.*)|import ({_OURS}))", re.MULTILINE)


@functools.cache
def stamp(module: str, triple: str, processor: str, features: str) -> str:
    """Return a hash, in hexadecimal digits, of all that the machine code of a module's kernels depends on.

    Args:
      module: its name, as in sys.modules.
      triple, processor, features: what is compiled for, as numba names it.
    """
    # Of NumPy numba knows the layout of arrays, which stays the same within a minor version.
    numpy = np.__version__.rpartition(".")[0]
    versions = (numba.__version__, llvmlite.__version__, numpy, sys.implementation.cache_tag)
    flags = [f"{name}={getattr(numba.config, name, None)!r}" for name in _FLAGS]
    digest = hashlib.sha256(repr((versions, flags, triple, processor, features)).encode())
    for name in [module, *sorted(reached(module) - {module})]:
        digest.update(name.encode() + b"\0" + hashlib.sha256(source(name)).digest())
    return digest.hexdigest()


@functools.cache
def reached(module: str) -> frozenset[str]:
    """Return the names of the modules of ours that a module imports, directly or not, and its own."""
    names = {module: None}
    for name in (pending := list(names)):  # grows meanwhile
        new = [other for other in _imports(source(name).decode()) if other not in names]
        names |= dict.fromkeys(new)
        pending.extend(new)
    return frozenset(names)


def _imports(source: str) -> Iterator[str]:
    for package, names, module in _IMPORT.findall(source):
        yield from _prefixes(package or module)
        for name in re.findall(r"\w+", names):
            if _file(f"{package}.{name}") is not None:
                yield f"{package}.{name}"


def _prefixes(module: str) -> Iterator[str]:
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


@functools.cache
def _file(module: str) -> Path | None:
    if module.partition(".")[0] not in PACKAGES:
        path = getattr(sys.modules.get(module), "__file__", None)
        return Path(path) if path else None
    # Found without importing the packages above it.
    path = Path(__file__).parents[2].joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@functools.cache
def source(module: str) -> bytes:
    """Return the source of a module of ours; empty where there is none."""
    path = _file(module)
    return b"" if path is None else path.read_bytes()
