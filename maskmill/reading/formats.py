"""The readers of all formats: TFRecord, Parquet, MDS and spans, and those registered."""

from maskmill.reading.block_reader import BlockReader
from maskmill.reading.mds import MdsReader
from maskmill.reading.tfrecords import TfRecordReader
from maskmill.records import shard_formats
from maskmill.records.shard_formats import ShardFormat

_known: dict[str, type[BlockReader]] = {"tfrecord": TfRecordReader, "mds": MdsReader}


def register(format: ShardFormat, reader: type[BlockReader]) -> None:
    """Add a format and its reader for this process."""
    shard_formats.register(format)
    _known[format.name] = reader


def reader_of_format(name: str) -> type[BlockReader]:
    """Return the reader of a format.

    Raises:
      UnusableInputError: there is no such format.
    """
    if shard_formats.format_of(name).name == "parquet":
        from maskmill.reading.parquet import ParquetReader  # imports Arrow: it takes a moment

        return ParquetReader
    if name == "spans":
        from maskmill.reading.spans import SpansReader  # imports tokenizers: it takes a moment, too

        return SpansReader
    return _known[name]
