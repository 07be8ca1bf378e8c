"""Rows: what a record holds. Instances, or sequences, one or several in a row, with their pieces copied together.

Rows are made some megabytes at a time, in arrays that are used again and again. Every format is written from them.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import (
    address,
    copy_32,
    get_i32,
    get_i64,
    get_u16,
    load_u8,
    prefetch,
    put_i32,
    store_u8,
)
from maskmill.masking.kernels.instances import InstanceArrays
from maskmill.masking.kernels.masks import KIND_SHIFT, MASKED, POSITION, REDRAWN
from maskmill.masking.kernels.pairs import SPECIAL_PIECES
from maskmill.masking.kernels.sequences import Sequences

# How many rows before its turn what a row is made of is prefetched, and the table rows that say where that is.
_PREFETCH_PIECES = 2
_PREFETCH_TABLE = 6
_CACHE_LINE = 64
_COPIED = 8  # pieces that copy_32 copies


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
    """A block of rows. S is max_seq_length, P max_predictions_per_seq, M the most sequences of a row, at most S // 2.

    The arrays are used again for block after block: what no line below speaks of, such as sequence_starts after the
    last sequence, is left over from earlier blocks.

    input_ids: int32[rows, S], pieces as the model reads them, masked where masks are stored; padding after the last.
    lengths: int32[rows], how many pieces a row has, special ones included.
    segment_ids: uint8[rows, S], 0 after the last piece; [rows, 0] for objectives without segments.
    positions: int32[rows, P], the masked positions, ascending, then 0; [rows, 0] where the reader draws the masks.
    labels: int32[rows, P], the pieces that belong there, then 0; [rows, 0] likewise.
    masked: int32[rows], how many positions are masked; 0 where the reader draws the masks.
    sequence_starts: int32[rows, M + 1], where the sequences of a row start, then where the last one ends.
    members: int32[rows], how many sequences a row has.
    next_sentence_labels: uint8[rows, M], a label for each sequence; [rows, 0] for objectives without labels.
    continues: uint8[rows, S], 1 where a piece goes on a word, else 0, as at special pieces and after the last piece;
      [rows, 0] where this is not asked for, or the pieces tell it by themselves.
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
    continues: np.ndarray


class SpecialIds(NamedTuple):
    """The ids of the special pieces, and of padding."""

    cls_id: int
    sep_id: int
    mask_id: int
    pad_id: int


class _Places(NamedTuple):
    """The addresses of the arrays of RowArrays, and how many elements of each a row has; see kernels/memory.py."""

    input_ids: int
    lengths: int
    segment_ids: int
    positions: int
    labels: int
    masked: int
    sequence_starts: int
    members: int
    next_sentence_labels: int
    continues: int
    pieces: int
    segments: int
    predictions: int
    starts: int
    next_labels: int
    continuations: int


class _InstancePlaces(NamedTuple):
    """The addresses of the text's pieces and of the arrays of InstanceArrays."""

    ids: int
    spans: int
    lengths: int
    is_random: int
    mask_ends: int
    masks: int
    redrawn: int


class _SequencePlaces(NamedTuple):
    """The addresses of the text's pieces and of the arrays of Sequences and Rows."""

    ids: int
    continues: int
    span_starts: int
    span_sizes: int
    span_segments: int
    span_ends: int
    labels: int
    members: int
    row_ends: int


@kernel
def _places_of(rows):
    """Return the addresses of the arrays of RowArrays, and their rows' sizes."""
    return _Places(
        address(rows.input_ids),
        address(rows.lengths),
        address(rows.segment_ids),
        address(rows.positions),
        address(rows.labels),
        address(rows.masked),
        address(rows.sequence_starts),
        address(rows.members),
        address(rows.next_sentence_labels),
        address(rows.continues),
        np.int64(rows.input_ids.shape[1]),
        np.int64(rows.segment_ids.shape[1]),
        np.int64(rows.positions.shape[1]),
        np.int64(rows.sequence_starts.shape[1]),
        np.int64(rows.next_sentence_labels.shape[1]),
        np.int64(rows.continues.shape[1]),
    )


