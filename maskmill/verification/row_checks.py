"""Checks all rows of a file of examples, and counts and hashes them on the way, in one pass."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.kernels.memory import exposed_address
from maskmill.masking.packing import bin_widths
from maskmill.reading.block_reader import OtherColumnsError, Rows
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.column_tables import TargetTable
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.records.features import FEATURES, OF_MASKS
from maskmill.verification import scratch
from maskmill.verification.findings import Checked, makes_check, skipped
from maskmill.verification.kernels import row_checking as kernels
from maskmill.verification.layout_checks import check_layout
from maskmill.verification.pieces import Piece, PieceResult, RowStatistics
from maskmill.verification.row_reading import ReadRows, RowSource, checked_columns, open_rows
from maskmill.verification.row_results import Faults, RowCounter
from maskmill.verification.row_rules import RowRules

_OF_PIECES = [name for name, feature in FEATURES.items() if feature.per == "piece" and name != "input_ids"]
_PAIRS = ("nsp", "sop")
_SPECIAL_IDS = ("cls_id", "sep_id", "mask_id", "pad_id")
_WHOLE_WORDS = ("whole_word", "word", "ngram", "span")
_FRAMES = {"none": kernels.SINGLE, "sep": kernels.JOINED, "recipe": kernels.CUT}
_NO_VOCABULARY = "the ids of [CLS], [SEP] and [MASK] are not known; name the vocabulary with --vocab_file"
_UNREAD = "the file cannot be read, or not to its end"
_NO_OBJECTIVE = "it is not known what the examples are made for"


@makes_check("file", "examples")
def check_rows(piece: Piece, ranges: ByteRanges) -> Checked:
    """Checks all rows of a file of examples; the data set of the piece's rules has this file as its first.

    Returns:
      A PieceResult, if it is known what the rows look like. `counts` has, where they can be told: examples, sequences
      (packed rows), example_tokens, special_tokens, padding_tokens, masked_positions, random_next (nsp) and swapped
      (sop). `hashes` has, where the piece has a scratch directory, "rows": a table (scratch.py) of uint64[rows, 3]: the
      hash of each row with its masks undone (pieces without padding, segments and labels), that of the whole row, and
      the number of the record, its pieces of text and the logarithm of in how many ways it can be masked (0 where masks
      are drawn by the reader), packed.

    Raises:
      RunFailedError: the machine cannot read the file on, or cannot write to the scratch directory.
    """
    if piece.rules is None:
        return skipped("it is not known what the rows look like", "framing", "schema", "ids", "masks")
    rules: RowRules = piece.rules
    data_set = _with_checked_columns(rules)
    faults = Faults(piece.path)
    if not _fit_together(data_set, faults):
        not_made = skipped("the columns do not fit together", "special_tokens")
        return dataclasses.replace(not_made, findings=faults.findings())
    try:
        source = open_rows(data_set, ranges, faults, is_listed=piece.expected.size is not None)
    except UnusableInputError as error:
        _add_unreadable(piece.path, error, faults)
        return dataclasses.replace(skipped(_UNREAD, *_made_checks(rules)), findings=faults.findings())
    checker, numbers = RowChecker(rules, data_set, source.room), list[npt.NDArray[np.int64]]()
    try:
        for count in source.blocks(checker.read):
            checker.check(count, faults)
            numbers.append(checker.read.numbers[:count] + 1)
        check_layout(rules.data_set, ranges, faults)
        unread = source.unread
    except UnusableInputError as error:
        _add_unreadable(piece.path, error, faults)
        unread = _UNREAD
    faults.add_problems(checker.counter.problems)
    statistics = checker.counter.statistics()
    return PieceResult(
        piece=piece,
        findings=faults.findings(),
        looked_at=_looked_at(rules, source, statistics),
        skipped=_skipped(rules, unread, source),
        counts=_counts(rules, source, checker, statistics),
        rows=statistics,
        hashes=_write_hashes(piece, checker.counter.hashes, numbers),
        starts=source.starts,
    )


def _with_checked_columns(rules: RowRules) -> DataSet:
    return dataclasses.replace(rules.data_set, columns=checked_columns(rules.data_set.columns))


def _add_unreadable(path: str, error: UnusableInputError, faults: Faults) -> None:
    """Adds that a file cannot be read, or not on, from what a reader says of it."""
    what, _, advice = str(error).removeprefix(f"{path}: ").rstrip(".").partition("; ")
    check, expected = "framing", "records that can be read"
    if isinstance(error, OtherColumnsError):
        check, expected = "schema", "the columns of the data set"
    faults.add(check, "file", None, expected, what, what, advice=advice or "make or fetch the file again")


# ---- columns


def _fit_together(data_set: DataSet, faults: Faults) -> bool:
    """Whether the columns that kernels look at have the kinds and widths that they must have."""
    columns = {column.feature: column for column in data_set.columns}
    wrong = _first_misfit(columns)
    if wrong is not None:
        expected, what = "columns that belong together", f"its columns do not fit together: {wrong}"
        faults.add("schema", "columns", None, expected, wrong, what, advice="make the examples again")
    return wrong is None


def _first_misfit(columns: Mapping[str, ReadColumn]) -> str | None:
    if "input_ids" not in columns:
        return "input_ids is missing"
    for feature, column in columns.items():
        is_number = feature in (*_OF_PIECES, "input_ids", "next_sentence_labels", "cu_seqlens", *OF_MASKS[:2])
        if is_number and column.dtype.kind == "f":
            return f"{column.name} has floats"
    for feature in _OF_PIECES:
        if feature in columns and columns[feature].width != columns["input_ids"].width:
            return f"{columns[feature].name} has another length than {columns['input_ids'].name}"
    masks = [columns[feature] for feature in OF_MASKS if feature in columns]
    if masks and (len(masks) < len(OF_MASKS) or len({column.width for column in masks}) > 1):
        return f"{', '.join(OF_MASKS)} must all be there, with the same length"
    if masks and columns["masked_lm_weights"].dtype.kind != "f":
        return "masked_lm_weights has integers"
    return None


# ---- checking


class RowChecker:
    """Compares blocks of rows with the rules.

    Attributes:
      read: where rows are read to.
      counter: counts them.
    """

    def __init__(self, rules: RowRules, data_set: DataSet, room: int) -> None:
        """Makes room for blocks of so many rows."""
        columns = data_set.columns
        self.read = ReadRows(Rows(columns, room), np.zeros(room, np.int64), TargetTable(columns))
        self._features = {column.feature: column for column in columns}
        width = self._features["input_ids"].width
        predictions = self._features["masked_lm_ids"].width if "masked_lm_ids" in self._features else 0
        self.counter = RowCounter(
            room=room, width=width, predictions=predictions, vocabulary=data_set.vocabulary_size or 0
        )
        self._stored = np.full(room, width, np.int32)
        self._made = _RuleArrays(rules, data_set, is_padded="input_mask" in self._features, width=width)
        self._places = self._row_places(room, width, predictions)

    def check(self, count: int, faults: Faults) -> None:
        """Checks the first `count` rows that were read."""
        varying = [feature for feature in _OF_PIECES if feature in self.read.rows.counts]
        if "input_ids" in self.read.rows.counts:
            stored = self.read.rows.counts["input_ids"]
            for feature in varying:
                is_other = self.read.rows.counts[feature][:count] != stored[:count]
                if is_other.any():
                    self._note_lengths(feature, int(np.flatnonzero(is_other)[0]), int(is_other.sum()), faults)
        self.counter.check(self._places, count, self._made.table)

    def _note_lengths(self, feature: str, row: int, count: int, faults: Faults) -> None:
        """Notes rows whose columns of pieces have different lengths."""
        expected, found = (int(self.read.rows.counts[name][row]) for name in ("input_ids", feature))
        name, ids = self._features[feature].name, self._features["input_ids"].name
        kind, record = f"length of {feature}", int(self.read.numbers[row])
        what = f"{name} has {found:,} values, but {ids} has {expected:,}"
        faults.add("schema", kind, record, f"{expected:,} values", f"{found:,}", what, count=count)

    def _row_places(self, room: int, width: int, predictions: int) -> kernels.RowPlaces:
        arrays, counts = self.read.rows.arrays, self.read.rows.counts

        def at(feature: str) -> int:
            return exposed_address(arrays[feature]) if feature in arrays and arrays[feature].size else 0

        def counted(feature: str) -> npt.NDArray[np.int32]:
            if feature in counts:
                return counts[feature]
            return np.full(room, self._features[feature].width if feature in self._features else 0, np.int32)

        self._held = [counted(feature) for feature in ("input_ids", "cu_seqlens", "next_sentence_labels")]
        pieces, ends, labels = (exposed_address(array) for array in self._held)
        features = self._features
        return kernels.RowPlaces(
            pieces=width,
            predictions=predictions,
            most_ends=features["cu_seqlens"].width if "cu_seqlens" in features else 0,
            most_labels=features["next_sentence_labels"].width if "next_sentence_labels" in features else 0,
            stored=pieces,
            ends=at("cu_seqlens"),
            ends_stored=ends,
            labels=at("next_sentence_labels"),
            labels_stored=labels,
            positions=at("masked_lm_positions"),
            label_ids=at("masked_lm_ids"),
            weights=at("masked_lm_weights"),
            numbers=exposed_address(self.read.numbers),
            **{feature: at(feature) for feature in ("input_ids", *_OF_PIECES)},
        )


class _RuleArrays:
    """The rules as kernels take them.

    Attributes:
      table: the rules, with the addresses of arrays that live as long as this does.
    """

    def __init__(self, rules: RowRules, data_set: DataSet, *, is_padded: bool, width: int) -> None:
        ids = {name: data_set.special_ids.get(name) for name in _SPECIAL_IDS}
        known = {name: -1 if value is None else value for name, value in ids.items()}
        # One piece may have two roles; then it stands in more places than those of one of them.
        alone = {n: n in rules.never_in_text and list(known.values()).count(known[n]) == 1 for n in _SPECIAL_IDS}
        self._to_predict = _to_predict(rules, width)
        self._piece_kinds = _piece_kinds(rules, data_set)
        self._log_factorials = np.array([math.lgamma(n + 1) / math.log(2) for n in range(width + 1)])
        words = rules.mask_unit in _WHOLE_WORDS and not rules.is_dynamic and rules.continues_word
        self.table = kernels.RuleTable(
            frame=_frame(rules, data_set),
            packed=int(data_set.packed),
            width=data_set.files[0].width if is_padded else 0,
            least=_least_pieces(rules, data_set),
            counts=_mask_counts(rules),
            to_predict=exposed_address(self._to_predict),
            whole_words=int(words and len(self._piece_kinds) > 0),
            vocabulary=data_set.vocabulary_size or 0,
            kinds_at=exposed_address(self._piece_kinds) if len(self._piece_kinds) else 0,
            log_factorials=exposed_address(self._log_factorials),
            **known,
            **{name.replace("_id", "_alone"): int(is_alone) for name, is_alone in alone.items()},
        )


def _frame(rules: RowRules, data_set: DataSet) -> int:
    """How sequences are framed."""
    if data_set.special_ids.get("cls_id") is None or data_set.special_ids.get("sep_id") is None:
        return kernels.UNKNOWN
    if rules.objective in _PAIRS:
        has_segments = any(column.feature == "segment_ids" for column in data_set.columns)
        return kernels.PAIR if has_segments else kernels.UNKNOWN
    return _FRAMES.get(rules.separators or "", kernels.UNKNOWN)


def _least_pieces(rules: RowRules, data_set: DataSet) -> int:
    """The fewest pieces of a row, by its file's bin; 0: any."""
    if rules.bins is None or rules.max_seq_length is None:
        return 0
    narrower = [w for w in bin_widths(rules.max_seq_length, rules.bins).tolist() if w < data_set.files[0].width]
    return max(narrower, default=0) + 1


