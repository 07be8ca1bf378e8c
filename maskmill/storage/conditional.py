"""Small files that several processes change: a change is made only if the file is still as the process has read it.

On local disks, a process changes files while it holds the lock (flock) of a guard file in their directory; Linux passes
such locks on to NFS servers. On gs:// and s3:// the store itself compares an object's generation or entity tag. Other
stores promise neither.
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

# Which content a file had: opaque text, another one after each change. On s3:// it is that of the content, so what
# processes compete for has something of its writer in it.
Version = str


def is_possible(path: str) -> bool:
    """Return whether a path is where files can be changed conditionally: on a local disk, gs:// or s3://."""
    return files.is_local(path) or path.startswith(COMPARING)


def check_store(path: str) -> None:
    """Check that a path is where files can be changed conditionally.

    Raises:
      UnusableInputError: it is on another store.
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
    """Return whether there is such a file; errors as in `read`."""
    check_store(path)
    return files.exists(path)


def write(path: str, content: bytes, *, expected: Version | None, guard: str | None = None) -> Version:
    """Write a file if its version is still the expected one; it appears whole or not at all.

    Args:
      path: of the file; a missing directory is made.
      content: of the file.
      expected: the version that the caller has read; None: the file must not be there.
      guard: a local file beside which the guard file lies, where it should not lie beside `path`. All who write or
        delete the file name the same.

    Returns:
      the version of what was written.

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
    """Delete a file if its version is still the expected one; one that is gone is no error.

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
    """Keep every other process from changing the files in the directory of a local path; they can be read.

    Raises:
      UnusableInputError: the directory cannot be made or written to.
    """
    guard = files.join(files.parent(path), GUARD)
    descriptor = _locked_guard(guard)
    try:
        yield
    finally:
        os.close(descriptor)  # which unlocks it


def _locked_guard(guard: str) -> int:
    directory = files.parent(guard)
    while True:
        try:
            os.makedirs(directory, exist_ok=True)
            descriptor = os.open(guard, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except (FileNotFoundError, FileExistsError) as error:
            if os.path.exists(directory) and not os.path.isdir(directory):
                raise UnusableInputError(f"{directory}: this is no directory; move it away.") from error
            continue  # somebody has removed the directory since it was made
        except OSError as error:
            raise UnusableInputError(
                f"{directory}: nothing can be written to this directory ({error.strerror}); check its permissions."
            ) from error
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # it was deleted, with its directory, before it was locked


def _compare(path: str, expected: Version | None) -> None:
    """Raise ChangedError if a local file has not the expected version."""
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
        # A request is made again when its answer gets lost; then it may be its own first attempt that it met.
        found = _read_object(path)
        if found is None or found[0] != content or found[1] == expected:
            raise
        return found[1]
