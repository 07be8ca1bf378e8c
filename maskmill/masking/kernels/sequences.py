"""Sequences of pieces: what an objective makes of a text before anything is masked.

Nothing is copied: a sequence is a run of spans, and a span is a range of the pieces of the whole text or one special
piece. `fill_with_sentences` makes RoBERTa's sequences, `cut_documents` and `cut_framed_documents` make blocks.

Each entry kernel is called twice. Arrays that are full are not written to, so the first call, with empty arrays, says
how much room the sequences need. The kernels make no arrays, so they are lean (kernels/compiler.py).
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import lean_kernel

_FRAME = 2  # special pieces of a sequence: [CLS] and [SEP]


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


class SequenceRules(NamedTuple):
    """Rules that decide the sequences.

    length: most pieces of a sequence, special ones included.
    cls_id, sep_id: the ids of [CLS] and [SEP].
    joins: whether a sequence goes on in the next document.
    batch: for blocks, after how many documents the pieces that do not fill a block are dropped; 0: they never are.
    """

    length: int
    cls_id: int
    sep_id: int
    joins: bool
    batch: int


class Made(NamedTuple):
    """The numbers of spans and sequences, and of what the text lost.

    dropped: pieces of text that are in no sequence. split: sentences that were cut because no sequence holds them.
    """

    spans: int
    sequences: int
    dropped: int
    split: int


@lean_kernel
def fill_with_sentences(segment_starts, document_starts, rules, sequences):
    """Fill sequences with full sentences of one document after the other; return Made.

    A sentence that is longer than a sequence is cut into pieces that fill one, the rest counts as a sentence.

    segment_starts: int64[segments + 1], where each sentence starts in the pieces of the text, and where all end.
    document_starts: int64[documents + 1], the first sentence of each document, and how many there are.
    """
    n, k, length, run, split = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    most = rules.length - _FRAME
    for document in range(len(document_starts) - 1):
        at = segment_starts[document_starts[document]]
        if length > 0 and not rules.joins:
            n, k = _close(sequences, rules, n, k, run, at, length)
            length = np.int64(0)
        separated = length == 0  # from the document before
        for segment in range(document_starts[document], document_starts[document + 1]):
            end = segment_starts[segment + 1]
            split += end - at > most
            while at < end:
                size = min(most, end - at)
                if length > 0 and length + (not separated) + size + 1 > rules.length:
                    n, k = _close(sequences, rules, n, k, run, at, length)
                    length = np.int64(0)
                if length == 0:
                    n, run, length = _open(sequences, rules, n, at)
                elif not separated:
                    n, run, length = _separate(sequences, rules, n, run, at, length)
                separated = True
                length += size
                at += size
    if length > 0:
        n, k = _close(sequences, rules, n, k, run, segment_starts[-1], length)
    return Made(n, k, np.int64(0), split)


@lean_kernel
def cut_documents(document_starts, rules, sequences):
    """Cut documents, joined, into blocks of [CLS], text and [SEP]; return Made.

    Between two documents of a block stands a [SEP]. Where no text fits after it, the block ends, one piece shorter.
    Documents that are not to be joined have blocks of their own.

    document_starts: int64[documents + 1], where each document starts in the pieces of the text, and where all end.
    """
    n, k, length, run, dropped = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    block, block_n = np.int64(0), np.int64(0)  # where the open block starts in the text and in the spans
    full = rules.length - 1  # but for the last [SEP]
    for document in range(len(document_starts) - 1):
        at, end = document_starts[document], document_starts[document + 1]
        if length == full - 1 or (length > 0 and not rules.joins):
            n, k = _close(sequences, rules, n, k, run, at, length)
            length = np.int64(0)
        elif length > 0:
            n, run, length = _separate(sequences, rules, n, run, at, length)
        while at < end:
            if length == 0:
                block, block_n = at, n
                n, run, length = _open(sequences, rules, n, at)
            size = min(full - length, end - at)
            length += size
            at += size
            if length == full:
                n, k = _close(sequences, rules, n, k, run, at, length)
                length = np.int64(0)
        if length > 0 and rules.batch > 0 and (document + 1) % rules.batch == 0:
            dropped += end - block
            n, length = block_n, np.int64(0)
    if length > 0 and rules.batch > 0:
        dropped += document_starts[-1] - block
        n = block_n
    elif length > 0:
        n, k = _close(sequences, rules, n, k, run, document_starts[-1], length)
    return Made(n, k, dropped, np.int64(0))


@lean_kernel
def cut_framed_documents(document_starts, rules, sequences):
    """Cut documents that each stand between a [CLS] and a [SEP] into blocks, as they come; return Made.

    A last block that is nothing but a [SEP] is left out. `document_starts` as in `cut_documents`.
    """
    n, k, length, dropped = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    block, block_n = np.int64(0), np.int64(0)  # where the open block starts in the text and in the spans
    documents = len(document_starts) - 1
    for document in range(documents):
        at, end = document_starts[document], document_starts[document + 1]
        if length == 0:
            block, block_n = at, n
        n, k, length = _add(sequences, rules, n, k, length, -1 - rules.cls_id, 1)
        while at < end:
            if length == 0:
                block, block_n = at, n
            size = min(rules.length - length, end - at)
            n, k, length = _add(sequences, rules, n, k, length, at, size)
            at += size
        if length == 0:
            block, block_n = at, n
        n, k, length = _add(sequences, rules, n, k, length, -1 - rules.sep_id, 1)
        if rules.batch > 0 and ((document + 1) % rules.batch == 0 or document == documents - 1):
            if length > 0:
                dropped += end - block
                n, length = block_n, np.int64(0)
    if length > 1:
        k = _end(sequences, n, k, length)
    elif length == 1:
        n = block_n
    return Made(n, k, dropped, np.int64(0))


@lean_kernel
def _open(sequences, rules, n, at):
    """Begin a sequence with [CLS]; return the spans, where the run of text starts, and the pieces so far."""
    return _put(sequences, n, -1 - rules.cls_id, 1), at, np.int64(1)


@lean_kernel
def _separate(sequences, rules, n, run, at, length):
    """End a run of text with a [SEP]; return the spans, where the next run starts, and the pieces so far."""
    n = _put(sequences, n, run, at - run)
    return _put(sequences, n, -1 - rules.sep_id, 1), at, length + 1


@lean_kernel
def _close(sequences, rules, n, k, run, at, length):
    """End a run of text and its sequence with a [SEP]; return the spans and the sequences."""
    n, _, length = _separate(sequences, rules, n, run, at, length)
    return n, _end(sequences, n, k, length)


@lean_kernel
def _add(sequences, rules, n, k, length, start, size):
    """Add a span to a block, which ends if it is full; return the spans, the sequences and the block's pieces."""
    n = _put(sequences, n, start, size)
    length += size
    if length == rules.length:
        return n, _end(sequences, n, k, length), np.int64(0)
    return n, k, length


@lean_kernel
def _put(sequences, n, start, size):
    """Write a span, if there is room; return how many there are."""
    if n < len(sequences.starts):
        sequences.starts[n] = start
        sequences.sizes[n] = size
    return n + 1


@lean_kernel
def _end(sequences, n, k, length):
    """Write where a sequence ends, if there is room; return how many there are."""
    if k < len(sequences.ends):
        sequences.ends[k] = n
        sequences.lengths[k] = length
    return k + 1


def make_room(spans: int, sequences: int, labels: int = 0) -> Sequences:
    """Return arrays for so many spans, all of segment 0, sequences and labels."""
    return Sequences(
        starts=np.empty(spans, np.int64),
        sizes=np.empty(spans, np.int32),
        segments=np.zeros(spans, np.uint8),
        ends=np.empty(sequences, np.int64),
        lengths=np.empty(sequences, np.int32),
        labels=np.empty(labels, np.uint8),
    )


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    starts = np.array([0, 1])
    rules = SequenceRules(length=5, cls_id=1, sep_id=2, joins=True, batch=0)
    fill_with_sentences(starts, starts, rules, make_room(0, 0))
    cut_documents(starts, rules, make_room(0, 0))
    cut_framed_documents(starts, rules, make_room(0, 0))
