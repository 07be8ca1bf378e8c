"""Compares the values of rows with each other and with the rules of their data set, a block of rows at a time."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.masking.packing import bin_widths
from maskmill.reading.block_reader import Rows
from maskmill.verification.pieces import RowStatistics
from maskmill.verification.row_reading import Faults
from maskmill.verification.row_rules import RowRules

PAIRS = ("nsp", "sop")
_WHOLE_WORDS = ("whole_word", "word", "ngram", "span")
_SEPARATED = ("none", "sep", "recipe")
# The logarithm (base 2) of the ways in which what stands at a masked position can be drawn, at least.
_KIND_BITS = 0.62
# Where words or spans are masked as a whole, there are fewer ways to mask a row than its pieces alone would allow: the
# logarithm of their number is at least this part of it, with words of a piece or two, n-grams of up to three words and
# spans of four on average.
PART_OF_WAYS = {"piece": 1.0, "whole_word": 0.3, "word": 0.3, "ngram": 0.15, "span": 0.1}
_REDRAWN_PARTS = 16
_FACTOR = 0xD6E8FEB86659FD93  # odd

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]
Counts = npt.NDArray[np.int32]


class RowChecker:
    """Checks, counts and hashes rows, block by block.

    Attributes:
      is_framed: whether it is known where [CLS] and [SEP] belong. specials_alone: whether these stand nowhere else.
      special_pieces: how many [CLS] and [SEP] there are.
      hashes: a list of arrays each: of every row the hash of its pieces, segments and labels, masks undone; that of all
        of it; the number of its record; its pieces of text; and the logarithm of in how many ways it can be masked (0
        where the reader draws masks).
      positions: the same: the hash of the row's masked positions, and the logarithm of how many sets of them there are.
    """

    def __init__(self, rules: RowRules, rows: Rows, faults: Faults) -> None:
        """rows: where blocks are read to. faults: takes what is wrong."""
        data_set, self._features = rules.data_set, set(rows.arrays)
        self.rules = self._rules = rules
        self._rows, self._faults = rows, faults
        self._cls, self._sep, self._mask, self._pad = (
            -1 if (piece := data_set.special_ids.get(f"{name}_id")) is None else piece
            for name in ("cls", "sep", "mask", "pad")
        )
        # One piece may have two roles; then it stands in more places than those of one of them.
        ids = {"cls_id": self._cls, "sep_id": self._sep, "mask_id": self._mask, "pad_id": self._pad}
        self._alone = {
            piece for name, piece in ids.items() if name in rules.never_in_text and list(ids.values()).count(piece) == 1
        }
        self.specials_alone = {self._cls, self._sep} <= self._alone
        self._is_pair = rules.objective in PAIRS and "segment_ids" in self._features
        self.is_framed = min(self._cls, self._sep) >= 0 and (
            self._is_pair if rules.objective in PAIRS else rules.separators in _SEPARATED
        )
        self._width = rows.arrays["input_ids"].shape[1]
        self._place = np.arange(self._width)
        self._wanted = _masks_wanted(rules, self._width)
        self._log_factorials = np.array([math.lgamma(n + 1) / math.log(2) for n in range(self._width + 1)])
        masks = rows.arrays["masked_lm_ids"].shape[1] if "masked_lm_ids" in self._features else 0
        self._lengths = np.zeros(self._width + 1, np.int64)
        self._masks_at, self._masks = np.zeros(self._width, np.int64), np.zeros(masks + 1, np.int64)
        self._piece_counts = np.zeros(data_set.vocabulary_size or 0, np.int64)
        self._kept = self._random = self._second = self._sequences = self.special_pieces = 0
        self._halves, self._redrawn = np.zeros((2, 2)), np.zeros(_REDRAWN_PARTS, np.int64)
        self.hashes: list[tuple[Numbers, ...]] = []
        self.positions: list[tuple[Numbers, Numbers]] = []

    def statistics(self) -> RowStatistics:
        """What was counted."""
        rows = int(self._lengths.sum())
        return RowStatistics(
            rows=rows,
            lengths=self._lengths,
            # A row of n pieces has one at each of the positions below n.
            pieces_at=rows - np.cumsum(self._lengths)[:-1],
            masks_at=self._masks_at,
            masked=int((self._masks * np.arange(len(self._masks))).sum()),
            masked_kept=self._kept,
            masked_random=self._random,
            masks=self._masks,
            second_label=self._second,
            piece_counts=self._piece_counts,
            sequences=self._sequences,
            halves=self._halves,
            redrawn=self._redrawn,
        )

    def check(self, numbers: Numbers) -> None:
        """Looks at the rows that were read last; numbers: of their records, from 1."""
        self._numbers, count = numbers, len(numbers)
        if not count:
            return
        self._arrays = {name: array[:count] for name, array in self._rows.arrays.items()}
        self._ids = np.asarray(self._arrays["input_ids"])
        stored = self._stored("input_ids")
        self._check_stored_counts(stored)
        lengths = self._check_padding(stored)
        self._within = self._place < lengths[:, None]
        original = self._rows.original_pieces(slice(count))
        is_special = (original == self._cls) | (original == self._sep)
        is_special &= self._within
        specials = is_special.sum(axis=1)
        self._check_pieces(original)
        sequences, rows, starts, ends = self._check_packing(lengths)
        if self.is_framed:
            self._check_frames(original, rows, starts, ends)
        self._check_marks(is_special, stored)
        bits = np.zeros(count)
        masks: tuple[Numbers, ...] = ()
        if "masked_lm_positions" in self._features:
            bits, masks = self._check_masks(original, is_special, lengths, specials)
        self._lengths += np.bincount(lengths, minlength=self._width + 1)
        self._sequences += int(sequences.sum())
        self.special_pieces += int(specials.sum())
        if len(self._piece_counts):
            pieces = original[self._within]
            pieces = pieces[(pieces >= 0) & (pieces < len(self._piece_counts))]
            self._piece_counts += np.bincount(pieces, minlength=len(self._piece_counts))
        of_text, of_row = self._hashes(np.where(self._within, original, 0), masks)
        self.hashes.append((of_text, of_row, numbers, lengths - specials, bits))

    def _note(self, check: str, wrong: Flags, expected: str, what: str, values: Numbers | None = None) -> None:
        """Notes rows of which a value is wrong; `what` may name the {place} and what was {found}, of the first."""
        is_row_wrong = wrong if wrong.ndim == 1 else wrong.any(axis=1)
        if not is_row_wrong.any():
            return
        row = int(is_row_wrong.argmax())
        place = 0 if wrong.ndim == 1 else int(wrong[row].argmax())
        value = None if values is None else values[row] if values.ndim == 1 else values[row, place]
        found = f"place {place:,}" if value is None else f"{value:,}"
        what = what.format(place=f"{place:,}", found=found)
        count = int(is_row_wrong.sum())
        self._faults.add(check, int(self._numbers[row]), expected, found, what, kind=what[:24], count=count)

    # ---- pieces and padding

    def _stored(self, feature: str) -> Numbers:
        """How many values each row has of a feature, without those that fill it up."""
        count = len(self._numbers)
        if feature in self._rows.counts:
            return self._rows.counts[feature][:count].astype(np.int64)
        return np.full(count, self._arrays[feature].shape[1], np.int64)

    def _check_stored_counts(self, stored: Numbers) -> None:
        for feature in ("input_mask", "segment_ids", "special_tokens_mask", "sequence_ids", "position_ids"):
            if feature in self._rows.counts:
                own = self._stored(feature)
                what = f"{feature} has {{found}} values, and input_ids another number of them"
                self._note("schema", own != stored, "as many values as pieces", what, own)
        if "input_mask" in self._features:
            width = self._rules.data_set.files[0].width
            what = f"input_ids has length {{found}}, but rows of this file are padded to {width:,}"
            self._note("schema", stored != width, f"{width:,} values", what, stored)

    def _check_padding(self, stored: Numbers) -> Numbers:
        """Looks at the padding; returns how many pieces each row has."""
        lengths = stored
        if "input_mask" in self._features:
            ones = np.asarray(self._arrays["input_mask"]) != 0
            lengths = np.where(ones.any(axis=1), self._width - ones[:, ::-1].argmax(axis=1), 0)
            gaps = ~ones & (self._place < lengths[:, None])
            expected, what = "1 up to the last piece, then 0", "input_mask is 0 at place {place}, but 1 after it"
            self._note("padding", gaps, expected, what)
        self._note("padding", lengths == 0, "at least 1 piece", "this record has no piece, only padding")
        least = _least_pieces(self._rules)
        what = f"this record has {{found}} pieces, but those of this bin have at least {least:,}"
        self._note("schema", (lengths > 0) & (lengths < least), f"at least {least:,} pieces", what, lengths)
        if self._pad >= 0:
            after = (self._place >= lengths[:, None]) & (self._place < stored[:, None]) & (self._ids != self._pad)
            what = (
                f"input_ids has {{found}} at place {{place}}, after the last piece, where padding ({self._pad}) belongs"
            )
            self._note("padding", after, f"{self._pad}", what, self._ids)
        return lengths

    def _check_pieces(self, original: Numbers) -> None:
        """Looks for padding and [MASK] among pieces, masks undone."""
        if self._pad in self._alone:
            what = "padding ({found}) stands among the pieces, at place {place}"
            self._note("padding", (original == self._pad) & self._within, "padding only at the end", what, original)
        if self._mask in self._alone:
            expected, what = (
                "[MASK] at masked positions only",
                "[MASK] ({found}) stands at place {place}, which is none",
            )
            what += " of the masked positions or should be [MASK]"
            self._note("masks", (original == self._mask) & self._within, expected, what, original)

    # ---- sequences

    def _check_packing(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Looks at what rows say of their sequences.

        Returns:
          How many each row has, 0 if what it says is wrong; and of each sequence its row, its start and its end.
        """
        labels = self._arrays.get("next_sentence_labels")
        if "cu_seqlens" not in self._features:
            if labels is not None and labels.shape[1]:
                self._second += int((labels[:, 0] == 1).sum())
            rows = np.flatnonzero(lengths)
            return (lengths > 0).astype(np.int64), rows, np.zeros(len(rows), np.int64), lengths[rows]
        ends, count = np.asarray(self._arrays["cu_seqlens"]).astype(np.int64), self._stored("cu_seqlens")
        is_end = np.arange(1, ends.shape[1]) < count[:, None]
        last = ends[np.arange(len(ends)), np.maximum(count - 1, 0)]
        wrong = (
            (count < 2) | (ends[:, 0] != 0) | (last != lengths) | (is_end & (np.diff(ends, axis=1) <= 0)).any(axis=1)
        )
        what = "cu_seqlens must be 0, then where each sequence ends, ascending, the last at the end of the row"
        self._note("packing", wrong, "0, then ascending ends", f"{what} (it ends with {{found}})", last)
        members = np.where(wrong, 0, count - 1)
        if labels is not None:
            own = self._stored("next_sentence_labels")
            what = "next_sentence_labels has {found} values, and the row another number of sequences"
            self._note("packing", (own != members) & ~wrong, "a label for each sequence", what, own)
            self._second += int(((labels == 1) & (np.arange(labels.shape[1]) < own[:, None])).sum())
        rows, member = np.nonzero(np.arange(ends.shape[1] - 1) < members[:, None])
        starts, stops = ends[rows, member], ends[rows, member + 1]
        begins = np.zeros((len(ends), self._width + 1), np.int64)
        begins[rows, starts] = 1
        begins = begins[:, :-1]
        sequence = np.where(self._within, begins.cumsum(axis=1), 0)
        first = np.maximum.accumulate(np.where(begins == 1, self._place, 0), axis=1)
        for feature, right in (
            ("sequence_ids", sequence),
            ("position_ids", np.where(self._within, self._place - first, 0)),
        ):
            if feature in self._features:
                values = np.asarray(self._arrays[feature])
                is_other = (values != right) & (self._place < self._stored(feature)[:, None]) & ~wrong[:, None]
                what = f"{feature} is {{found}} at place {{place}}, which does not follow from cu_seqlens"
                self._note("packing", is_other, "what follows from cu_seqlens", what, values)
        return members, rows, starts, stops

    def _check_frames(self, original: Numbers, rows: Numbers, starts: Numbers, ends: Numbers) -> None:
        """Looks for [CLS] and [SEP], and where the parts of pairs end, in sequences: their rows, starts and ends."""
        is_cls, is_sep = original == self._cls, original == self._sep
        if self._rules.separators == "recipe" and not self._is_pair:
            if self.specials_alone:
                other = (is_cls[:, 1:] != is_sep[:, :-1]) & self._within[:, 1:]
                what = "the special piece {found} stands at place {place}, where none belongs"
                self._note_sequences(
                    "special_tokens", np.arange(len(other)), other.any(axis=1), "[CLS] after [SEP]", what
                )
            return
        expected = f"[CLS] ({self._cls})"
        first, last = original[rows, starts], original[rows, ends - 1]
        what = f"a sequence starts with the id {{found}} instead of [CLS] ({self._cls})"
        self._note_sequences("special_tokens", rows, first != self._cls, expected, what, first)
        what = f"a sequence ends with the id {{found}} instead of [SEP] ({self._sep})"
        is_open = (ends - starts < 2) | (last != self._sep)
        self._note_sequences("special_tokens", rows, is_open, f"[SEP] ({self._sep})", what, last)
        inner = np.minimum(starts + 1, ends - 1)
        seps, clss = (_between(_counted(flags), rows, inner, ends - 1) for flags in (is_sep, is_cls))
        most = 0
        if self._is_pair:
            most = 1
            self._check_segments(is_sep, rows, starts, ends, seps)
        is_more = (clss > 0) & (self._cls in self._alone)
        if self._rules.separators != "sep" or self._is_pair:
            is_more |= (seps > most) & (self._sep in self._alone)
        what = "a [CLS] or [SEP] stands within a sequence or a part of it, where none belongs"
        self._note_sequences("special_tokens", rows, is_more, "[CLS] and [SEP] at the ends", what)

    def _check_segments(self, is_sep: Flags, rows: Numbers, starts: Numbers, ends: Numbers, seps: Numbers) -> None:
        """Looks where the first parts of pairs end: at a [SEP], behind which segment_ids are 1."""
        second = _counted(np.asarray(self._arrays["segment_ids"]) != 0)
        middle = ends - 1 - _between(second, rows, starts, ends)
        is_right = (middle > starts) & (middle < ends - 1)
        middle = np.where(is_right, middle, starts)
        is_right &= is_sep[rows, middle] & (_between(second, rows, starts, middle + 1) == 0)
        what = f"no [SEP] ({self._sep}) stands between the two parts of a pair"
        self._note_sequences("special_tokens", rows, ~is_right & (seps == 0), "[SEP] between the parts", what)
        what = "segment_ids are not 0 up to the [SEP] between the parts of a pair, then 1"
        self._note_sequences("segments", rows, ~is_right & (seps > 0), "0 up to the first [SEP], then 1", what)
        is_empty = is_right & ((middle == starts + 1) | (middle == ends - 2))
        what = "a part of a pair has no piece"
        self._note_sequences("special_tokens", rows, is_empty, "at least 1 piece in each part", what)

    def _note_sequences(
        self, check: str, rows: Numbers, wrong: Flags, expected: str, what: str, values: Numbers | None = None
    ) -> None:
        """Notes sequences, of which `rows` has the rows; of values that are wrong, the first is told."""
        if not wrong.any():
            return
        flags, told = np.zeros(len(self._numbers), np.bool_), np.zeros(len(self._numbers), np.int64)
        flags[rows[wrong]] = True
        if values is not None:
            told[rows[wrong][::-1]] = values[wrong][::-1]
        self._note(check, flags, expected, what, None if values is None else told)

    def _check_marks(self, is_special: Flags, stored: Numbers) -> None:
        """Compares columns that mark pieces with the pieces."""
        after = ~self._within & (self._place < stored[:, None])
        if "segment_ids" in self._features:
            values = np.asarray(self._arrays["segment_ids"])
            what = "segment_ids is {found} at place {place}, in the padding"
            self._note("segments", after & (values != 0), "0 in the padding", what, values)
        if "special_tokens_mask" in self._features and min(self._cls, self._sep) >= 0:
            values = np.asarray(self._arrays["special_tokens_mask"])
            wrong = (values != 0) != (is_special | after)
            what = "special_tokens_mask is {found} at place {place}, which the piece there contradicts"
            self._note("special_tokens", wrong & (self._place < stored[:, None]), "1 for [CLS] and [SEP]", what, values)
        if "continuation_mask" in self._features:
            values, first = np.asarray(self._arrays["continuation_mask"]), int(self.is_framed and self._starts_with_cls)
            wrong = (values != 0) & ~(self._within & (self._place >= first))
            what = "continuation_mask is 1 at place {place}, where no word can go on"
            self._note("special_tokens", wrong, "0", what)

    @property
    def _starts_with_cls(self) -> bool:
        return self._is_pair or self._rules.separators != "recipe"

    # ---- masks

    def _check_masks(
        self, original: Numbers, is_special: Flags, lengths: Numbers, specials: Numbers
    ) -> tuple[Numbers, tuple[Numbers, ...]]:
        """Looks at masks; returns the logarithm of in how many ways rows can be masked, and what they have as masks."""
        positions, labels = (
            np.asarray(self._arrays[f"masked_lm_{name}"]).astype(np.int64) for name in ("positions", "ids")
        )
        weights = np.asarray(self._arrays["masked_lm_weights"])
        is_mask = np.logical_and.accumulate(weights == 1, axis=1)
        count = is_mask.sum(axis=1)
        what = "masked_lm_weights has {found} at place {place}; 1.0 belongs there for a mask, after the last 0.0"
        self._note("masks", ~is_mask & (weights != 0), "1.0 for each mask, then 0.0", what, weights)
        behind = ~is_mask & (weights == 0) & ((positions | labels) != 0)
        what = "masked_lm_positions or masked_lm_ids has another value than 0 at place {place}, after the last mask"
        self._note("masks", behind, "0 after the last mask", what)
        descends = is_mask[:, 1:] & (positions[:, 1:] <= positions[:, :-1])
        what = "masked_lm_positions has {found} after it or a larger one, but positions must ascend"
        self._note("masks", descends, "positions that ascend", what, positions[:, 1:])
        is_outside = is_mask & (positions >= lengths[:, None])
        what = "masked_lm_positions has {found}, which is not below the number of pieces"
        self._note("masks", is_outside, "positions of pieces", what, positions)
        specials_masked = is_mask & np.isin(labels, sorted(self._alone))
        self._note("masks", specials_masked, "no special piece", "a special piece ({found}) is masked", labels)
        self._check_mask_count(count, lengths, specials)
        rows, masks = np.nonzero(is_mask & ~is_outside)
        places, wanted = positions[rows, masks], labels[rows, masks]
        found = self._ids[rows, places]
        self._count_masks(rows, places, wanted, found, count)
        is_masked = np.zeros(original.shape, np.bool_)
        is_masked[rows, places] = True
        self._check_whole_words(original, is_special, is_masked)
        there = np.full(positions.shape, -1)
        there[rows, masks] = found
        free = np.maximum(lengths - specials, count)
        bits = self._log_factorials[free] - self._log_factorials[count] - self._log_factorials[free - count]
        if self._rules.mask_unit in ("piece", None) and self.is_framed:
            self._count_halves(is_special, lengths, specials, rows, places, count)
        kept = np.where(is_mask, positions, -1)
        self.positions.append((_hashed([kept, free[:, None], lengths[:, None]]), bits))
        return bits + _KIND_BITS * count, (kept, np.where(is_mask, labels, -1), there)

    def _check_mask_count(self, count: Numbers, lengths: Numbers, specials: Numbers) -> None:
        if self._wanted is None:
            return
        wanted = self._wanted[lengths]
        wrong = count > wanted
        if self._rules.is_exact:
            wrong |= (count < wanted) & (count < lengths - specials)
        how = "as many masks" if self._rules.is_exact else "at most as many masks"
        what = f"{{found}} pieces are masked, but {how} belong here as masked_lm_prob says"
        self._note("masks", wrong, f"{how} as asked for", what, count)

    def _count_masks(self, rows: Numbers, places: Numbers, wanted: Numbers, found: Numbers, count: Numbers) -> None:
        is_mask, is_same = found == self._mask, found == wanted
        self._masks += np.bincount(count, minlength=len(self._masks))
        self._masks_at += np.bincount(places, minlength=self._width)
        self._kept += int((is_same & ~is_mask).sum())
        is_random = ~is_same & ~is_mask
        self._random += int(is_random.sum())
        size = len(self._piece_counts)
        redrawn = found[is_random].astype(np.int64)
        if size:
            redrawn = redrawn[(redrawn >= 0) & (redrawn < size)] * _REDRAWN_PARTS // size
            self._redrawn += np.bincount(redrawn, minlength=_REDRAWN_PARTS)

    def _check_whole_words(self, original: Numbers, is_special: Flags, is_masked: Flags) -> None:
        """Looks whether all pieces of a word are masked if one is. A special piece ends a word."""
        rules = self._rules
        if rules.mask_unit not in _WHOLE_WORDS or rules.is_dynamic or rules.continues is None:
            return
        goes_on = rules.continues[np.clip(original[:, 1:], 0, len(rules.continues) - 1)]
        wrong = (is_masked[:, 1:] != is_masked[:, :-1]) & goes_on & ~is_special[:, :-1] & self._within[:, 1:]
        expected, what = "whole words are masked", "only a part of the word with the piece at place {place} is masked"
        self._note("masks", wrong, expected, what)

    def _count_halves(
        self, is_special: Flags, lengths: Numbers, specials: Numbers, rows: Numbers, places: Numbers, count: Numbers
    ) -> None:
        """Counts the masks in the first and in the middle half of rows, and how many belong there by chance."""
        half, quarter, every = lengths >> 1, lengths >> 2, np.arange(len(lengths))
        special = _counted(is_special)
        for number, start in enumerate((np.zeros_like(quarter), quarter)):
            end = start + half
            self._halves[number, 0] += ((places >= start[rows]) & (places < end[rows])).sum()
            open_places = half - _between(special, every, start, end)
            self._halves[number, 1] += (count * open_places / np.maximum(lengths - specials, 1)).sum()

    # ---- hashes

    def _hashes(self, text: Numbers, masks: tuple[Numbers, ...]) -> tuple[Numbers, Numbers]:
        """The hash of each row with its masks undone, and of the whole row."""
        named = [self._arrays[name] for name in ("segment_ids", "next_sentence_labels") if name in self._features]
        of_text = _hashed([text, *named])
        return of_text, _hashed([of_text[:, None], *masks])


