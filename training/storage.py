"""Files of a training run for libraries that only handle local files, and the system's cache of files.

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
    """Yield a local path with the content of `path`: itself, or a temporary copy, deleted on exit.

    Raises:
      UnusableInputError: a remote file cannot be read.
    """
    with local_copies([path]) as copies:
        yield copies[0]


@contextlib.contextmanager
def local_copies(paths: list[str]) -> Iterator[list[str]]:
    """Yield local paths with the contents of `paths`, in one directory; see `local_copy`."""
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
    """Yield a local path for files whose names begin with that of `path`; on exit they are copied beside `path`.

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
    """Return whether a path is a directory, or a prefix of files in an object store."""
    return os.path.isdir(path) if files.is_local(path) else bool(files.list_directory(path))


def append(path: str, content: bytes) -> None:
    """Add to the end of a file, and make it and its directory first if they are missing.

    An object store cannot append, so the whole file is rewritten there.
    """
    if not files.is_local(path):
        files.write_bytes(path, (files.read_if_there(path) or b"") + content)
        return
    files.make_directory(files.parent(path))
    with open(path, "ab") as file:
        file.write(content)


def drop_cached(paths: Iterable[str]) -> bool:
    """Make the operating system drop its cache of files. Return whether this system can do that.

    It caches no remote files.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in filter(files.is_local, paths):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True
