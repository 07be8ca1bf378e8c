"""The kernels that check rows, against plain Python: what is wrong, what is counted, and what is hashed."""

import collections
import itertools
from typing import Any

import hypothesis
from hypothesis import strategies as st
from made_up_examples import FIRST_WORD, MASK, VOCABULARY, MadeUp, Row, made_up_examples
from oracles import row_checks as oracle
from properties import SEEDED, tries

from maskmill.verification.kernels import row_checking as kernels
from maskmill.verification.pieces import RowStatistics
from maskmill.verification.row_checks import RowChecker
from maskmill.verification.row_results import Faults, RowCounter, add_statistics


def checked(made: MadeUp, rows: list[Row] | None = None) -> tuple[RowCounter, Faults]:
    """Checks rows, three at a time; of records 10, 11 and so on."""
    checker, faults = RowChecker(made.rules, made.data_set, 3), Faults("file")
    rows = list(made.rows) if rows is None else rows
    for first in range(0, len(rows), 3):
        block = rows[first : first + 3]
        for place, row in enumerate(block):
            put(checker, place, row, made)
            checker.read.numbers[place] = 10 + first + place
        checker.check(len(block), faults)
    faults.add_problems(checker.counter.problems)
    return checker.counter, faults


def put(checker: RowChecker, place: int, row: Row, made: MadeUp) -> None:
    """Writes a row as readers do."""
    for column in made.data_set.columns:
        values, array = row[column.feature], checker.read.rows.arrays[column.feature]
        array[place] = column.fill if column.fill is not None else (values or [0])[-1]
        array[place, : len(values)] = values
        if column.varies:
            checker.read.rows.counts[column.feature][place] = len(values)
        else:
            assert len(values) == column.width


def found_by_oracle(made: MadeUp) -> dict[str, list[int]]:
    """The records of each kind of problem."""
    found = collections.defaultdict(list)
    for record, row in enumerate(made.rows, 11):
        for kind in oracle.problems(row, made.oracle_rules):
            found[kind].append(record)
    return found


@tries(200, **SEEDED)
@hypothesis.given(st.integers(0, 1 << 32))
def test_what_is_wrong_with_rows_is_what_the_oracle_finds(seed: int) -> None:
    made = made_up_examples(seed, damaged=True)
    _, faults = checked(made)
    found = {
        f"{f.check} {kind}": (f.count, f.record) for (_, kind), f in zip(faults.kinds, faults.findings(), strict=True)
    }
    expected = {kind: (len(records), records[0]) for kind, records in found_by_oracle(made).items()}
    if "masks ascending" in expected:  # which words are masked in part is told by neighbours then
        found.pop("masks word", None), expected.pop("masks word", None)
    assert found == expected


@tries(100, **SEEDED)
@hypothesis.given(st.integers(0, 1 << 32))
def test_nothing_is_wrong_with_right_rows(seed: int) -> None:
    made = made_up_examples(seed, damaged=False)
    _, faults = checked(made)
    assert set(faults.kinds) <= {("length_share", "bin")}


def undone(row: Row) -> tuple[int, ...]:
    """The pieces of a right row with its masks undone."""
    n = sum(row["input_mask"]) if "input_mask" in row else len(row["input_ids"])
    pieces = list(row["input_ids"])
    for place, piece, weight in zip(
        *(row.get(f"masked_lm_{name}", []) for name in ("positions", "ids", "weights")), strict=True
    ):
        if weight:
            pieces[place] = piece
    return tuple(pieces[:n])


@tries(100, **SEEDED)
@hypothesis.given(st.integers(0, 1 << 32))
def test_rows_are_counted(seed: int) -> None:
    made = made_up_examples(seed, damaged=False)
    statistics = checked(made)[0].statistics()
    rows = [undone(row) for row in made.rows]
    masks = [
        [(p, row["input_ids"][p], piece) for p, piece, weight in zip(*masks_of(row), strict=True) if weight]
        for row in made.rows
    ]
    assert statistics.rows == len(rows)
    assert_counts(statistics.lengths, (len(row) for row in rows))
    assert_counts(statistics.pieces_at, (place for row in rows for place in range(len(row))))
    assert_counts(statistics.piece_counts, (piece for row in rows for piece in row))
    assert_counts(statistics.masks_at, (place for row in masks for place, _, _ in row))
    if "masked_lm_ids" in made.rows[0]:
        assert_counts(statistics.masks, (len(row) for row in masks))
    every = [(found, piece) for row in masks for _, found, piece in row]
    assert statistics.masked == len(every)
    assert statistics.masked_kept == sum(found == piece != MASK for found, piece in every)
    assert statistics.masked_random == sum(found not in (piece, MASK) for found, piece in every)
    assert statistics.sequences == sum(len(row.get("cu_seqlens", [0, 0])) - 1 for row in made.rows)
    assert statistics.second_label == sum(sum(row.get("next_sentence_labels", [])) for row in made.rows)


