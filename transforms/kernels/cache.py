"""Machine code on disk: a file for each kernel and each list of argument types that it was called with.

A file is named after the kernel's module and name, the stamp of all that its machine code depends on
(transforms.kernels.dependencies), and a hash of the argument types and the CPU. Several installs and versions share a
directory: they find what they have in common, and leave each other's files alone. A file is the sha256 (32 bytes) of
its rest, then numba's own form of the machine code, pickled.

The directory is `maskmill` in `$NUMBA_CACHE_DIR` where that is set; else `maskmill/kernels` in the user's cache
directory (`$XDG_CACHE_HOME` or `~/.cache`), or one in the temporary directory. Files are read from any of them and
written to the first that can be written, so an install without a home directory works.
"""

import contextlib
import functools
import hashlib
import logging
import multiprocessing
import os
import pickle
import stat
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from transforms.kernels import dependencies

KEPT_DAYS = 60

_SUFFIX = ".machine-code"
_TEMPORARY = ".incomplete"
_HASH_DIGITS = 16
_DIGEST = hashlib.sha256().digest_size
_DAY = 24 * 60 * 60.0  # seconds

_log = logging.getLogger(__name__)


class KernelCache(NullCache):
    """Where numba looks for the machine code of one kernel before it compiles, and keeps it afterwards."""

    def __init__(self, kernel: Dispatcher) -> None:
        self._kernel = kernel

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """The machine code for a list of argument types, or None where no directory has it."""
        target_context.refresh()
        name = self._file_name(sig, target_context.codegen())
        for directory in cache_directories():
            if _is_trusted(directory) and (payload := _read(directory / name)) is not None:
                return CompileResult._rebuild(target_context, *payload)
        say_that_kernels_are_compiled()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Writes the machine code for a list of argument types to the first directory that takes it."""
        name = self._file_name(sig, data.codegen)
        if data.library.has_dynamic_globals:
            _log.warning("%s refers to a place in this process's memory: each process compiles it anew.", name)
            return
        content = dumps(data._reduce())
        for directory in cache_directories():
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                if _is_trusted(directory):
                    _write(directory / name, content)
                    return
            except OSError as error:
                # A cache that cannot be written costs the next process its compile time, nothing else.
                _log.debug("%s: the kernels' cache cannot be written (%s)", directory, error)
        _log.warning("No directory can keep compiled kernels: each process compiles anew. Set NUMBA_CACHE_DIR.")

    def _file_name(self, signature: Any, codegen: Any) -> str:
        arguments = dependencies.describe_types(normalize_signature(signature)[0])
        call = hashlib.sha256(f"{arguments} {codegen.magic_tuple()}".encode()).hexdigest()
        function = self._kernel.py_func
        name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        return f"{name}-{self._stamp[:_HASH_DIGITS]}-{call[:_HASH_DIGITS]}{_SUFFIX}"

    @functools.cached_property
    def _stamp(self) -> str:
        # Computed at the first call: what a kernel refers to may stand behind it in its module.
        return dependencies.stamp(self._kernel)


@functools.cache
def cache_directories() -> tuple[Path, ...]:
    """The directories that machine code is looked for in, and written to, in this order."""
    # Read once a process: where code is cached is no option of any step.
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return (Path(given) / "maskmill",)
    directories = []
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(user_cache):
        directories.append(Path(user_cache) / "maskmill" / "kernels")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    if (shared := _temporary_directory()) is not None:
        directories.append(shared / f"maskmill-kernels-{user}")
    return tuple(directories)


@functools.cache
def say_that_kernels_are_compiled() -> None:
    """Tells the user, once in a process, why the command is silent now; `compiler.warm_in_parallel` says so itself."""
    if multiprocessing.parent_process() is not None:
        return
    kept = f"once; kept in {cache_directories()[0]}" if cache_directories() else "and nothing can keep the result"
    sys.stderr.write(f"maskmill: compiling for this machine, which takes about a minute, {kept}\n")
    sys.stderr.flush()


def remove_unused(before: float) -> int:
    """Removes the files that no process has used since a time (seconds, as of time.time()); returns their number."""
    removed = 0
    for directory in filter(_is_trusted, cache_directories()):
        for suffix in (_SUFFIX, _TEMPORARY):
            for path in directory.glob(f"*{suffix}"):
                # Another process may remove it, or a cache be read-only.
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime < before:
                        path.unlink()
                        removed += 1
    return removed


def _temporary_directory() -> Path | None:
    """The system's directory for temporary files; None where none can be written, as on a full disk."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return None


def _is_trusted(directory: Path) -> bool:
    """Whether code from a directory may be run: in a shared temporary directory anyone can make one."""
    if directory.parent != _temporary_directory():
        return True
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return True
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return stat.S_ISDIR(status.st_mode) and is_own and not status.st_mode & 0o022


def _read(path: Path) -> Any:
    """What a file holds, or None where it is missing or cannot be used; it is then made anew."""
    try:
        with open(path, "rb") as file:
            content = file.read()
            last_use = os.fstat(file.fileno()).st_mtime
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
        payload = pickle.loads(memoryview(content)[_DIGEST:])
    except (ImportError, AttributeError) as error:
        # It names modules and classes that numba needs with it, and that another version had elsewhere.
        _log.info("%s is of another version (%s); it is made anew", path, error)
        return None
    if last_use < time.time() - _DAY:
        with contextlib.suppress(OSError):  # a cache that can only be read
            os.utime(path)
    return payload


def _write(path: Path, content: bytes) -> None:
    """Writes a file that other processes see whole or not at all."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_TEMPORARY}")
    try:
        temporary.write_bytes(hashlib.sha256(content).digest() + content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
