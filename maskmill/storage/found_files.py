"""Files that were found once, before any work: what is not as it was found any more ends the run.

Without that a build would leave out a file that vanished meanwhile, or mix two contents under one checksum.
"""

from collections.abc import Sequence
from typing import Protocol

from maskmill.errors import RunFailedError
from maskmill.storage import files
from maskmill.storage.files import FileInfo


class Found(Protocol):
    """A file as it was found, by fields of FileInfo; of what is 0 or empty nothing is known."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def changed(self) -> int: ...
    @property
    def stored(self) -> str: ...


def check_same(found: Sequence[FileInfo], now: Sequence[FileInfo]) -> None:
    """Compares the files that a command has found with those that its patterns match now.

    Raises:
      RunFailedError: one is gone, new, or was replaced.
    """
    there = {file.path: file for file in now}
    for file in found:
        _check(file, there.pop(file.path, None))
    for path in there:
        raise RunFailedError(
            f"{path}: this input appeared while the command ran; run the same command again, which reads it, too."
        )


def check_unchanged(file: Found) -> None:
    """Looks whether a file is as it was found; call it once the file is read.

    Raises:
      RunFailedError: it is gone, or was replaced.
    """
    _check(file, files.find(file.path))


def _check(file: Found, now: FileInfo | None) -> None:
    path, size, changed, stored = file.path, file.size, file.changed, file.stored
    if now is None:
        raise RunFailedError(
            f"{path}: this input was removed while the command ran; put it back, and run the same command again."
        )
    if now.size != size or (changed and now.changed != changed) or (stored and now.stored != stored):
        sizes = f", {size:,} bytes before and {now.size:,} now" if now.size != size else ""
        raise RunFailedError(
            f"{path}: this input was changed while the command ran{sizes}; run the same command again, which "
            "reads it as it is now."
        )
