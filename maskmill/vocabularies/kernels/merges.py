"""Byte-pair merges over counted words.

The most frequent pair of neighbouring symbols becomes a piece, again and again; of equally frequent pairs the one with
the smaller left id, then the one with the smaller right id (Gage 1994; Sennrich, Haddow and Birch 2016). These are the
merges of `tokenizers` (models/bpe/trainer.rs), with its ids.

No two merges give the same piece, and no pair comes back once it is merged. A piece that stands somewhere was never
crossed by another one there, so that what is inside it was merged as if it stood alone: in the same way everywhere.
So the count of a pair never grows after the merge that made it, and pairs that are too rare then are forgotten.

Three arrays hold the state, all counts are 64-bit integers:

pairs: int64[slots, 2], a hash table from a pair (PAIR: left id << 32 | right id, or _FREE) to its count (COUNT), which
is 0 in a free slot.

queue: int64[entries, 4], a heap with an entry for each pair: its count when the entry was made, the pair, and its
words: where their numbers begin in `places`, and how many they are. An entry's count is brought up to date when the
entry comes to the top. In some of the words the pair may be gone.

places: int32, the words of all entries, one list after the other. Nothing is taken out of it: it has room for all
places that can ever be, and the system gives memory for what is written.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import Any, NamedTuple

import numpy as np

from maskmill.kernels import kernel, lean_kernel, wraps_around

# Columns of `pairs`.
PAIR = 0
COUNT = 1
_FREE = -1

# Columns of `queue`; the first two decide the order.
_TOP_COUNT = 0
_TOP_PAIR = 1
_START = 2
_WORDS = 3

# Columns of `Changes.rows`.
_MORE = 0  # occurrences of the row's piece beside the whole
_FEWER = 1  # occurrences that it had beside the part of the merge that stood there
_NEW_WORDS = 2  # words in which it is new beside the whole; then where the next of them goes in `places`
_LAST_WORD = 3  # the last of them, plus 1
_NOT_QUEUED = -1

# Places in `Changes.numbers`.
_TOUCHED = 0
_PLACES = 1

_HALF = 32
_LOW = (1 << _HALF) - 1
_FIRST_SLOTS = 1 << 12
_HASH = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio: Knuth's multiplicative hashing


@kernel
@wraps_around
def _slot(pairs, pair):
    """Return where `pair` is in the table, or the free slot where it belongs."""
    mask = len(pairs) - 1
    hashed = np.uint64(pair) * _HASH
    slot = np.int64(hashed >> np.uint64(_HALF)) & mask
    while pairs[slot, PAIR] != pair and pairs[slot, PAIR] != _FREE:
        slot = (slot + 1) & mask
    return slot


@kernel
def _with_room(pairs, used, more, least):
    """Return the table with room for `more` pairs, without those that occur less than `least` times; how many it
    has.
    """
    if 3 * (used + more) <= 2 * len(pairs):
        return pairs, used
    kept = np.int64(0)
    for slot in range(len(pairs)):
        if pairs[slot, COUNT] >= least:
            kept += 1
    slots = np.int64(_FIRST_SLOTS)
    while slots < 2 * (kept + more):
        slots *= 2
    grown = np.zeros((slots, 2), np.int64)
    grown[:, PAIR] = _FREE
    for slot in range(len(pairs)):
        if pairs[slot, COUNT] >= least:
            place = _slot(grown, pairs[slot, PAIR])
            grown[place, PAIR] = pairs[slot, PAIR]
            grown[place, COUNT] = pairs[slot, COUNT]
    return grown, kept


@kernel
def _before(queue, one, other):
    """Return whether an entry of the queue is merged before another."""
    if queue[one, _TOP_COUNT] != queue[other, _TOP_COUNT]:
        return queue[one, _TOP_COUNT] > queue[other, _TOP_COUNT]
    return queue[one, _TOP_PAIR] < queue[other, _TOP_PAIR]


@kernel
def _swap(queue, one, other):
    for column in range(4):
        held = queue[one, column]
        queue[one, column] = queue[other, column]
        queue[other, column] = held


@kernel
def _rise(queue, at):
    """Move an entry up to where it belongs."""
    while at and _before(queue, at, (at - 1) >> 1):
        _swap(queue, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@kernel
def _sink(queue, entries, at):
    """Move an entry down to where it belongs."""
    while True:
        first = at
        for below in range(2 * at + 1, min(2 * at + 3, entries)):
            if _before(queue, below, first):
                first = below
        if first == at:
            return
        _swap(queue, at, first)
        at = first


@kernel
def _pushed(queue, entries, count, pair, start, words):
    """Return the queue with one entry more, which is a copy if it had no room."""
    if entries == len(queue):
        grown = np.empty((entries + (entries >> 1) + 8, 4), np.int64)
        grown[:entries] = queue
        queue = grown
    queue[entries, _TOP_COUNT] = count
    queue[entries, _TOP_PAIR] = pair
    queue[entries, _START] = start
    queue[entries, _WORDS] = words
    _rise(queue, entries)
    return queue


@kernel
def _start_of(ends, word):
    """Return where a word begins."""
    return ends[word - 1] if word else np.int64(0)


@kernel
def _first_pair(words, word):
    """Return where a word begins, where its second piece does, and where it ends; a word of weight 0 has no second
    piece.
    """
    at, end = _start_of(words.ends, word), words.ends[word]
    after = at + words.lengths[words.symbols[at]] if words.weights[word] and at < end else end
    return at, after, end


@kernel
def _first_pairs(words):
    """Return the pairs of all words: the table, its COUNT being a row of the other result, and how many there are.

    Also int64[pairs, 3]: the occurrences of each pair, the words that have it, and the last of them plus 1.
    """
    pairs = np.zeros((_FIRST_SLOTS, 2), np.int64)
    pairs[:, PAIR] = _FREE
    found = np.zeros((_FIRST_SLOTS, 3), np.int64)
    used = np.int64(0)
    symbols = words.symbols
    for word in range(len(words.ends)):
        at, after, end = _first_pair(words, word)
        while after < end:
            pair = np.int64(symbols[at]) << _HALF | np.int64(symbols[after])
            slot = _slot(pairs, pair)
            if pairs[slot, PAIR] == _FREE:
                if 3 * (used + 1) > 2 * len(pairs):
                    pairs, used = _with_room(pairs, used, used, 1)
                    grown = np.zeros((len(pairs), 3), np.int64)
                    grown[: len(found)] = found
                    found = grown
                    slot = _slot(pairs, pair)
                used += 1
                pairs[slot, PAIR] = pair
                pairs[slot, COUNT] = used
            row = pairs[slot, COUNT] - 1
            found[row, 0] += words.weights[word]
            if found[row, 2] != word + 1:
                found[row, 1] += 1
                found[row, 2] = word + 1
            at = after
            after = at + words.lengths[symbols[at]]
    return pairs, found, used


@kernel
def _first_places(words, pairs, found, places):
    """Write the words of all pairs to `places`; `found`'s second column says where those of each go, then end."""
    found[:, 2] = 0
    symbols = words.symbols
    for word in range(len(words.ends)):
        at, after, end = _first_pair(words, word)
        while after < end:
            pair = np.int64(symbols[at]) << _HALF | np.int64(symbols[after])
            row = pairs[_slot(pairs, pair), COUNT] - 1
            if found[row, 2] != word + 1:
                found[row, 2] = word + 1
                places[found[row, 1]] = word
                found[row, 1] += 1
            at = after
            after = at + words.lengths[symbols[at]]


