"""Records that are there more often than they may be; shards that have the records of others; documents likewise."""

import collections
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.verification.bounds import poisson_tail
from maskmill.verification.findings import Checked, Finding, Severity, finding, looked, makes_check, skipped
from maskmill.verification.pieces import PieceResult
from maskmill.verification.row_structure import PART_OF_WAYS
from maskmill.verification.scratch import Merged, merge, runs_of
from maskmill.verification.verify_targets import Target

# A tokenizer.json may cut words into single characters.
_PART_OF_WORDS_IN_ANY_PIECES = 0.03
# How likely a false alarm may be, for all records together. It is more than elsewhere, so that a single row of 60
# pieces that is there twice is found: two of the same text have the same 10 masks with 2**-42.
_FALSE_ALARM = 1e-9
_LEAST_BITS = (30, 1)  # of in how many ways rows can be masked; those of many are judged first, then all together
_LONG_ROW = 48  # pieces; shorter rows may well have the same text
_MANY_ROWS = 0.2  # share of the rows whose text is there more than dupe_factor times
_MUCH = 0.1  # share of the records of a shard that another one has, too
_LEAST_BYTES = 60  # of a document; shorter ones may well be written twice
_FEW_BYTES = 0.05  # share of the text that may be there before
_TWOFOLD = 0.04  # share of the documents that may have their own text twice
_FEW_DOCUMENTS = 5


# A record, and the one that it repeats: the file and the number of each.
_Repeat = tuple[tuple[int, int], tuple[int, int]]


# ---- rows


