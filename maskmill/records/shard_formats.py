"""The formats of shards of examples: a class for each, found by its name.

To add one, write subclasses of `ShardFormat` and of BlockReader, and `register` both (reading/formats.py). The
writer of a format is imported when it is needed: Arrow takes a moment.
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

ColumnsOfWidth = Callable[[int], "Sequence[Column]"]  # the columns of files of a width


class ListedFile(NamedTuple):
    """A file of a data set: "train" or "eval", its name below the directory, and its description."""

    kind: str
    name: str
    file: "ExampleFile"


class ShardFormat(abc.ABC):
    """A format of shards: the names of its files, and the code that writes them.

    Attributes:
      name: in --format, manifests and messages; the names of its files end with it.
      others: globs of the other files that a build may write, such as an index. Old ones are swept.
      version: of the files. Raise it when they change for the same inputs and options.
      in_folders: whether each split, and each bin, has a folder, for readers that read whole folders.
      is_padded: whether rows are padded even if the reader draws the masks.
      reads_text: whether files have no rows, so that readers also read their text.
      integers: the type in which all integers are stored; None: each column has the smallest that fits.
      kernels: those of `write` beside the kernels of every format, as compiler.chosen_modules names them.
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
        """The end of the names of its files."""
        return f".{self.name}"

    @property
    def patterns(self) -> tuple[str, ...]:
        """Globs of all files that a build may write in this format."""
        return f"*{self.suffix}", *self.others

    @abc.abstractmethod
    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        """Write rows, at least one, to files whose paths begin with `prefix` and end with `suffix`.

        Args:
          prefix: a path.
          blocks: the rows, as blocks with the number of rows in use; each is read before the next one is asked for.
          writing: the columns, and the settings of the files.

        Raises:
          RunFailedError: a file cannot be written.
        """

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """Return by name the contents of the files that list a data set for other programs, such as an index.

        Args:
          listed: all files, in their order.
          columns: returns the columns of files of a width.
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
    """Columns of lists, and a card that lists the files of each split for Hugging Face's datasets."""

    name = "parquet"
    version = 3

    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        from maskmill.records.parquet import write_parquet

        path, columns, checksum = f"{prefix}{self.suffix}", writing.columns, writing.checksum
        (file,) = write_parquet(path, blocks, columns, writing.special_ids, writing.width, checksum=checksum)
        return [writing.file(file)]

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """Return the card, which names the files of each split in JSON, as YAML allows."""
        splits = []
        for kind, split in SPLITS.items():
            names = [one.name for one in listed if one.kind == kind]
            if names:
                splits.append({"split": split, "path": names})
        configs = json.dumps([{"config_name": "default", "data_files": splits}], ensure_ascii=False, indent=1)
        return {DATASET_CARD: f"---\nconfigs: {configs}\n---\n".encode()}


class Mds(ShardFormat):
    """The shards of mosaicml-streaming, in a folder with an index for each split and bin."""

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
    """An index of where each row's text is in its text shard; readers tokenize the text and draw the masks."""

    name = "spans"
    is_padded = True  # as TFRecords, whose order of samples it has
    reads_text = True
    kernels = ("records.kernels.text_parts",)

    def write(self, prefix: str, blocks: "Blocks", writing: "Writing") -> "Sequence[ExampleFile]":
        from maskmill.records.spans import write_spans

        return [write_spans(prefix, blocks, writing)]


_known: dict[str, ShardFormat] = {format.name: format for format in (TfRecord(), Parquet(), Mds(), Spans())}
NAMES = _known.keys()  # a view, which includes formats that are registered later


def suffixes() -> tuple[str, ...]:
    """Return the ends of the names of the files of all formats."""
    return tuple(f".{name}" for name in NAMES)


def needs_manifest(path: str) -> bool:
    """Return whether a file, by its name, can be read only with a manifest: all formats but TFRecord."""
    return path.endswith(tuple(suffix for suffix in suffixes() if suffix != ".tfrecord"))


def register(format: ShardFormat) -> None:
    """Add a format for this process."""
    _known[format.name] = format


def format_of(name: str) -> ShardFormat:
    """Return the format with a name.

    Raises:
      UnusableInputError: there is no such format.
    """
    found = _known.get(name)
    if found is None:
        raise UnusableInputError(f"{name!r} is not a format of examples; there are {', '.join(_known)}.")
    return found


def all_formats() -> list[ShardFormat]:
    """Return all formats, registered ones included."""
    return list(_known.values())
