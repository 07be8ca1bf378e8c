"""How rows must look: what the manifest of a data set says, or what a user says of files without one."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from maskmill.arguments import fits
from maskmill.errors import UnusableInputError
from maskmill.masking.instances import piece_continuations
from maskmill.masking.objective_options import ObjectiveOptions, decided_mask_unit
from maskmill.masking.options import MaskingOptions
from maskmill.options import hints_of
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.read_columns import RowLimits, SchemaColumn, columns_of_example, columns_of_schema
from maskmill.records.features import OF_MASKS
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.tokenization.vocabulary import Vocabulary
from maskmill.verification.options import VerifyOptions

_Options = TypeVar("_Options", MaskingOptions, ObjectiveOptions, FormatOptions)
_PAIR = 2
_MOST_SEGMENTS = 256
_MOST_WIDTH = 1 << 20  # of rows without a manifest; a first record of more pieces is damaged
_BERT_SHARES: Mapping[str, Any] = {"mask_share": 0.8, "random_share": 0.1, "keep_share": 0.1}
_OF_MASKING = (*("masked_lm_prob", "dupe_factor", "max_seq_length", "max_predictions_per_seq"),)
_PIECES = ("input_ids", "input_word_ids")
_HINTS = {
    "compat": str,
    "shard_size_mb": float | None,
    "num_eval_articles": int | None,
    "num_examples_to_pick": int,
    "one_seed": bool,
    "packed": bool,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowRules:
    """How the rows of a data set must look. None: not known, so nothing is compared with it.

    Attributes:
      data_set: its columns, special ids and vocabulary size; its files are all files of the split.
      objective: "nsp", "sop", "mlm" or "blocks".
      is_packed, is_dynamic: whether rows have several sequences; whether the reader draws the masks.
      mask_unit: "piece", "whole_word", "whole_entity" …, as the options name it.
      masked_lm_prob, mask_share, keep_share, random_share: as the options have them.
      max_seq_length, max_predictions_per_seq, dupe_factor: as the options have them.
      continues: bool[vocabulary], which pieces go on a word; None: it does not say that of any.
      drawn_from: int32[pieces], the ids that random pieces are drawn from.
      is_exact: whether the number of masks of a row follows from its length (BERT's way), or is only bounded by it.
      separators: what stands between documents within a sequence of mlm or blocks: "none", "sep" (a [SEP]) or "recipe"
        (each document has its [CLS] and [SEP], and is cut anywhere).
      bins: how many bins there are; None: there are none.
      never_in_text: which of the special ids ("cls_id", "sep_id", "mask_id", "pad_id") no text gives: all but "pad_id"
        of a vocab.txt, "pad_id" too where that piece is in brackets; none of a tokenizer.json, which finds its special
        tokens in the text.
      is_tokenizer: whether the vocabulary is a tokenizer.json.
    """

    data_set: DataSet
    objective: str | None = None
    is_packed: bool = False
    is_dynamic: bool = False
    mask_unit: str | None = None
    masked_lm_prob: float | None = None
    mask_share: float | None = None
    keep_share: float | None = None
    random_share: float | None = None
    max_seq_length: int | None = None
    max_predictions_per_seq: int | None = None
    dupe_factor: int | None = None
    continues: npt.NDArray[np.bool_] | None = dataclasses.field(default=None, compare=False)
    drawn_from: npt.NDArray[np.int32] | None = dataclasses.field(default=None, compare=False)
    is_exact: bool = False
    separators: str | None = None
    bins: int | None = None
    never_in_text: tuple[str, ...] = ()
    is_tokenizer: bool = False


def options_from(kind: type[_Options], parameters: Mapping[str, Any]) -> _Options:
    """Options from a manifest's parameters; those that it does not have were declared later, and have their default.

    Raises:
      UnusableInputError: a value cannot be meant, or is of another type.
    """
    hints = hints_of(kind)
    values = {field.name: parameters[field.name] for field in dataclasses.fields(kind) if field.name in parameters}
    for name, value in values.items():
        if not fits(value, hints[name]):
            raise UnusableInputError(f"{name} is {value!r}, which it cannot be.")
    return kind(**values)


def cleaned(made: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest without what cannot be: other checks may take its values as maskmill writes them.

    What is left out is a finding already. Its shards are as they are; listed_shards.py has what can be used of them.
    """
    decided, chosen = made.get("decided"), made.get("examples")
    clean = dict(made) | {
        "parameters": _without_wrong(made["parameters"]),
        "decided": _without_wrong(decided) if isinstance(decided, dict) else {},
        "counts": {step: counts for step, counts in made["counts"].items() if isinstance(counts, dict)},
    }
    return clean | ({"examples": _without_wrong(chosen)} if isinstance(chosen, dict) else {})


def _without_wrong(options: Mapping[str, Any]) -> dict[str, Any]:
    hints = _HINTS | hints_of(MaskingOptions) | hints_of(ObjectiveOptions) | hints_of(FormatOptions)
    return {name: value for name, value in options.items() if name not in hints or fits(value, hints[name])}


def plan_of(made: Mapping[str, Any]) -> ExamplesPlan:
    """What decided the examples of a manifest: those of a build's examples, or picked ones.

    Raises:
      UnusableInputError: an option is not as it can be.
    """
    options = parameters_of(made)
    return ExamplesPlan(
        masking=options_from(MaskingOptions, options),
        objective=options_from(ObjectiveOptions, options),
        format=options_from(FormatOptions, options | {"format": made.get("format", "tfrecord")}),
    )


def parameters_of(made: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a manifest, and what was decided where they leave it open."""
    chosen = made.get("examples", made["parameters"])
    decided = made.get("decided")
    return (dict(chosen) if isinstance(chosen, dict) else {}) | (dict(decided) if isinstance(decided, dict) else {})


def schema_of(plan: ExamplesPlan, vocabulary_size: int, *, marks_words: bool) -> list[dict[str, Any]]:
    """The columns that examples of a plan have, as their manifest lists them: name, dtype and shape."""
    entries = plan.schema(vocabulary_size, marks_words=marks_words)
    return [{name: entry[name] for name in ("name", "dtype", "shape")} for entry in entries]


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownPieces:
    """What is known of a vocabulary.

    Attributes:
      vocabulary: the vocabulary itself; None: it is not there.
      size, special_ids: as it says, or as a manifest does; None and empty: not known.
      is_tokenizer: whether it is a tokenizer.json, which finds its special tokens in a text, too.
      path, sha256: of its file, as it was found; None: there is none.
    """

    vocabulary: Vocabulary | None = None
    size: int | None = None
    special_ids: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    is_tokenizer: bool = False
    path: str | None = None
    sha256: str | None = None


def rules_of_plan(plan: ExamplesPlan, entries: Sequence[Mapping[str, Any]], known: KnownPieces, path: str) -> RowRules:
    """The rules of a data set with a manifest, whose columns are `schema_of`; its data set has no files yet."""
    listed = [SchemaColumn(entry["name"], entry["shape"][0], entry["dtype"] == "float32") for entry in entries]
    masking, objective = plan.masking, plan.objective
    width = plan.widths[-1]
    limits = RowLimits(
        width=width,
        vocabulary_size=known.size,
        vocabulary="the data set's vocabulary",
        segments=_PAIR,
        pad_id=known.special_ids.get("pad_id") or 0,
    )
    unit = decided_mask_unit(masking, objective)
    return RowRules(
        data_set=_data_set(path, plan.format.format, columns_of_schema(listed, limits), width, known),
        objective=objective.objective,
        is_packed=objective.pack,
        is_dynamic=objective.dynamic_masking,
        mask_unit=unit,
        **{name: getattr(objective, name) for name in _BERT_SHARES},
        **{name: getattr(masking, name) for name in _OF_MASKING},
        is_exact=unit == "piece" and not objective.dynamic_masking,
        separators=_separators(objective),
        bins=objective.bins,
        **_of_vocabulary(known),
    )


def _of_vocabulary(known: KnownPieces) -> dict[str, Any]:
    """The fields of RowRules that a vocabulary decides."""
    return {
        "continues": None if known.vocabulary is None else _continues(known.vocabulary),
        "drawn_from": None if known.vocabulary is None else known.vocabulary.ids,
        "never_in_text": _never_in_text(known),
        "is_tokenizer": known.path is not None and known.is_tokenizer,
    }


def rules_of_records(
    features: Mapping[str, tuple[int, str]], options: VerifyOptions, known: KnownPieces, path: str
) -> RowRules:
    """The rules of TFRecords without a manifest, by their first example and what the user says.

    Raises:
      UnusableInputError: the example has no pieces.
    """
    lengths = {name: length for name, (length, _) in features.items()}
    pieces = next((name for name in _PIECES if name in lengths), None)
    if pieces is None or not 0 < lengths[pieces] <= _MOST_WIDTH:
        raise UnusableInputError(f"{path}: the first record has no feature input_ids; is this a file of examples?")
    width = options.max_seq_length or lengths[pieces]
    limits = RowLimits(
        width=width,
        vocabulary_size=known.size,
        vocabulary="the vocabulary",
        segments=_MOST_SEGMENTS,
        pad_id=known.special_ids.get("pad_id") or 0,
    )
    columns = []
    for column in columns_of_example(features, limits):
        if options.max_seq_length and not column.varies and column.width == lengths[pieces]:
            column = dataclasses.replace(column, width=width)
        if options.max_predictions_per_seq and column.feature in OF_MASKS:
            column = dataclasses.replace(column, width=options.max_predictions_per_seq)
        columns.append(column)
    names = {column.feature for column in columns}
    has_masks = "masked_lm_positions" in names
    return RowRules(
        data_set=_data_set(path, "tfrecord", tuple(columns), width, known),
        objective="nsp" if "next_sentence_labels" in names else None,
        is_packed="cu_seqlens" in names,
        is_dynamic=not has_masks,
        masked_lm_prob=options.masked_lm_prob,
        **({} if options.masked_lm_prob is None else _BERT_SHARES),
        max_seq_length=width,
        max_predictions_per_seq=next((c.width for c in columns if c.feature == "masked_lm_positions"), None),
        dupe_factor=options.dupe_factor,
        **_of_vocabulary(known),
    )


def rules_of_file(rules: RowRules, file: DataFile) -> RowRules:
    """The rules of one file of a data set."""
    return dataclasses.replace(rules, data_set=dataclasses.replace(rules.data_set, files=(file,)))


def _separators(objective: ObjectiveOptions) -> str | None:
    """RowRules.separators."""
    if objective.objective == "blocks":
        return objective.block_separators
    if objective.objective == "mlm":
        return "sep" if objective.cross_documents else "none"
    return None


def _never_in_text(known: KnownPieces) -> tuple[str, ...]:
    """RowRules.never_in_text. Where the vocabulary is not there, it is not known what padding stands for, too."""
    if known.is_tokenizer or not known.special_ids:
        return ()
    pad_id, vocabulary = known.special_ids.get("pad_id"), known.vocabulary
    brackets = vocabulary is not None and any(
        piece.startswith("[") and piece.endswith("]")
        for piece, number in zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True)
        if number == pad_id
    )
    return ("cls_id", "sep_id", "mask_id", *(["pad_id"] if brackets else []))


def _continues(vocabulary: Vocabulary) -> npt.NDArray[np.bool_] | None:
    """RowRules.continues."""
    return piece_continuations(vocabulary).astype(np.bool_) if vocabulary.marks_words else None


def _data_set(path: str, format: str, columns: tuple[ReadColumn, ...], width: int, known: KnownPieces) -> DataSet:
    return DataSet(
        path=path,
        format=format,
        files=(),
        columns=columns,
        width=width,
        fingerprint="",
        vocabulary_size=known.size,
        special_ids=dict(known.special_ids),
        packed=any(column.feature == "cu_seqlens" for column in columns),
        mask_rules=None,
        predictions=next((column.width for column in columns if column.feature == "masked_lm_positions"), 0),
        vocabulary=known.path,
    )
