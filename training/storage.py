"""Files of a training run, on a local disk or an object store.

Local files are read and written by `maskmill.storage.files`, remote files by TensorFlow's file system instead of
Beam's: it can append to a log. Examples are read by maskmill/loading.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator

import tensorflow as tf

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files


def read_bytes(path: str) -> bytes:
    """The whole content of a small file.

    Raises:
      UnusableInputError: it is missing or cannot be read.
    """
    if files.is_local(path):
        return files.read_bytes(path)
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            return bytes(file.read())
    except tf.errors.OpError as error:
        raise UnusableInputError(f"{path}: this file cannot be read ({error.message}).") from None


def read_if_there(path: str) -> bytes | None:
    """The content of a small file; None if there is none.

    Raises:
      UnusableInputError: it cannot be read, or an object store cannot be asked.
    """
    return read_bytes(path) if exists(path) else None


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file, which appears only when it is complete.

    Raises:
      RunFailedError: it cannot be written.
    """
    if files.is_local(path):
        files.write_bytes(path, content)
        return
    try:
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(content)
    except tf.errors.OpError as error:
        raise RunFailedError(f"{path}: this file cannot be written ({error.message}).") from error


@contextlib.contextmanager
def local_copy(path: str) -> Iterator[str]:
    """A local path with the content of `path`, for libraries that read local files only.

    A remote file is copied to a temporary directory, which is deleted on exit.

    Raises:
      UnusableInputError: a remote file cannot be read.
    """
    if files.is_local(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="maskmill-") as directory:
        copy = os.path.join(directory, files.base_name(path))
        try:
            tf.io.gfile.copy(path, copy)
        except tf.errors.OpError as error:
            raise UnusableInputError(f"{path}: this file cannot be read ({error.message}).") from None
        yield copy


def drop_cached(paths: Iterable[str]) -> bool:
    """Makes the operating system forget what it holds of files in memory. Returns whether this system can do that.

    Of remote files it holds nothing.
    """
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in filter(files.is_local, paths):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def exists(path: str) -> bool:
    """Whether there is a file or directory of this name.

    Raises:
      UnusableInputError: an object store cannot be asked.
    """
    with _explained(path):
        return bool(tf.io.gfile.exists(path))


def matching(pattern: str) -> list[str]:
    """The paths that match a glob, sorted.

    Raises:
      UnusableInputError: an object store cannot be asked.
    """
    with _explained(pattern):
        try:
            return sorted(tf.io.gfile.glob(pattern))
        except tf.errors.NotFoundError:
            return []  # an object store without this bucket or directory


def delete(path: str) -> None:
    """Deletes a file. A missing one is not an error.

    Raises:
      UnusableInputError: an object store refuses.
    """
    with _explained(path), contextlib.suppress(tf.errors.NotFoundError):
        tf.io.gfile.remove(path)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns TensorFlow's errors into sentences. Its own line breaks would make several of one."""
    try:
        yield
    except tf.errors.NotFoundError:
        raise
    except tf.errors.OpError as error:
        reason = " ".join(str(error.message).split())
        raise UnusableInputError(
            f"{path}: this place cannot be reached; check its name, the network and the credentials ({reason})."
        ) from None
