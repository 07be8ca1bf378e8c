"""CPU time of reading a data set in Parquet: by maskmill's own reader, and by pyarrow, with lists as columns.

    python -m benchmarks.parquet_reading DIRECTORY      (of `maskmill examples --format parquet`)

pyarrow is measured twice: in this process, where a damaged file may abort it, and in a process of its own, as files of
other programs are read (maskmill/reading/foreign_parquet.py). All three check the pages' checksums and each value.
"""

import argparse
import json
import resource
from collections.abc import Callable

import numpy as np
import pyarrow.parquet

from maskmill.reading.block_reader import Block, Rows
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataSet
from maskmill.reading.opening import open_data_set, reader_of
from maskmill.reading.parquet_reader import rows_of_lists

_ROUNDS = 5
_FOREIGN_ROWS = 1024


def _own(data_set: DataSet) -> None:
    reader = reader_of(data_set, LocalRanges())
    rows = Rows(data_set.columns, reader.block_samples)
    for number, file in enumerate(data_set.files):
        for first in range(0, file.samples, reader.block_samples):
            block = Block(number, first, min(reader.block_samples, file.samples - first))
            every = np.arange(block.count)
            reader.decode(reader.fetch(block), block, every, every, rows)


def _pyarrow(data_set: DataSet) -> None:
    for file in data_set.files:
        parquet = pyarrow.parquet.ParquetFile(file.path, page_checksum_verification=True)
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, use_threads=False)
            rows = Rows(data_set.columns, table.num_rows)
            for column in data_set.columns:
                lists = table.column(column.name).combine_chunks()
                values, lengths = lists.values.to_numpy(zero_copy_only=False), np.diff(lists.offsets.to_numpy())
                if (lengths != column.width).any() or values.min() < column.low or values.max() > column.high:
                    raise ValueError(f"{file.path}: another {column.name}; name examples of nsp with stored masks")
                rows.arrays[column.feature][:] = values.reshape(-1, column.width)


def _foreign(data_set: DataSet) -> None:
    """What the process of its own does; what goes through the pipe and into rows comes on top of it."""
    names = json.dumps([column.name for column in data_set.columns])
    for file in data_set.files:
        with open(file.path, "rb") as opened:
            for _ in rows_of_lists(opened, file.path, names, "0", str(_FOREIGN_ROWS)):
                pass


def _cpu(read: Callable[[DataSet], None], data_set: DataSet) -> float:
    """The least CPU seconds of some rounds."""
    seconds = []
    for _ in range(_ROUNDS):
        start = resource.getrusage(resource.RUSAGE_SELF)
        read(data_set)
        end = resource.getrusage(resource.RUSAGE_SELF)
        seconds.append(end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime)
    return min(seconds)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    data_set = open_data_set(parser.parse_args().directory, ranges=LocalRanges())
    own = _cpu(_own, data_set)
    print(f"{data_set.samples:,} rows\nmaskmill's reader     {own:.3f} s CPU")
    for name, read in (("pyarrow in this process", _pyarrow), ("pyarrow in its own", _foreign)):
        seconds = _cpu(read, data_set)
        print(f"{name:<23} {seconds:.3f} s CPU, {seconds / own:.1f} times")


if __name__ == "__main__":
    main()
