"""Rows: what a record holds. Instances, or sequences, one or several in a row, with their pieces copied together.

Rows are made some megabytes at a time, in arrays that are used again and again. Every format is written from them.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Which sequences stand in which row, and what the masks of a row are drawn by.

    members: int64[members], the sequences of all rows, row after row.
    ends: int64[rows], where the members of each row end.
    epochs, samples: int64[rows], the masks of a row are a function of (seed, epoch, sample), see row_masks.py.
    """

    members: np.ndarray
    ends: np.ndarray
    epochs: np.ndarray
    samples: np.ndarray


class RowArrays(NamedTuple):
    """A block of rows. S is max_seq_length, P max_predictions_per_seq; a row has at most M = S // 2 sequences.

    input_ids: int32[rows, S], pieces as the model reads them, masked where masks are stored; 0 behind the last.
    lengths: int32[rows], how many pieces a row has, special ones included.
    segment_ids: uint8[rows, S], 0 behind the last piece; [rows, 0] for objectives without segments.
    positions: int32[rows, P], the masked positions, ascending, then 0; [rows, 0] where the reader draws the masks.
    labels: int32[rows, P], the pieces that belong there, then 0; [rows, 0] likewise.
    masked: int32[rows], how many positions are masked.
    sequence_starts: int32[rows, M + 1], where the sequences of a row start, then where the last one ends.
    members: int32[rows], how many sequences a row has.
    next_sentence_labels: uint8[rows, M], a label for each sequence; [rows, 0] for objectives without labels.
    """

    input_ids: np.ndarray
    lengths: np.ndarray
    segment_ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    masked: np.ndarray
    sequence_starts: np.ndarray
    members: np.ndarray
    next_sentence_labels: np.ndarray
