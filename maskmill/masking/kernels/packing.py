"""Packs sequences into rows, best fit first, in linear time."""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.memory import trailing_zeros

_WORD_BITS = 64
_SHIFT = 6
_NO_ROW = -1
_SHORTEST = 2  # pieces: a shorter sequence takes as much room, so that a row of S pieces has at most S // 2 of them


@kernel
def longest_first(lengths, most):
    """Return the sequences by length, the longest first, those of equal length as they stand: a counting sort.

    lengths: int32[sequences], 1 to `most`.
    """
    places = np.zeros(most + 2, np.int64)  # where those of each length go next
    for length in lengths:
        places[length] += 1
    place = 0
    for length in range(most, -1, -1):
        count = places[length]
        places[length] = place
        place += count
    order = np.empty(len(lengths), np.int64)
    for sequence in range(len(lengths)):
        length = lengths[sequence]
        order[places[length]] = sequence
        places[length] += 1
    return order


@kernel
def _smallest_from(piles, words, room):
    """Return the smallest room, not below `room`, whose pile has a row; _NO_ROW if there is none."""
    word = room >> _SHIFT
    bits = piles[word] >> np.uint64(room & 63)
    if bits:
        return room + trailing_zeros(bits)
    place = word + 1
    for upper in range(place >> _SHIFT, len(words)):
        bits = words[upper]
        if upper == place >> _SHIFT:
            bits = bits >> np.uint64(place & 63) << np.uint64(place & 63)
        if bits:
            word = (upper << _SHIFT) + trailing_zeros(bits)
            return (word << _SHIFT) + trailing_zeros(piles[word])
    return np.int64(_NO_ROW)


@kernel
def best_fit(lengths, order, most):
    """Put each sequence into the row with the least room that is enough for it; return their rows and their number.

    Of rows with equally much room, the one that came to have that much last is taken, as in Krell's code.

    lengths: int32[sequences], 1 to `most`. order: int64[sequences], which comes when. most: the pieces of a row.
    """
    row_of = np.empty(len(lengths), np.int64)
    next_row = np.empty(len(lengths), np.int64)
    tops = np.full(most + 1, _NO_ROW)
    piles = np.zeros((most >> _SHIFT) + 2, np.uint64)
    words = np.zeros((len(piles) >> _SHIFT) + 1, np.uint64)
    rows = 0
    for sequence in order:
        size = max(np.int64(lengths[sequence]), _SHORTEST)
        room = _smallest_from(piles, words, size)
        if room == _NO_ROW:
            room = np.int64(most)
            row = rows
            rows += 1
        else:
            row = tops[room]
            tops[room] = next_row[row]
            if tops[room] == _NO_ROW:
                word = room >> _SHIFT
                piles[word] ^= np.uint64(1) << np.uint64(room & 63)
                if piles[word] == 0:
                    words[word >> _SHIFT] ^= np.uint64(1) << np.uint64(word & 63)
        row_of[sequence] = row
        room -= size
        next_row[row] = tops[room]
        tops[room] = row
        word = room >> _SHIFT
        piles[word] |= np.uint64(1) << np.uint64(room & 63)
        words[word >> _SHIFT] |= np.uint64(1) << np.uint64(word & 63)
    return row_of, rows


@kernel
def rows_in_order(row_of, rows):
    """Return numbers rows by their first members, and lists the members of each as they stand in the text.

    row_of: int64[sequences], the row of each, below `rows`; it is written to. Returns int64 arrays: the members of all
    rows, row after row, and where those of each row end.
    """
    numbers = np.full(rows, _NO_ROW)
    ends = np.zeros(rows, np.int64)
    met = 0
    for sequence in range(len(row_of)):
        row = row_of[sequence]
        if numbers[row] == _NO_ROW:
            numbers[row] = met
            met += 1
        row_of[sequence] = numbers[row]
        ends[numbers[row]] += 1
    place = 0
    for row in range(rows):  # where each row's next member goes
        count = ends[row]
        ends[row] = place
        place += count
    members = np.empty(len(row_of), np.int64)
    for sequence in range(len(row_of)):
        row = row_of[sequence]
        members[ends[row]] = sequence
        ends[row] += 1
    return members, ends


def warm_up() -> None:
    """Compile the entry kernels of this module."""
    lengths = np.ones(1, np.int32)
    rows_in_order(*best_fit(lengths, longest_first(lengths, 5), 5))
