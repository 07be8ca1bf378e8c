"""Turn rows into batches: select and name the arrays, and draw masks.

The arrays are the same for every format, and for stored and drawn masks. b: samples of the batch, S: pieces of a row,
P: most masks of a row. Types are int32 unless noted; arrays in brackets are optional, and depend on the data set.

  google       input_ids, input_mask, (segment_ids), (special_tokens_mask) [b, S];
               masked_lm_positions, masked_lm_ids, masked_lm_weights (float32) [b, P];
               (next_sentence_labels) [b, 1]; columns of other names [b, their width].
               Packed: also sequence_ids, position_ids [b, S], and cu_seqlens [b, S // 2 + 1], filled up with a row's
               last value; (next_sentence_labels) [b, S // 2], filled up with -100.
  v2           the same, but input_ids is input_word_ids, and segment_ids is input_type_ids.
  huggingface  all int64: input_ids, attention_mask, (token_type_ids) [b, S]; labels [b, S], -100 if nothing is
               masked; (next_sentence_label) [b]. There is no special_tokens_mask: it serves to draw masks, and models
               refuse it. Packed rows are refused: a model would attend across their sequences.

Each may have `sample_weights` (float32 [b], 0 for rows of padding), with tail="pad", and `samples` (int64 [b]), with
with_samples; with several data sets, `sources` (int32 [b]) comes with it. Both are -1 for rows of padding.

A row of padding has padding pieces. All else in it is 0, except special_tokens_mask, 1 as for any padding, and the
labels that a loss must ignore, -100: those of huggingface, and next_sentence_labels of packed rows.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.loading.options import Features, LoaderOptions
from maskmill.masking.row_masks import MaskedRows, RowMaskRules, draw_masks
from maskmill.reading.block_reader import Rows
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.kernels.gathering import gather, put_labels
from maskmill.records.columns import up_to
from maskmill.records.features import FEATURES, OF_MASKS, V2_NAMES

NO_LABEL = -100  # ignored by the losses of PyTorch

Batch = dict[str, npt.NDArray[Any]]

# Columns that have code of their own here.
_KNOWN = ("continuation_mask", "cu_seqlens", "next_sentence_labels")
# In the order in which a batch has them.
_OF_PIECES = tuple(name for name, feature in FEATURES.items() if feature.per == "piece" and name not in _KNOWN)
_MAY_DIFFER = frozenset({*OF_MASKS, "continuation_mask", "input_mask"})
_NAMES: dict[Features, dict[str, str]] = {
    "google": {},
    "v2": V2_NAMES,
    "huggingface": {
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
        "next_sentence_labels": "next_sentence_label",
    },
}


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """An array of a batch: its shape, with None if batches differ from each other (bins), and its type."""

    shape: tuple[int | None, ...]
    dtype: np.dtype


class BatchMaker:
    """Make batches of rows. Several threads may use one at the same time.

    Attributes:
      spec: the arrays of a batch by name, in their order.
    """

    def __init__(self, data_sets: Sequence[DataSet], options: LoaderOptions) -> None:
        """Take a data set, or several that `alike` returned.

        Raises:
          UnusableInputError: the rows are packed, and options.features is "huggingface".
        """
        first = data_sets[0]
        if first.packed and options.features == "huggingface":
            raise UnusableInputError(
                f'{first.path}: its rows are packed, and features="huggingface" has no mask that keeps the attention '
                "of a model of transformers within the sequences of a row, so they would leak into each other; make "
                'the examples without --pack, or take features="google" and make the model its mask of sequence_ids, '
                "position_ids or cu_seqlens."
            )
        columns = {column.feature: column for column in first.columns}
        self._data_sets = tuple(data_sets)
        self._options = options
        # Files without input_mask have rows without padding: the numbers of their values replace it.
        varies = "input_ids" in columns and columns["input_ids"].varies
        self._derives_input_mask = varies and ("input_mask" not in columns or columns["input_mask"].optional)
        # By name, the value in rows of padding.
        fills = {name: FEATURES[name].fill or 0 for name in _OF_PIECES}
        fills["input_ids"] = first.special_ids.get("pad_id") or 0
        self._pieces = {
            name: fills[name]
            for name in _OF_PIECES
            if name in columns or (name == "input_mask" and self._derives_input_mask)
        }
        self._integers: type[np.integer] = np.int32
        if options.features == "huggingface":
            self._pieces.pop("special_tokens_mask", None)
            self._integers = np.int64
        self._stores_masks = "masked_lm_positions" in columns
        self._has_masks = self._stores_masks or first.mask_rules is not None
        self._has_labels = "next_sentence_labels" in columns
        self._others = sorted(set(columns).difference(_OF_PIECES, OF_MASKS, _KNOWN))
        self._packed = first.packed
        self._predictions = max(data_set.predictions for data_set in data_sets)
        self.spec = self._spec()

    def make(
        self,
        rows: Rows,
        at: npt.NDArray[np.int64],
        source: npt.NDArray[np.int64],
        epochs: npt.NDArray[np.int64],
        samples: npt.NDArray[np.int64],
        width: int,
    ) -> Batch:
        """Return a batch of rows, in new arrays.

        Args:
          rows: include those of the batch, with the columns of the data sets.
          at: int64[b], the row of each sample; -1: a row of padding.
          source: int64[b], the number of each sample's data set.
          epochs: int64[b], the epoch of that data set; epochs and samples are the keys of the masks.
          samples: int64[b], the samples' numbers in their data sets.
          width: S.

        Raises:
          UnusableInputError: a row does not fit into the width.
        """
        batch = _Selection(np.array(at, np.int64), np.asarray(source), np.asarray(epochs), np.asarray(samples))
        self._check_width(rows, batch, width)
        arrays: Batch = {
            # Masks are drawn in int32.
            name: _gathered(rows, name, batch.at, width, fill, np.int32 if name == "input_ids" else self._integers)
            for name, fill in self._pieces.items()
            if name in rows.arrays
        }
        lengths = self._lengths(rows, arrays, batch.at, width)
        if self._derives_input_mask:
            arrays["input_mask"] = up_to(lengths, width).astype(self._integers)
            arrays = {name: arrays[name] for name in self._pieces}
        if self._packed:
            arrays["cu_seqlens"] = _gathered(rows, "cu_seqlens", batch.at, width // 2 + 1, 0)
        if self._has_masks:
            arrays |= self._masks(rows, batch, arrays["input_ids"], lengths)
        if self._has_labels:
            arrays["next_sentence_labels"] = self._next_sentence_labels(rows, batch.at, width)
        for name in self._others:
            arrays[name] = _gathered(rows, name, batch.at, rows.arrays[name].shape[1], 0)
        return self._finished(arrays, batch)

    def _lengths(self, rows: Rows, arrays: Batch, at: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int32]:
        """Return int32[b]: the number of pieces of each row; `width` if no column shows it."""
        if "input_mask" not in arrays:
            return (
                _counts(rows, "input_ids", at) if "input_ids" in rows.counts else np.where(at < 0, 0, np.int32(width))
            )
        mask = arrays["input_mask"]
        lengths: npt.NDArray[np.int32] = mask.sum(axis=1, dtype=mask.dtype).astype(np.int32)
        if self._derives_input_mask:
            # In a mix, rows of data sets without input_mask have zeros there.
            lengths = np.where(lengths > 0, lengths, _counts(rows, "input_ids", at))
        return lengths

    def _masks(
        self, rows: Rows, batch: "_Selection", input_ids: npt.NDArray[Any], lengths: npt.NDArray[np.int32]
    ) -> Batch:
        """Return the masks: the stored ones, and those drawn for samples of data sets with mask rules."""
        arrays = self._stored_masks(rows, batch, input_ids.shape[1])
        positions, labels, weights = arrays.values()
        continues = np.zeros((0, 0), np.uint8)
        if "continuation_mask" in rows.arrays:
            continues = _gathered(rows, "continuation_mask", batch.at, input_ids.shape[1], 0, np.uint8)
        drawn = MaskedRows(input_ids, lengths, positions, labels, np.zeros(len(batch.at), np.int32), continues)
        for place, data_set in enumerate(self._data_sets):
            if data_set.mask_rules is None:
                continue
            if len(self._data_sets) == 1:
                self._draw(data_set.mask_rules, drawn, batch)
                weights[:] = up_to(drawn.masked, self._predictions)
                continue
            chosen = np.flatnonzero((batch.source == place) & (batch.at >= 0))
            # The rules are for rows of the data set's own width.
            width = min(input_ids.shape[1], data_set.width)
            part = MaskedRows(
                input_ids=np.ascontiguousarray(input_ids[chosen, :width]),
                lengths=lengths[chosen],
                positions=positions[chosen],
                labels=labels[chosen],
                masked=drawn.masked[chosen],
                continues=np.ascontiguousarray(continues[chosen, :width]) if len(continues) else continues,
            )
            self._draw(data_set.mask_rules, part, batch.of(chosen))
            input_ids[chosen, :width], positions[chosen], labels[chosen] = part.input_ids, part.positions, part.labels
            weights[chosen] = up_to(part.masked, self._predictions)
        return arrays

    def _stored_masks(self, rows: Rows, batch: "_Selection", width: int) -> Batch:
        """Return the stored masks; zeros for rows without."""
        if not self._stores_masks:
            shape = len(batch.at), self._predictions
            return {name: np.zeros(shape, np.float32 if name == OF_MASKS[-1] else np.int32) for name in OF_MASKS}
        arrays = {name: _gathered(rows, name, batch.at, self._predictions, 0) for name in OF_MASKS}
        positions = arrays[OF_MASKS[0]]
        if positions.max(initial=0) >= width:
            self._refuse(batch, (positions >= width).any(axis=1), f"has a mask after its {width} pieces")
        return arrays

    def _draw(self, rules: RowMaskRules, rows: MaskedRows, batch: "_Selection") -> None:
        draw_masks(rules, self._options.seed, rows, batch.epochs, batch.samples)

    def _next_sentence_labels(self, rows: Rows, at: npt.NDArray[np.int64], width: int) -> npt.NDArray[Any]:
        if not self._packed:
            return _gathered(rows, "next_sentence_labels", at, 1, 0)
        labels = _gathered(rows, "next_sentence_labels", at, width // 2, NO_LABEL)
        labels[~up_to(_counts(rows, "next_sentence_labels", at), width // 2)] = NO_LABEL
        return labels

    def _check_width(self, rows: Rows, batch: "_Selection", width: int) -> None:
        """Raise UnusableInputError for the first row that has more values than fit into a batch of this width."""
        limits = {"input_ids": width, "cu_seqlens": width // 2 + 1, "next_sentence_labels": max(1, width // 2)}
        for feature, most in limits.items():
            if feature in rows.counts:
                has_more = _counts(rows, feature, batch.at) > most
                self._refuse(batch, has_more, f"has more than {most} values of {feature}")

    def _refuse(self, batch: "_Selection", is_bad: npt.ArrayLike, what: str) -> None:
        if np.any(is_bad):
            bad = np.flatnonzero(is_bad)[0]
            raise UnusableInputError(
                f"{self._data_sets[batch.source[bad]].path}: sample {batch.samples[bad]:,} (counted from 0) {what}, "
                "the width that its file has in the manifest; write the data set anew."
            )

    def _finished(self, arrays: Batch, batch: "_Selection") -> Batch:
        """Return the arrays under the names of options.features, with the additional arrays of the options."""
        if self._options.features == "huggingface":
            arrays = _for_transformers(arrays, is_padding=batch.at < 0)
        names = _NAMES[self._options.features]
        arrays = {names.get(name, name): array for name, array in arrays.items()}
        is_sample = batch.at >= 0
        if self._options.tail == "pad":
            arrays["sample_weights"] = is_sample.astype(np.float32)
        if self._options.with_samples:
            arrays["samples"] = np.where(is_sample, batch.samples, -1)
            if len(self._data_sets) > 1:
                arrays["sources"] = np.where(is_sample, batch.source, -1).astype(np.int32)
        return arrays

    def _spec(self) -> dict[str, ArraySpec]:
        """Return the arrays of batches, from batches of padding of the smallest and of the largest width."""
        rows = Rows(self._data_sets[0].columns, 0)
        padding = np.full(self._options.batch_size // self._options.ranks, -1, np.int64)
        nothing = np.zeros_like(padding)
        widths = sorted({file.width for data_set in self._data_sets for file in data_set.files})
        least, most = (self.make(rows, padding, nothing, nothing, nothing, width) for width in (widths[0], widths[-1]))
        return {
            name: ArraySpec(
                tuple(a if a == b else None for a, b in zip(array.shape, most[name].shape, strict=True)), array.dtype
            )
            for name, array in least.items()
        }


@dataclasses.dataclass(frozen=True)
class _Selection:
    """The samples of a batch: see `BatchMaker.make`."""

    at: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    epochs: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]

    def of(self, chosen: npt.NDArray[np.int64]) -> "_Selection":
        return _Selection(self.at[chosen], self.source[chosen], self.epochs[chosen], self.samples[chosen])


def _gathered(
    rows: Rows,
    feature: str,
    at: npt.NDArray[np.int64],
    width: int,
    fill: int,
    integers: type[np.integer] = np.int32,
) -> npt.NDArray[Any]:
    """Return [b, width] of a column, of type `integers` or float32; `fill` in rows of padding."""
    values = rows.arrays[feature]
    if width > values.shape[1]:
        raise ValueError(f"{feature}: rows have {values.shape[1]} values, and a batch must have {width}")
    out = np.empty((len(at), width), np.float32 if values.dtype == np.float32 else integers)
    gather(values, at, fill, out)
    return out


def _counts(rows: Rows, feature: str, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return int32[b]: the number of values of a column in each row; 0 in rows of padding."""
    counts = np.zeros(len(at), np.int32)
    is_sample = at >= 0
    counts[is_sample] = rows.counts[feature][at[is_sample]]
    return counts