@kernel
def _start(words, places, least):
    """Return the table and the queue of the words as they are, and how many pairs and places there are."""
    pairs, found, used = _first_pairs(words)
    filled = np.int64(0)
    for row in range(used):
        found[row, 1], filled = filled, filled + found[row, 1]
    _first_places(words, pairs, found, places)
    queue = np.empty((used + 8, 4), np.int64)
    entries = np.int64(0)
    for slot in range(len(pairs)):
        if pairs[slot, PAIR] != _FREE:
            row = pairs[slot, COUNT] - 1
            start = found[row - 1, 1] if row else np.int64(0)
            pairs[slot, COUNT] = found[row, 0]
            if found[row, 0] >= least:
                queue = _pushed(queue, entries, found[row, 0], pairs[slot, PAIR], start, found[row, 1] - start)
                entries += 1
    return pairs, used, queue, entries, filled


class Words(NamedTuple):
    """The words as they are, see `merge_words`, with the length of each piece in bytes."""

    symbols: Any
    ends: Any
    weights: Any
    lengths: Any


class Changes(NamedTuple):
    """The changes that a merge makes.

    merge: int64[3], the ids of the two parts and of the whole.
    rows: int64[2 * pieces, 4], two rows for each piece: the changes to the pairs that it is the left of, then to those
      that it is the right of. All zero before and after a merge.
    touched: int64[2 * pieces], the rows that are not.
    places: int32[places, 2], a row of `rows` and a word in which its pair is new.
    numbers: int64[2], how many rows are touched and how many places there are.
    """

    merge: Any
    rows: Any
    touched: Any
    places: Any
    numbers: Any


