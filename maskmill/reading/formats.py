"""maskmill's own formats of shards: TFRecord, Parquet and MDS.

What writes and what reads them is imported only where it is needed: Arrow takes a moment.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.reading.block_reader import BlockReader
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DataSet
from maskmill.records.examples import Blocks, ExampleFile, Writing, write_records
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, SPLITS
from maskmill.records.shard_formats import ColumnsOfWidth, ListedFile, ShardFormat
from maskmill.storage import files

_WORD = 4  # bytes of a number in the head of an MDS shard


class TfRecord(ShardFormat):
    """Records of tf.train.Example, gzipped or with DALI's index."""

    name = "tfrecord"
    others = ("*.tfrecord.idx", "*.tfrecord.gz")
    is_padded = True
    integers = "int64"  # a tf.train.Feature has integers of one size only

    def write(self, prefix: str, blocks: Blocks, writing: Writing) -> Sequence[ExampleFile]:
        path = f"{prefix}{self.suffix}{'.gz' if writing.packed else ''}"
        file, *indexes = write_records(path, blocks, writing)
        return [writing.file(file, index=indexes[0] if indexes else None)]

    def reader(self, data_set: DataSet, ranges: ByteRanges) -> BlockReader:
        from maskmill.reading.tfrecords import TfRecordReader

        return TfRecordReader(data_set, ranges)

    def count_samples(self, path: str, ranges: ByteRanges) -> int:
        from maskmill.reading.record_indexes import count_samples

        return count_samples(path, ranges)

    def why_unchecked(self, path: str, ranges: ByteRanges) -> str | None:
        return None


class Parquet(ShardFormat):
    """Columns of lists, and a card that tells Hugging Face's datasets which files are of which split."""

    name = "parquet"
    version = 2

    def write(self, prefix: str, blocks: Blocks, writing: Writing) -> Sequence[ExampleFile]:
        from maskmill.records.parquet import write_parquet

        path, columns, checksum = f"{prefix}{self.suffix}", writing.columns, writing.checksum
        (file,) = write_parquet(path, blocks, columns, writing.special_ids, writing.width, checksum=checksum)
        return [writing.file(file)]

    def reader(self, data_set: DataSet, ranges: ByteRanges) -> BlockReader:
        from maskmill.reading.parquet import ParquetReader

        return ParquetReader(data_set, ranges)

    def count_samples(self, path: str, ranges: ByteRanges) -> int:
        from maskmill.reading.parquet import count_rows

        return count_rows(path, ranges)

    def why_unchecked(self, path: str, ranges: ByteRanges) -> str | None:
        from maskmill.reading.parquet import is_foreign

        if is_foreign(path, ranges):
            return "another program wrote this Parquet file again; its pages need no checksums"
        return None

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """The card; it names the files of each split that there is in JSON, which YAML reads."""
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

    def write(self, prefix: str, blocks: Blocks, writing: Writing) -> Sequence[ExampleFile]:
        from maskmill.records.mds import write_mds

        columns, checksum = writing.columns, writing.checksum
        written = write_mds(prefix, blocks, columns, writing.special_ids, writing.width, checksum=checksum)
        return [writing.file(shard, examples=shard.samples) for shard in written]

    def reader(self, data_set: DataSet, ranges: ByteRanges) -> BlockReader:
        from maskmill.reading.mds import MdsReader

        return MdsReader(data_set, ranges)

    def count_samples(self, path: str, ranges: ByteRanges) -> int:
        if ranges.size(path) < _WORD:
            raise UnusableInputError(f"{path}: this shard is too short; make or fetch it again.")
        return int(ranges.read(path, 0, _WORD).view("<u4")[0])

    def why_unchecked(self, path: str, ranges: ByteRanges) -> str | None:
        return "MDS has no checksums of records"

    def listings(self, listed: Sequence[ListedFile], columns: ColumnsOfWidth) -> Mapping[str, bytes]:
        """The index.json of each folder, with its shards in order."""
        from maskmill.records import mds

        entries: dict[str, list[dict[str, Any]]] = {}
        for _, name, file in listed:
            folder, _, base = name.rpartition("/")
            entry = mds.mds_shard_entry(columns(file.width), base, file.size, file.sha256, file.examples)
            entries.setdefault(folder, []).append(entry)
        return {files.join(folder, MDS_INDEX): mds.mds_index(of_folder) for folder, of_folder in entries.items()}
