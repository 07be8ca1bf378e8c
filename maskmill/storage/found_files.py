"""Files that were found once, before any work: what is not as it was found any more ends the run.

Without that a build would leave out a file that vanished meanwhile, or mix two contents under one checksum.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.files import ChangedError, FileInfo


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


def refuse_repeated(inputs: Mapping[str, Sequence[FileInfo]]) -> None:
    """Refuse a file that comes twice, by a link or another spelling of its path.

    inputs: by the names of their sources; the name is empty without sources.

    Raises:
      UnusableInputError: two sources take the same file, or one takes it under two names.
    """
    seen: dict[object, tuple[str, str]] = {}
    for source, of_source in inputs.items():
        for path in (file.path for file in of_source):
            this = files.identity(path) if files.is_local(path) else path  # an object that is there has one name
            other, before = seen.setdefault(this, (source, path))
            if other != source:
                raise UnusableInputError(
                    f"{path}: sources.{other} and sources.{source} both take this input, so articles that one of them "
                    "holds out would be trained on in the other; leave it to one of them, and raise max_epochs to "
                    "repeat it."
                )
            if before != path:
                raise UnusableInputError(
                    f"{path}: this is the same file as the input {before}, so its text would be there twice; leave one "
                    "of the two names out."
                )


def check_same(found: Sequence[FileInfo], now: Sequence[FileInfo]) -> None:
    """Compare the files that a command has found with those that its patterns match now.

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
    """Look whether a file is as it was found; call it once the file is read.

    Raises:
      RunFailedError: it is gone, or was replaced.
    """
    _check(file, files.find(file.path))


@contextlib.contextmanager
def unchanged(found: Sequence[Found]) -> Iterator[None]:
    """Look, once the block has read files, whether they still are as they were found.

    Raises:
      RunFailedError: one is gone, or was replaced.
    """
    try:
        yield
    except ChangedError as error:
        raise _changed(error.path) from error
    for file in found:
        check_unchanged(file)


def _changed(path: str, sizes: str = "") -> RunFailedError:
    return RunFailedError(
        f"{path}: this input was changed while the command ran{sizes}; run the same command again, which reads it as "
        "it is now."
    )


def _check(file: Found, now: FileInfo | None) -> None:
    path, size, changed, stored = file.path, file.size, file.changed, file.stored
    if now is None:
        raise RunFailedError(
            f"{path}: this input was removed while the command ran; put it back, and run the same command again."
        )
    if now.size != size or (changed and now.changed != changed) or (stored and now.stored != stored):
        sizes = f", {size:,} bytes before and {now.size:,} now" if now.size != size else ""
        raise _changed(path, sizes)
