"""Compare the values of rows with each other and with the rules of their data set, block by block."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.reading.block_reader import Rows
from maskmill.verification.row_reading import Faults, hashed
from maskmill.verification.row_rules import RowRules
from maskmill.verification.work_items import RowStatistics

PAIRS = ("nsp", "sop")
_WHOLE_WORDS = ("whole_word", "word", "ngram", "span")
_SEPARATED = ("none", "sep", "recipe")
# A lower bound of log2 of the number of ways to draw the piece written at a masked position.
_KIND_BITS = 0.62
# If words or spans are masked together, there are fewer ways to mask a row than by single pieces. The logarithm of
# their number is at least this part of the one by pieces, with words of a piece or two, n-grams of up to three words
# and spans of four words on average.
PART_OF_WAYS = {"piece": 1.0, "whole_word": 0.3, "word": 0.3, "ngram": 0.15, "span": 0.1}

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]


class RowChecker:
    """Check, count and hash rows, block by block.

    Attributes:
      is_framed: whether the places of [CLS] and [SEP] are known. specials_alone: whether no text has these pieces.
      special_pieces: the number of [CLS] and [SEP].
      hashes: for each block, arrays with an element for each row: the hash of its pieces before masking, segments and
        labels; the hash of all its values; the number of its record; its number of pieces of text; and log2 of the
        number of ways to mask it (0 if the reader draws masks).
      positions: likewise: the hash of the row's masked positions, and log2 of the number of possible sets of them.
    """

    def __init__(self, rules: RowRules, rows: Rows, faults: Faults) -> None:
        """Take the rules, the rows that blocks are read to, and the collection of faults."""
        data_set, self._features = rules.data_set, set(rows.arrays)
        self.rules, self._rows, self._faults = rules, rows, faults
        ids = {name: data_set.special_ids.get(name) for name in ("cls_id", "sep_id", "mask_id", "pad_id")}
        self._cls, self._sep, self._mask, self._pad = (-1 if piece is None else piece for piece in ids.values())
        # A piece with two roles may also be in the places of the other one.
        roles = list(ids.values())
        self._alone = {piece for name, piece in ids.items() if name in rules.never_in_text and roles.count(piece) == 1}
        self.specials_alone = {self._cls, self._sep} <= self._alone
        self._is_pair = rules.objective in PAIRS and "segment_ids" in self._features
        self.is_framed = min(self._cls, self._sep) >= 0 and (
            self._is_pair if rules.objective in PAIRS else rules.separators in _SEPARATED
        )
        self._width = rows.arrays["input_ids"].shape[1]
        self._place = np.arange(self._width)
        self._log_factorials = np.array([math.lgamma(n + 1) / math.log(2) for n in range(self._width + 1)])
        masks = rows.arrays["masked_lm_ids"].shape[1] if "masked_lm_ids" in self._features else 0
        self._lengths = np.zeros(self._width + 1, np.int64)
        self._masks_at, self._masks = np.zeros(self._width, np.int64), np.zeros(masks + 1, np.int64)
        self._piece_counts = np.zeros(data_set.vocabulary_size or 0, np.int64)
        self._kept = self._random = self._second = self._sequences = self.special_pieces = 0
        self._halves = np.zeros((2, 2))
        self.hashes: list[tuple[Numbers, ...]] = []
        self.positions: list[tuple[Numbers, Numbers]] = []

    def statistics(self) -> RowStatistics:
        """Return the statistics of all rows so far."""
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
        )

    def check(self, numbers: Numbers) -> None:
        """Check the rows that were read last; numbers: of their records, from 1."""
        self._numbers, count = numbers, len(numbers)
        if not count:
            return
        self._arrays = {name: array[:count] for name, array in self._rows.arrays.items()}
        stored = self._check_stored_counts()
        lengths = self._check_padding(stored)
        self._within = self._place < lengths[:, None]
        original = self._rows.original_pieces(slice(count))
        is_special = ((original == self._cls) | (original == self._sep)) & self._within
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
        pieces = original[self._within]
        pieces = pieces[(pieces >= 0) & (pieces < len(self._piece_counts))]
        self._piece_counts += np.bincount(pieces, minlength=len(self._piece_counts))
        named = [self._arrays[name] for name in ("segment_ids", "next_sentence_labels") if name in self._features]
        of_text = hashed([np.where(self._within, original, 0), *named])
        self.hashes.append((of_text, hashed([of_text[:, None], *masks]), numbers, lengths - specials, bits))

    def _note(self, check: str, wrong: Flags, what: str, values: Numbers | None = None) -> None:
        """Note rows with wrong values; `what` may name the {place} and the value {found} of the first."""
        is_row_wrong = wrong if wrong.ndim == 1 else wrong.any(axis=1)
        if not is_row_wrong.any():
            return
        row = int(is_row_wrong.argmax())
        place = 0 if wrong.ndim == 1 else int(wrong[row].argmax())
        value = None if values is None else values[row] if values.ndim == 1 else values[row, place]
        clause = what.format(place=f"{place:,}", found="" if value is None else f"{value:,}")
        self._faults.add(check, int(self._numbers[row]), clause, kind=what, count=int(is_row_wrong.sum()))

    # ---- pieces and padding

    def _stored(self, feature: str) -> Numbers:
        """Return int64[rows]: the number of values of a feature in each row, without padding."""
        count = len(self._numbers)
        if feature in self._rows.counts:
            return self._rows.counts[feature][:count].astype(np.int64)
        return np.full(count, self._arrays[feature].shape[1], np.int64)

    def _check_stored_counts(self) -> Numbers:
        """Compare the numbers of values of rows; return int64[rows], those of input_ids."""
        stored = self._stored("input_ids")
        for feature in ("input_mask", "segment_ids", "special_tokens_mask", "sequence_ids", "position_ids"):
            if feature in self._rows.counts:
                own = self._stored(feature)
                what = f"{feature} has {{found}} values, and input_ids another number of them"
                self._note("schema", own != stored, what, own)
        if "input_mask" in self._features:
            width = self.rules.data_set.files[0].width
            what = f"input_ids has length {{found}}, but rows of this file are padded to {width:,}"
            self._note("schema", stored != width, what, stored)
        return stored

    def _check_padding(self, stored: Numbers) -> Numbers:
        """Check the padding; return int64[rows], the number of pieces of each row."""
        lengths = stored
        if "input_mask" in self._features:
            ones = self._arrays["input_mask"] != 0
            lengths = np.where(ones.any(axis=1), self._width - ones[:, ::-1].argmax(axis=1), 0)
            gaps = ~ones & (self._place < lengths[:, None])
            self._note("padding", gaps, "input_mask is 0 at place {place}, but 1 after it")
        self._note("padding", lengths == 0, "this record has no piece, only padding")
        if self._pad >= 0:
            ids = self._arrays["input_ids"]
            after = (self._place >= lengths[:, None]) & (self._place < stored[:, None]) & (ids != self._pad)
            what = f"input_ids has {{found}} at place {{place}}, after the last piece, not padding ({self._pad})"
            self._note("padding", after, what, ids)
        return lengths

    def _check_pieces(self, original: Numbers) -> None:
        """Find padding and [MASK] among the pieces before masking."""
        if self._pad in self._alone:
            what = "padding ({found}) stands among the pieces, at place {place}"
            self._note("padding", (original == self._pad) & self._within, what, original)
        if self._mask in self._alone:
            what = "[MASK] ({found}) stands at place {place}, which is not masked or should be [MASK]"
            self._note("masks", (original == self._mask) & self._within, what, original)

    # ---- sequences

    def _check_packing(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Check the columns of packed rows.

        Returns:
          int64[rows], the number of sequences of each, 0 if its columns are wrong; and int64[sequences], the row, the
          start and the end of each.
        """
        labels = self._arrays.get("next_sentence_labels")
        if "cu_seqlens" not in self._features:
            if labels is not None and labels.shape[1]:
                self._second += int((labels[:, 0] == 1).sum())
            rows = np.flatnonzero(lengths)
            return (lengths > 0).astype(np.int64), rows, np.zeros(len(rows), np.int64), lengths[rows]
        ends, count = self._arrays["cu_seqlens"].astype(np.int64), self._stored("cu_seqlens")
        is_end = np.arange(1, ends.shape[1]) < count[:, None]
        last = ends[np.arange(len(ends)), np.maximum(count - 1, 0)]
        falls = (is_end & (np.diff(ends, axis=1) <= 0)).any(axis=1)
        wrong = (count < 2) | (ends[:, 0] != 0) | (last != lengths) | falls
        what = "cu_seqlens must be 0, then where each sequence ends, ascending, the last at the end of the row"
        self._note("packing", wrong, f"{what} (it ends with {{found}})", last)
        members = np.where(wrong, 0, count - 1)
        if labels is not None:
            own = self._stored("next_sentence_labels")
            what = "next_sentence_labels has {found} values, and the row another number of sequences"
            self._note("packing", (own != members) & ~wrong, what, own)
            self._second += int(((labels == 1) & (np.arange(labels.shape[1]) < own[:, None])).sum())
        rows, member = np.nonzero(np.arange(ends.shape[1] - 1) < members[:, None])
        starts, stops = ends[rows, member], ends[rows, member + 1]
        begins = np.zeros((len(ends), self._width + 1), np.int64)
        begins[rows, starts] = 1
        begins = begins[:, :-1]
        first = np.maximum.accumulate(np.where(begins == 1, self._place, 0), axis=1)
        for feature, right in (("sequence_ids", begins.cumsum(axis=1)), ("position_ids", self._place - first)):
            if feature in self._features:
                values = self._arrays[feature]
                wrong_places = (values != np.where(self._within, right, 0)) & ~wrong[:, None]
                what = f"{feature} is {{found}} at place {{place}}, which does not follow from cu_seqlens"
                self._note("packing", wrong_places & (self._place < self._stored(feature)[:, None]), what, values)
        return members, rows, starts, stops

    def _check_frames(self, original: Numbers, rows: Numbers, starts: Numbers, ends: Numbers) -> None:
        """Check the places of [CLS] and [SEP], and the parts of pairs, in sequences, given by rows, starts and ends."""
        is_cls, is_sep = original == self._cls, original == self._sep
        if self.rules.separators == "recipe" and not self._is_pair:
            if self.specials_alone:
                other = (is_cls[:, 1:] != is_sep[:, :-1]) & self._within[:, 1:]
                what = "a special piece stands at place {place} or after it, where none belongs"
                self._note("special_tokens", other, what)
            return
        first, last = original[rows, starts], original[rows, ends - 1]
        what = f"a sequence starts with the id {{found}} instead of [CLS] ({self._cls})"
        self._note_sequences("special_tokens", rows, first != self._cls, what, first)
        what = f"a sequence ends with the id {{found}} instead of [SEP] ({self._sep})"
        self._note_sequences("special_tokens", rows, (ends - starts < 2) | (last != self._sep), what, last)
        inner = np.minimum(starts + 1, ends - 1)
        seps, clss = (_between(_counted(flags), rows, inner, ends - 1) for flags in (is_sep, is_cls))
        if self._is_pair:
            self._check_segments(is_sep, rows, starts, ends, seps)
        is_more = (clss > 0) & (self._cls in self._alone)
        if self.rules.separators != "sep" or self._is_pair:
            is_more |= (seps > int(self._is_pair)) & (self._sep in self._alone)
        what = "a [CLS] or [SEP] stands within a sequence or a part of it, where none belongs"
        self._note_sequences("special_tokens", rows, is_more, what)

    def _check_segments(self, is_sep: Flags, rows: Numbers, starts: Numbers, ends: Numbers, seps: Numbers) -> None:
        """Check that the first parts of pairs end with a [SEP], after which segment_ids are 1."""
        second = _counted(self._arrays["segment_ids"] != 0)
        middle = ends - 1 - _between(second, rows, starts, ends)
        is_right = (middle > starts) & (middle < ends - 1)
        middle = np.where(is_right, middle, starts)
        is_right &= is_sep[rows, middle] & (_between(second, rows, starts, middle + 1) == 0)
        what = f"no [SEP] ({self._sep}) stands between the two parts of a pair"
        self._note_sequences("special_tokens", rows, ~is_right & (seps == 0), what)
        what = "segment_ids are not 0 up to the [SEP] between the parts of a pair, then 1"
        self._note_sequences("segments", rows, ~is_right & (seps > 0), what)
        is_empty = is_right & ((middle == starts + 1) | (middle == ends - 2))
        self._note_sequences("special_tokens", rows, is_empty, "a part of a pair has no piece")

    def _note_sequences(
        self, check: str, rows: Numbers, wrong: Flags, what: str, values: Numbers | None = None
    ) -> None:
        """Note the rows of wrong sequences; rows: of all sequences. The message has the first wrong value of a row."""
        flags, shown = np.zeros(len(self._numbers), np.bool_), np.zeros(len(self._numbers), np.int64)
        flags[rows[wrong]] = True
        if values is not None:
            shown[rows[wrong][::-1]] = values[wrong][::-1]
        self._note(check, flags, what, shown)

    def _check_marks(self, is_special: Flags, stored: Numbers) -> None:
        """Compare columns that mark pieces with the pieces."""
        after = ~self._within & (self._place < stored[:, None])
        if "segment_ids" in self._features:
            values = self._arrays["segment_ids"]
            self._note(
                "segments", after & (values != 0), "segment_ids is {found} at place {place}, in the padding", values
            )
        if "special_tokens_mask" in self._features and min(self._cls, self._sep) >= 0:
            values = self._arrays["special_tokens_mask"]
            wrong = ((values != 0) != (is_special | after)) & (self._place < stored[:, None])
            what = "special_tokens_mask is {found} at place {place}, which the piece there contradicts"
            self._note("special_tokens", wrong, what, values)
        if "continuation_mask" in self._features:
            starts_with_cls = self.is_framed and (self._is_pair or self.rules.separators != "recipe")
            wrong = (self._arrays["continuation_mask"] != 0) & ~(self._within & (self._place >= int(starts_with_cls)))
            self._note("special_tokens", wrong, "continuation_mask is 1 at place {place}, where no word can go on")

    # ---- masks

    def _check_masks(
        self, original: Numbers, is_special: Flags, lengths: Numbers, specials: Numbers
    ) -> tuple[Numbers, tuple[Numbers, ...]]:
        """Check masks; return log2 of the number of ways to mask each row, and arrays of the masks, for hashes."""
        positions, labels = (self._arrays[f"masked_lm_{name}"].astype(np.int64) for name in ("positions", "ids"))
        weights = self._arrays["masked_lm_weights"]
        is_mask = np.logical_and.accumulate(weights == 1, axis=1)
        count = is_mask.sum(axis=1)
        what = "masked_lm_weights has {found} at place {place}; 1.0 belongs there for a mask, after the last 0.0"
        self._note("masks", ~is_mask & (weights != 0), what, weights)
        what = "masked_lm_positions or masked_lm_ids has another value than 0 at place {place}, after the last mask"
        self._note("masks", ~is_mask & (weights == 0) & ((positions | labels) != 0), what)
        falls = is_mask[:, 1:] & (positions[:, 1:] <= positions[:, :-1])
        what = "masked_lm_positions has {found} after it or a larger one, but positions must ascend"
        self._note("masks", falls, what, positions[:, 1:])
        is_outside = is_mask & (positions >= lengths[:, None])
        what = "masked_lm_positions has {found}, which is not below the number of pieces"
        self._note("masks", is_outside, what, positions)
        is_special_masked = is_mask & np.isin(labels, sorted(self._alone))
        self._note("masks", is_special_masked, "a special piece ({found}) is masked", labels)
        self._check_mask_count(count, lengths, specials)
        rows, masks = np.nonzero(is_mask & ~is_outside)
        places, originals = positions[rows, masks], labels[rows, masks]
        found = self._arrays["input_ids"][rows, places]
        self._masks += np.bincount(count, minlength=len(self._masks))
        self._masks_at += np.bincount(places, minlength=self._width)
        self._kept += int(((found == originals) & (found != self._mask)).sum())
        self._random += int(((found != originals) & (found != self._mask)).sum())
        is_masked = np.zeros(original.shape, np.bool_)
        is_masked[rows, places] = True
        self._check_whole_words(original, is_special, is_masked)
        written = np.full(positions.shape, -1)
        written[rows, masks] = found
        free = np.maximum(lengths - specials, count)
        bits = self._log_factorials[free] - self._log_factorials[count] - self._log_factorials[free - count]
        if self.rules.mask_unit in ("piece", None) and self.is_framed:
            self._count_halves(is_special, lengths, specials, rows, places, count)
        kept = np.where(is_mask, positions, -1)
        self.positions.append((hashed([kept, free[:, None], lengths[:, None]]), bits))
        return bits + _KIND_BITS * count, (kept, np.where(is_mask, labels, -1), written)

    def _check_mask_count(self, count: Numbers, lengths: Numbers, specials: Numbers) -> None:
        """Compare the number of masks with the one that follows from the length, see masking/instances.py."""
        prob, most = self.rules.masked_lm_prob, self.rules.max_predictions_per_seq
        if prob is None or most is None or self.rules.is_dynamic:
            return
        expected = np.clip(np.rint(lengths * prob), 1, most)
        wrong = count > expected
        if self.rules.is_exact:
            wrong |= (count < expected) & (count < lengths - specials)
        how = "as many masks" if self.rules.is_exact else "at most as many masks"
        self._note("masks", wrong, f"{{found}} pieces are masked, but {how} belong here as masked_lm_prob says", count)

    def _check_whole_words(self, original: Numbers, is_special: Flags, is_masked: Flags) -> None:
        """Check that all pieces of a word are masked if one is. A special piece ends a word."""
        continues = self.rules.continues
        if self.rules.mask_unit not in _WHOLE_WORDS or continues is None:
            return
        goes_on = continues[np.clip(original[:, 1:], 0, len(continues) - 1)]
        wrong = (is_masked[:, 1:] != is_masked[:, :-1]) & goes_on & ~is_special[:, :-1] & self._within[:, 1:]
        self._note("masks", wrong, "only a part of the word with the piece at place {place} is masked")

    def _count_halves(
        self, is_special: Flags, lengths: Numbers, specials: Numbers, rows: Numbers, places: Numbers, count: Numbers
    ) -> None:
        """Count the masks in the first and in the middle half of rows, and the number expected by chance."""
        half, quarter, every = lengths >> 1, lengths >> 2, np.arange(len(lengths))
        special = _counted(is_special)
        for number, start in enumerate((np.zeros_like(quarter), quarter)):
            end = start + half
            self._halves[number, 0] += ((places >= start[rows]) & (places < end[rows])).sum()
            open_places = half - _between(special, every, start, end)
            self._halves[number, 1] += (count * open_places / np.maximum(lengths - specials, 1)).sum()


def _counted(flags: Flags) -> Numbers:
    """Return int32[rows, places + 1]: the number of flags set before each place of a row, and in the whole row."""
    counts = np.zeros((len(flags), flags.shape[1] + 1), np.int32)
    np.cumsum(flags, axis=1, out=counts[:, 1:])
    return counts


def _between(counts: Numbers, rows: Numbers, starts: Numbers, ends: Numbers) -> Numbers:
    """Return int64[n]: the number of flags set in [start, end) of a row; counts: of `_counted`."""
    return (counts[rows, ends] - counts[rows, starts]).astype(np.int64)
