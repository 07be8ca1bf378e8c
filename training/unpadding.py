"""Puts the padded examples of a batch into rows without padding. This imports neither TensorFlow nor Keras."""

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.loading.batches import NO_LABEL, Batch
from maskmill.masking.packing import pack
from maskmill.records.features import OF_MASKS, most_sequences

_OF_TOKENS = ("input_ids", "input_mask", "segment_ids")
# A batch keeps up to so large a share of unneeded rows, so that few numbers of rows occur, because each makes a step
# compile again. The same holds for the masks of a row.
_SHARES = 16
_MASKS_TOGETHER = 8


def unpadded(batch: Batch, width: int, multiple: int = 1) -> Batch:
    """Put the examples of a padded batch [B, S] into rows of `width` tokens, best fit, one after the other.

    The arrays are those of packed rows (maskmill/loading/batches.py, "google"), [R, …], with room for a row's masks. R
    is a function of the lengths, and a multiple of `multiple`; unneeded rows are padding.

    Raises:
      UnusableInputError: an example has no token, or one that follows padding.
    """
    mask = batch["input_mask"]
    if not mask[:, 0].all() or (mask[:, 1:] > mask[:, :-1]).any():
        raise UnusableInputError(
            "input_mask of an example is not ones and then zeros, and --unpad takes padding at the end only; make the "
            "examples with the padding at their end, or leave --unpad out."
        )
    members, ends = pack(mask.sum(axis=1, dtype=np.int32), width)
    mask = mask[members] > 0
    lengths = mask.sum(axis=1)
    firsts = np.concatenate([[0], ends[:-1]])  # the first example of each row
    rows = np.repeat(np.arange(len(ends)), ends - firsts)
    places = np.arange(len(members)) - firsts[rows]  # of an example among those of its row
    starts = np.cumsum(lengths) - lengths
    starts -= starts[firsts][rows]
    unit = multiple * max(1, len(mask) // (_SHARES * multiple))
    count = _rounded(len(ends), unit)
    made: Batch = {}
    cells = ((rows * width + starts)[:, None] + np.arange(mask.shape[1]))[mask]
    for name in _OF_TOKENS:
        if name in batch:
            made[name] = np.zeros((count, width), np.int32)
            made[name].reshape(-1)[cells] = batch[name][members][mask]
    is_mask = batch["masked_lm_weights"][members] > 0
    row_of = np.repeat(rows, is_mask.sum(axis=1))
    at = np.arange(len(row_of)) - np.searchsorted(row_of, row_of)
    for name in OF_MASKS:
        values = batch[name][members]
        if name == "masked_lm_positions":
            values = values + starts[:, None].astype(np.int32)
        made[name] = np.zeros((count, _rounded(at.max(initial=0) + 1, _MASKS_TOGETHER)), values.dtype)
        made[name][row_of, at] = values[is_mask]
    made["cu_seqlens"] = np.zeros((count, most_sequences(width) + 1), np.int32)
    made["cu_seqlens"][rows, places + 1] = starts + lengths
    np.maximum.accumulate(made["cu_seqlens"], axis=1, out=made["cu_seqlens"])
    if "next_sentence_labels" in batch:
        made["next_sentence_labels"] = np.full((count, most_sequences(width)), NO_LABEL, np.int32)
        made["next_sentence_labels"][rows, places] = batch["next_sentence_labels"].reshape(-1)[members]
    return made


def _rounded(count: int, unit: int) -> int:
    """Return `count` rounded up to a multiple of `unit`."""
    return -(-int(count) // unit) * unit
