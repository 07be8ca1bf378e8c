"""The formats that shards of examples are written in and read from: a class for each, found here by its name.

To add one, write a class over `ShardFormat` and `register` it. maskmill's own are in reading/formats.py, which stands
over this room and is imported when one of them is first asked for.
"""

import abc
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maskmill.errors import UnusableInputError

if TYPE_CHECKING:
    from maskmill.records.columns import Column
    from maskmill.records.examples import Blocks, ExampleFile, Writing

ColumnsOfWidth = Callable[[int], "Sequence[Column]"]  # the columns of files whose rows are so wide


class ListedFile(NamedTuple):
    """A file of a data set: "train" or "eval", its name below the directory, and what was written."""

    kind: str
    name: str
    file: "ExampleFile"


class ShardFormat(abc.ABC):
    """A format of shards: what its files are called, how rows become files, and files rows again.

    Attributes:
      name: as --format, manifests and messages have it; the names of its files end with it.
      others: globs of names that a build may give to files of it beside these, as to an index. Old ones are swept.
      version: of what is written. Raise it when files change for the same inputs and options.
      in_folders: whether the files of each split, and of each bin, have a folder, as those who read them read folders.
      is_padded: whether rows are filled up even where the reader draws the masks.
      integers: the type in which all integers are stored; None: each column has the smallest that fits.
      kernels: what `write` runs beside the kernels of every format, as compiler.chosen_modules names them.
    """

    name: str
    others: tuple[str, ...] = ()
    version = 1
    in_folders = False
    is_padded = False
    integers: str | None = None
    kernels: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """How the names of its files end."""
        return f".{self.name}"

    @property
    def patterns(self) -> tuple[str, ...]:
        """Globs of all names that a build may give to files of it."""
        return f"*{self.suffix}", *self.others

    @abc.abstractmethod
    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        """Writes rows, at least one, to files whose paths begin with `prefix` and end with `suffix`.

        Args:
          prefix: a path.
          blocks: the rows, as blocks with the number of rows in use; each is read before the next one is asked for.
          writing: what their columns are, and how files are written.

        Raises:
          RunFailedError: a file cannot be written.
        """

    @abc.abstractmethod
    def reader(self, data_set: Any, ranges: Any) -> Any:
        """The BlockReader (reading/block_reader.py) of a DataSet in this format, which reads through ByteRanges."""

    @abc.abstractmethod
    def count_samples(self, path: str, ranges: Any) -> int:
        """How many samples a file says it has.

        Raises:
          UnusableInputError: it says nothing that can be.
          RunFailedError: it cannot be read.
        """

    def why_unchecked(self, path: str, ranges: Any) -> str | None:
        """Why a file's records cannot be compared with checksums, as a clause; None: they can, and readers do."""
        return "this format has no checksums of records"

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """What lies beside the files of a data set and lists them for other programs: contents by name.

        Args:
          listed: all files, in their order.
          columns: gives the columns of files of a width.
        """
        return {}


_known: dict[str, ShardFormat | str] = {
    "tfrecord": "maskmill.reading.formats:TfRecord",
    "parquet": "maskmill.reading.formats:Parquet",
    "mds": "maskmill.reading.formats:Mds",
}
NAMES = _known.keys()  # those of all formats, also of such as are registered later


def suffixes() -> tuple[str, ...]:
    """How the names of the files of all formats end."""
    return tuple(f".{name}" for name in NAMES)


def needs_manifest(path: str) -> bool:
    """Whether a file, by its name, is of a format that is read only with a manifest: all do but TFRecords."""
    return path.endswith(tuple(suffix for suffix in suffixes() if suffix != ".tfrecord"))


def register(format: ShardFormat) -> None:
    """Makes a format known to all that writes, reads, opens and checks data sets in this process."""
    _known[format.name] = format


def format_of(name: str) -> ShardFormat:
    """The format with a name.

    Raises:
      UnusableInputError: there is none.
    """
    found = _known.get(name)
    if found is None:
        raise UnusableInputError(f"{name!r} is not a format of examples; there are {', '.join(_known)}.")
    if isinstance(found, str):
        module, _, kind = found.partition(":")
        found = _known[name] = getattr(importlib.import_module(module), kind)()
    return found


def all_formats() -> list[ShardFormat]:
    """Every format that is known."""
    return [format_of(name) for name in list(_known)]
