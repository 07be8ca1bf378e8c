"""Text shards opened to be looked at: documents with a blank line between them, a sentence a line."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.made_examples import manifest_in
from maskmill.reading.remote import open_ranges
from maskmill.records.shard_formats import suffixes
from maskmill.storage import files, manifest

_TEXT = "text"  # the folder of a build that has its text
_READ_BYTES = 4 << 20
# Of names in a directory without a manifest, those that maskmill and the reference give to text shards.
_SHARDS = ("part-*", "eval.txt", "eval-*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextDocument:
    """A document of a text shard.

    Attributes:
      file: its path.
      document: its number in the file, from 1.
      line: the number of its first line in the file, from 1.
      lines: as they stand; what is not UTF-8 is escaped.
    """

    file: str
    document: int
    line: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextFile:
    """A text shard.

    Attributes:
      path: of the file.
      size: bytes.
      documents: how many it has; None: no manifest tells.
    """

    path: str
    size: int
    documents: int | None


@dataclasses.dataclass(frozen=True)
class OpenedTexts:
    """Text shards that can be looked at.

    Attributes:
      path: as it was named: a directory of extract or of a build, a file, a glob or a comma list.
      directory: of the manifest; None: there is none.
      made: the manifest; None: there is none.
      files: the shards, in their order.
      ranges: reads them.
    """

    path: str
    directory: str | None
    made: Mapping[str, Any] | None
    files: Sequence[TextFile]
    ranges: ByteRanges

    @property
    def documents(self) -> int | None:
        """How many documents there are; None: no manifest tells."""
        known = [file.documents for file in self.files]
        return sum(count for count in known if count is not None) if None not in known else None

    def all(self) -> Iterator[TextDocument]:
        """The documents of all files."""
        for file in self.files:
            yield from self.of(file)

    def ends_document(self, file: TextFile) -> bool:
        """Whether a blank line stands at the end of a file."""
        return self.ranges.read(file.path, max(0, file.size - 2), file.size).tobytes() == b"\n\n"

    def of(self, file: TextFile) -> Iterator[TextDocument]:
        """The documents of a file.

        Raises:
          RunFailedError: it cannot be read.
        """
        lines: list[str] = []
        document = first = 0
        with open_range_file(file.path, self.ranges, _READ_BYTES) as stream:
            for number, line in enumerate(stream, 1):
                if not line.isspace():
                    first = first if lines else number
                    lines.append(line.rstrip(b"\r\n").decode(errors="backslashreplace"))
                elif lines:
                    document += 1
                    yield TextDocument(file=file.path, document=document, line=first, lines=tuple(lines))
                    lines = []
        if lines:
            yield TextDocument(file=file.path, document=document + 1, line=first, lines=tuple(lines))

    def numbered(self, number: int) -> TextDocument | None:
        """A document by its number in all files, from 1; None if there are not so many."""
        left = number
        for file in self.files:
            if file.documents is not None and left > file.documents:
                left -= file.documents
                continue
            for found in self.of(file):
                left -= 1
                if not left:
                    return found
        return None

    def close(self) -> None:
        """Closes files and connections."""
        self.ranges.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked
def open_texts(path: str | os.PathLike[str]) -> OpenedTexts:
    """Opens text shards to look at them.

    Args:
      path: a directory of extract or of a build; one without a manifest that has shards with the names of maskmill's or
        the reference's; a file, a glob or a comma list.

    Raises:
      UnusableInputError: there are none.
    """
    path = plain(path)
    with contextlib.ExitStack() as stack:
        ranges = open_ranges(path)
        stack.callback(ranges.close)
        made = None
        for directory in (path, files.join(path, _TEXT), files.parent(path)):
            made = _made_text(directory, ranges)
            if made is not None:
                break
        if made is not None:
            try:
                listed = _of_manifest(made, directory, path)
            except (KeyError, TypeError, ValueError) as error:
                raise UnusableInputError(
                    f"{files.join(directory, manifest.MANIFEST)}: an entry of this manifest is missing or not as "
                    f"maskmill writes it ({type(error).__name__}: {error}); run the command that made it again."
                ) from None
            if listed:
                stack.pop_all()
                return OpenedTexts(path, directory, made, listed, ranges)
        paths = _without_manifest(path, ranges)
        listed = [TextFile(path=name, size=ranges.size(name), documents=None) for name in paths]
        stack.pop_all()
        return OpenedTexts(path, None, None, listed, ranges)


def _made_text(directory: str, ranges: ByteRanges) -> dict[str, Any] | None:
    """The manifest of extract in a directory; None if there is none, or one of something else."""
    made = manifest_in(directory, ranges)
    return None if made is None or made["stage"] != "extract" else made


def _of_manifest(made: Mapping[str, Any], directory: str, path: str) -> list[TextFile]:
    """The shards of a manifest that a path names: all, or the one file; none if the path is not a shard of it."""
    listed = [
        TextFile(
            path=files.join(directory, shard["name"]),
            size=int(shard["bytes"]),
            documents=int(shard["documents"]) if "documents" in shard else None,
        )
        for shard in made["shards"]
    ]
    if directory in (path, files.join(path, _TEXT)):
        return listed
    named = files.join(files.parent(path), files.base_name(path))
    return [file for file in listed if file.path == named]


def _without_manifest(path: str, ranges: ByteRanges) -> list[str]:
    """The files that a path names."""
    if files.is_local(path) and os.path.isdir(path):
        found = [name for shard in _SHARDS for name in ranges.glob(files.join(path, shard))]
        found = [name for name in found if not name.endswith((*suffixes(), ".gz", ".idx"))]
        if not found:
            raise UnusableInputError(
                f"{path}: there is no text shard (part-…, eval.txt) in this directory; name the files themselves."
            )
        return found
    found = [name for pattern in path.split(",") if pattern.strip() for name in ranges.glob(pattern.strip())]
    if not found:
        raise UnusableInputError(f"{path}: there is no such file; check the path.")
    return list(dict.fromkeys(found))
