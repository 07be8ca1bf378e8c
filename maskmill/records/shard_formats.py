"""The formats that shards of examples are written in: a class for each, found here by its name.

To add one, write a class over `ShardFormat` and one over BlockReader, and `register` both (reading/formats.py). What
writes a format is imported only where it is needed: Arrow takes a moment.
"""

import abc
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maskmill.errors import UnusableInputError
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, SPLITS
from maskmill.storage import files

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
    """A format of shards: what its files are called, and how rows become files.

    Attributes:
      name: as --format, manifests and messages have it; the names of its files end with it.
      others: globs of names that a build may give to files of it beside these, as to an index. Old ones are swept.
      version: of what is written. Raise it when files change for the same inputs and options.
      in_folders: whether the files of each split, and of each bin, have a folder, as those who read them read folders.
      is_padded: whether rows are filled up even where the reader draws the masks.
      reads_text: whether files have no rows, so that their text is read with them.
      integers: the type in which all integers are stored; None: each column has the smallest that fits.
      kernels: what `write` runs beside the kernels of every format, as compiler.chosen_modules names them.
    """

    name: str
    others: tuple[str, ...] = ()
    version = 1
    in_folders = False
    is_padded = False
    reads_text = False
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
        """Write rows, at least one, to files whose paths begin with `prefix` and end with `suffix`.

        Args:
          prefix: a path.
          blocks: the rows, as blocks with the number of rows in use; each is read before the next one is asked for.
          writing: what their columns are, and how files are written.

        Raises:
          RunFailedError: a file cannot be written.
        """

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """Return what lies beside the files of a data set and lists them for other programs: contents by name.

        Args:
          listed: all files, in their order.
          columns: gives the columns of files of a width.
        """
        return {}


class TfRecord(ShardFormat):
    """Records of tf.train.Example, gzipped or with an index."""

    name = "tfrecord"
    others = ("*.tfrecord.idx", "*.tfrecord.gz")
    is_padded = True
    integers = "int64"  # a tf.train.Feature has integers of one size only

    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        from maskmill.records.examples import write_records

        path = f"{prefix}{self.suffix}{'.gz' if writing.packed else ''}"
        file, *indexes = write_records(path, blocks, writing)
        return [writing.file(file, index=indexes[0] if indexes else None)]


class Parquet(ShardFormat):
    """Columns of lists, and a card that tells Hugging Face's datasets which files are of which split."""

    name = "parquet"
    version = 3

    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        from maskmill.records.parquet import write_parquet

        path, columns, checksum = f"{prefix}{self.suffix}", writing.columns, writing.checksum
        (file,) = write_parquet(path, blocks, columns, writing.special_ids, writing.width, checksum=checksum)
        return [writing.file(file)]

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """Return the card; it names the files of each split that there is in JSON, which YAML reads."""
        splits = []
        for kind, split in SPLITS.items():
            names = [one.name for one in listed if one.kind == kind]
            if names:
                splits.append({"split": split, "path": names})
        configs = json.dumps([{"config_name": "default", "data_files": splits}], ensure_ascii=False, indent=1)
        return {DATASET_CARD: f"---\nconfigs: {configs}\n---\n".encode()}


class Mds(ShardFormat):
    """The shards of mosaicml-streaming, in a folder for each split and bin, which has an index of its own."""

    name = "mds"
    others = (MDS_INDEX,)
    in_folders = True
    kernels = ("records.kernels.mds",)

    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        from maskmill.records.mds import write_mds

        columns, checksum = writing.columns, writing.checksum
        written = write_mds(prefix, blocks, columns, writing.special_ids, writing.width, checksum=checksum)
        return [writing.file(shard, examples=shard.samples) for shard in written]

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """Return the index.json of each folder, with its shards in order."""
        from maskmill.records import mds

        entries: dict[str, list[dict[str, Any]]] = {}
        for _, name, file in listed:
            folder, _, base = name.rpartition("/")
            entry = mds.mds_shard_entry(columns(file.width), base, file.size, file.sha256, file.examples)
            entries.setdefault(folder, []).append(entry)
        return {files.join(folder, MDS_INDEX): mds.mds_index(of_folder) for folder, of_folder in entries.items()}


class Spans(ShardFormat):
    """An index that says where in its text shard each row's text is: readers tokenize it and draw the masks."""

    name = "spans"
    is_padded = True  # as TFRecords are, whose order of samples it has
    reads_text = True
    kernels = ("records.kernels.text_parts",)

    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        from maskmill.records.spans import write_spans

        return [write_spans(prefix, blocks, writing)]


_known: dict[str, ShardFormat] = {format.name: format for format in (TfRecord(), Parquet(), Mds(), Spans())}
NAMES = _known.keys()  # those of all formats, also of such as are registered later


def suffixes() -> tuple[str, ...]:
    """Return how the names of the files of all formats end."""
    return tuple(f".{name}" for name in NAMES)


def needs_manifest(path: str) -> bool:
    """Return whether a file, by its name, is of a format that is read only with a manifest: all do but TFRecords."""
    return path.endswith(tuple(suffix for suffix in suffixes() if suffix != ".tfrecord"))


def register(format: ShardFormat) -> None:
    """Make a format known to all that writes data sets in this process."""
    _known[format.name] = format


def format_of(name: str) -> ShardFormat:
    """Return the format with a name.

    Raises:
      UnusableInputError: there is none.
    """
    found = _known.get(name)
    if found is None:
        raise UnusableInputError(f"{name!r} is not a format of examples; there are {', '.join(_known)}.")
    return found


def all_formats() -> list[ShardFormat]:
    """Return every format that is known."""
    return list(_known.values())