def _mask_counts(rules: RowRules) -> int:
    if rules.masked_lm_prob is None or rules.max_predictions_per_seq is None or rules.is_dynamic:
        return kernels.ANY
    return kernels.EXACT if rules.is_exact else kernels.BOUNDED


def _to_predict(rules: RowRules, width: int) -> npt.NDArray[np.int64]:
    """int64[width + 1]: how many positions of a row of so many pieces are masked, see masking/instances.py."""
    prob, most = rules.masked_lm_prob or 0, rules.max_predictions_per_seq or 0
    return np.array([min(most, max(1, round(pieces * prob))) for pieces in range(width + 1)], np.int64)


def _piece_kinds(rules: RowRules, data_set: DataSet) -> npt.NDArray[np.uint8]:
    """uint8[vocabulary], what each piece is; empty where it is not known."""
    if rules.piece_kinds is None or data_set.vocabulary_size is None:
        return np.zeros(0, np.uint8)
    kinds = np.zeros(data_set.vocabulary_size, np.uint8)
    known = rules.piece_kinds[: len(kinds)]
    kinds[: len(known)] = known
    return kinds


# ---- what was looked at


def _features_of(rules: RowRules) -> set[str]:
    return {column.feature for column in rules.data_set.columns}


def _made_checks(rules: RowRules) -> list[str]:
    """The checks that the rows of a data set undergo."""
    features, is_framed = _features_of(rules), _frame(rules, rules.data_set) != kernels.UNKNOWN
    has_vocabulary = rules.data_set.vocabulary_size is not None
    made = dict.fromkeys(("framing", "schema", "padding", "crc"), True) | {
        "ids": has_vocabulary,
        "words": has_vocabulary and rules.continues_word,
        "special_tokens": is_framed,
        "segments": is_framed and "segment_ids" in features,
        "masks": "masked_lm_positions" in features,
        "packing": "cu_seqlens" in features,
        "labels": "next_sentence_labels" in features,
        "length_share": rules.bins is not None,
    }
    return [check for check, is_made in made.items() if is_made]


