"""Machine code on disk: a file for each kernel that Python calls and each list of argument types.

A file is named after the kernel, the stamp of all that its machine code depends on (maskmill.kernels.sources), and a
hash of the argument types. Several installs and versions share a directory: they find what they have in common, and
leave each other's files alone. A file is the sha256 (32 bytes) of its rest, then numba's own form of the machine code,
pickled. Beside them a file MODULE-STAMP.ready says that all kernels of a module are there, and names their files.

Code is looked for in the package, where a wheel brings it (machine_code/), and in the user's directory, to which it is
written: `maskmill` in `$NUMBA_CACHE_DIR` where that is set; else `maskmill/kernels` in the user's cache directory
(`$XDG_CACHE_HOME` or `~/.cache`).
"""

import contextlib
import functools
import hashlib
import logging
import multiprocessing
import os
import pickle
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.core.types import BaseNamedTuple, BaseTuple

from maskmill import compilation
from maskmill.errors import RunFailedError
from maskmill.kernels import sources

KEPT_DAYS = 60

# Where `setup.py` puts the machine code of a wheel.
PACKAGED = Path(__file__).with_name("machine_code")

_SUFFIX = ".machine-code"
_READY = ".ready"
_TEMPORARY = ".incomplete"
_HASH_DIGITS = 16
_DIGEST = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)


class KernelCache(NullCache):
    """The cache of one kernel's machine code: numba looks there before it compiles, and keeps the code afterwards."""

    def __init__(self, kernel: Dispatcher) -> None:
        self._kernel = kernel

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the machine code for a list of argument types, or None where no directory has it."""
        # numba's own refresh() imports all that it can compile, SciPy too where it is installed: 0.3 s for nothing.
        rtsys.initialize(target_context)
        name = self._file_name(sig)
        payload = _find(name)
        if payload is None and not _ready_soon:
            if compilation.begin():
                payload = _find(name)
            else:
                _tell_of_compiling()
        return None if payload is None else CompileResult._rebuild(target_context, *payload)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the machine code for a list of argument types, where the directory takes it."""
        name = self._file_name(sig)
        if data.library.has_dynamic_globals:
            _log.warning("%s refers to a place in this process's memory: each process compiles it anew.", name)
            return
        content = dumps(data._reduce())
        if not _write(name, hashlib.sha256(content).digest() + content):
            _log.warning("No directory can keep compiled kernels: each process compiles anew. Set NUMBA_CACHE_DIR.")

    def _file_name(self, signature: Any) -> str:
        arguments = _describe_types(normalize_signature(signature)[0])
        function = self._kernel.py_func
        name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        call = hashlib.sha256(repr((arguments, self._kernel.targetoptions)).encode()).hexdigest()
        name = f"{name}-{_stamp(function.__module__)}-{call[:_HASH_DIGITS]}{_SUFFIX}"
        _used.add(name)
        return name


@functools.cache
def _tell_of_compiling() -> None:
    """Say once in a process why it is silent now, unless it is a worker."""
    if multiprocessing.parent_process() is None:
        sys.stderr.write("maskmill: compiling what this command runs, which `maskmill warm-up` does beforehand\n")
        sys.stderr.flush()


# The names of the files that this process looked for, and the modules that are made ready.
_used: set[str] = set()
_ready_soon: set[str] = set()


def is_ready(module: str) -> bool:
    """Return whether the machine code of all kernels of a module is there."""
    is_noted = _path_of(f"{module}-{_stamp(module)}{_READY}") is not None
    return is_noted and all(_path_of(name) is not None for name in ready_files(module))


def ready_files(module: str) -> list[str]:
    """Return the names of the files of a module's kernels, once all are there."""
    path = _path_of(f"{module}-{_stamp(module)}{_READY}")
    return [] if path is None else path.read_text().split()


def export(modules: Sequence[str], folder: Path) -> None:
    """Copy the machine code of modules to a folder.

    Raises:
      RunFailedError: it is not there, because no directory can keep it.
    """
    for module in modules:
        if not is_ready(module):
            raise RunFailedError(f"No machine code of {module} is kept; name a directory in NUMBA_CACHE_DIR.")
        for path in map(_path_of, [f"{module}-{_stamp(module)}{_READY}", *ready_files(module)]):
            if path is not None:
                (folder / path.name).write_bytes(path.read_bytes())


