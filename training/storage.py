"""Files of a training run for libraries that know local files only, and what the system holds of files in memory.

All other files are read and written by `maskmill.storage.files`.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator

from maskmill.storage import files


@contextlib.contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Return a local path with the content of `path`: itself, or a copy in a temporary directory that is deleted on
    exit.

    Raises:
      UnusableInputError: a remote file cannot be read.
    """
    with local_copies([path]) as copies:
        yield copies[0]


@contextlib.contextmanager
def local_copies(paths: list[str]) -> Iterator[list[str]]:
    """Local paths with the contents of `paths`, of one directory; see `local_copy`."""
    if all(map(files.is_local, paths)):
        yield paths
        return
    with tempfile.TemporaryDirectory(prefix="maskmill-") as directory:
        copies = [os.path.join(directory, files.base_name(path)) for path in paths]
        for path, copy in zip(paths, copies, strict=True):
            with files.open_input(path) as source, open(copy, "wb") as target:
                shutil.copyfileobj(source, target)
        yield copies


@contextlib.contextmanager
def written_here(path: str) -> Iterator[str]:
    """Return a local path for files whose names begin with that of `path`; on exit they are beside it, wherever that
    is.

    Raises:
      RunFailedError: one cannot be written there.
    """
    if files.is_local(path):
        files.make_directory(files.parent(path))
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="maskmill-") as directory:
        yield os.path.join(directory, files.base_name(path))
        for name in sorted(os.listdir(directory)):
            with (
                open(os.path.join(directory, name), "rb") as source,
                files.new_file(files.join(files.parent(path), name), checksum=False) as target,
            ):
                shutil.copyfileobj(source, target)


def is_directory(path: str) -> bool:
    """Return whether a path is a directory, or an object store has files in it."""
    return os.path.isdir(path) if files.is_local(path) else bool(files.list_directory(path))


def append(path: str, content: bytes) -> None:
    """Add to the end of a file, and make it and its directory first if they are missing.

    An object store cannot append, so the whole file is written there anew.
    """
    if not files.is_local(path):
        files.write_bytes(path, (files.read_if_there(path) or b"") + content)
        return
    files.make_directory(files.parent(path))
    with open(path, "ab") as file:
        file.write(content)


def drop_cached(paths: Iterable[str]) -> bool:
    """Make the operating system forget what it holds of files in memory. Returns whether this system can do that.

    Of remote files it holds nothing.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in filter(files.is_local, paths):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True