def _looked_at(rules: RowRules, source: RowSource, statistics: RowStatistics) -> dict[str, int]:
    made = dict.fromkeys(_made_checks(rules), statistics.rows)
    made |= dict.fromkeys(("framing", "crc", "schema"), source.records)
    return {check: count for check, count in made.items() if check != "crc" or source.checksums is None}


def _skipped(rules: RowRules, unread: str | None, source: RowSource) -> dict[str, str]:
    """Why checks were not made, or not on all rows."""
    data_set, why = rules.data_set, dict[str, str]()
    if source.checksums is not None:
        why["crc"] = source.checksums
    if data_set.vocabulary_size is None:
        why["ids"] = "the size of the vocabulary is not known; name the vocabulary with --vocab_file"
    if _frame(rules, data_set) == kernels.UNKNOWN:
        checks = ["special_tokens", *(["segments"] if "segment_ids" in _features_of(rules) else [])]
        why |= dict.fromkeys(checks, _NO_OBJECTIVE if data_set.special_ids else _NO_VOCABULARY)
    return why if unread is None else why | dict.fromkeys(_made_checks(rules), unread)


def _counts(rules: RowRules, source: RowSource, checker: RowChecker, statistics: RowStatistics) -> dict[str, int]:
    """What was counted, by the names of the manifest."""
    features, table = _features_of(rules), checker._made.table
    pieces = int(statistics.pieces_at.sum())
    counts = {"examples": source.records}
    if "cu_seqlens" in features:
        counts["sequences"] = statistics.sequences
    if "masked_lm_positions" in features:
        counts["masked_positions"] = statistics.masked
    if "input_mask" in features:
        counts["padding_tokens"] = statistics.rows * table.width - pieces
    if table.frame != kernels.UNKNOWN and table.cls_alone and table.sep_alone:
        counts["special_tokens"] = checker.counter.special_pieces
        counts["example_tokens"] = pieces - counts["special_tokens"]
    if rules.objective in _PAIRS and "next_sentence_labels" in features:
        counts["random_next" if rules.objective == "nsp" else "swapped"] = statistics.second_label
    return counts