def masks_of(row: Row) -> list[list[Any]]:
    return [row.get(f"masked_lm_{name}", []) for name in ("positions", "ids", "weights")]


def assert_counts(counts: Any, values: Any) -> None:
    """counts: how often each value from 0 on is among the values."""
    expected = collections.Counter(values)
    assert {value: count for value, count in enumerate(counts.tolist()) if count} == dict(expected)


@tries(60, **SEEDED)
@hypothesis.given(st.integers(0, 1 << 32))
def test_hashes_tell_rows_apart(seed: int) -> None:
    """The first hash is of the row with its masks undone, the second of all of it."""
    made = made_up_examples(seed, damaged=False)
    rows = [row for row in made.rows for _ in range(2)]
    hashes = checked(made, rows)[0].hashes
    texts = [(undone(r), *(tuple(r.get(name, ())) for name in ("segment_ids", "next_sentence_labels"))) for r in rows]
    wholes = [(text, *map(tuple, (r["input_ids"], *masks_of(r)))) for text, r in zip(texts, rows, strict=True)]
    for (a, b), (text, other), (whole, another) in zip(
        *(itertools.combinations(values, 2) for values in (hashes, texts, wholes)), strict=True
    ):
        assert (a[0] == b[0]) == (text == other)
        assert (a[1] == b[1]) == (whole == another) or "masked_lm_ids" not in made.rows[0]


def test_the_hash_of_a_row_does_not_depend_on_its_padding() -> None:
    made = next(
        made
        for made in (made_up_examples(seed, damaged=False) for seed in range(100))
        if made.oracle_rules.width and made.oracle_rules.frame == "none" and not made.oracle_rules.packed
    )
    row = made.rows[0]
    n = sum(row["input_mask"])
    checker = RowChecker(made.rules, made.data_set, 2)
    for place in range(2):
        put(checker, place, row, made)
    checker.read.rows.arrays["input_ids"][1, n:] = 7
    checker.check(2, Faults("file"))
    (a, _), (b, _) = checker.counter.hashes[:, :2]
    assert a == b


def test_statistics_are_added() -> None:
    parts = []
    for seed in (1, 2):
        made = made_up_examples(seed, damaged=False)
        parts.append(checked(made)[0].statistics())
    total = add_statistics(parts)
    assert total.rows == sum(part.rows for part in parts)
    assert total.lengths.tolist() == (parts[0].lengths + parts[1].lengths).tolist()
    assert total.part_pieces.tolist() == (parts[0].part_pieces + parts[1].part_pieces).tolist()
    assert set(total.sketch.tolist()) == {value for part in parts for value in part.sketch.tolist()}
    assert isinstance(total, RowStatistics)


def test_openings_are_sketched() -> None:
    """Two sequences share the hash of their openings if their first 16 pieces of text are the same."""
    made = next(
        made
        for made in (made_up_examples(seed, damaged=False) for seed in range(400))
        if made.oracle_rules.frame == "none" and not made.oracle_rules.packed and made.rows[0].keys() == {"input_ids"}
    )
    text = [FIRST_WORD + k % (VOCABULARY - FIRST_WORD) for k in range(kernels.OPENING)]
    others = [*text[:-1], FIRST_WORD + 1]

    def sketch(*texts: list[int]) -> list[int]:
        rows: list[Row] = [{"input_ids": [1, *pieces, 2]} for pieces in texts]
        hashes: list[int] = checked(made, rows)[0].statistics().sketch.tolist()
        return hashes

    assert len(sketch(text)) == 1
    assert sketch(text) == sketch([*text, 4, 5, 6], text)
    assert sketch(text[:-1]) == []
    assert sketch(text) != sketch(others)
    assert sketch(text, others) == sorted(sketch(text) + sketch(others))