@lean_kernel
def _note(changes, row, column, weight):
    """Add to a column of a row."""
    rows = changes.rows
    if not rows[row, _MORE] and not rows[row, _FEWER]:
        changes.touched[changes.numbers[_TOUCHED]] = row
        changes.numbers[_TOUCHED] += 1
    rows[row, column] += weight


@lean_kernel
def _note_place(changes, row, word):
    """Record that the pair of a row is new in a word, once for each word."""
    rows = changes.rows
    if rows[row, _LAST_WORD] != word + 1:
        rows[row, _LAST_WORD] = word + 1
        rows[row, _NEW_WORDS] += 1
        place = changes.numbers[_PLACES]
        changes.places[place, 0] = row
        changes.places[place, 1] = word
        changes.numbers[_PLACES] += 1


@lean_kernel
def _merge_in_word(words, word, changes):
    """Merge a pair wherever it is in one word, from left to right, and note what changes."""
    symbols = words.symbols
    left = changes.merge[0]
    right = changes.merge[1]
    whole = changes.merge[2]
    end = words.ends[word]
    weight = words.weights[word]
    at = _start_of(words.ends, word)
    before = np.int64(-1)
    while at < end:
        symbol = np.int64(symbols[at])
        after = at + words.lengths[symbol]
        if symbol == left and after < end and symbols[after] == right:
            symbols[at] = whole
            after += words.lengths[right]
            if before >= 0:
                _note(changes, 2 * before, _FEWER, weight)
                _note(changes, 2 * before, _MORE, weight)
                _note_place(changes, 2 * before, word)
            if after < end:
                behind = np.int64(symbols[after])
                _note(changes, 2 * behind + 1, _FEWER, weight)
                _note(changes, 2 * behind + 1, _MORE, weight)
                _note_place(changes, 2 * behind + 1, word)
            symbol = whole
        before = symbol
        at = after


@lean_kernel
def _merge_everywhere(words, places, start, end, changes):
    """Merge a pair in the words that an entry of the queue names."""
    changes.numbers[:] = 0
    for place in range(start, end):
        _merge_in_word(words, np.int64(places[place]), changes)


@lean_kernel
def _most_new_places(words, places, start, end):
    """Return how many places a merge in the words of an entry makes at the most."""
    most = np.int64(0)
    for place in range(start, end):
        word = np.int64(places[place])
        most += words.ends[word] - _start_of(words.ends, word)
    return most


@lean_kernel
def _pair_of(row, left, right):
    """Return the pair of a row of `rows`: its piece, at the left of `right` or at the right of `left`."""
    return left << _HALF | row >> 1 if row & 1 else row >> 1 << _HALF | right


@lean_kernel
def _change_counts(pairs, used, least, changes):
    """Bring the counts of the pairs up to date after a merge; return how many pairs the table has."""
    merge = changes.merge
    rows = changes.rows
    touched = changes.touched[: changes.numbers[_TOUCHED]]
    for row in touched:
        if rows[row, _MORE] >= least:
            pair = _pair_of(row, merge[2], merge[2])
            slot = _slot(pairs, pair)
            pairs[slot, PAIR] = pair
            pairs[slot, COUNT] = rows[row, _MORE]
            used += 1
    for row in touched:
        slot = _slot(pairs, _pair_of(row, merge[1], merge[0]))
        if pairs[slot, PAIR] != _FREE:
            pairs[slot, COUNT] -= rows[row, _FEWER]
    return used