def _for_transformers(arrays: Batch, *, is_padding: npt.NDArray[np.bool_]) -> Batch:
    """Return the arrays for a model of transformers; those that differ only in type keep google's names."""
    masks = [arrays.pop(name) for name in OF_MASKS if name in arrays]
    found: Batch = {
        name: array.astype(np.int64, copy=False) if array.dtype == np.int32 else array for name, array in arrays.items()
    }
    if masks:
        found["labels"] = np.full(arrays["input_ids"].shape, NO_LABEL, np.int64)
        put_labels(*masks, found["labels"])
    if "next_sentence_labels" in found:
        found["next_sentence_labels"] = np.where(is_padding, NO_LABEL, found.pop("next_sentence_labels")[:, 0])
    return found


def alike(data_sets: Sequence[DataSet]) -> tuple[DataSet, ...]:
    """Return the data sets with columns of common widths and types, so that one batch may have rows of all.

    Masks may be stored in one and drawn in another, and widths may differ. A column that only some data sets have
    becomes optional in the others.

    Raises:
      UnusableInputError: a data set has other columns, another vocabulary or other packing than the first.
    """
    by_feature: dict[str, list[ReadColumn]] = {}
    for data_set in data_sets:
        _check_alike(data_sets[0], data_set)
        for column in data_set.columns:
            by_feature.setdefault(column.feature, []).append(column)
    common = [_common(columns, data_sets) for _, columns in sorted(by_feature.items())]
    return tuple(dataclasses.replace(data_set, columns=_columns_as(common, data_set)) for data_set in data_sets)


