"""azfs:// and hdfs:// through Beam's file systems, which need its extras and have no conditional writes."""

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage.files import FileInfo
from maskmill.storage.stores import ObjectStore, missing

_MICROSECONDS = 1_000_000


class BeamStore(ObjectStore):
    """Files of a store that Beam supports."""

    scheme = ""

    def look(self, path: str) -> FileInfo | None:
        with _explained(path):
            found = FileSystems.get_filesystem(path).metadata(path) if FileSystems.exists(path) else None
        return None if found is None else _described(found)

    def fetch(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        if self.look(path) is None:
            missing(path)
        with _explained(path), FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            file.seek(start)
            return file.read(-1 if end is None else end - start), ""

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        """Yield the files below a folder, as one page."""
        with _explained(prefix):
            metadata = FileSystems.match([f"{prefix}**"])[0].metadata_list
        found = [_described(one) for one in metadata]
        below = [(file, file.path.removeprefix(prefix)) for file in found]
        folders = {f"{prefix}{name.partition('/')[0]}/" for _, name in below if "/" in name}
        yield (found, []) if deep else ([file for file, name in below if "/" not in name], sorted(folders))

    def write(self, path: str, content: bytes, expected: str | None = None) -> FileInfo:
        if expected is not None:
            _incomparable(path)
        return self.send(path, iter([content]))

    def send(self, path: str, parts: Iterator[bytes]) -> FileInfo:
        size = 0
        with _explained(path):
            file = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
            try:
                for part in parts:
                    file.write(part)
                    size += len(part)
            except BaseException:
                # The garbage collector would close the writer, and closing makes the file visible.
                file.close = lambda: None
                raise
            file.close()
        return FileInfo(path=path, size=size)

    def remove(self, path: str, version: str | None = None) -> None:
        if version is not None:
            _incomparable(path)
        with _explained(path):
            FileSystems.delete([path])


def _described(metadata: Any) -> FileInfo:
    changed = int(metadata.last_updated_in_seconds * _MICROSECONDS)
    return FileInfo(path=metadata.path, size=metadata.size_in_bytes, changed=changed)


def _incomparable(path: str) -> NoReturn:
    raise UnusableInputError(f"{path}: this store compares no versions; name a local path, gs:// or s3://.")


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn errors of Beam's file systems into UnusableInputError or RunFailedError with a sentence about `path`."""
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
