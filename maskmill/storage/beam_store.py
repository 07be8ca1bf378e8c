"""azfs:// and hdfs:// by Beam's file systems, which need its extras. They compare no versions."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage.files import FileInfo
from maskmill.storage.stores import Content, ObjectStore, PartedUpload, Stored, missing
from maskmill.storage.web_client import WebClient

_MICROSECONDS = 1_000_000
_BLOCK = 4 << 20


class BeamStore(ObjectStore):
    """Files of a store that Beam knows."""

    def __init__(self) -> None:
        """Imports Beam."""
        from apache_beam.io.filesystem import CompressionTypes
        from apache_beam.io.filesystems import FileSystems

        super().__init__(WebClient())
        self._systems: Any = FileSystems
        self._as_it_is = CompressionTypes.UNCOMPRESSED

    def address(self, path: str) -> str:
        return path

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        with _explained(path):
            found = self._systems.get_filesystem(path).metadata(path) if self._systems.exists(path) else None
        return None if found is None else _described(found)

    def content(self, path: str, start: int, end: int | None) -> tuple[bytes, FileInfo]:
        found = self.find(path)
        if found is None:
            missing(path)
        with self.open(path) as file:
            file.seek(start)
            return file.read(-1 if end is None else end - start), found

    def open(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> io.BufferedReader:
        with _explained(path):
            return io.BufferedReader(self._systems.open(path, compression_type=self._as_it_is))

    @contextlib.contextmanager
    def body(self, file: FileInfo, start: int, end: int, *, fresh: bool) -> Iterator[Any]:
        with self.open(file.path) as opened:
            opened.seek(start)
            yield io.BufferedReader(io.BytesIO(opened.read(end - start)))

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        """What lies below a folder, all at once."""
        with _explained(prefix):
            metadata = self._systems.match([f"{prefix}**"])[0].metadata_list
        found = [_described(one) for one in metadata]
        below = [(file, file.path.removeprefix(prefix)) for file in found]
        folders = {f"{prefix}{name.partition('/')[0]}/" for _, name in below if "/" in name}
        yield (found, []) if deep else ([file for file, name in below if "/" not in name], sorted(folders))

    def put(self, path: str, content: Content, expected: str | None = None) -> Stored:
        if expected is not None:
            _incomparable(path)
        with _explained(path), self._systems.create(path, compression_type=self._as_it_is) as file:
            for block in content:
                file.write(block)
        return Stored()

    def begin(self, path: str) -> PartedUpload:
        with _explained(path):
            return _Writing(path, self._systems.create(path, compression_type=self._as_it_is))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete_one(path)

    def delete_one(self, path: str, version: str | None = None) -> None:
        if version is not None:
            _incomparable(path)
        with _explained(path):
            self._systems.delete([path])

    def copy(self, source: str, target: str) -> None:
        with _explained(target):
            self._systems.copy([source], [target])


class _Writing(PartedUpload):
    def __init__(self, path: str, raw: Any) -> None:
        self._path, self._raw = path, raw

    def send(self, part: Content) -> None:
        with _explained(self._path):
            for block in part:
                self._raw.write(block)

    def finish(self, part: Content) -> Stored:
        self.send(part)
        with _explained(self._path):
            self._raw.close()
        return Stored()

    def abandon(self) -> None:
        # Closing makes the file visible, and the garbage collector would close the writer.
        self._raw.close = lambda: None


def _described(metadata: Any) -> FileInfo:
    changed = int(metadata.last_updated_in_seconds * _MICROSECONDS)
    return FileInfo(path=metadata.path, size=metadata.size_in_bytes, changed=changed)


def _incomparable(path: str) -> NoReturn:
    raise UnusableInputError(f"{path}: this store compares no versions; name a local path, gs:// or s3://.")


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns errors of Beam's file systems into sentences about `path`."""
    try:
        yield
    except (UnusableInputError, RunFailedError, FileNotFoundError):
        raise
    except Exception as error:
        details = list((getattr(error, "exception_details", None) or {}).values()) or [error]
        text = " ".join(str(details[-1]).split()) or type(error).__name__
        if type(error).__name__ in ("BeamIOError", "ValueError", "ImportError"):
            raise UnusableInputError(f"{path}: {text}") from error
        raise RunFailedError(f"{path}: the store fails ({text}); run the same command again later.") from error