@kernel
def _copy_pieces(target, at, source, start, count):
    """Copy `count` pieces to target[at:] from source[start:]."""
    if count < _COPIED:
        for j in range(count):
            put_i32(target, at + j, get_i32(source, start + j))
        return
    for j in range(0, count - _COPIED, _COPIED):
        copy_32(target, 4 * (at + j), source, 4 * (start + j))
    last = count - _COPIED  # the last copy may repeat some pieces, so that none is written after the end
    copy_32(target, 4 * (at + last), source, 4 * (start + last))


@kernel
def _fill(target, start, end, value):
    """Set the bytes from `start` to `end`."""
    for j in range(start, end):
        store_u8(target, j, value)


@kernel
def _pad_pieces(places, k, length, pad_id):
    """Set what is after the last piece of row k: to padding, and to 0."""
    if pad_id == 0:
        _fill(places.input_ids, 4 * (places.pieces * k + length), 4 * places.pieces * (k + 1), 0)
    else:
        for j in range(places.pieces * k + length, places.pieces * (k + 1)):
            put_i32(places.input_ids, j, pad_id)
    if places.segments:
        _fill(places.segment_ids, places.segments * k + length, places.segments * (k + 1), 0)
    if places.continuations:
        _fill(places.continues, places.continuations * k + length, places.continuations * (k + 1), 0)


# ---- from instances


@kernel
def _prefetch_instance(source, n):
    """Prefetch what the arrays of instances say of one."""
    prefetch(source.spans, 16 * n)
    prefetch(source.lengths, 8 * n)
    prefetch(source.mask_ends, 16 * n - 16)
    prefetch(source.mask_ends, 16 * n)
    prefetch(source.is_random, n)


@kernel
def _prefetch_span(ids, start, count):
    """Prefetch a range of pieces."""
    for at in range(4 * start, 4 * (start + count) + _CACHE_LINE, _CACHE_LINE):
        prefetch(ids, at)


@kernel
def _prefetch_instance_pieces(source, n):
    """Prefetch what an instance is made of."""
    for part in range(2):
        _prefetch_span(source.ids, get_i64(source.spans, 2 * n + part), get_i32(source.lengths, 2 * n + part))
    end = get_i64(source.mask_ends, 2 * n)
    prefetch(source.masks, 2 * end - 1)
    prefetch(source.masks, 2 * end - 1 - _CACHE_LINE)
    prefetch(source.redrawn, 4 * get_i64(source.mask_ends, 2 * n + 1) - 1)


@kernel
def _put_masks(source, n, special_ids, places, k):
    """Mask row k as instance n is masked; return at how many positions."""
    start = get_i64(source.mask_ends, 2 * n - 2) if n > 0 else np.int64(0)
    masked = get_i64(source.mask_ends, 2 * n) - start
    r = get_i64(source.mask_ends, 2 * n + 1)
    row = places.pieces * k
    first = places.predictions * k
    for m in range(masked - 1, -1, -1):
        mask = get_u16(source.masks, start + m)
        kind = mask >> KIND_SHIFT
        r -= kind == REDRAWN
        position = mask & POSITION
        label = get_i32(places.input_ids, row + position)
        piece = get_i32(source.redrawn, r) if kind == REDRAWN else label
        put_i32(places.input_ids, row + position, special_ids.mask_id if kind == MASKED else piece)
        put_i32(places.positions, first + m, position)
        put_i32(places.labels, first + m, label)
    return masked