@kernel
def _queue_new(pairs, queue, entries, least, changes, places, filled):
    """Queue the pairs that a merge made, if they occur often enough, with their words."""
    rows = changes.rows
    whole = changes.merge[2]
    for row in changes.touched[: changes.numbers[_TOUCHED]]:
        count = np.int64(0)
        pair = _pair_of(row, whole, whole)
        if rows[row, _MORE] >= least:
            count = pairs[_slot(pairs, pair), COUNT]
        if count >= least:
            queue = _pushed(queue, entries, count, pair, filled, rows[row, _NEW_WORDS])
            entries += 1
            filled += rows[row, _NEW_WORDS]
            rows[row, _NEW_WORDS] = filled - rows[row, _NEW_WORDS]
        else:
            rows[row, _NEW_WORDS] = _NOT_QUEUED
    for row, word in changes.places[: changes.numbers[_PLACES]]:
        if rows[row, _NEW_WORDS] != _NOT_QUEUED:
            places[rows[row, _NEW_WORDS]] = word
            rows[row, _NEW_WORDS] += 1
    for row in changes.touched[: changes.numbers[_TOUCHED]]:
        rows[row] = 0
    return queue, entries, filled


@kernel
def _changes(size):
    """Return no changes, for up to `size` pieces."""
    return Changes(
        np.zeros(3, np.int64),
        np.zeros((2 * size, 4), np.int64),
        np.empty(2 * size, np.int64),
        np.empty((1 << 10, 2), np.int32),
        np.zeros(2, np.int64),
    )


@kernel
def _with_places(changes, most):
    """Return the changes with room for `most` places."""
    if most <= len(changes.places):
        return changes
    places = np.empty((most + (most >> 1), 2), np.int32)
    return Changes(changes.merge, changes.rows, changes.touched, places, changes.numbers)


@kernel
def _pop(queue, entries):
    """Take out the top of the queue."""
    _swap(queue, 0, entries - 1)
    _sink(queue, entries - 1, 0)
    return entries - 1


@kernel
def merge_words(symbols, ends, weights, lengths, alphabet, least):
    """Merge pairs until there are as many pieces as `lengths` has room for, or no pair occurs often enough.

    Args:
      symbols: int32[bytes of the words], the words as pieces of the alphabet: the id of a piece at its first byte, at
        its other bytes anything. It is written to.
      ends: int64[words], where each word ends in `symbols`.
      weights: int64[words], how often each occurs; those of 0 are left out.
      lengths: int32[pieces], the bytes of each piece; those of the alphabet are given, the others written.
      alphabet: how many pieces there are at first.
      least: how often a pair must occur.

    Returns int32[merges, 2], the parts of each piece that was made; the first of these pieces has the id `alphabet`.
    """
    words = Words(symbols, ends, weights, lengths)
    places = np.empty(3 * len(symbols) + 1, np.int32)
    pairs, used, queue, entries, filled = _start(words, places, least)
    changes = _changes(len(lengths))
    merge = changes.merge
    merges = np.empty((len(lengths) - alphabet, 2), np.int32)
    whole = np.int64(alphabet)
    while whole < len(lengths) and entries:
        count = pairs[_slot(pairs, queue[0, _TOP_PAIR]), COUNT]
        if count < least:
            entries = _pop(queue, entries)
            continue
        if count != queue[0, _TOP_COUNT]:
            queue[0, _TOP_COUNT] = count
            _sink(queue, entries, 0)
            continue
        merge[0] = queue[0, _TOP_PAIR] >> _HALF
        merge[1] = queue[0, _TOP_PAIR] & _LOW
        merge[2] = whole
        merges[whole - alphabet] = merge[:2]
        lengths[whole] = lengths[merge[0]] + lengths[merge[1]]
        start = queue[0, _START]
        end = start + queue[0, _WORDS]
        entries = _pop(queue, entries)
        changes = _with_places(changes, _most_new_places(words, places, start, end))
        _merge_everywhere(words, places, start, end, changes)
        pairs, used = _with_room(pairs, used, changes.numbers[_TOUCHED], least)
        used = _change_counts(pairs, used, least, changes)
        queue, entries, filled = _queue_new(pairs, queue, entries, least, changes, places, filled)
        whole += 1
    return merges[: whole - alphabet].copy()


def warm_up() -> None:
    """Compile the entry kernel of this module."""
    one = np.ones(1, np.int64)
    merge_words(np.zeros(2, np.int32), 2 * one, one, np.ones(2, np.int32), 1, 1)
