"""Files that were found once, before any work: what is not as it was found any more ends the run.

Without that a build would leave out a file that vanished meanwhile, or mix two contents under one checksum.
"""

from collections.abc import Sequence

from maskmill.errors import RunFailedError
from maskmill.storage import files
from maskmill.storage.files import FileInfo


def check_same(found: Sequence[FileInfo], now: Sequence[FileInfo]) -> None:
    """Compares the files that a command has found with those that its patterns match now.

    Raises:
      RunFailedError: one is gone, new, or was replaced.
    """
    there = {file.path: file for file in now}
    for file in found:
        _check(there.pop(file.path, None), file.path, file.size, file.changed, file.stored)
    for path in there:
        raise RunFailedError(
            f"{path}: this input appeared while the command ran; run the same command again, which reads it, too."
        )


def check_unchanged(path: str, size: int, changed: int, stored: str = "") -> None:
    """Looks whether a file is as it was found; call it once the file is read.

    Args:
      path, size, changed, stored: as in FileInfo; of what is 0 or empty nothing is known.

    Raises:
      RunFailedError: it is gone, or was replaced.
    """
    _check(files.find(path), path, size, changed, stored)


def _check(now: FileInfo | None, path: str, size: int, changed: int, stored: str) -> None:
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