@kernel
def _gather_instance(source, n, special_ids, places, k):
    """Make row k of instance n."""
    a_length = get_i32(source.lengths, 2 * n)
    b_length = get_i32(source.lengths, 2 * n + 1)
    length = a_length + b_length + SPECIAL_PIECES
    row = places.pieces * k
    second = row + a_length + 2
    put_i32(places.input_ids, row, special_ids.cls_id)
    _copy_pieces(places.input_ids, row + 1, source.ids, get_i64(source.spans, 2 * n), a_length)
    put_i32(places.input_ids, second - 1, special_ids.sep_id)
    _copy_pieces(places.input_ids, second, source.ids, get_i64(source.spans, 2 * n + 1), b_length)
    put_i32(places.input_ids, second + b_length, special_ids.sep_id)
    _fill(places.segment_ids, row, second, 0)
    _fill(places.segment_ids, second, row + length, 1)
    masked = _put_masks(source, n, special_ids, places, k)
    put_i32(places.lengths, k, length)
    put_i32(places.masked, k, masked)
    put_i32(places.members, k, 1)
    put_i32(places.sequence_starts, places.starts * k, 0)
    put_i32(places.sequence_starts, places.starts * k + 1, length)
    store_u8(places.next_sentence_labels, places.next_labels * k, load_u8(source.is_random, n))
    _pad_pieces(places, k, length, special_ids.pad_id)
    _fill(places.positions, 4 * (places.predictions * k + masked), 4 * places.predictions * (k + 1), 0)
    _fill(places.labels, 4 * (places.predictions * k + masked), 4 * places.predictions * (k + 1), 0)


@kernel
def gather_instances(ids, instances, selection, special_ids, rows):
    """Make a row of each instance, [CLS] a [SEP] b [SEP], with its masks.

    ids: int32, the pieces of the whole text. instances: InstanceArrays.
    selection: int64, the instances, in the order in which they become rows. special_ids: SpecialIds.
    rows: RowArrays with segments, masks and labels, with room for all rows, and wide enough for each.
    """
    source = _InstancePlaces(
        address(ids),
        address(instances.spans),
        address(instances.lengths),
        address(instances.is_random),
        address(instances.mask_ends),
        address(instances.masks),
        address(instances.redrawn),
    )
    places = _places_of(rows)
    for k in range(len(selection)):
        # Instances are in random order, and waiting for memory costs more than all else.
        if k + _PREFETCH_TABLE < len(selection):
            _prefetch_instance(source, selection[k + _PREFETCH_TABLE])
        if k + _PREFETCH_PIECES < len(selection):
            _prefetch_instance_pieces(source, selection[k + _PREFETCH_PIECES])
        _gather_instance(source, selection[k], special_ids, places, np.int64(k))


# ---- from sequences


@kernel
def _before(ends, n):
    """Return ends[n - 1], where the n-th part starts; 0 for the first."""
    return get_i64(ends, n - 1) if n > 0 else np.int64(0)


@kernel
def _prefetch_row(source, row):
    """Prefetch where the spans of a row stand."""
    for m in range(_before(source.row_ends, row), get_i64(source.row_ends, row)):
        sequence = get_i64(source.members, m)
        prefetch(source.span_ends, 8 * sequence - 8)
        prefetch(source.span_ends, 8 * sequence)


@kernel
def _prefetch_spans(source, row):
    """Prefetch the spans of a row."""
    for m in range(_before(source.row_ends, row), get_i64(source.row_ends, row)):
        span = _before(source.span_ends, get_i64(source.members, m))
        prefetch(source.span_starts, 8 * span)
        prefetch(source.span_sizes, 4 * span)
        prefetch(source.span_segments, span)


@kernel
def _prefetch_row_pieces(source, row):
    """Prefetch the pieces of a row."""
    for m in range(_before(source.row_ends, row), get_i64(source.row_ends, row)):
        sequence = get_i64(source.members, m)
        for span in range(_before(source.span_ends, sequence), get_i64(source.span_ends, sequence)):
            start = get_i64(source.span_starts, span)
            if start >= 0:
                _prefetch_span(source.ids, start, get_i32(source.span_sizes, span))


@kernel
def _copy_continuations(source, start, size, places, target):
    """Write which pieces of a span go on a word; a special piece does not."""
    for j in range(size):
        store_u8(places.continues, target + j, load_u8(source.continues, start + j) if start >= 0 else 0)


@kernel
def _gather_sequence(source, sequence, places, k, at):
    """Append a sequence to row k, which has `at` pieces; return how many it has then."""
    row = places.pieces * k
    for span in range(_before(source.span_ends, sequence), get_i64(source.span_ends, sequence)):
        start = get_i64(source.span_starts, span)
        size = get_i32(source.span_sizes, span)
        if start < 0:
            put_i32(places.input_ids, row + at, -1 - start)
        else:
            _copy_pieces(places.input_ids, row + at, source.ids, start, size)
        if places.segments:
            _fill(places.segment_ids, row + at, row + at + size, load_u8(source.span_segments, span))
        if places.continuations:
            _copy_continuations(source, start, size, places, row + at)
        at += size
    return at


