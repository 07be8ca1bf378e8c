"""Compiled kernels. `from transforms.kernels import kernel` decorates a function that numba compiles.

Kernels take and return NumPy arrays and scalars, never Python objects; they release the GIL. Their machine code is
kept on disk, so that a second process does not compile again. A module of this package may define `warm_up()`, which
calls each of its entry kernels once on tiny arrays of the types that callers use; `python -m transforms.kernels` runs
them all, which is how an image is pre-warmed.

Where the machine code is kept: in `$NUMBA_CACHE_DIR` where that is set; else beside the sources, in the user's cache
directory, or in the temporary directory. It is read from any of them and written to the first that can be written, so
a read-only install without a home directory works, pre-warmed or not. It fits the kind of CPU that made it: pin
`NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` when an image is made and when it runs, to use it on other kinds.
"""

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import logging
import os
import pickle
import pkgutil
import re
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator

_HERE = Path(__file__).resolve().parent
_log = logging.getLogger(__name__)


# Nothing calls kernels from C: without `no_cfunc_wrapper` numba compiles a way to do so for each.
_OPTIONS: Mapping[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles `function` with numba on first call: no Python objects, GIL released, machine code kept on disk.

    Division by zero follows NumPy's rules; nothing checks array bounds.
    """
    return _compiled(function, _nrt=True)


def lean_kernel(function: Callable[..., Any]) -> Any:
    """Compiles `function` as `kernel` does, but without counting references to arrays, so that it cannot make any.

    It is for functions that take many arrays apart, such as named tuples of them: each field that is looked at would be
    counted up and down, at several times the cost of the look. (`_nrt` is numba's name for that; 0.61 to 0.68 have it.)
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
    dispatcher._cache = _KernelCache(function)
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


def warm(only: Sequence[str] = ()) -> list[str]:
    """Compiles every kernel (or loads it, where it is cached); returns the modules' names.

    `only` names steps (`extraction`) to warm instead of all.
    """
    warmed = []
    for name in kernel_modules():
        if only and name.split(".")[1] not in only:
            continue
        module = importlib.import_module(name)
        if hasattr(module, "warm_up"):
            module.warm_up()
            warmed.append(name)
    return warmed


@functools.cache
def cache_directories() -> tuple[Path, ...]:
    """The directories that machine code is looked for in, and written to, in this order."""
    # Read once a process: where code is cached is no option of any step.
    given = os.environ.get("NUMBA_CACHE_DIR")
    install = hashlib.sha256(str(_HERE).encode()).hexdigest()[:12]
    if given:
        return (Path(given) / f"maskmill-{install}",)
    directories = [_HERE / "__pycache__"]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(home):
        directories.append(Path(home) / f"maskmill-{install}")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    directories.append(Path(tempfile.gettempdir()) / f"maskmill-{user}-{install}")
    return tuple(directories)


def _is_trusted(directory: Path) -> bool:
    """Whether code from a directory may be run: in a shared temporary directory anyone can make one."""
    if directory.parent != Path(tempfile.gettempdir()):
        return True
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return True
    mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return stat.S_ISDIR(status.st_mode) and mine and not status.st_mode & 0o022


@functools.cache
def _source_closure(module: str) -> frozenset[str]:
    """A module of ours and all of ours that it imports, found in their source text."""
    found = {module}
    todo = [module]
    while todo:
        spec = importlib.util.find_spec(todo.pop())
        if spec is None or spec.origin is None:
            continue
        for match in re.finditer(rb"^(?:from|import) (transforms[\w.]*)", Path(spec.origin).read_bytes(), re.M):
            name = match[1].decode()
            if name not in found:
                found.add(name)
                todo.append(name)
    return frozenset(found)


@functools.cache
def _source_stamp(module: str) -> str:
    """A hash of all source that a module's machine code is made of: numba itself looks only at the one file."""
    digest = hashlib.sha256()
    for name in sorted(_source_closure(module)):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            digest.update(name.encode() + b"\n" + Path(spec.origin).read_bytes())
    return digest.hexdigest()


class _Locator(_CacheLocator):
    """Tells numba how the cached code of a function is named; where it lies is up to _KernelCache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._py_file = function.__code__.co_filename

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator":
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(cache_directories()[0])

    def get_source_stamp(self) -> str:
        return _source_stamp(self._function.__module__)

    def get_disambiguator(self) -> str:
        return "kernel"


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes: list[Any] = [_Locator]  # noqa: RUF012 (as the base class declares it)


class _KernelCache(FunctionCache):
    """numba's cache, over several directories of which some can only be read."""

    _impl_class = _KernelCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._files = {
            directory: IndexDataCacheFile(
                cache_path=str(directory), filename_base=self._impl.filename_base, source_stamp=stamp
            )
            for directory in cache_directories()
        }

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        for directory, file in self._files.items():
            if not _is_trusted(directory):
                continue
            try:
                data = file.load(key)
            except OSError as error:
                _log.debug("%s: the kernels' cache cannot be read (%s)", directory, error)
                continue
            except (EOFError, pickle.UnpicklingError) as error:
                # A crash of the machine can leave an empty file; without an index all is compiled and kept again.
                _log.info("%s: the kernels' cache is damaged (%s); it is made anew", directory, error)
                with contextlib.suppress(OSError):
                    file.flush()
                continue
            if data is not None:
                return self._impl.rebuild(target_context, data)
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._impl.check_cachable(data):
            return
        key = self._index_key(sig, data.codegen)
        reduced = self._impl.reduce(data)
        for directory, file in self._files.items():
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                if _is_trusted(directory):
                    file.save(key, reduced)
                    return
            except OSError as error:
                # A cache that cannot be written costs the next process its compile time, nothing else.
                _log.debug("%s: the kernels' cache cannot be written (%s)", directory, error)
        _log.warning("No directory can keep compiled kernels: each process compiles anew. Set NUMBA_CACHE_DIR.")
