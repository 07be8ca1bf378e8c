"""Check, count and hash all rows of a file of examples in one pass."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import ReadColumn
from maskmill.records.features import FEATURES, OF_MASKS
from maskmill.verification.bounds import poisson_tail
from maskmill.verification.findings import Checked, makes_check, skipped
from maskmill.verification.row_reading import Faults, RowReading
from maskmill.verification.row_rules import RowRules
from maskmill.verification.row_structure import PAIRS, PART_OF_WAYS, RowChecker
from maskmill.verification.scratch import write_table
from maskmill.verification.work_items import ItemResult, WorkItem

_NO_VOCABULARY = "the ids of [CLS], [SEP] and [MASK] are not known; name the vocabulary with --vocab_file"
_NO_OBJECTIVE = "it is not known what the examples are made for"
_UNREAD = "the file cannot be read, or not to its end"
_FALSE_ALARM = 1e-12
_LEAST_BITS = 20  # log2 of the ways to mask a row; rows with fewer may well have the same masks


@makes_check("file", "examples")
def check_rows(item: WorkItem, ranges: ByteRanges) -> Checked:
    """Check all rows of a file of examples, the only file of the data set of the item's rules.

    Returns:
      A ItemResult, if the rules of the rows are known. `counts` has, as far as the columns allow: examples, sequences
      (packed rows), example_tokens, special_tokens, padding_tokens, masked_positions, random_next (nsp) and swapped
      (sop). With a scratch directory, `hashes` has "rows": a table (scratch.py) of row_structure.RowChecker.hashes.

    Raises:
      RunFailedError: reading the file fails, or writing to the scratch directory.
    """
    if item.rules is None:
        return skipped("it is not known what the rows look like", "framing", "schema", "ids", "masks")
    rules: RowRules = item.rules
    faults = Faults(item.path)
    wrong = _first_misfit({column.feature: column for column in rules.data_set.columns})
    if wrong is not None:
        faults.add("schema", None, f"its columns do not fit together: {wrong}; make the examples again")
        unfit = skipped("the columns do not fit together", "special_tokens")
        return dataclasses.replace(unfit, findings=faults.findings())
    try:
        reading = RowReading(rules.data_set, ranges, faults)
    except UnusableInputError as error:
        faults.add_error(error)
        return dataclasses.replace(skipped(_UNREAD, *_made_checks(rules, is_framed=True)), findings=faults.findings())
    checker, unread = RowChecker(rules, reading.rows, faults), None
    try:
        for numbers in reading.blocks():
            checker.check(numbers)
    except UnusableInputError as error:
        faults.add_error(error)
        unread = _UNREAD
    statistics = checker.statistics()
    _check_positions(checker, faults)
    made = dict.fromkeys(_made_checks(rules, is_framed=checker.is_framed), statistics.rows)
    why = {} if unread is None else dict.fromkeys(made, unread)
    if reading.checksums is not None:
        made.pop("crc")
        why["crc"] = reading.checksums
    columns = [np.concatenate(parts) for parts in zip(*checker.hashes, strict=True)] or [np.zeros(0)] * 5
    return ItemResult(
        item=item,
        findings=faults.findings(),
        looked_at=made,
        skipped=_skipped(rules, checker) | why,
        counts={"examples": reading.records} | _counts(rules, checker),
        rows=statistics,
        hashes=write_table(item, "rows", columns),
    )


def _first_misfit(columns: Mapping[str, ReadColumn]) -> str | None:
    """Return a clause about a column of a wrong kind or width; None if all are right."""
    if "input_ids" not in columns:
        return "input_ids is missing"
    pieces = columns["input_ids"]
    for feature, column in columns.items():
        if feature in FEATURES and (column.dtype.kind == "f") != (feature == "masked_lm_weights"):
            return f"{column.name} has {'floats' if column.dtype.kind == 'f' else 'integers'}"
        if feature in FEATURES and FEATURES[feature].per == "piece" and column.width != pieces.width:
            return f"{column.name} has another length than {pieces.name}"
    masks = [columns[feature] for feature in OF_MASKS if feature in columns]
    if masks and (len(masks) < len(OF_MASKS) or len({column.width for column in masks}) > 1):
        return f"{', '.join(OF_MASKS)} must all be there, with the same length"
    return None


def _check_positions(checker: RowChecker, faults: Faults) -> None:
    """Find rows that have the same masked positions more often than by chance, if pieces are drawn one by one."""
    rules = checker.rules
    if rules.mask_unit not in ("piece", None) or not checker.positions:
        return
    hashes, bits = (np.concatenate(parts) for parts in zip(*checker.positions, strict=True))
    bits = bits * (PART_OF_WAYS["whole_word"] if rules.mask_unit is None else 1)
    hashes, bits = hashes[bits >= _LEAST_BITS], bits[bits >= _LEAST_BITS]
    of_same = np.unique(np.round(bits, 6), return_counts=True)
    expected = sum(count * (count - 1) / 2 * 2.0**-bit for bit, count in zip(*of_same, strict=True))
    _, counts = np.unique(hashes, return_counts=True)
    pairs = int((counts * (counts - 1) // 2).sum())
    if pairs and poisson_tail(pairs, expected) < _FALSE_ALARM:
        what = f"{int(counts.max()):,} rows have the same masked positions, which cannot be chance"
        faults.add("masks", None, f"{what}; make the examples again")


def _made_checks(rules: RowRules, *, is_framed: bool) -> list[str]:
    """Return the checks that can be made on the rows of a data set."""
    features = {column.feature for column in rules.data_set.columns}
    made = dict.fromkeys(("framing", "schema", "padding", "crc"), True) | {
        "ids": rules.data_set.vocabulary_size is not None,
        "special_tokens": is_framed,
        "segments": is_framed and "segment_ids" in features,
        "masks": "masked_lm_positions" in features,
        "packing": "cu_seqlens" in features,
        "labels": "next_sentence_labels" in features,
    }
    return [check for check, is_made in made.items() if is_made]


def _skipped(rules: RowRules, checker: RowChecker) -> dict[str, str]:
    """Return why checks were not made, by their names."""
    why = {}
    if rules.data_set.vocabulary_size is None:
        why["ids"] = "the size of the vocabulary is not known; name the vocabulary with --vocab_file"
    if not checker.is_framed:
        has_segments = any(column.feature == "segment_ids" for column in rules.data_set.columns)
        checks = ["special_tokens", *(["segments"] if has_segments else [])]
        why |= dict.fromkeys(checks, _NO_OBJECTIVE if rules.data_set.special_ids else _NO_VOCABULARY)
    return why


def _counts(rules: RowRules, checker: RowChecker) -> dict[str, int]:
    """Return counts by their names in the manifest."""
    features, statistics = {column.feature for column in rules.data_set.columns}, checker.statistics()
    pieces, counts = int(statistics.pieces_at.sum()), {}
    if "cu_seqlens" in features:
        counts["sequences"] = statistics.sequences
    if "masked_lm_positions" in features:
        counts["masked_positions"] = statistics.masked
    if "input_mask" in features:
        counts["padding_tokens"] = statistics.rows * rules.data_set.files[0].width - pieces
    if checker.is_framed and checker.specials_alone:
        counts["special_tokens"] = checker.special_pieces
        counts["example_tokens"] = pieces - checker.special_pieces
    if rules.objective in PAIRS and "next_sentence_labels" in features:
        counts["random_next" if rules.objective == "nsp" else "swapped"] = statistics.second_label
    return counts