@kernel
def _gather_row(source, row, pad_id, places, k):
    """Make row k of the block of a row of Rows."""
    first = _before(source.row_ends, row)
    members = get_i64(source.row_ends, row) - first
    at = np.int64(0)
    for m in range(members):
        sequence = get_i64(source.members, first + m)
        put_i32(places.sequence_starts, places.starts * k + m, at)
        if places.next_labels:
            store_u8(places.next_sentence_labels, places.next_labels * k + m, load_u8(source.labels, sequence))
        at = _gather_sequence(source, sequence, places, k, at)
    put_i32(places.sequence_starts, places.starts * k + members, at)
    put_i32(places.lengths, k, at)
    put_i32(places.members, k, members)
    put_i32(places.masked, k, 0)
    _pad_pieces(places, k, at, pad_id)


@kernel
def gather_sequences(ids, continues, sequences, row_set, selection, pad_id, rows):
    """Make rows of sequences, without masks: positions and labels are left as they are.

    ids: int32, the pieces of the whole text. continues: uint8, for each of them 1 where it goes on a word; it may be
    empty where `rows` does not ask for it. sequences: Sequences. row_set: Rows.
    selection: int64, the rows of `row_set`, in this order. pad_id: the id of padding.
    rows: RowArrays with room for all rows, and wide enough for each in pieces and in sequences.
    """
    source = _SequencePlaces(
        address(ids),
        address(continues),
        address(sequences.starts),
        address(sequences.sizes),
        address(sequences.segments),
        address(sequences.ends),
        address(sequences.labels),
        address(row_set.members),
        address(row_set.ends),
    )
    places = _places_of(rows)
    for k in range(len(selection)):
        if k + 2 * _PREFETCH_TABLE < len(selection):
            _prefetch_row(source, selection[k + 2 * _PREFETCH_TABLE])
        if k + _PREFETCH_TABLE < len(selection):
            _prefetch_spans(source, selection[k + _PREFETCH_TABLE])
        if k + _PREFETCH_PIECES < len(selection):
            _prefetch_row_pieces(source, selection[k + _PREFETCH_PIECES])
        _gather_row(source, selection[k], np.int64(pad_id), places, np.int64(k))


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    rows = RowArrays(
        input_ids=np.zeros((1, 5), np.int32),
        lengths=np.zeros(1, np.int32),
        segment_ids=np.zeros((1, 5), np.uint8),
        positions=np.zeros((1, 1), np.int32),
        labels=np.zeros((1, 1), np.int32),
        masked=np.zeros(1, np.int32),
        sequence_starts=np.zeros((1, 2), np.int32),
        members=np.zeros(1, np.int32),
        next_sentence_labels=np.zeros((1, 1), np.uint8),
        continues=np.zeros((1, 0), np.uint8),
    )
    ids, one, none = np.zeros(2, np.int32), np.zeros(1, np.int64), np.zeros(0, np.uint8)
    instances = InstanceArrays(
        spans=np.array([[0, 1]]),
        lengths=np.ones((1, 2), np.int32),
        is_random=np.zeros(1, np.uint8),
        mask_ends=np.zeros((1, 2), np.int64),
        masks=np.zeros(1, np.uint16),
        redrawn=np.zeros(1, np.int32),
    )
    gather_instances(ids, instances, one, SpecialIds(cls_id=0, sep_id=0, mask_id=0, pad_id=0), rows)
    sequences = Sequences(
        starts=one,
        sizes=np.ones(1, np.int32),
        segments=np.zeros(1, np.uint8),
        ends=one + 1,
        lengths=np.ones(1, np.int32),
        labels=np.zeros(1, np.uint8),
    )
    row_set = Rows(members=one, ends=one + 1, epochs=one, samples=one)
    gather_sequences(ids, none, sequences, row_set, one, 0, rows)
