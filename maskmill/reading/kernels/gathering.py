"""Copies rows from where they are kept to batches."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel


@kernel
def gather(values, at, fill, out):
    """Copy the rows of a batch, converted to its type.

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
def put_labels(positions, ids, weights, labels):
    """Write what belongs at the masked positions, as models of transformers take it.

    positions, ids: int32[batch, P], the positions less than S. weights: float32[batch, P], 0 where there is no mask.
    labels: int64[batch, S], filled with what stands for none; written.
    """
    for row in range(len(labels)):
        for i in range(positions.shape[1]):
            if weights[row, i] != 0:
                labels[row, positions[row, i]] = ids[row, i]


def warm_up() -> None:
    """Compile the entry kernels of this module, for each type of columns."""
    at = np.zeros(1, np.int64)
    masks = np.zeros((1, 1), np.int32)
    put_labels(masks, masks, np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int64))
    integers = [(kind, to) for kind in (np.uint8, np.uint16, np.int32) for to in (np.int32, np.int64)]
    for kind, to in (*integers, (np.uint8, np.uint8), (np.float32, np.float32)):
        gather(np.zeros((1, 1), kind), at, 0, np.empty((1, 1), to))
