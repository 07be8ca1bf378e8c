"""The rules of rows, from the manifest of a data set, or from the user's options for files without one."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.masking.instances import piece_continuations
from maskmill.masking.objective_options import ObjectiveOptions, decided_mask_unit
from maskmill.masking.options import MaskingOptions
from maskmill.options import of_parameters
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.read_columns import RowLimits, SchemaColumn, columns_of_example, columns_of_schema
from maskmill.records.features import OF_MASKS
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.verification.listed_shards import options_of
from maskmill.verification.options import VerifyOptions
from maskmill.verification.vocabulary_checks import KnownPieces

_PAIR = 2
_SOME_SIZE = 1 << 20  # assumed for a vocabulary of unknown size; it only decides types
_MOST_SEGMENTS = 256
_MOST_WIDTH = 1 << 20  # of rows without a manifest; a first record of more pieces is damaged
_SHARES: Mapping[str, Any] = {"mask_share": 0.8, "random_share": 0.1, "keep_share": 0.1}
_PIECES = ("input_ids", "input_word_ids")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowRules:
    """The rules of the rows of a data set. None: not known, so the rule is not checked.

    Attributes:
      data_set: its columns, special ids and vocabulary size; its only file is the one to check.
      objective: "nsp", "sop", "mlm" or "blocks".
      is_dynamic: whether the reader draws the masks.
      mask_unit: "piece", "whole_word", "whole_entity" …, the option's value.
      masked_lm_prob, mask_share, keep_share, random_share, max_predictions_per_seq: the options' values.
      continues: bool[vocabulary], True for pieces that continue a word; None: the vocabulary does not show it.
      is_exact: whether the number of masks of a row follows from its length (as in BERT), or is only bounded by it.
      separators: between documents within a sequence of mlm or blocks: "none", "sep" (a [SEP]) or "recipe" (each
        document has its [CLS] and [SEP], and is cut anywhere).
      never_in_text: the special ids (of "cls_id", "sep_id", "mask_id", "pad_id") that no text has. Of a vocab.txt: all,
        but "pad_id" only if that piece is in brackets. Of a tokenizer.json: none, as it finds special tokens in text.
      is_tokenizer: whether the vocabulary is a tokenizer.json.
    """

    data_set: DataSet
    objective: str | None = None
    is_dynamic: bool = False
    mask_unit: str | None = None
    masked_lm_prob: float | None = None
    mask_share: float | None = None
    keep_share: float | None = None
    random_share: float | None = None
    max_predictions_per_seq: int | None = None
    continues: npt.NDArray[np.bool_] | None = dataclasses.field(default=None, compare=False)
    is_exact: bool = False
    separators: str | None = None
    never_in_text: tuple[str, ...] = ()
    is_tokenizer: bool = False


def plan_of(made: Mapping[str, Any]) -> ExamplesPlan:
    """Return the plan of the examples of a manifest, those of a build or picked ones.

    Raises:
      UnusableInputError: an option is out of its range.
    """
    options = options_of(made)
    return ExamplesPlan(
        masking=of_parameters(MaskingOptions, options),
        objective=of_parameters(ObjectiveOptions, options),
        format=of_parameters(FormatOptions, options | {"format": made.get("format", "tfrecord")}),
    )


def schema_of(plan: ExamplesPlan, known: KnownPieces) -> list[dict[str, Any]]:
    """Return the columns of the examples of a plan, as a manifest lists them: name, dtype and shape."""
    is_tokenizer = known.path is not None and known.is_tokenizer
    marks_words = not is_tokenizer and (known.vocabulary is None or known.vocabulary.marks_words)
    entries = plan.schema(known.size or _SOME_SIZE, marks_words=marks_words)
    return [{name: entry[name] for name in ("name", "dtype", "shape")} for entry in entries]


def rules_of_plan(plan: ExamplesPlan, known: KnownPieces, path: str) -> RowRules:
    """Return the rules of a data set with a manifest; its data set has no files yet."""
    masking, objective, width = plan.masking, plan.objective, plan.widths[-1]
    entries = [(entry["name"], entry["shape"][0], entry["dtype"] == "float32") for entry in schema_of(plan, known)]
    columns = columns_of_schema([SchemaColumn(*entry) for entry in entries], _limits(width, known, _PAIR))
    separators = {"blocks": objective.block_separators, "mlm": "sep" if objective.cross_documents else "none"}
    unit = decided_mask_unit(masking, objective)
    return RowRules(
        data_set=_data_set(path, plan.format.format, columns, width, known),
        objective=objective.objective,
        is_dynamic=objective.dynamic_masking,
        mask_unit=unit,
        **{name: getattr(objective, name) for name in _SHARES},
        masked_lm_prob=masking.masked_lm_prob,
        max_predictions_per_seq=masking.max_predictions_per_seq,
        is_exact=unit == "piece" and not objective.dynamic_masking,
        separators=separators.get(objective.objective),
        **_of_vocabulary(known),
    )


def rules_of_records(
    features: Mapping[str, tuple[int, str]], options: VerifyOptions, known: KnownPieces, path: str
) -> RowRules:
    """Return the rules of TFRecords without a manifest, by their first example and the user's options.

    Raises:
      UnusableInputError: the example has no pieces.
    """
    lengths = {name: length for name, (length, _) in features.items()}
    pieces = next((name for name in _PIECES if name in lengths), None)
    if pieces is None or not 0 < lengths[pieces] <= _MOST_WIDTH:
        raise UnusableInputError(f"{path}: the first record has no feature input_ids; is this a file of examples?")
    width, most = options.max_seq_length or lengths[pieces], options.max_predictions_per_seq
    columns: list[ReadColumn] = []
    for column in columns_of_example(features, _limits(width, known, _MOST_SEGMENTS)):
        if not column.varies and column.width == lengths[pieces]:
            column = dataclasses.replace(column, width=width)
        if most is not None and column.feature in OF_MASKS:
            column = dataclasses.replace(column, width=most)
        columns.append(column)
    data_set = _data_set(path, "tfrecord", columns, width, known)
    return RowRules(
        data_set=data_set,
        objective="nsp" if any(column.feature == "next_sentence_labels" for column in columns) else None,
        is_dynamic=not data_set.predictions,
        masked_lm_prob=options.masked_lm_prob,
        **({} if options.masked_lm_prob is None else _SHARES),
        max_predictions_per_seq=data_set.predictions,
        **_of_vocabulary(known),
    )


def rules_of_file(rules: RowRules, file: DataFile) -> RowRules:
    """Return the rules of one file of a data set."""
    return dataclasses.replace(rules, data_set=dataclasses.replace(rules.data_set, files=(file,)))


def _limits(width: int, known: KnownPieces, segments: int) -> RowLimits:
    pad_id, name = known.special_ids.get("pad_id") or 0, "the vocabulary"
    return RowLimits(width=width, vocabulary_size=known.size, vocabulary=name, segments=segments, pad_id=pad_id)


def _of_vocabulary(known: KnownPieces) -> dict[str, Any]:
    """Return the fields of RowRules that a vocabulary decides."""
    vocabulary = known.vocabulary
    never_in_text: tuple[str, ...] = ()
    if not known.is_tokenizer and known.special_ids:
        pad_id = known.special_ids.get("pad_id")
        pieces = () if vocabulary is None else zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True)
        brackets = any(piece.startswith("[") and piece.endswith("]") for piece, number in pieces if number == pad_id)
        never_in_text = ("cls_id", "sep_id", "mask_id", *(["pad_id"] if brackets else []))
    marks_words = vocabulary is not None and vocabulary.marks_words
    return {
        "continues": piece_continuations(vocabulary).astype(np.bool_) if vocabulary and marks_words else None,
        "never_in_text": never_in_text,
        "is_tokenizer": known.path is not None and known.is_tokenizer,
    }


def _data_set(path: str, format: str, columns: Sequence[ReadColumn], width: int, known: KnownPieces) -> DataSet:
    widths = {column.feature: column.width for column in columns}
    return DataSet(
        path=path,
        format=format,
        files=(),
        columns=tuple(columns),
        width=width,
        fingerprint="",
        vocabulary_size=known.size,
        special_ids=dict(known.special_ids),
        packed="cu_seqlens" in widths,
        mask_rules=None,
        predictions=widths.get("masked_lm_positions", 0),
        vocabulary=known.path,
    )
