"""Find records that repeat more often than by chance, and documents that repeat others or their own text."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from maskmill.verification.bounds import poisson_tail
from maskmill.verification.findings import Checked, Finding, Severity, finding, makes_check, ran, skipped
from maskmill.verification.row_structure import PART_OF_WAYS
from maskmill.verification.scratch import Merged, merge, runs_of
from maskmill.verification.verify_targets import Target, VerifyPlan
from maskmill.verification.work_items import ItemResult

# A tokenizer.json may cut words into single characters.
_PART_OF_WORDS_IN_ANY_PIECES = 0.03
# The probability of a false alarm, for all records together. It is larger than elsewhere, so that a single repeated row
# of 60 pieces is found: two rows of the same text have the same 10 masks with probability 2**-42.
_FALSE_ALARM = 1e-9
_LEAST_BITS = (30, 1)  # log2 of the ways to mask a row: rows with many ways are tested first, then all together
_MUCH = 0.1  # share of the records of a shard that another one also has
_LEAST_BYTES = 60  # of a document; shorter ones may well be written twice
_FEW_BYTES = 0.05  # share of the text that may repeat earlier text
_TWOFOLD = 0.04  # share of the documents that may repeat their own text
_FEW_DOCUMENTS = 5

_Place = tuple[int, int]  # of a record or a document: the number of its file's table, and its own number there


@makes_check("data_set", "examples", "eval")
def check_repeated_rows(target: Target, results: Sequence[ItemResult]) -> Checked:
    """Find records that repeat others, masks included.

    The probability that two rows of the same text have the same masks follows from the number of ways to mask them. So
    the number of equal records by chance is known, even if the text repeats.
    """
    tables = [result for result in results if "rows" in result.hashes]
    if not tables:
        return skipped("no rows could be read", "repeated_records")
    if all(result.is_remade for result in tables):
        return skipped("all shards were made again", "repeated_records")
    factor = min(_part_of_ways(result) for result in tables)
    expected, pairs, rows = np.zeros(2), np.zeros(2, np.int64), 0
    repeats: list[list[tuple[_Place, _Place]]] = [[], []]  # a record, and the one that it repeats
    for merged in merge(tables, "rows"):
        rows += len(merged.table)
        bits = merged.column(4)[merged.starts] * factor
        for run in np.flatnonzero((merged.counts > 1) & (bits >= min(_LEAST_BITS))).tolist():
            count = int(merged.counts[run])
            of_run = list(_equal_records(merged, int(merged.starts[run]), count))
            for judged in np.flatnonzero(bits[run] >= _LEAST_BITS).tolist():
                expected[judged] += math.comb(count, 2) * 2.0 ** -bits[run]
                pairs[judged] += sum(math.comb(len(equal), 2) for equal in of_run)
                repeats[judged] += [(other, equal[0]) for equal in of_run for other in equal[1:]]
    found = [k for k in range(2) if pairs[k] and poisson_tail(int(pairs[k]), float(expected[k])) < _FALSE_ALARM]
    by_file: dict[int, list[tuple[_Place, _Place]]] = {}
    for repeat in sorted(repeats[found[-1]]) if found else ():
        by_file.setdefault(repeat[0][0], []).append(repeat)
    return ran("repeated_records", *(_repeated(of_file, tables) for of_file in by_file.values()), count=rows)


@makes_check("all")
def check_picked_rows(plan: VerifyPlan, results: Sequence[ItemResult]) -> Checked:
    """Find picked eval examples that are not among the eval examples of their build."""
    kinds = {(t.directory, t.build): t.kind for t in plan.targets if t.build is not None and t.made is not None}
    tables = [result for result in results if "rows" in result.hashes]
    picked: list[ItemResult] = []
    found: list[int] = []
    for (directory, build), kind in kinds.items():
        if kind == "eval":
            sources = {place for (place, of_build), other in kinds.items() if of_build == build and other == "examples"}
            source = [r for r in tables if r.item.directory in sources and r.item.split == "eval"]
            picked = [r for r in tables if r.item.directory == directory] if source else []
            for merged in merge([*source, *picked], "rows") if picked else ():
                from_source = merged.table[merged.owner < len(source), 1]
                is_other = (merged.owner >= len(source)) & ~np.isin(merged.table[:, 1], from_source)
                found += sorted(merged.column(2)[is_other].tolist())
    what = "this picked example is none of the eval examples; pick them again, with `maskmill pick-eval` or the build"
    findings = (
        [finding("shard_inputs", picked[0].item.path, what, at=("record", min(found)), count=len(found))]
        if found
        else []
    )
    return ran("shard_inputs", *findings) if picked else Checked()


def _part_of_ways(result: ItemResult) -> float:
    rules = result.item.rules
    unit = rules.mask_unit or "piece"  # the reference masks pieces by default
    return _PART_OF_WORDS_IN_ANY_PIECES if rules.is_tokenizer and unit != "piece" else PART_OF_WAYS[unit]


def _equal_records(merged: Merged, start: int, count: int) -> Iterator[list[_Place]]:
    """Yield groups of equal records, from a run of records of equal text."""
    members = np.arange(start, start + count)
    members = members[np.argsort(merged.table[members, 1], kind="stable")]
    for first, size in zip(*runs_of(merged.table[members, 1]), strict=True):
        if size > 1:
            equal = members[first : first + size]
            yield sorted(zip(merged.owner[equal].tolist(), merged.column(2)[equal].tolist(), strict=True))


def _repeated(repeats: Sequence[tuple[_Place, _Place]], tables: Sequence[ItemResult]) -> Finding:
    """Return the finding about the records of a file that repeat earlier ones."""
    (owner, number), (first_owner, first) = repeats[0]
    rows = tables[owner].rows
    share = len(repeats) / max(1, 0 if rows is None else rows.rows)
    more = f" ({len(repeats):,} such records in this file, {share:.0%})" if len(repeats) > 1 else ""
    do = "make it again from its own text" if share > _MUCH else "make the shard again"
    path, other = tables[owner].item.path, tables[first_owner].item.path
    what = f"this is record {first:,} of {other} once more, with the same masks{more}; {do}"
    return finding("repeated_records", path, what, at=("record", number), count=len(repeats))


# ---- documents


@makes_check("data_set", "text")
def check_repeated_documents(target: Target, results: Sequence[ItemResult]) -> Checked:
    """Find documents that repeat earlier ones, in their shard or another, and documents that repeat themselves."""
    tables = [result for result in results if "documents" in result.hashes and result.text is not None]
    sources = (target.made or {}).get("decided", {}).get("sources") or {}
    if any((source.get("epochs") or 1) > 1 for source in sources.values()):
        return skipped("the mix takes documents several times", "repeated_documents")
    counts, repeated = np.zeros(len(tables), np.int64), np.zeros(len(tables), np.int64)  # repeated documents, bytes
    first: dict[int, tuple[int, _Place]] = {}  # of each file: the first repeated document, and its original
    for merged in merge(tables, "documents"):
        numbers, sizes = merged.column(1), merged.column(2)
        is_train = np.array([result.item.split == "train" for result in tables])[merged.owner]
        for run in np.flatnonzero((merged.counts > 1) & (sizes[merged.starts] >= _LEAST_BYTES)).tolist():
            members = np.arange(merged.starts[run], merged.starts[run] + merged.counts[run])
            members = members[is_train[members]]
            places = sorted(zip(merged.owner[members].tolist(), numbers[members].tolist(), strict=True))
            for owner, number in places[1:]:
                counts[owner] += 1
                repeated[owner] += sizes[members[0]]
                first[owner] = min(first.get(owner, (number, places[0])), (number, places[0]))
    is_much = repeated.sum() > _FEW_BYTES * sum(result.size or 0 for result in tables)
    findings = []
    for owner, (number, (other, other_number)) in sorted(first.items()):
        path, of_file = tables[owner].item.path, int(counts[owner])
        share = repeated[owner] / max(1, tables[owner].size or 0)
        is_many = is_much or share > _FEW_BYTES
        what = (
            f"this document is document {other_number:,} of {tables[other].item.path} once more; {of_file:,} documents"
            f" of this file are there before, {share:.1%} of its text: "
            f"{'' if is_many else 'few enough to be so by nature, or '}look for them among the inputs"
        )
        severity: Severity = "warning" if is_many else "note"
        findings.append(finding("repeated_documents", path, what, severity, at=("document", number), count=of_file))
    texts = [(result.item.path, result.text) for result in tables if result.text is not None]
    count, twofold = sum(text.documents for _, text in texts), sum(text.twofold for _, text in texts)
    if twofold >= max(_FEW_DOCUMENTS, _TWOFOLD * count):
        path, one = next((path, text) for path, text in texts if text.twofold)
        what = f"{twofold:,} of {count:,} documents have a third of their text or more twice, as this one has"
        what, at = f"{what}; look for what wrote it twice", ("document", one.first_twofold)
        findings.append(finding("repeated_documents", path, what, "warning", at=at, count=twofold))
    return ran("repeated_documents", *findings, count=count)
