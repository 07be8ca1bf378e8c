"""End a run if an input has changed since the run first listed its files.

Otherwise a build would skip a file that vanished meanwhile, or mix two contents under one checksum.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.files import ChangedError, FileInfo


class Found(Protocol):
    """A file as first listed, with fields of FileInfo; 0 or "": not known."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def changed(self) -> int: ...
    @property
    def stored(self) -> str: ...


def refuse_repeated(inputs: Mapping[str, Sequence[FileInfo]]) -> None:
    """Refuse a file that is listed twice, by a link or another spelling of its path.

    inputs: by the names of their sources; "" without sources.

    Raises:
      UnusableInputError: two sources take the same file, or one takes it under two names.
    """
    seen: dict[object, tuple[str, str]] = {}
    for source, of_source in inputs.items():
        for path in (file.path for file in of_source):
            this = files.identity(path) if files.is_local(path) else path  # an object has one name
            other, before = seen.setdefault(this, (source, path))
            if other != source:
                raise UnusableInputError(
                    f"{path}: sources.{other} and sources.{source} both take this input, so articles that one of them "
                    "holds out would be trained on in the other; leave it to one of them, and raise max_epochs to "
                    "repeat it."
                )
            if before != path:
                raise UnusableInputError(
                    f"{path}: this is the same file as the input {before}, so its text would be used twice; leave one "
                    "of the two names out."
                )


def check_same(found: Sequence[FileInfo], now: Sequence[FileInfo]) -> None:
    """Compare the files that a command listed first with those that its patterns match now.

    Raises:
      RunFailedError: one is gone, new, or was replaced.
    """
    current = {file.path: file for file in now}
    for file in found:
        _check(file, current.pop(file.path, None))
    for path in current:
        raise RunFailedError(
            f"{path}: this input appeared while the command ran; run the same command again, which reads it, too."
        )


def check_unchanged(file: Found) -> None:
    """Raise if a file has changed since it was listed; call it after reading the file.

    Raises:
      RunFailedError: it is gone, or was replaced.
    """
    _check(file, files.find(file.path))


@contextlib.contextmanager
def unchanged(found: Sequence[Found]) -> Iterator[None]:
    """Raise after the block, which reads files, if one has changed since it was listed.

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
