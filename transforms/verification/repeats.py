"""Records and examples that are there more often than they may be."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from transforms.verification.bounds import FALSE_ALARM, poisson_tail
from transforms.verification.findings import Checked, Finding
from transforms.verification.pieces import PieceResult
from transforms.verification.scratch import Merged, merge_tables, runs_of, unpack_row

# Where words or spans are masked as a whole, there are fewer ways to mask a row than its pieces alone would allow: the
# logarithm of their number is at least this part of it.
_OF_WORDS = 0.3


@dataclasses.dataclass
class _Repeats:
    """What repeats in the rows of a data set.

    rows, distinct: how many rows there are, and how many different ones with their masks undone.
    expected: how many pairs of equal records there would be by chance. pairs: how many there are.
    by_file: for each file, by its place, its records that are there before: number, and file and number of the first.
    """

    rows: int = 0
    distinct: int = 0
    expected: float = 0.0
    pairs: int = 0
    by_file: dict[int, list[tuple[int, int, int]]] = dataclasses.field(default_factory=dict)


def check_repeats(results: Sequence[PieceResult]) -> Checked:
    """Looks for records that are there twice, masks and all.

    Two rows of the same text have the same masks with a probability that follows from how many ways there are to mask
    them. So the number of equal records that chance gives is known, whatever the text repeats.
    """
    tables = [result for result in results if "rows" in result.hashes]
    if not tables:
        return Checked(skipped={"repeated_records": "no rows could be read"})
    found = _find(tables)
    looked_at = {"repeated_records": found.rows}
    if not found.pairs or poisson_tail(found.pairs, found.expected) >= FALSE_ALARM:
        return Checked(looked_at=looked_at)
    return Checked(findings=tuple(_describe(found, tables)), looked_at=looked_at)


def _find(tables: Sequence[PieceResult]) -> _Repeats:
    found = _Repeats()
    factor = 1.0 if all(result.piece.rules.mask_unit == "piece" for result in tables) else _OF_WORDS
    for merged in merge_tables([result.hashes["rows"] for result in tables]):
        starts, counts = runs_of(merged.table[:, 0])
        found.rows += len(merged.table)
        found.distinct += len(starts)
        bits = unpack_row(merged.table[:, -1])[2]
        repeated = counts > 1
        # Rows of the same text can be masked in nearly the same number of ways; those of the first stand for all.
        ways = bits[starts[repeated]] * factor
        many = counts[repeated].astype(np.float64)
        found.expected += float((many * (many - 1) / 2 * np.exp2(-ways)).sum())
        for start, count in zip(starts[repeated].tolist(), counts[repeated].tolist(), strict=True):
            if bits[start]:
                _add_run(found, merged, start, count)
    return found


def _add_run(found: _Repeats, merged: Merged, start: int, count: int) -> None:
    """Adds the records of a run of equal texts that are equal themselves."""
    records = merged.table[start : start + count, 1]
    order = np.argsort(records, kind="stable")
    first_of, sizes = runs_of(records[order])
    for first, size in zip(first_of[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        members = order[first : first + size] + start
        found.pairs += size * (size - 1) // 2
        numbers = unpack_row(merged.table[members, -1])[0].tolist()
        places = sorted(zip(merged.owner[members].tolist(), numbers, strict=True))
        for owner, number in places[1:]:
            found.by_file.setdefault(owner, []).append((number, *places[0]))


def _describe(found: _Repeats, tables: Sequence[PieceResult]) -> list[Finding]:
    findings = []
    for owner, repeats in sorted(found.by_file.items()):
        number, other, other_number = min(repeats)
        path, other_path = tables[owner].piece.path, tables[other].piece.path
        more = f" ({len(repeats):,} such records in this file)" if len(repeats) > 1 else ""
        findings.append(
            Finding(
                check="repeated_records",
                file=path,
                record=number,
                expected="a record of its own",
                found=f"record {other_number:,} of {other_path}",
                message=f"{path}, record {number:,}: this record is record {other_number:,} of {other_path} once more, "
                f"with the same masks{more}; make the shard again.",
                count=len(repeats),
            )
        )
    return findings
