"""Tables of hashes, merged in bounded memory, held against a sort of all rows."""

import collections
from pathlib import Path

import hypothesis
import numpy as np
from hypothesis import strategies as st
from properties import tries

from maskmill.verification.listed_shards import ListedFile
from maskmill.verification.scratch import merge, runs_of, write_table
from maskmill.verification.work_items import ItemResult, WorkItem


def item_of(name: str, scratch: Path | None) -> WorkItem:
    return WorkItem(
        kind="examples",
        path=name,
        split="train",
        shard=0,
        directory="data",
        expected=ListedFile(),
        scratch=None if scratch is None else str(scratch),
    )


HASHES = st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 3)), max_size=30)


@tries(40, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(st.lists(HASHES, max_size=4), st.integers(1, 20))
def test_tables_are_merged_in_order_and_equal_hashes_together(
    tmp_path: Path, tables: list[list[int]], most_rows: int
) -> None:
    results = []
    for number, hashes in enumerate(tables):
        columns = [np.array(hashes, np.uint64), np.arange(len(hashes))]
        item = item_of(f"file-{number}", tmp_path)
        results.append(ItemResult(item=item, hashes=write_table(item, "rows", columns)))
    found, ends = [], []
    for merged in merge(results, "rows", most_rows):
        found += list(zip(merged.table[:, 0].tolist(), merged.owner.tolist(), merged.table[:, 1].tolist(), strict=True))
        ends.append(found[-1][0])
    wanted = [(value, n, place) for n, hashes in enumerate(tables) for place, value in enumerate(hashes)]
    assert sorted(found) == sorted(wanted)
    assert [value for value, _, _ in found] == sorted(value for value, _, _ in wanted)
    assert len(set(ends)) == len(ends)


@tries(40)
@hypothesis.given(st.lists(st.integers(0, 5)))
def test_runs_are_counted(values: list[int]) -> None:
    starts, counts = runs_of(np.sort(np.array(values, np.uint64)))
    ordered = sorted(values)
    assert {ordered[start]: count for start, count in zip(starts.tolist(), counts.tolist(), strict=True)} == dict(
        collections.Counter(values)
    )


def test_nothing_is_written_without_a_scratch_directory() -> None:
    assert write_table(item_of("file", None), "rows", [np.zeros(1), np.zeros(1)]) == {}
