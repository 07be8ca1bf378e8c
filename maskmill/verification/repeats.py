"""Records and examples that are there more often than they may be."""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maskmill.verification.bounds import poisson_tail
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.pieces import PieceResult
from maskmill.verification.row_rules import RowRules
from maskmill.verification.scratch import Merged, merge_tables, runs_of, unpack_row

# Where words or spans are masked as a whole, there are fewer ways to mask a row than its pieces alone would allow: the
# logarithm of their number is at least this part of it, with words of a piece or two, n-grams of up to three words and
# spans of four on average.
_PART_OF_WAYS = {"piece": 1.0, "whole_word": 0.3, "word": 0.3, "ngram": 0.15, "span": 0.1}
# A tokenizer.json may cut words into single characters.
_PART_OF_WORDS_IN_ANY_PIECES = 0.03

# How likely a false alarm may be, for all records of a class together. It is more than elsewhere, so that a single row
# of 60 pieces that is there twice is found: two of the same text have the same 10 masks with 2**-42.
_FALSE_ALARM = 1e-9
_MUCH = 0.1  # share of the records of a shard
_CLASSES = 64  # of rows, by in how many ways they can be masked
_STEP = 4  # bits between two of them


@dataclasses.dataclass(frozen=True)
class _Repeat:
    """A record that is there before.

    ways: its class. owner, number: the place of its file, and its number there. first_owner, first_number: the same of
    the record that it repeats.
    """

    ways: int
    owner: int
    number: int
    first_owner: int
    first_number: int


@dataclasses.dataclass
class _Repeats:
    """What repeats in the rows of a data set.

    rows: how many there are. expected, pairs: by class, how many pairs of equal records there would be by chance, and
    how many there are. found: the records that are there before.
    """

    rows: int = 0
    expected: npt.NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.zeros(_CLASSES))
    pairs: npt.NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.zeros(_CLASSES, np.int64))
    found: list[_Repeat] = dataclasses.field(default_factory=list)


def check_repeats(results: Sequence[PieceResult]) -> Checked:
    """Looks for records that are there twice, masks and all.

    Two rows of the same text have the same masks with a probability that follows from how many ways there are to mask
    them. So the number of equal records that chance gives is known, whatever the text repeats; it is tested for the
    rows that can be masked in the most ways, then with those of fewer ways, as far as chance does not explain it.
    """
    tables = [result for result in results if "rows" in result.hashes]
    if not tables:
        return Checked(skipped={"repeated_records": "no rows could be read"})
    found = _find(tables)
    looked_at = {"repeated_records": found.rows}
    expected = np.cumsum(found.expected[::-1])[::-1].tolist()
    pairs = np.cumsum(found.pairs[::-1])[::-1].tolist()
    least = next((k for k in range(_CLASSES) if pairs[k] and poisson_tail(pairs[k], expected[k]) < _FALSE_ALARM), None)
    if least is None:
        return Checked(looked_at=looked_at)
    repeats = [repeat for repeat in found.found if repeat.ways >= least]
    return Checked(findings=(*_describe(repeats, tables), *_similar(repeats, tables)), looked_at=looked_at)


def _find(tables: Sequence[PieceResult]) -> _Repeats:
    found = _Repeats()
    factor = min(_part_of_ways(result.piece.rules) for result in tables)
    for merged in merge_tables([result.hashes["rows"] for result in tables]):
        starts, counts = runs_of(merged.table[:, 0])
        found.rows += len(merged.table)
        # Rows of the same text can be masked in nearly the same number of ways; those of the first stand for all.
        bits = unpack_row(merged.table[starts, -1])[2]
        repeated = np.flatnonzero((counts > 1) & (bits > 0))
        many, of_repeated = counts[repeated].astype(np.float64), bits[repeated]
        chance = many * (many - 1) / 2 * np.exp2(-of_repeated * factor)
        found.expected += np.bincount(of_repeated // _STEP, chance, minlength=_CLASSES)
        for run in repeated.tolist():
            _add_run(found, merged, int(starts[run]), int(counts[run]), int(bits[run]) // _STEP)
    return found


def _part_of_ways(rules: RowRules) -> float:
    unit = rules.mask_unit or "piece"  # the reference masks pieces, unless it is asked for words
    return _PART_OF_WORDS_IN_ANY_PIECES if rules.is_tokenizer and unit != "piece" else _PART_OF_WAYS[unit]


def _add_run(found: _Repeats, merged: Merged, start: int, count: int, ways: int) -> None:
    """Adds the records of a run of equal texts that are equal themselves."""
    records = merged.table[start : start + count, 1]
    order = np.argsort(records, kind="stable")
    first_of, sizes = runs_of(records[order])
    for first, size in zip(first_of[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        members = order[first : first + size] + start
        found.pairs[ways] += size * (size - 1) // 2
        numbers = unpack_row(merged.table[members, -1])[0].tolist()
        (first_owner, first_number), *others = sorted(zip(merged.owner[members].tolist(), numbers, strict=True))
        found.found += [_Repeat(ways, owner, number, first_owner, first_number) for owner, number in others]


def _similar(repeats: Sequence[_Repeat], tables: Sequence[PieceResult]) -> list[Finding]:
    """Files that have much of their records in common with a file of another shard."""
    findings = []
    common = collections.Counter((repeat.owner, repeat.first_owner) for repeat in repeats)
    for (owner, other), count in sorted(common.items()):
        piece, first, rows = tables[owner].piece, tables[other].piece, tables[owner].rows
        if (piece.split, piece.shard) == (first.split, first.shard) or rows is None or tables[owner].sha256 is None:
            continue
        share = count / max(1, rows.rows)
        if share >= _MUCH and tables[owner].sha256 != tables[other].sha256:
            findings.append(
                Finding(
                    check="similar_shards",
                    file=piece.path,
                    expected="records of its own",
                    found=f"{share:.0%} as in {first.path}",
                    message=f"{piece.path}: {share:.0%} of the records of this shard are in {first.path}, too; make it "
                    "again from its own text.",
                )
            )
    return findings


def _describe(repeats: Sequence[_Repeat], tables: Sequence[PieceResult]) -> list[Finding]:
    by_file: dict[int, list[_Repeat]] = {}
    for repeat in sorted(repeats, key=lambda repeat: (repeat.owner, repeat.number)):
        by_file.setdefault(repeat.owner, []).append(repeat)
    findings = []
    for owner, of_file in by_file.items():
        first = of_file[0]
        path, other = tables[owner].piece.path, tables[first.first_owner].piece.path
        more = f" ({len(of_file):,} such records in this file)" if len(of_file) > 1 else ""
        findings.append(
            Finding(
                check="repeated_records",
                file=path,
                record=first.number,
                expected="a record of its own",
                found=f"record {first.first_number:,} of {other}",
                message=f"{path}, record {first.number:,}: this is record {first.first_number:,} of {other} once "
                f"more, with the same masks{more}; make the shard again.",
                count=len(of_file),
            )
        )
    return findings
