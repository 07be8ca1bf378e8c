"""Files of a training run, on a local disk or an object store.

Local files go through `transforms.files`. Remote ones go through TensorFlow's file system and not Beam's, because a
training image has no Beam.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator

import tensorflow as tf

from transforms import files
from transforms.errors import RunFailedError, UnusableInputError


def read_bytes(path: str) -> bytes:
    """The whole content of a small file.

    Raises:
      UnusableInputError: there is no such file.
    """
    if files.is_local(path):
        return files.read_bytes(path)
    try:
        with tf.io.gfile.GFile(path, "rb") as file:
            return bytes(file.read())
    except tf.errors.OpError as error:
        raise UnusableInputError(f"{path}: this file cannot be read ({error.message}).") from None


def write_bytes(path: str, content: bytes) -> None:
    """Writes a small file whole; it appears only when it is complete."""
    if files.is_local(path):
        files.write_bytes(path, content)
        return
    with _written(path), tf.io.gfile.GFile(path, "wb") as file:
        file.write(content)


@contextlib.contextmanager
def local_copy(path: str) -> Iterator[str]:
    """A local path with the content of `path`, for libraries that read local files alone."""
    if files.is_local(path):
        yield os.path.expanduser(path)
        return
    with tempfile.TemporaryDirectory(prefix="maskmill-") as directory:
        copy = os.path.join(directory, files.base_name(path))
        try:
            tf.io.gfile.copy(path, copy)
        except tf.errors.OpError as error:
            raise UnusableInputError(f"{path}: this file cannot be read ({error.message}).") from None
        yield copy


@contextlib.contextmanager
def new_file(path: str) -> Iterator[str]:
    """A local path to write to; what was written appears under `path` when the block ends without an exception."""
    if files.is_local(path):
        files.make_directory(files.parent(path))
    directory = files.parent(path) if files.is_local(path) else None
    # In the same directory, so that the rename is atomic.
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=files.TEMPORARY_SUFFIX, dir=directory)
    os.close(handle)
    try:
        with _written(path):
            yield temporary
            if directory is None:
                tf.io.gfile.copy(temporary, path, overwrite=True)
            else:
                with open(temporary, "rb") as file:
                    os.fsync(file.fileno())
                os.chmod(temporary, 0o666 & ~_umask())
                os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _written(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        text = getattr(error, "strerror", None) or getattr(error, "message", None) or error
        raise RunFailedError(
            f"{path}: this file cannot be written ({text}); nothing was left under its name."
        ) from error


def exists(path: str) -> bool:
    """Whether there is a file or directory under this name."""
    return bool(tf.io.gfile.exists(os.path.expanduser(path)))


def matching(pattern: str) -> list[str]:
    """The files that fit a glob, sorted."""
    return sorted(tf.io.gfile.glob(os.path.expanduser(pattern)))


def delete(path: str) -> None:
    """Deletes a file; one that is gone already is no error."""
    with contextlib.suppress(tf.errors.NotFoundError):
        tf.io.gfile.remove(path)
