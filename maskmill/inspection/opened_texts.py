"""Text shards opened to be looked at: documents with a blank line between them, a sentence a line."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection.kinds import plain
from maskmill.inspection.searching import Wanted
from maskmill.reading.byte_ranges import ByteRanges, open_range_file
from maskmill.reading.made_examples import manifest_in
from maskmill.reading.remote import open_ranges
from maskmill.records.shard_formats import suffixes
from maskmill.storage import files

_TEXT = "text"  # the folder of a build that has its text
_READ_BYTES = 4 << 20
# Of names in a directory without a manifest, those that maskmill and the reference give to text shards.
_SHARDS = ("part-*", "eval.txt", "eval-*")


@dataclasses.dataclass(frozen=True)
class TextDocument:
    """A document of a text shard.

    Attributes:
      file: its path.
      document: its number in the file, from 1.
      line: the number of its first line in the file, from 1.
      lines: as they stand; what is not UTF-8 is escaped.
      metadata: its `id`, `title` and `metadata_columns`, of the table beside the shard; empty where there is none.
    """

    file: str
    document: int
    line: int
    lines: tuple[str, ...]
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class OpenedTexts:
    """Text shards that can be looked at.

    Attributes:
      path: as it was named: a directory of extract or of a build, a file, a glob or a comma list.
      files: the paths of the shards, in their order.
      ranges: reads them.
      tables: the paths of the tables of their documents, by those of the shards that have one.
      columns: of these tables.
    """

    path: str
    files: Sequence[str]
    ranges: ByteRanges
    tables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    columns: Sequence[str] = ()

    @property
    def count(self) -> int:
        """Return how many documents there are; reads all files."""
        return sum(1 for _ in self.all())

    def all(self, first: int = 0) -> Iterator[TextDocument]:
        """Yield the documents of all files. first: how many of them are left out before.

        Raises:
          RunFailedError: a file cannot be read.
        """
        for file in self.files:
            for document in self.of(file):
                if not first:
                    yield document
                first = max(0, first - 1)

    def of(self, file: str) -> Iterator[TextDocument]:
        """Yield the documents of a file."""
        lines: list[str] = []
        document = start = 0
        rows = self._rows(file)
        with open_range_file(file, self.ranges, _READ_BYTES) as stream:
            for number, line in enumerate(stream, 1):
                if not line.isspace():
                    start = start if lines else number
                    lines.append(line.rstrip(b"\r\n").decode(errors="backslashreplace"))
                elif lines:
                    document += 1
                    yield TextDocument(file, document, start, tuple(lines), next(rows, {}))
                    lines = []
        if lines:
            yield TextDocument(file, document + 1, start, tuple(lines), next(rows, {}))

    def _rows(self, file: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table of a file."""
        if file in self.tables:
            from maskmill.reading.parquet_files import open_file

            table = open_file(self.tables[file], self.ranges, self.columns)
            for _, rows in table.parts(0, table.rows):
                yield from rows().to_pylist()

    def search(self, words: str) -> Iterator[TextDocument]:
        """Return the documents in which the words stand within a line.

        Args:
          words: one or several, found in capitals or not, where they begin a word.

        Raises:
          UnusableInputError: there is no word.
          RunFailedError: a file cannot be read.
        """
        wanted = Wanted(words)
        return (document for document in self.all() if any(map(wanted.stands_in, document.lines)))

    def close(self) -> None:
        """Close files and connections."""
        self.ranges.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked
def open_texts(path: str | os.PathLike[str]) -> OpenedTexts:
    """Open text shards to look at them.

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
        for directory in (path, files.join(path, _TEXT)):
            made = manifest_in(directory, ranges)
            if made is not None and made["stage"] == "extract":
                listed = [files.join(directory, str(shard["name"])) for shard in made["shards"]]
                break
        else:
            listed = _named_files(path, ranges)
            directory = files.parent(listed[0])
            made = manifest_in(directory, ranges)
        columns = list(made["decided"].get("columns", ())) if made is not None and made["stage"] == "extract" else []
        shards = made["shards"] if made is not None and columns else ()
        tables = {files.join(directory, s["name"]): files.join(directory, s["index"]) for s in shards if "index" in s}
        stack.pop_all()
        return OpenedTexts(path, listed, ranges, tables, columns)


def _named_files(path: str, ranges: ByteRanges) -> list[str]:
    """Return the files that a path names without a manifest."""
    if files.is_local(path) and os.path.isdir(path):
        found = [name for shard in _SHARDS for name in ranges.glob(files.join(path, shard))]
        found = [name for name in found if not name.endswith((*suffixes(), ".gz", ".idx"))]
    else:
        found = [name for pattern in path.split(",") if pattern.strip() for name in ranges.glob(pattern.strip())]
    if not found:
        raise UnusableInputError(f"{path}: there is no text shard (part-…, eval.txt) here; name the files themselves.")
    return list(dict.fromkeys(found))
