"""Rows that lie anywhere to the rows of a batch."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from transforms.kernels import kernel


@kernel
def gather(values, at, fill, out):
    """Copies the rows of a batch, converted to its type.

    values: [rows, at least width], uint8, uint16, int32 or float32.
    at: int64[batch], the row of `values` for each row of the batch; below 0 for one of padding, which gets `fill`.
    fill: int64.
    out: [batch, width], int32, uint8 or float32; written.
    """
    width = out.shape[1]
    for row in range(len(at)):
        place = at[row]
        if place < 0:
            for i in range(width):
                out[row, i] = fill
        else:
            for i in range(width):
                out[row, i] = values[place, i]


def warm_up() -> None:
    """Compiles the entry kernel of this module, for each type of columns."""
    at = np.zeros(1, np.int64)
    integers = [(kind, np.int32) for kind in (np.uint8, np.uint16, np.int32)]
    for kind, to in (*integers, (np.uint8, np.uint8), (np.float32, np.float32)):
        gather(np.zeros((1, 1), kind), at, 0, np.empty((1, 1), to))
