"""Draw the masks of rows, in any unit: the positions and what is written there. Exact BERT has its own, instances.py.

The masks of a row are a function of its pieces and of (seed, epoch, sample) alone: not of the rows beside it, of the
order of rows, or of which process draws them. Static masks with a dupe factor of k are those that a reader draws
with dynamic masks in epochs 0 to k - 1.

A row of n pieces, special ones included, gets min(P, max(1, round(n * masked_lm_prob))) masks. It gets fewer only if
no remaining word fits. On real text that happens only with n-grams and a masked_lm_prob of 0.8 or more. [CLS] and
[SEP] are never masked. A word is a piece and the "##" pieces after it; a tokenizer.json has its own words.
No word, n-gram or span includes a special piece. The units, and the files that they follow:

  piece       positions are drawn evenly.
  whole_word  google-research/bert, create_pretraining_data.py: words are tried in random order, and taken while they
              fit. What is written is drawn for each piece.
  word        TensorFlow Models, official/nlp/data/create_pretraining_data.py: the same, but what is written is drawn
              once for a word: [MASK] in place of all its pieces, all of them kept, or a random piece for each.
  ngram       google-research/albert, create_pretraining_data.py: words are tried in random order as the first of an
              n-gram, with n up to max_ngram drawn by weight 1/n. An n-gram that does not fit is shortened; one that
              would overlap with another is given up. What is written is drawn for each piece. Unlike there, an n-gram
              does not go over a [SEP].
  span        facebookresearch/SpanBERT, pretraining/fairseq/data/masking.py: a piece that is not masked is drawn
              evenly, and a span starts with its word. Its length in words is geometric, cut off at max_span, and
              includes words that are masked already. What is written is drawn once for each run of masked pieces, so
              spans that touch are one. Unlike there, a span ends before a word that does not fit, not within it, and
              [CLS] and [SEP] are not masked.
"""

import itertools
from typing import get_args

import numpy as np
import numpy.typing as npt

from maskmill.kernels.counter_random import FLOAT_BITS, seed_of
from maskmill.masking.instances import piece_continuations, predictions
from maskmill.masking.kernels.row_masks import (
    CONTINUES,
    MAX_ROW,
    NGRAM,
    SPAN,
    SPECIAL,
    STARTS,
    MaskedRows,
    RowMaskRules,
    draw_row_masks,
    make_scratch,
)
from maskmill.masking.kernels.rows import RowArrays
from maskmill.masking.objective_options import MaskUnit, ObjectiveOptions, decided_mask_unit
from maskmill.masking.options import MaskingOptions
from maskmill.tokenization.vocabulary import Vocabulary

__all__ = ["CONTINUES", "SPECIAL", "STARTS", "MaskedRows", "RowMaskRules", "RowMasker", "draw_masks", "row_mask_rules"]

_UNITS = get_args(MaskUnit)
_CERTAIN = 1 << FLOAT_BITS  # a draw is always below


class RowMasker:
    """Draws the masks of blocks of rows."""

    def __init__(self, vocabulary: Vocabulary, masking: MaskingOptions, objective: ObjectiveOptions) -> None:
        """Use `random_seed`, `max_seq_length`, `max_predictions_per_seq` and `masked_lm_prob` of `masking`."""
        self.rules = rules_of(vocabulary, masking, objective)
        self._seed = masking.random_seed

    def draw(self, rows: RowArrays, count: int, epochs: npt.NDArray[np.int64], samples: npt.NDArray[np.int64]) -> None:
        """Mask the first `count` rows in place: input_ids, positions, labels and masked.

        epochs, samples: int64[count], the keys of the rows.
        """
        block = MaskedRows(
            rows.input_ids[:count],
            rows.lengths[:count],
            rows.positions[:count],
            rows.labels[:count],
            rows.masked[:count],
            rows.continues[:count],
        )
        draw_masks(self.rules, self._seed, block, epochs, samples)


def draw_masks(
    rules: RowMaskRules,
    seed: int,
    rows: MaskedRows,
    epochs: npt.NDArray[np.int64],
    samples: npt.NDArray[np.int64],
) -> None:
    """Mask rows in place, given arrays alone; readers of data sets call this.

    Args:
      seed: any integer; its lowest 64 bits count.
      rows: int32 arrays in C order. Read: lengths [rows], the pieces of each row, special ones included. Changed at
        the masked positions: input_ids [rows, S]. Written, with zeros after the last mask: positions [rows, P],
        ascending; labels [rows, P], the ids before masking; masked [rows], the number of masks. continues, uint8
        [rows, S], is the column continuation_mask, for vocabularies whose ids do not show where words start.
      epochs, samples: int64[rows], the keys of the rows.

    Raises:
      ValueError: arrays of other types or shapes, a length above S, or an id that `rules.kinds` does not have.
    """
    count, width = rows.input_ids.shape
    # Copies, because numba compiles anew for arrays that cannot be written to.
    epochs, samples = np.array(epochs, np.int64), np.array(samples, np.int64)
    _check_arrays(rows, epochs, samples)
    if count == 0:
        return
    if width >= len(rules.to_predict) or width > MAX_ROW:
        raise ValueError(f"rows of {width} pieces: these rules are for up to {min(len(rules.to_predict) - 1, MAX_ROW)}")
    if rows.lengths.min() < 0 or rows.lengths.max() > width:
        raise ValueError(f"lengths must be from 0 to {width}, the width of input_ids")
    if width and (rows.input_ids.min() < 0 or rows.input_ids.max() >= len(rules.kinds)):
        raise ValueError(f"input_ids must be from 0 to {len(rules.kinds) - 1}, the ids of the vocabulary")
    draw_row_masks(rules, seed_of(seed), epochs, samples, rows, make_scratch(width))