@makes_check("data_set", "examples", "eval")
def check_repeated_rows(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks for records that are there twice, masks and all, and for text that is in more records than it may be.

    Two rows of the same text have the same masks with a probability that follows from how many ways there are to mask
    them. So the number of equal records that chance gives is known, whatever the text repeats.
    """
    tables = [result for result in results if "rows" in result.hashes]
    if not tables:
        return skipped("no rows could be read", "repeated_records")
    if all(result.is_remade for result in tables):
        return skipped("all shards were made again", "repeated_records")
    factor = min(_part_of_ways(result) for result in tables)
    expected, pairs, rows = np.zeros(2), np.zeros(2, np.int64), 0
    repeats: list[list[_Repeat]] = [[], []]
    # Of a build the text tells more, and a mix may take documents several times.
    dupes = 0 if target.made else max((result.piece.rules.dupe_factor or 0 for result in tables), default=0)
    often = 0
    for merged in merge(tables, "rows"):
        rows += len(merged.table)
        is_long = merged.column(3)[merged.starts] >= _LONG_ROW
        often += int(merged.counts[(merged.counts > dupes) & is_long].sum()) if dupes else 0
        bits = merged.column(4)[merged.starts] * factor
        for run in np.flatnonzero((merged.counts > 1) & (bits >= min(_LEAST_BITS))).tolist():
            count = int(merged.counts[run])
            of_run = list(_equal_records(merged, int(merged.starts[run]), count))
            for judged in np.flatnonzero(bits[run] >= _LEAST_BITS).tolist():
                expected[judged] += math.comb(count, 2) * 2.0 ** -bits[run]
                pairs[judged] += sum(math.comb(len(equal), 2) for equal in of_run)
                repeats[judged] += [(other, equal[0]) for equal in of_run for other in equal[1:]]
    found = [k for k in range(2) if pairs[k] and poisson_tail(int(pairs[k]), float(expected[k])) < _FALSE_ALARM]
    findings = list(_describe_repeats(repeats[found[-1]], tables)) if found else []
    if often > _MANY_ROWS * rows:
        much = f"{often / rows:.0%} of the records have text that more than dupe_factor ({dupes:,}) of them have"
        what, expected_text = (
            f"{much}: the same text went in twice, so look for it among the inputs",
            "text of its own",
        )
        path = tables[0].piece.directory
        findings.append(finding("repeated_records", path, expected_text, f"{often / rows:.0%}", what, "warning"))
    return looked("repeated_records", *findings, count=rows)


def _part_of_ways(result: PieceResult) -> float:
    rules = result.piece.rules
    unit = rules.mask_unit or "piece"  # the reference masks pieces, unless it is asked for words
    return _PART_OF_WORDS_IN_ANY_PIECES if rules.is_tokenizer and unit != "piece" else PART_OF_WAYS[unit]


def _equal_records(merged: Merged, start: int, count: int) -> Iterator[list[tuple[int, int]]]:
    """The records of a run of equal texts that are equal themselves, in groups: the file and number of each."""
    members = np.arange(start, start + count)
    members = members[np.argsort(merged.table[members, 1], kind="stable")]
    for first, size in zip(*runs_of(merged.table[members, 1]), strict=True):
        if size > 1:
            equal = members[first : first + size]
            yield sorted(zip(merged.owner[equal].tolist(), merged.column(2)[equal].tolist(), strict=True))


def _describe_repeats(repeats: Sequence[_Repeat], tables: Sequence[PieceResult]) -> Iterator[Finding]:
    by_file: dict[int, list[_Repeat]] = {}
    for repeat in sorted(repeats):
        by_file.setdefault(repeat[0][0], []).append(repeat)
    for owner, of_file in by_file.items():
        (_, number), (first_owner, first) = of_file[0]
        path, other = tables[owner].piece.path, tables[first_owner].piece.path
        rows = tables[owner].rows
        share = len(of_file) / max(1, 0 if rows is None else rows.rows)
        more = f" ({len(of_file):,} such records in this file, {share:.0%})" if len(of_file) > 1 else ""
        do = "make it again from its own text" if share > _MUCH else "make the shard again"
        what = f"this is record {first:,} of {other} once more, with the same masks{more}; {do}"
        found, at = f"record {first:,} of {other}", ("record", number)
        yield finding("repeated_records", path, "a record of its own", found, what, at=at, count=len(of_file))


# ---- documents


@makes_check("data_set", "text")
def check_repeated_documents(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Looks for documents that are there before, in their shard or in another one, and for those in themselves."""
    tables = [result for result in results if "documents" in result.hashes and result.text is not None]
    if _takes_sources_twice(target.made):
        return skipped("the mix takes documents several times", "repeated_documents")
    before: collections.Counter[int] = collections.Counter()
    counts: collections.Counter[int] = collections.Counter()
    first: dict[int, tuple[int, int, int]] = {}  # of each file: a number, and the file and number where it was before
    for merged in merge(tables, "documents"):
        numbers, sizes = merged.column(1), merged.column(2)
        is_eval = np.array([result.piece.split == "eval" for result in tables])[merged.owner]
        for run in np.flatnonzero((merged.counts > 1) & (sizes[merged.starts] >= _LEAST_BYTES)).tolist():
            members = [n for n in range(merged.starts[run], merged.starts[run] + merged.counts[run]) if not is_eval[n]]
            places = sorted((int(merged.owner[n]), int(numbers[n])) for n in members)
            for owner, number in places[1:]:
                before[owner] += int(sizes[members[0]])
                counts[owner] += 1
                first[owner] = min(first.get(owner, (number, *places[0])), (number, *places[0]))
    size = sum(result.size or 0 for result in tables)
    is_much = sum(before.values()) > _FEW_BYTES * size
    findings = []
    for owner, (number, other, other_number) in sorted(first.items()):
        of_shard = before[owner] / max(1, tables[owner].size or 0)
        is_many = is_much or of_shard > _FEW_BYTES
        also = f"{counts[owner]:,} documents of this file are there before, {of_shard:.1%} of its text"
        where = tables[other].piece.path
        what = (
            f"this document is document {other_number:,} of {where} once more; {also}: "
            f"{'' if is_many else 'few enough to be so by nature, or '}look for them among the inputs"
        )
        found, at = f"document {other_number:,} of {where}", ("document", number)
        severity: Severity = "warning" if is_many else "note"
        path, expected = tables[owner].piece.path, "documents of its own"
        findings.append(
            finding("repeated_documents", path, expected, found, what, severity, at=at, count=counts[owner])
        )
    count = sum(result.text.documents for result in tables if result.text is not None)
    return looked("repeated_documents", *findings, *_twofold(tables, count), count=count)


def _twofold(results: Sequence[PieceResult], documents: int) -> Iterator[Finding]:
    """A warning where many documents have their own text twice."""
    found = [(result.piece.path, result.text) for result in results if result.text is not None and result.text.twofold]
    count = sum(text.twofold for _, text in found)
    if count < max(_FEW_DOCUMENTS, _TWOFOLD * documents):
        return
    path, first = found[0]
    what = (
        f"{count:,} of {documents:,} documents have a third of their text or more twice, as this one has; look for "
        "what wrote it twice"
    )
    expected, at = "text that is there once", ("document", first.first_twofold)
    yield finding("repeated_documents", path, expected, f"{count:,} documents", what, "warning", at=at, count=count)


def _takes_sources_twice(made: Mapping[str, Any] | None) -> bool:
    """Whether text is of a mix that takes a source several times."""
    decided = (made or {}).get("decided", {})
    sources = decided.get("sources", {}) if isinstance(decided, dict) else {}
    return any(source.get("epochs", 1) > 1 for source in sources.values() if isinstance(source, dict))
