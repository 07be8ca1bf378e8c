"""Compares rows with the rules of their data set, and counts and hashes what is in them.

Everything is told by addresses (int64; 0: there is none): no array is handed over, see maskmill/kernels/memory.py.
The arrays must live as long as they are used. Each kernel goes through a row in linear time, mostly in loops that are
compiled to vector instructions; where such a loop says that something is wrong, a second one looks for the place.

Problems are kept in a table, int64[CODES, LINE]: how many rows have one of each kind, and what the first of them has.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from typing import NamedTuple

import numpy as np

from maskmill.kernels import lean_kernel, wraps_around
from maskmill.kernels.counter_random import mix
from maskmill.kernels.memory import get_i32, get_i64, get_u32, get_u64, load_u8, put_i32, put_i64, put_u64

# Kinds of problems; data/row_problems.tsv says what each is. Its place, expected and found stand in its line.
MASK_GAP, NOT_PADDED, PADDING_WITHIN, NO_PIECES, OTHER_WIDTH, OUTSIDE_BIN = range(6)
NO_START, NO_END, NO_MIDDLE, EMPTY_PART, SPECIAL_WITHIN, SPECIAL_MASK, CONTINUATION, SEGMENT = range(6, 14)
WEIGHTS, NOT_ASCENDING, BEHIND_PIECES, BEHIND_MASKS, SPECIAL_MASKED, MASK_LEFT = range(14, 20)
OTHER_MASKS, MANY_MASKS, HALF_WORD = range(20, 23)  # of the first two the place is the number of pieces
SEQUENCE_ENDS, SEQUENCE_ID, POSITION_ID, LABEL_COUNT = range(23, 27)
BROKEN_WORD = 27
CODES = 28

# What a line of the table of problems has: RECORD is the number of the first row's record in the file, from 0; LAST the
# record of the last row counted, -1 at first.
COUNT, RECORD, PLACE, EXPECTED, FOUND, LAST, LINE = range(7)

# How a sequence is framed. PAIR: [CLS], a first part, [SEP], a second part, [SEP]. SINGLE: [CLS], text, [SEP]. JOINED:
# the same, with a [SEP] between documents. CUT: documents, each between [CLS] and [SEP], cut anywhere.
UNKNOWN, PAIR, SINGLE, JOINED, CUT = range(5)

# What is known of the number of masks of a row.
ANY, EXACT, BOUNDED = range(3)

# Totals.
MASKED, KEPT, RANDOM, SECOND_LABELS, SEQUENCES = range(5)
SPECIAL = 5  # [CLS] and [SEP]
SKETCHED = 6  # hashes of openings that were written
PARTS = 7  # 4 of them: pieces of the first and second part of pairs of label 0, then of label 1
FIRST_HALF, FIRST_EXPECTED = 11, 12  # masks in the first half of their row, and how many of 2**SHARE_BITS by chance
MIDDLE_HALF, MIDDLE_EXPECTED = 13, 14  # the same of the second and third quarter
CONTINUED, CONTINUED_TOGETHER = 15, 16  # masked pieces that go on a word, and those whose neighbour in front is masked
OPENINGS, CLOSED_OPENINGS = 17, 18  # texts behind [CLS] or [SEP], and those that start with what ends a sentence
ORDER = 19  # of every second row and the one in front: 3 of them, it is longer, shorter, or as long
SEEN, LAST_LENGTH = 22, 23  # rows, and the length of the last one
REDRAWN = 24  # REDRAWN_PARTS of them: random pieces at masked places by their part of the vocabulary
REDRAWN_PARTS = 16
TOTALS = REDRAWN + REDRAWN_PARTS

# Bits of what a piece is.
CONTINUES = 1  # it goes on a word
ALONE = 2  # it is a word of its own, which no piece goes on
CLOSES = 4  # it ends a sentence

SHARE_BITS = 20

OPENING = 16  # pieces of text behind [CLS] or [SEP] that are hashed for the sketch
SPARE = 8  # pieces for which `original` has room behind those of a row

_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_LANE_1 = np.uint64(0x9E3779B97F4A7C15)
_LANE_2 = np.uint64(0xBF58476D1CE4E5B9)
_LANE_3 = np.uint64(0x94D049BB133111EB)
_32 = np.uint64(32)
# The lowest bits of the hash of a whole row say how many pieces of text it has, and in how many ways it can be masked,
# as scratch.pack_row packs them.
_LOW_BITS = np.uint64(0xFFFF)
_WAYS_BITS = np.uint64(6)
_WAYS_STEP = 4
_MOST_LENGTH = 1023
_KIND_BITS = 0.62  # the logarithm of the ways in which what is written at a masked position can be drawn, at least


class RowPlaces(NamedTuple):
    """The columns of a block of rows. S is the width of columns of pieces, P that of columns of masks.

    input_ids, sequence_ids, position_ids: int32[rows, S]. input_mask, segment_ids, special_tokens_mask,
    continuation_mask: uint8[rows, S]. stored: int32[rows], how many pieces of each row are stored, padding included.
    ends (cu_seqlens): int32[rows, most_ends], labels (next_sentence_labels): uint8[rows, most_labels], with
    ends_stored and labels_stored: int32[rows]. positions, label_ids: int32[rows, P], weights: float32[rows, P].
    numbers: int64[rows], the number of each row's record.
    """

    pieces: int
    predictions: int
    most_ends: int
    most_labels: int
    input_ids: int
    stored: int
    input_mask: int
    segment_ids: int
    special_tokens_mask: int
    continuation_mask: int
    sequence_ids: int
    position_ids: int
    ends: int
    ends_stored: int
    labels: int
    labels_stored: int
    positions: int
    label_ids: int
    weights: int
    numbers: int


class RuleTable(NamedTuple):
    """What rows are compared with.

    cls_id, sep_id, mask_id, pad_id: -1 where not known. cls_alone, sep_alone, mask_alone, pad_alone: whether such a
    piece stands only where the writer of the examples puts it, so never in a text. frame: UNKNOWN to CUT. packed:
    whether rows have several sequences. width: of padded rows; 0: any. least: pieces of a row. counts: ANY, EXACT or
    BOUNDED. to_predict: int64[S + 1], masks of rows of so many pieces. whole_words: whether whole words are masked.
    vocabulary: ids are below it; 0: not known. kinds_at: uint8[vocabulary], what each piece is; 0: not known.
    log_factorials: float64[S + 1], to the base 2.
    """

    cls_id: int
    sep_id: int
    mask_id: int
    pad_id: int
    cls_alone: int
    sep_alone: int
    mask_alone: int
    pad_alone: int
    frame: int
    packed: int
    width: int
    least: int
    counts: int
    to_predict: int
    whole_words: int
    vocabulary: int
    kinds_at: int
    log_factorials: int


class OutcomePlaces(NamedTuple):
    """What is written. int64 arrays count; all of them are added to.

    problems: int64[CODES, LINE]. lengths: int64[S + 1]. masks_at: int64[S]. masks: int64[P + 1]. piece_counts:
    int64[vocabulary]. totals: int64[TOTALS]. hashes: uint64[rows, 2], of each row masks undone, and of all of it.
    sketch: uint64[rows * (S // (OPENING + 1) + 1)], hashes of openings; totals[SKETCHED] says how many.
    original: int32[S + SPARE], room for a row with its masks undone.
    """

    problems: int
    lengths: int
    masks_at: int
    masks: int
    piece_counts: int
    totals: int
    hashes: int
    sketch: int
    original: int


class _Row(NamedTuple):
    """A row: the addresses of its values, the number of its record, and how many pieces are stored of it."""

    input_ids: int
    input_mask: int
    segment_ids: int
    special_tokens_mask: int
    continuation_mask: int
    sequence_ids: int
    position_ids: int
    ends: int
    ends_stored: int
    labels: int
    labels_stored: int
    positions: int
    label_ids: int
    weights: int
    record: int
    stored: int
    pieces: int
    predictions: int


@lean_kernel
def _at(base, row, width):
    """Where a row of `width` bytes starts; 0 where there is no such column."""
    return base + row * width if base else np.int64(0)


@lean_kernel
def _row_of(places, row):
    s, p = places.pieces, places.predictions
    return _Row(
        _at(places.input_ids, row, 4 * s),
        _at(places.input_mask, row, s),
        _at(places.segment_ids, row, s),
        _at(places.special_tokens_mask, row, s),
        _at(places.continuation_mask, row, s),
        _at(places.sequence_ids, row, 4 * s),
        _at(places.position_ids, row, 4 * s),
        _at(places.ends, row, 4 * places.most_ends),
        get_i32(places.ends_stored, row) if places.ends else np.int64(0),
        _at(places.labels, row, places.most_labels),
        get_i32(places.labels_stored, row) if places.labels else np.int64(0),
        _at(places.positions, row, 4 * p),
        _at(places.label_ids, row, 4 * p),
        _at(places.weights, row, 4 * p),
        get_i64(places.numbers, row),
        get_i32(places.stored, row),
        s,
        p,
    )


@lean_kernel
def _note(problems, code, record, place, expected, found):
    """Counts a problem of a row, once for each row, and keeps what the first row has."""
    line = problems + 8 * LINE * code
    if get_i64(line, LAST) == record:
        return
    put_i64(line, LAST, record)
    count = get_i64(line, COUNT)
    put_i64(line, COUNT, count + 1)
    if count == 0:
        put_i64(line, RECORD, record)
        put_i64(line, PLACE, place)
        put_i64(line, EXPECTED, expected)
        put_i64(line, FOUND, found)


@lean_kernel
def _add(base, place, value):
    put_i64(base, place, get_i64(base, place) + value)


# ---- pieces and padding


@lean_kernel
def _sum_of_bytes(base, start, end):
    total = np.int64(0)
    for k in range(start, end):
        total += load_u8(base, k)
    return total


@lean_kernel
def _count(values, start, end, wanted):
    """How many of the int32 values are `wanted`."""
    total = np.int64(0)
    for k in range(start, end):
        total += get_i32(values, k) == wanted
    return total


@lean_kernel
def _find(values, start, end, wanted):
    """The first place of `wanted` among int32 values, or -1."""
    for k in range(start, end):
        if get_i32(values, k) == wanted:
            return k
    return np.int64(-1)


@lean_kernel
def _masked_length(row, problems):
    """How many pieces a row has by its input_mask."""
    ones = _sum_of_bytes(row.input_mask, 0, row.pieces)
    if _sum_of_bytes(row.input_mask, 0, ones) != ones:
        gap = np.int64(0)
        while load_u8(row.input_mask, gap):
            gap += 1
        _note(problems, MASK_GAP, row.record, gap, np.int64(1), np.int64(0))
        ones = row.pieces
        while not load_u8(row.input_mask, ones - 1):
            ones -= 1
    return ones


@lean_kernel
def _length(row, rules, problems):
    """How many pieces a row has, and whether padding stands where it must."""
    n = row.stored
    if row.input_mask:
        n = _masked_length(row, problems)
    elif rules.width and rules.pad_id >= 0:
        while n > 0 and get_i32(row.input_ids, n - 1) == rules.pad_id:
            n -= 1
    if rules.width and row.stored != rules.width:
        _note(problems, OTHER_WIDTH, row.record, np.int64(-1), rules.width, row.stored)
    if n == 0:
        _note(problems, NO_PIECES, row.record, np.int64(0), np.int64(1), n)
    elif n < rules.least:
        _note(problems, OUTSIDE_BIN, row.record, np.int64(-1), rules.least, n)
    if rules.pad_id >= 0 and _count(row.input_ids, n, row.stored, rules.pad_id) != row.stored - n:
        place = n
        while get_i32(row.input_ids, place) == rules.pad_id:
            place += 1
        _note(problems, NOT_PADDED, row.record, place, rules.pad_id, get_i32(row.input_ids, place))
    return n


# ---- masks


@lean_kernel
def _weight(row, k):
    return np.uint32(get_u32(row.weights, k)).view(np.float32)


@lean_kernel
def _count_masks(row, problems):
    """How many masks a row has by its weights; and whether nothing stands behind the last."""
    m = np.int64(0)
    while m < row.predictions and _weight(row, m) == 1:
        m += 1
    rest = np.int64(0)
    for k in range(m, row.predictions):
        rest |= get_u32(row.weights, k) | get_u32(row.positions, k) | get_u32(row.label_ids, k)
    if rest:
        for k in range(m, row.predictions):
            if get_u32(row.weights, k):
                _note(problems, WEIGHTS, row.record, k, np.int64(0), np.int64(1000 * _weight(row, k)))
            elif get_u32(row.positions, k):
                _note(problems, BEHIND_MASKS, row.record, k, np.int64(0), get_i32(row.positions, k))
            elif get_u32(row.label_ids, k):
                _note(problems, BEHIND_MASKS, row.record, k, np.int64(0), get_i32(row.label_ids, k))
    return m


@lean_kernel
def _is_special(rules, piece):
    """Whether a piece is one that no text has."""
    return (
        (rules.cls_alone and piece == rules.cls_id)
        or (rules.sep_alone and piece == rules.sep_id)
        or (rules.mask_alone and piece == rules.mask_id)
        or (rules.pad_alone and piece == rules.pad_id)
    )


@lean_kernel
def _undo_masks(row, n, m, rules, outcome):
    """Puts back into `original` what was masked, and counts it."""
    last, kept, unchanged, masked = np.int64(-1), np.int64(0), np.int64(0), np.int64(0)
    for k in range(m):
        place, piece = get_i32(row.positions, k), get_i32(row.label_ids, k)
        if place <= last:
            _note(outcome.problems, NOT_ASCENDING, row.record, k, last, place)
        last = place
        if place >= n:
            _note(outcome.problems, BEHIND_PIECES, row.record, k, n, place)
            continue
        if _is_special(rules, piece):
            _note(outcome.problems, SPECIAL_MASKED, row.record, place, np.int64(-1), piece)
        found = get_i32(row.input_ids, place)
        masked += found == rules.mask_id
        unchanged += found == piece
        kept += found == piece and found != rules.mask_id
        put_i32(outcome.original, place, piece)
        _add(outcome.masks_at, place, 1)
    _add(outcome.totals, MASKED, m)
    _add(outcome.totals, KEPT, kept)
    _add(outcome.totals, RANDOM, m - masked - kept)
    _add(outcome.masks, m, 1)


@lean_kernel
def _check_words(row, n, m, rules, outcome):
    """Looks whether all pieces of a word are masked if one is. A special piece ends a word."""
    for k in range(m):
        place = get_i32(row.positions, k)
        if place >= n:
            continue
        if place > 0 and load_u8(rules.kinds_at, get_i32(outcome.original, place)) & CONTINUES:
            before = get_i32(outcome.original, place - 1)
            is_first = before == rules.cls_id or before == rules.sep_id
            if not is_first and (k == 0 or get_i32(row.positions, k - 1) != place - 1):
                _note(outcome.problems, HALF_WORD, row.record, place - 1, np.int64(1), np.int64(0))
        if place + 1 < n and load_u8(rules.kinds_at, get_i32(outcome.original, place + 1)) & CONTINUES:
            if k + 1 == m or get_i32(row.positions, k + 1) != place + 1:
                _note(outcome.problems, HALF_WORD, row.record, place + 1, np.int64(1), np.int64(0))


@lean_kernel
def _count_places(row, n, m, special, rules, outcome):
    """Counts where masks are: in which part of the row, and of words; and of which ids random pieces are."""
    half, quarter = n >> 1, n >> 2
    first, middle = np.int64(0), np.int64(0)
    for k in range(m):
        place = get_i32(row.positions, k)
        if place >= n:
            continue
        first += place < half
        middle += place >= quarter and place < quarter + half
        piece, found = get_i32(outcome.original, place), get_i32(row.input_ids, place)
        if rules.kinds_at and load_u8(rules.kinds_at, piece) & CONTINUES:
            _add(outcome.totals, CONTINUED, 1)
            if k > 0 and get_i32(row.positions, k - 1) == place - 1:
                _add(outcome.totals, CONTINUED_TOGETHER, 1)
        if rules.vocabulary and found != piece and found != rules.mask_id:
            _add(outcome.totals, REDRAWN + found * REDRAWN_PARTS // rules.vocabulary, 1)
    _add(outcome.totals, FIRST_HALF, first)
    _add(outcome.totals, MIDDLE_HALF, middle)
    free = max(n - special, np.int64(1))
    for start, total in ((np.int64(0), FIRST_EXPECTED), (quarter, MIDDLE_EXPECTED)):
        specials = _count(outcome.original, start, start + half, rules.cls_id)
        specials += _count(outcome.original, start, start + half, rules.sep_id)
        _add(outcome.totals, total, (m * max(half - specials, np.int64(0)) << SHARE_BITS) // free)


@lean_kernel
def _check_mask_count(row, n, m, special, rules, problems):
    """special: how many pieces of the row cannot be masked."""
    wanted = get_i64(rules.to_predict, n)
    if m > wanted and rules.counts == BOUNDED:
        _note(problems, MANY_MASKS, row.record, n, wanted, m)
    elif m != wanted and rules.counts == EXACT and (m > wanted or m < n - special):
        _note(problems, OTHER_MASKS, row.record, n, wanted, m)


# ---- sequences


@lean_kernel
def _check_segments(row, a, b, rules, outcome):
    """Looks where the first part of a pair ends: the place of the [SEP] between its parts, -1 if there is none."""
    s = b - 1 - _sum_of_bytes(row.segment_ids, a, b)
    if s > a and s < b - 1 and get_i32(outcome.original, s) == rules.sep_id:
        if _sum_of_bytes(row.segment_ids, a, s + 1) == 0:
            return s
    s = _find(outcome.original, a + 1, b - 1, rules.sep_id)
    if s < 0:
        _note(outcome.problems, NO_MIDDLE, row.record, a, rules.sep_id, np.int64(-1))
        return s
    for k in range(a, b):
        if load_u8(row.segment_ids, k) != (k > s):
            _note(outcome.problems, SEGMENT, row.record, k, np.int64(k > s), load_u8(row.segment_ids, k))
            break
    return s


@lean_kernel
def _count_opening(place, rules, outcome):
    """Counts a text that starts at a place."""
    _add(outcome.totals, OPENINGS, 1)
    if rules.kinds_at and load_u8(rules.kinds_at, get_i32(outcome.original, place)) & CLOSES:
        _add(outcome.totals, CLOSED_OPENINGS, 1)


@lean_kernel
def _check_frame(row, a, b, s, rules, outcome):
    """Looks for [CLS] and [SEP] in pieces [a, b), a sequence. s: where a [SEP] belongs within; -1: nowhere."""
    original, problems = outcome.original, outcome.problems
    if get_i32(original, a) != rules.cls_id:
        _note(problems, NO_START, row.record, a, rules.cls_id, get_i32(original, a))
    elif get_i32(row.input_ids, a) != rules.cls_id:
        _note(problems, SPECIAL_MASKED, row.record, a, rules.cls_id, get_i32(row.input_ids, a))
    if b - a < 2 or get_i32(original, b - 1) != rules.sep_id:
        _note(problems, NO_END, row.record, b - 1, rules.sep_id, get_i32(original, b - 1))
    elif get_i32(row.input_ids, b - 1) != rules.sep_id:
        _note(problems, SPECIAL_MASKED, row.record, b - 1, rules.sep_id, get_i32(row.input_ids, b - 1))
    starts = _count(original, a + 1, b - 1, rules.cls_id) if rules.cls_alone else np.int64(0)
    ends = np.int64(s >= 0)
    if rules.sep_alone:
        ends = _count(original, a + 1, b - 1, rules.sep_id)
    if starts or (rules.frame != JOINED and ends > (s >= 0)):
        for k in range(a + 1, b - 1):
            piece = get_i32(original, k)
            is_end = rules.sep_alone and piece == rules.sep_id and k != s and rules.frame != JOINED
            if is_end or (rules.cls_alone and piece == rules.cls_id):
                _note(problems, SPECIAL_WITHIN, row.record, k, np.int64(-1), piece)
                break
    return starts + ends + 2


@lean_kernel
def _check_cut(row, a, b, rules, outcome):
    """Looks whether each [SEP] is followed by a [CLS], and nothing else is; returns how many there are of both."""
    original = outcome.original
    special = np.int64(0)
    for k in range(a, b):
        piece = get_i32(original, k)
        special += piece == rules.cls_id or piece == rules.sep_id
        if rules.cls_alone and rules.sep_alone and k > a:
            if (piece == rules.cls_id) != (get_i32(original, k - 1) == rules.sep_id):
                _note(outcome.problems, SPECIAL_WITHIN, row.record, k, np.int64(-1), piece)
    return special


@lean_kernel
def _hash_opening(start, end, outcome, limit):
    """Hashes the first pieces of a text in [start, end), if there are as many, for the sketch."""
    if end - start >= OPENING:
        hashed = _hash_words(outcome.original + 4 * start, OPENING // 2, np.uint64(OPENING))
        if hashed < limit:
            n = get_i64(outcome.totals, SKETCHED)
            put_u64(outcome.sketch, n, hashed)
            put_i64(outcome.totals, SKETCHED, n + 1)


@lean_kernel
def _hash_openings(a, b, rules, outcome, limit):
    """Hashes what follows [CLS] or [SEP] in pieces [a, b), up to the next of them."""
    start = np.int64(-1)
    for k in range(a, b):
        piece = get_i32(outcome.original, k)
        if piece == rules.cls_id or piece == rules.sep_id:
            if start >= 0:
                _hash_opening(start, k, outcome, limit)
            start = k + 1
    if start >= 0:
        _hash_opening(start, b, outcome, limit)


@lean_kernel
def _check_sequence(row, a, b, label, rules, outcome, limit):
    """Looks at the sequence in pieces [a, b); returns how many [CLS] and [SEP] it has. label: of a pair."""
    if rules.frame == PAIR:
        s = _check_segments(row, a, b, rules, outcome)
        special = _check_frame(row, a, b, s, rules, outcome)
        if s >= 0:
            if s == a + 1 or s == b - 2:
                _note(outcome.problems, EMPTY_PART, row.record, s, np.int64(1), np.int64(0))
            if get_i32(row.input_ids, s) != rules.sep_id:
                _note(outcome.problems, SPECIAL_MASKED, row.record, s, rules.sep_id, get_i32(row.input_ids, s))
            _add(outcome.totals, PARTS + 2 * label, s - a - 1)
            _add(outcome.totals, PARTS + 2 * label + 1, b - s - 2)
            _hash_opening(a + 1, s, outcome, limit)
            _hash_opening(s + 1, b - 1, outcome, limit)
            _count_opening(a + 1, rules, outcome)
            _count_opening(s + 1, rules, outcome)
        return special
    special = np.int64(0)
    if rules.frame == SINGLE or rules.frame == JOINED:
        special = _check_frame(row, a, b, np.int64(-1), rules, outcome)
    elif rules.frame == CUT:
        special = _check_cut(row, a, b, rules, outcome)
    if rules.cls_id >= 0:
        _hash_openings(a, b, rules, outcome, limit)
        _count_opening(min(a + 1, b - 1), rules, outcome)
    return special


@lean_kernel
def _members(row, n, rules, problems):
    """How many sequences a row has; 0 if what it says of them is wrong."""
    if not rules.packed:
        return np.int64(1)
    last = np.int64(-1)
    for k in range(row.ends_stored):
        end = get_i32(row.ends, k)
        if end <= last or end > n or (k == 0 and end != 0):
            _note(problems, SEQUENCE_ENDS, row.record, k, max(last, 0) if k == 0 else last + 1, end)
            return np.int64(0)
        last = end
    if row.ends_stored < 2 or last != n:
        _note(problems, SEQUENCE_ENDS, row.record, max(row.ends_stored - 1, 0), n, last)
        return np.int64(0)
    members = row.ends_stored - 1
    if row.labels and row.labels_stored != members:
        _note(problems, LABEL_COUNT, row.record, np.int64(-1), members, row.labels_stored)
    return members


@lean_kernel
def _check_numbers(row, a, b, member, problems):
    """Compares sequence_ids and position_ids of pieces [a, b) with what they must be: padding has member 0."""
    if row.sequence_ids and _count(row.sequence_ids, a, b, member) != b - a:
        k = a
        while get_i32(row.sequence_ids, k) == member:
            k += 1
        _note(problems, SEQUENCE_ID, row.record, k, member, get_i32(row.sequence_ids, k))
    if row.position_ids:
        wrong = np.int64(0)
        step = np.int64(member > 0)
        for k in range(a, b):
            wrong += get_i32(row.position_ids, k) != (k - a) * step
        if wrong:
            k = a
            while get_i32(row.position_ids, k) == (k - a) * step:
                k += 1
            _note(problems, POSITION_ID, row.record, k, (k - a) * step, get_i32(row.position_ids, k))


@lean_kernel
def _check_sequences(row, n, rules, outcome, limit):
    """Looks at all sequences of a row; returns how many [CLS] and [SEP] it has."""
    members = _members(row, n, rules, outcome.problems)
    special, a, second = np.int64(0), np.int64(0), np.int64(0)
    for member in range(members):
        b = get_i32(row.ends, member + 1) if rules.packed else n
        label = np.int64(0)
        if row.labels and member < row.labels_stored:
            label = load_u8(row.labels, member) & 1
        second += label
        special += _check_sequence(row, a, b, label, rules, outcome, limit)
        if rules.packed:
            _check_numbers(row, a, b, member + 1, outcome.problems)
        a = b
    if rules.packed and members:
        _check_numbers(row, n, row.stored, np.int64(0), outcome.problems)
    _add(outcome.totals, SECOND_LABELS, second)
    _add(outcome.totals, SEQUENCES, members)
    _add(outcome.totals, SPECIAL, special)
    return special


# ---- what goes with each piece


@lean_kernel
def _check_marks(row, n, rules, outcome):
    """Compares columns that mark pieces with the pieces."""
    original, problems = outcome.original, outcome.problems
    if row.segment_ids and _sum_of_bytes(row.segment_ids, n, row.stored):
        k = n
        while not load_u8(row.segment_ids, k):
            k += 1
        _note(problems, SEGMENT, row.record, k, np.int64(0), load_u8(row.segment_ids, k))
    if row.special_tokens_mask and rules.cls_id >= 0:
        for k in range(row.stored):
            piece = get_i32(original, k) if k < n else rules.cls_id
            expected = np.int64(piece == rules.cls_id or piece == rules.sep_id)
            if load_u8(row.special_tokens_mask, k) != expected:
                _note(problems, SPECIAL_MASK, row.record, k, expected, load_u8(row.special_tokens_mask, k))
                break
    if row.continuation_mask:
        first = np.int64(rules.frame != UNKNOWN and rules.frame != CUT)  # there is a [CLS]
        for k in range(row.stored):
            if load_u8(row.continuation_mask, k) and (k < first or k >= n):
                _note(problems, CONTINUATION, row.record, k, np.int64(0), np.int64(1))
                break


@lean_kernel
def _count_pieces(row, n, rules, outcome):
    """Counts the pieces of a row with its masks undone, and looks for words that cannot be."""
    broken, before = np.int64(0), np.int64(0)
    for k in range(n):
        piece = get_i32(outcome.original, k)
        if piece < rules.vocabulary:
            _add(outcome.piece_counts, piece, 1)
            if rules.kinds_at:
                kind = load_u8(rules.kinds_at, piece)
                broken += kind & CONTINUES and before & ALONE
                before = kind
    if broken:
        k = np.int64(1)
        while not (_kind(rules, outcome, k) & CONTINUES and _kind(rules, outcome, k - 1) & ALONE):
            k += 1
        before, piece = get_i32(outcome.original, k - 1), get_i32(outcome.original, k)
        _note(outcome.problems, BROKEN_WORD, row.record, k, before, piece)


@lean_kernel
def _kind(rules, outcome, k):
    piece = get_i32(outcome.original, k)
    return load_u8(rules.kinds_at, piece) if piece < rules.vocabulary else np.int64(0)


@lean_kernel
def _count_order(n, outcome):
    """Counts whether every second row is longer than the one in front, or shorter, or as long."""
    seen, last = get_i64(outcome.totals, SEEN), get_i64(outcome.totals, LAST_LENGTH)
    if seen & 1:
        _add(outcome.totals, ORDER + (0 if n > last else 1 if n < last else 2), 1)
    put_i64(outcome.totals, SEEN, seen + 1)
    put_i64(outcome.totals, LAST_LENGTH, n)


@lean_kernel
def _check_pieces(row, n, rules, outcome):
    """Looks for [MASK] and padding among the pieces of a row with its masks undone."""
    original = outcome.original
    if rules.mask_alone and _count(original, 0, n, rules.mask_id):
        place = _find(original, 0, n, rules.mask_id)
        _note(outcome.problems, MASK_LEFT, row.record, place, np.int64(-1), rules.mask_id)
    if rules.pad_alone and _count(original, 0, n, rules.pad_id):
        place = _find(original, 0, n, rules.pad_id)
        _note(outcome.problems, PADDING_WITHIN, row.record, place, np.int64(-1), rules.pad_id)


# ---- hashes


@lean_kernel
@wraps_around
def _stir(state, word):
    state = (state ^ word) * _FACTOR
    return state ^ state >> _32


@lean_kernel
def _hash_words(base, words, seed):
    """Hashes words of 64 bits. Four lanes: a lane waits for each of its multiplications."""
    first, second, third, fourth = seed, seed ^ _LANE_1, seed ^ _LANE_2, seed ^ _LANE_3
    whole = words & -4
    for k in range(0, whole, 4):
        first = _stir(first, get_u64(base, k))
        second = _stir(second, get_u64(base, k + 1))
        third = _stir(third, get_u64(base, k + 2))
        fourth = _stir(fourth, get_u64(base, k + 3))
    for k in range(whole, words):
        first = _stir(first, get_u64(base, k))
    return mix(_stir(_stir(_stir(first, second), third), fourth))


@lean_kernel
def _hash_original(row, n, outcome):
    """The hash of a row with its masks undone: of its pieces without padding, its segments and its labels."""
    put_i32(outcome.original, n, 0)  # words have two pieces
    hashed = _hash_words(outcome.original, (n + 1) >> 1, np.uint64(n))
    if row.segment_ids:
        hashed = _hash_words(row.segment_ids, n >> 3, hashed)
        for k in range(n & -8, n):
            hashed = _stir(hashed, np.uint64(load_u8(row.segment_ids, k)))
    if row.labels:
        for k in range(row.labels_stored):
            hashed = _stir(hashed, np.uint64(load_u8(row.labels, k)))
    return mix(hashed)


@lean_kernel
def _hash_masks(row, n, m, hashed):
    """The hash of a whole row, from that with its masks undone."""
    for k in range(m):
        place = get_i32(row.positions, k)
        found = get_i32(row.input_ids, place) if place < n else np.int64(-1)
        hashed = _stir(hashed, np.uint64(place << 32 | (found & 0xFFFFFFFF)))
        hashed = _stir(hashed, np.uint64(get_i32(row.label_ids, k)))
    return mix(hashed)


@lean_kernel
def _mask_ways(n, m, special, rules):
    """The logarithm, base 16, of in how many ways a row can be masked, rounded down; 0 to 63."""
    open_places = max(n - special, m)
    ways = (
        np.uint64(get_u64(rules.log_factorials, open_places)).view(np.float64)
        - np.uint64(get_u64(rules.log_factorials, m)).view(np.float64)
        - np.uint64(get_u64(rules.log_factorials, open_places - m)).view(np.float64)
    )
    return np.uint64(min(np.int64(63), np.int64(ways + _KIND_BITS * m) // _WAYS_STEP))


# ---- rows


@lean_kernel
def _copy_pieces(row, n, original):
    for k in range(n):
        put_i32(original, k, get_i32(row.input_ids, k))


@lean_kernel
def _check_row(row, rules, outcome, hashes, limit):
    n = _length(row, rules, outcome.problems)
    _add(outcome.lengths, n, 1)
    _copy_pieces(row, n, outcome.original)
    m = np.int64(0)
    if row.positions:
        m = _count_masks(row, outcome.problems)
        _undo_masks(row, n, m, rules, outcome)
        if rules.whole_words:
            _check_words(row, n, m, rules, outcome)
    _check_pieces(row, n, rules, outcome)
    special = np.int64(0)
    if n:
        special = _check_sequences(row, n, rules, outcome, limit)
    if row.positions and rules.counts != ANY:
        _check_mask_count(row, n, m, special, rules, outcome.problems)
    if row.positions and rules.frame != UNKNOWN:
        _count_places(row, n, m, special, rules, outcome)
    _check_marks(row, n, rules, outcome)
    _count_pieces(row, n, rules, outcome)
    _count_order(n, outcome)
    hashed = _hash_original(row, n, outcome)
    put_u64(hashes, 0, hashed)
    low = np.uint64(min(n - special, np.int64(_MOST_LENGTH))) << _WAYS_BITS
    if row.positions:
        hashed = _hash_masks(row, n, m, hashed)
        low |= _mask_ways(n, m, special, rules)
    put_u64(hashes, 1, (hashed & ~_LOW_BITS) | low)


@lean_kernel
def check_rows(places, count, rules, outcome, limit):
    """Compares the first `count` rows of a block with the rules.

    places: RowPlaces. rules: RuleTable. outcome: OutcomePlaces. limit: uint64, openings with a hash below are kept.
    """
    for k in range(count):
        _check_row(_row_of(places, k), rules, outcome, outcome.hashes + 16 * k, limit)


def warm_up() -> None:
    """Compiles the entry kernel of this module."""
    nothing = RowPlaces(*[0] * len(RowPlaces._fields))
    rules = RuleTable(*[0] * len(RuleTable._fields))
    check_rows(nothing, 0, rules, OutcomePlaces(*[0] * len(OutcomePlaces._fields)), np.uint64(0))