def _check_alike(first: DataSet, other: DataSet) -> None:
    names = [{column.feature for column in data_set.columns} - _MAY_DIFFER for data_set in (first, other)]
    for feature in sorted(names[0] ^ names[1]):
        has, lacks = (first, other) if feature in names[0] else (other, first)
        raise UnusableInputError(
            f"{has.path} has {feature} and {lacks.path} does not; mix data sets that have the same columns."
        )
    if first.packed != other.packed:
        packed, single = (first, other) if first.packed else (other, first)
        raise UnusableInputError(
            f"{packed.path} has several sequences in a row and {single.path} has one; mix data sets of one kind."
        )
    for name in ("vocabulary_size", "special_ids"):
        one, two = getattr(first, name), getattr(other, name)
        if one and two and one != two:
            raise UnusableInputError(
                f"{other.path} has {name} {two} and {first.path} has {one}; mix data sets of one vocabulary."
            )


def _common(columns: Sequence[ReadColumn], data_sets: Sequence[DataSet]) -> ReadColumn:
    """Return a column wide enough for the rows of all data sets, optional if some of them lack it."""
    widths = {column.width for column in columns}
    # The data set with the widest rows may lack this column.
    if columns[0].feature in (*_OF_PIECES, "continuation_mask"):
        widths |= {data_set.width for data_set in data_sets}
    elif columns[0].feature in OF_MASKS:
        widths |= {data_set.predictions for data_set in data_sets}
    return dataclasses.replace(
        columns[0],
        width=max(widths),
        varies=len(widths) > 1 or any(column.varies for column in columns),
        dtype=np.result_type(*(column.dtype for column in columns)),
        optional=len(columns) < len(data_sets) or any(column.optional for column in columns),
    )


def _columns_as(common: Sequence[ReadColumn], data_set: DataSet) -> tuple[ReadColumn, ...]:
    """Return the columns of a data set, with the widths and types of the common ones."""
    own = {column.feature: column for column in data_set.columns}
    return tuple(
        dataclasses.replace(
            own[column.feature],
            width=column.width,
            varies=column.varies,
            dtype=column.dtype,
            optional=column.optional,
        )
        if column.feature in own
        else column
        for column in common
    )