def _hashed(columns: Sequence[Numbers]) -> npt.NDArray[np.uint64]:
    """Return a hash of each row of some columns: rows that differ in one value never have the same."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for number, values in enumerate(columns):
        factors = np.random.PCG64(number).random_raw(values.shape[1]) | np.uint64(1)
        hashes += np.einsum("ij,j->i", values.astype(np.uint64), factors)
    return (hashes ^ (hashes >> np.uint64(32))) * np.uint64(_FACTOR)


def _counted(flags: Flags) -> Counts:
    """Return how many flags of each row are set before each place, and in all of it: int32[rows, places + 1]."""
    counts = np.zeros((len(flags), flags.shape[1] + 1), np.int32)
    np.cumsum(flags, axis=1, out=counts[:, 1:])
    return counts


def _between(counts: Counts, rows: Numbers, starts: Numbers, ends: Numbers) -> Numbers:
    """Return how many flags of rows are set in [start, end); counts: as `_counted` gives them."""
    found: Numbers = (counts[rows, ends] - counts[rows, starts]).astype(np.int64)
    return found


def _masks_wanted(rules: RowRules, width: int) -> Numbers | None:
    """How many positions of a row of so many pieces are masked, see masking/instances.py; None: not known."""
    prob, most = rules.masked_lm_prob, rules.max_predictions_per_seq
    if prob is None or most is None or rules.is_dynamic:
        return None
    return np.array([min(most, max(1, round(pieces * prob))) for pieces in range(width + 1)], np.int64)


def _least_pieces(rules: RowRules) -> int:
    """The fewest pieces of a row, by its file's bin; 0: any."""
    if rules.bins is None or rules.max_seq_length is None:
        return 0
    own = rules.data_set.files[0].width
    return max((w for w in bin_widths(rules.max_seq_length, rules.bins).tolist() if w < own), default=0) + 1
