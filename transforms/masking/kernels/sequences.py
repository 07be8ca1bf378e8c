"""Sequences of pieces: what an objective makes of a text before anything is masked.

Nothing is copied: a sequence is a run of spans, and a span is a range of the pieces of the whole text or one special
piece.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np


class Sequences(NamedTuple):
    """Sequences as spans of the pieces of a text.

    starts: int64[spans], where each span starts in the pieces of the text; -1 - ID stands for the special piece ID.
    sizes: int32[spans], how many pieces it has; 1 for a special piece.
    segments: uint8[spans], the segment id of its pieces.
    ends: int64[sequences], where the spans of each sequence end.
    lengths: int32[sequences], how many pieces it has, special ones included.
    labels: uint8[sequences], what next_sentence_labels says of it; empty for objectives without such a label.
    """

    starts: np.ndarray
    sizes: np.ndarray
    segments: np.ndarray
    ends: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
