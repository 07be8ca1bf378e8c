"""Copies rows from where they were read to where they are kept, and from there to batches."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import copy_32, load_u8, store_u8

_VECTOR = 32


@kernel
def gather(values, at, fill, out):
    """Copies the rows of a batch, converted to its type.

    values: [rows, at least width], uint8, uint16, int32 or float32.
    at: int64[batch], the row of `values` for each row of the batch; below 0 for one of padding, which gets `fill`.
    fill: int64.
    out: [batch, width], int32, int64, uint8 or float32; written.
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


@kernel
def scatter(values, starts, sizes, rows, out):
    """Copies rows out of a run of bytes.

    values: uint8, the bytes of a page. starts, sizes: int64[n], where each row starts in it, and its bytes.
    rows: int64[n], the row of `out`, uint8 [rows, bytes], for each.
    """
    row_bytes = out.shape[1]
    for n in range(len(rows)):
        source, target = starts[n], rows[n] * row_bytes
        whole = sizes[n] & -_VECTOR
        for i in range(0, whole, _VECTOR):
            copy_32(out, target + i, values, source + i)
        for i in range(whole, sizes[n]):
            store_u8(out, target + i, load_u8(values, source + i))


@kernel
def put_labels(positions, ids, weights, labels):
    """Writes what belongs at the masked positions, as models of transformers take it.

    positions, ids: int32[batch, P], the positions less than S. weights: float32[batch, P], 0 where there is no mask.
    labels: int64[batch, S], filled with what stands for none; written.
    """
    for row in range(len(labels)):
        for i in range(positions.shape[1]):
            if weights[row, i] != 0:
                labels[row, positions[row, i]] = ids[row, i]


def warm_up() -> None:
    """Compiles the entry kernels of this module, for each type of columns."""
    at = np.zeros(1, np.int64)
    masks = np.zeros((1, 1), np.int32)
    put_labels(masks, masks, np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int64))
    values = np.zeros(1, np.uint8)
    scatter(values, at, at, at, np.empty((1, 1), np.uint8))
    values.flags.writeable = False  # as the values of a page that is not packed
    scatter(values, at, at, at, np.empty((1, 1), np.uint8))
    integers = [(kind, to) for kind in (np.uint8, np.uint16, np.int32) for to in (np.int32, np.int64)]
    for kind, to in (*integers, (np.uint8, np.uint8), (np.float32, np.float32)):
        gather(np.zeros((1, 1), kind), at, 0, np.empty((1, 1), to))