@contextlib.contextmanager
def making_ready(module: str) -> Iterator[None]:
    """Note that all kernels of a module are there once the block, which calls each of them, has ended."""
    before = set(_used)
    _ready_soon.add(module)
    yield
    _write(f"{module}-{_stamp(module)}{_READY}", "".join(f"{n}\n" for n in sorted(_used - before)).encode())


def _stamp(module: str) -> str:
    triple, processor, features = cpu_target.target_context.codegen().magic_tuple()
    return sources.stamp(module, triple, processor, features)[:_HASH_DIGITS]


def _describe_types(numba_types: Iterable[Any]) -> str:
    """Return a text that two lists of numba's types share only where they give the same machine code."""
    return ", ".join(map(_describe_type, numba_types))


def _describe_type(numba_type: Any) -> str:
    kind = type(numba_type)
    if not issubclass(kind, BaseTuple):
        return f"{kind.__qualname__} {numba_type}"
    text = f"{kind.__qualname__}({_describe_types(numba_type.types)})"
    if issubclass(kind, BaseNamedTuple):
        # numba's own text leaves out the module of the class and the order of its fields.
        record = numba_type.instance_class
        text += f" {record.__module__}.{record.__qualname__}{record._fields}"
    return text


@functools.cache
def cache_directories() -> tuple[Path, ...]:
    """Return the directories that machine code is looked for in, in this order: the package's, then the user's."""
    return (*((PACKAGED,) if PACKAGED.is_dir() else ()), user_directory())


@functools.cache
def user_directory() -> Path:
    """Return the directory that machine code is written to."""
    # Read once a process: where code is cached is no option of any step.
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / "maskmill"
    # A user without a home has none: no file can be below a device.
    places = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"), os.devnull)
    return Path(next(place for place in places if os.path.isabs(place))) / "maskmill" / "kernels"


def can_be_written() -> bool:
    """Return whether machine code can be kept."""
    name = f"{uuid.uuid4().hex}{_TEMPORARY}"
    if not _write(name, b""):
        return False
    (user_directory() / name).unlink(missing_ok=True)
    return True


def remove_old() -> int:
    """Remove the files that are older than KEPT_DAYS, of whatever version; returns their number."""
    before, removed = time.time() - KEPT_DAYS * 24 * 60 * 60, 0
    for suffix in (_SUFFIX, _READY, _TEMPORARY):
        for path in user_directory().glob(f"*{suffix}"):
            # Another process may remove it, or a cache be read-only.
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
    return removed


def _path_of(name: str) -> Path | None:
    """Return where the file of a name is; None where no directory has it."""
    paths = (directory / name for directory in cache_directories())
    return next((path for path in paths if path.exists()), None)


def _find(name: str) -> Any:
    """Return what the file of a name holds in the first directory that has it; None where none has."""
    for directory in cache_directories():
        if (payload := _read(directory / name)) is not None:
            return payload
    return None


def _read(path: Path) -> Any:
    """Return what a file holds, or None where it is missing or cannot be used; it is then made anew."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.debug("%s: the kernels' cache cannot be read (%s)", path, error)
        return None
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        # A crash of the machine can leave an empty file, or one with holes.
        _log.info("%s is damaged; it is made anew", path)
        return None
    try:
        return pickle.loads(memoryview(content)[_DIGEST:])
    except (ImportError, AttributeError) as error:
        # It names modules and classes that numba needs with it, and that another version had elsewhere.
        _log.info("%s is of another version (%s); it is made anew", path, error)
        return None


def _write(name: str, content: bytes) -> bool:
    """Write a file that other processes see whole or not at all; whether it could be written."""
    path = user_directory() / name
    temporary = path.with_name(f"{name}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        # A cache that cannot be written costs the next process its compile time, nothing else.
        _log.debug("%s: the kernels' cache cannot be written (%s)", path, error)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        return False
    return True
