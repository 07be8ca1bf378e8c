"""The figures of a page, against plain counting."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from properties import tries

from maskmill.reporting import shown
from maskmill.reporting.made_from import figures_of
from maskmill.reporting.made_stages import MadeStage
from maskmill.reporting.measured import row_facts_of
from maskmill.verification.listed_shards import ListedFile
from maskmill.verification.work_items import ItemResult, RowStatistics, WorkItem


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (shown.count, 1234567, "1,234,567"),
        (shown.size, 1, "1 byte"),
        (shown.size, 999, "999 bytes"),
        (shown.size, 2_578_250, "2.6 MB"),
        (shown.percent, 0.153, "15.3 %"),
        (shown.percent, 0.0003, "0.03 %"),
        (shown.percent, 0, "0 %"),
        (shown.percent, float("nan"), "–"),
        (shown.number, 1.0987, "1.1"),
        (shown.number, 1234.5, "1,234"),
        (shown.duration, 3.44, "3.4 s"),
        (shown.duration, 5400, "90.0 min"),
        (shown.day, "2016-05-01", "1 May 2016"),
        (shown.day, "yesterday", "yesterday"),
    ],
)
def test_values_are_shown_so(function: object, value: object, text: str) -> None:
    assert callable(function)
    assert function(value) == text


def test_predicted_pieces_are_a_share_of_all_pieces() -> None:
    counts = {"shards": 1, "examples": 2, "example_tokens": 70, "special_tokens": 10, "masked_positions": 12}
    made = {"counts": {"train": counts}, "shards": []}
    figures = {
        figure.name: figure.value for figure in figures_of(MadeStage(name="examples", directory="x", manifest=made))
    }
    assert figures["predicted pieces"] == pytest.approx(12 / 80)


def _result(rows: list[list[int]], width: int, vocabulary: int) -> ItemResult:
    """What a file of rows of ids gives; every third piece of a row is predicted."""
    lengths = np.bincount([len(row) for row in rows], minlength=width + 1)
    places = np.array([[place < len(row) for place in range(width)] for row in rows]).reshape(-1, width)
    masked = places & (np.arange(width) % 3 == 0)
    statistics = RowStatistics(
        rows=len(rows),
        lengths=lengths,
        pieces_at=places.sum(axis=0),
        masks_at=masked.sum(axis=0),
        masked=int(masked.sum()),
        masked_kept=0,
        masked_random=0,
        masks=np.bincount(masked.sum(axis=1), minlength=width + 1),
        second_label=0,
        piece_counts=np.bincount([id for row in rows for id in row], minlength=vocabulary),
    )
    item = WorkItem(kind="examples", path="f", split="train", shard=0, directory="d", expected=ListedFile())
    return ItemResult(item=item, rows=statistics)


_ROWS = st.lists(st.lists(st.integers(0, 199), max_size=150), min_size=1, max_size=12)


@tries(60)
@hypothesis.given(first=_ROWS, second=_ROWS)
def test_rows_are_counted(first: list[list[int]], second: list[list[int]]) -> None:
    width, rows = 150, [*first, *second]
    facts = row_facts_of([_result(first, width, 200), _result(second, width, 200)], directory="d")["train"]
    assert facts.rows == len(rows)
    assert facts.pieces == sum(map(len, rows))
    assert facts.full_rows == sum(len(row) == width for row in rows)
    assert sum(part.value for part in facts.lengths) == len(rows) - facts.full_rows
    for part in facts.lengths:
        assert part.value == sum(part.first <= len(row) <= part.last for row in rows)
    for part in facts.masks_at:
        masked = [place % 3 == 0 for row in rows for place in range(part.first, part.last + 1) if place < len(row)]
        assert part.value == pytest.approx(sum(masked) / max(1, len(masked)))
    counts = sorted((sum(row.count(id) for row in rows) for id in {id for row in rows for id in row}), reverse=True)
    assert facts.used == len(counts)
    assert facts.vocabulary == 200
    for part in facts.ranks:
        among = counts[part.first - 1 : part.last]
        assert part.value == pytest.approx(sum(among) / len(among))
    assert [part.first for part in facts.ranks[1:]] == [part.last + 1 for part in facts.ranks[:-1]]
    assert row_facts_of([_result(first, width, 200)], directory="another") == {}