def _write_hashes(
    piece: Piece, hashes: npt.NDArray[np.uint64], numbers: Sequence[npt.NDArray[np.int64]]
) -> dict[str, str]:
    """Writes the table of rows to the scratch directory; see check_rows."""
    records = np.concatenate([*numbers, np.zeros(0, np.int64)]).astype(np.uint64)
    low = np.uint64((1 << scratch.NUMBER_SHIFT) - 1)
    packed = records << np.uint64(scratch.NUMBER_SHIFT) | hashes[:, 1] & low
    path = scratch.write_table(piece, "rows", np.stack([hashes[:, 0], hashes[:, 1] & ~low, packed], axis=1))
    return {} if path is None else {"rows": path}


def hash_rows(rules: RowRules, path: str, ranges: ByteRanges) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """The numbers of the records of a file that can be read, from 1, and uint64[rows, 2], their hashes (check_rows).

    Raises:
      UnusableInputError: the file is missing, or cannot be read at all.
      RunFailedError: the machine cannot read it on.
    """
    data_set = _with_checked_columns(rules)
    source = open_rows(data_set, ranges, Faults(path))
    checker, numbers = RowChecker(rules, data_set, source.room), [np.zeros(0, np.int64)]
    for count in source.blocks(checker.read):
        checker.check(count, Faults(path))
        numbers.append(checker.read.numbers[:count] + 1)
    return np.concatenate(numbers), checker.counter.hashes
