"""Conditional writes of small files that several processes change: write only if the file is still as it was read.

On local disks, a process changes files while it holds the lock (flock) of a guard file in their directory; Linux passes
such locks on to NFS servers. On gs:// and s3:// the store itself compares an object's generation or entity tag. Other
stores support neither.
"""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.files import ChangedError
from maskmill.storage.paths import COMPARING

GUARD = ".maskmill-guard"

# The version of a file: opaque text, another one after each change. On s3:// it depends on the content alone, so files
# that processes compete for must contain something of their writer.
Version = str


def is_possible(path: str) -> bool:
    """Return whether the store of a path has conditional writes: a local disk, gs:// or s3://."""
    return files.is_local(path) or path.startswith(COMPARING)


def check_store(path: str) -> None:
    """Raise UnusableInputError if the store of a path has no conditional writes.

    Raises:
      UnusableInputError: it is neither a local disk nor gs:// or s3://.
    """
    if not is_possible(path):
        raise UnusableInputError(
            f"{path}: releases need a local disk, gs:// or s3://, because other stores cannot keep two builds apart; "
            "name another output."
        )


def read(path: str) -> tuple[bytes, Version] | None:
    """Return the content of a file and its version; None if there is no such file.

    Raises:
      UnusableInputError: it cannot be read, or its store has no conditional writes.
      RunFailedError: the store does not answer.
    """
    check_store(path)
    return _read_local(path) if files.is_local(path) else _read_object(path)


def exists(path: str) -> bool:
    """Return whether a file exists; errors as in `read`."""
    check_store(path)
    return files.exists(path)


def write(path: str, content: bytes, *, expected: Version | None, guard: str | None = None) -> Version:
    """Write a file if its version is still the expected one; it appears whole or not at all.

    Args:
      path: of the file; a missing directory is created.
      content: of the file.
      expected: the version that the caller has read; None: the file must not exist.
      guard: a local file beside which to put the guard file, if not beside `path`. All writers of the file must name
        the same.

    Returns:
      the new version.

    Raises:
      ChangedError: the file has another version. Nothing was written.
      UnusableInputError, RunFailedError: the file cannot be written.
    """
    check_store(path)
    if not files.is_local(path):
        return _write_object(path, content, expected)
    with guarded(guard or path):
        _compare(path, expected)
        files.write_bytes(path, content)
        return _read_again(path)


def delete(path: str, *, expected: Version) -> None:
    """Delete a file if its version is still the expected one; a missing file is no error.

    Raises:
      ChangedError: the file has another version. It stays.
      UnusableInputError, RunFailedError: the file cannot be deleted.
    """
    check_store(path)
    if not files.is_local(path):
        store = files.store_of(path)
        try:
            store.delete([path], expected)
        except ChangedError:
            if store.find(path) is not None:
                raise
        return
    with guarded(path):
        if os.path.exists(path):
            _compare(path, expected)
            files.delete([path])


@contextlib.contextmanager
def guarded(path: str) -> Iterator[None]:
    """Keep all other processes from changing the files in the directory of a local path, not from reading them.

    Raises:
      UnusableInputError: the directory cannot be made or written to.
    """
    guard = files.join(files.parent(path), GUARD)
    descriptor = _locked_guard(guard)
    try:
        yield
    finally:
        os.close(descriptor)  # unlocks it, too


def _locked_guard(guard: str) -> int:
    directory = files.parent(guard)
    while True:
        try:
            os.makedirs(directory, exist_ok=True)
            descriptor = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (FileNotFoundError, FileExistsError) as error:
            if os.path.exists(directory) and not os.path.isdir(directory):
                raise UnusableInputError(f"{directory}: this is no directory; move it away.") from error
            continue  # the directory was removed after it was created
        except OSError as error:
            raise UnusableInputError(
                f"{directory}: nothing can be written to this directory ({error.strerror}); check its permissions."
            ) from error
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # the guard was deleted, with its directory, before it was locked


def _compare(path: str, expected: Version | None) -> None:
    """Raise ChangedError if a local file does not have the expected version."""
    found = _read_local(path)
    if (None if found is None else found[1]) != expected:
        raise ChangedError(path)


def _read_local(path: str) -> tuple[bytes, Version] | None:
    try:
        with open(path, "rb") as file:
            content, status = file.read(), os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnusableInputError(f"{path}: this file cannot be read ({error.strerror}).") from error
    # A file is only ever replaced, so the same content written again has another inode or time.
    return content, f"{hashlib.sha256(content).hexdigest()}-{status.st_ino}-{status.st_mtime_ns}"


def _read_again(path: str) -> Version:
    found = _read_local(path)
    if found is None:
        raise RunFailedError(f"{path}: this file was deleted right after it was written; run the same command again.")
    return found[1]


def _read_object(path: str) -> tuple[bytes, Version] | None:
    with contextlib.suppress(MissingFileError):
        return files.store_of(path).get(path)
    return None


def _write_object(path: str, content: bytes, expected: Version | None) -> Version:
    try:
        return files.store_of(path).put(path, content, expected or "").version
    except ChangedError:
        # A request whose answer is lost is repeated; then the version that it meets may be of its own first attempt.
        found = _read_object(path)
        if found is None or found[0] != content or found[1] == expected:
            raise
        return found[1]