def _check_arrays(rows: MaskedRows, epochs: npt.NDArray[np.int64], samples: npt.NDArray[np.int64]) -> None:
    """Raise ValueError if arrays have other types or shapes than the kernel requires."""
    count = len(rows.input_ids)
    for name, array in zip(MaskedRows.__annotations__, rows, strict=True):
        kind = np.dtype(np.uint8 if name == "continues" else np.int32)
        is_left_out = name == "continues" and array.size == 0
        in_order = array.flags.c_contiguous and array.flags.writeable
        if array.dtype != kind or not in_order or (len(array) != count and not is_left_out):
            raise ValueError(
                f"{name} must be a writable {kind} array in C order with an element for each of {count} rows"
            )
    if rows.continues.size and rows.continues.shape != rows.input_ids.shape:
        raise ValueError(
            f"continues are {rows.continues.shape} and input_ids {rows.input_ids.shape}; they must be alike"
        )
    if rows.positions.shape != rows.labels.shape:
        raise ValueError(f"positions are {rows.positions.shape} and labels {rows.labels.shape}; they must be alike")
    if epochs.shape != (count,) or samples.shape != (count,):
        raise ValueError(f"epochs and samples must have an element for each of {count} rows")


def rules_of(vocabulary: Vocabulary, masking: MaskingOptions, objective: ObjectiveOptions) -> RowMaskRules:
    """Return the rules of RowMasker."""
    kinds = np.where(piece_continuations(vocabulary), CONTINUES, STARTS).astype(np.uint8)
    kinds[[vocabulary.cls_id, vocabulary.sep_id]] = SPECIAL
    return row_mask_rules(
        unit=decided_mask_unit(masking, objective),
        to_predict=predictions(masking),
        kinds=kinds,
        mask_id=vocabulary.mask_id,
        piece_ids=vocabulary.ids,
        shares=(objective.mask_share, objective.random_share, objective.keep_share),
        run_lengths=_run_lengths(objective),
    )


def row_mask_rules(
    *,
    unit: MaskUnit,
    to_predict: npt.ArrayLike,
    kinds: npt.ArrayLike,
    mask_id: int,
    piece_ids: npt.ArrayLike,
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1),
    run_lengths: tuple[float, ...] = (),
) -> RowMaskRules:
    """Return the rules of RowMasker, from arrays alone.

    to_predict: int64[S + 1], how many positions of a row of 0 to S pieces are masked, if its words allow it.
    kinds: uint8[ids], for each id STARTS (it starts a word), CONTINUES (it continues one) or SPECIAL (it is never
      masked, and ends a word). "piece" treats the first two alike. If only the tokenizer knows where words start, no
      id is CONTINUES, and MaskedRows.continues is used.
    mask_id: the id of [MASK].
    piece_ids: int32[pieces], from which random pieces are drawn; an id that is listed twice is drawn twice as often.
    shares: of [MASK], of random pieces and of kept ones, 1 together.
    run_lengths: with "ngram" and "span", the weights of lengths 1, 2, … in words; see `ngram_lengths`, `span_lengths`.

    Raises:
      ValueError: an n-gram or span without run lengths.
    """
    index = _UNITS.index(unit)
    if index in (NGRAM, SPAN) and not run_lengths:
        raise ValueError(f"{unit}: run_lengths must have the weight of each length")
    mask_share, random_share, keep_share = shares
    masked_below, kept_below, _ = _thresholds((mask_share, keep_share, random_share))
    return RowMaskRules(
        unit=index,
        to_predict=np.array(to_predict, np.int64),
        kinds=np.array(kinds, np.uint8),
        mask_id=int(mask_id),
        piece_ids=np.array(piece_ids, np.int32),
        masked_below=masked_below,
        kept_below=kept_below,
        lengths_below=np.array(_thresholds(run_lengths), np.int64),
    )


def ngram_lengths(max_ngram: int) -> tuple[float, ...]:
    """Return ALBERT's weights of n-grams of 1 to `max_ngram` words: 1/n."""
    return tuple(1 / words for words in range(1, max_ngram + 1))


def span_lengths(probability: float, max_span: int) -> tuple[float, ...]:
    """Return SpanBERT's weights of spans of 1 to `max_span` words: the geometric law, cut off."""
    # Products, not powers: every machine multiplies alike.
    return tuple(itertools.accumulate([probability] + [1 - probability] * (max_span - 1), lambda a, b: a * b))


def _run_lengths(objective: ObjectiveOptions) -> tuple[float, ...]:
    """Return the weights of the lengths of n-grams or spans; none for other units."""
    if objective.mask_unit == "ngram":
        return ngram_lengths(objective.max_ngram)
    if objective.mask_unit == "span":
        return span_lengths(objective.span_probability, objective.max_span)
    return ()


def _thresholds(weights: tuple[float, ...]) -> list[int]:
    """Return ascending thresholds for numbers drawn from 0 to 2**53, the last excluded.

    The first threshold above such a number has index i with a chance in proportion to weights[i]. A weight of 0 is
    never drawn, in spite of rounding.
    """
    sums = list(itertools.accumulate(weights))
    return [_CERTAIN if total == sums[-1] else int(total / sums[-1] * _CERTAIN) for total in sums]
