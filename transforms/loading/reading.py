"""Reads blocks of several data sets to rows."""

from collections.abc import Sequence

from transforms.loading.block_reader import BlockReader, DamagedBlockError
from transforms.loading.order import Read
from transforms.loading.rows import Rows


def read_rows(readers: Sequence[BlockReader], reads: Sequence[tuple[int, Read]], rows: Rows) -> None:
    """Reads blocks one after the other, each with the reader of its data set; a damaged one twice."""
    for source, read in reads:
        reader = readers[source]
        try:
            reader.decode(reader.fetch(read.block), read.block, read.wanted, read.rows, rows)
        except DamagedBlockError:
            if not reader.forget(read.block):
                raise
            reader.decode(reader.fetch(read.block), read.block, read.wanted, read.rows, rows)
