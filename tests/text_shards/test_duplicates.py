"""Duplicate paragraphs: one decision over a build, in the order of its documents."""

import dataclasses
import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import datasketch
import numpy as np
import numpy.typing as npt
import pytest
from data_sets.shard_builds import ONE_UNIT, PLAIN, article, equal_sorted, make_fragments, shuffled, write_dump
from data_sets.steps import run_step
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from maskmill.errors import RunFailedError
from maskmill.inputs.units import UnitBatch
from maskmill.storage import completions, files
from maskmill.text_shards import duplicate_search, duplicates
from maskmill.text_shards.duplicates import duplicate_counts, find_duplicates
from maskmill.text_shards.fragments import Fragment, in_order, read_ranges
from maskmill.text_shards.options import QualityOptions
from maskmill.text_shards.signatures import PERMUTATIONS, ParagraphSigner, paragraphs_type
from transforms.text_shards import DecideOnDuplicates

PROSE = "The quick brown fox jumps over the lazy dog near the old stone bridge every morning."
OTHER = "A slow green turtle walks under the busy road beside a new wooden fence each night."
BOTH = QualityOptions(drop_duplicates=True, near_duplicate_threshold=0.8)


def sign(paragraphs: Sequence[str], options: QualityOptions) -> npt.NDArray[np.void]:
    """The rows of the paragraphs, each of which must have words enough."""
    rows = np.zeros(len(paragraphs), paragraphs_type(options))
    signer = ParagraphSigner(options)
    assert all(signer.sign(rows[i : i + 1], p.encode()) for i, p in enumerate(paragraphs))
    return rows


@dataclasses.dataclass(frozen=True)
class Decision:
    """Which rows are dropped, and how many of them as what."""

    dropped: list[int]
    exact: int = 0
    near: int = 0


def decide(rows: npt.NDArray[np.void], options: QualityOptions, piece: int = 1000, shares: int = 1) -> Decision:
    """The decision on rows, so many of them in a fragment, if all hashes are cut into so many shares."""
    rows = rows.copy()
    rows["offset"] = np.arange(len(rows))
    extraction = dataclasses.replace(PLAIN, quality=options)
    with tempfile.TemporaryDirectory() as output:
        fragments = []
        for start in range(0, max(1, len(rows)), piece):
            batch = UnitBatch(number=start, files=(), units=())
            key, part = f"{start:032d}", rows[start : start + piece]
            files.write_bytes(completions.work_path(output, "extract", f"{key}.paragraphs"), part.tobytes())
            fragments.append(Fragment(key=key, batch=batch, documents=0, size=len(part), counts={}, ends=()))
        cut = {"_TEXT_BYTES": 1 + len(rows) // shares, "_PART_TEXT_BYTES": 3 * piece, "_RUN_BYTES": 1000}
        with mock.patch.multiple(duplicate_search, **cut):
            dropped = find_duplicates(fragments[::-1], extraction, output)
        left = [files.base_name(path) for path in files.list_below(output) if "/duplicates/" in path]
        assert not [name for name in left if name.count(".") > 1]
        counts = duplicate_counts(fragments, extraction, output)
    assert counts["read"] == len(rows)
    return Decision(dropped["offset"].tolist(), counts["exact_duplicates"], counts["near_duplicates"])


def numbered(*ranges: range) -> str:
    return " ".join(f"word{i}" for numbers in ranges for i in numbers)


def test_exact_duplicates_ignore_case_and_punctuation() -> None:
    options = QualityOptions(drop_duplicates=True)
    rows = sign([PROSE, OTHER, PROSE.upper().replace(".", "!"), PROSE], options)
    assert decide(rows, options) == Decision([2, 3], exact=2)


def test_near_duplicates() -> None:
    paragraphs = [
        numbered(range(200)),
        numbered(range(100), range(999, 1000), range(101, 200)),
        numbered(range(100), range(300, 400)),
        numbered(range(200)),
    ]
    assert decide(sign(paragraphs, BOTH), BOTH) == Decision([1, 3], exact=1, near=1)
    only_near = QualityOptions(near_duplicate_threshold=0.8)
    assert decide(sign(paragraphs, only_near), only_near) == Decision([1, 3], near=2)
    only_equal = QualityOptions(near_duplicate_threshold=1.0)
    assert decide(sign(paragraphs, only_equal), only_equal) == Decision([3], near=1)


def test_the_first_one_stays_and_what_is_dropped_drops_nothing() -> None:
    # Each is near to the one before it, but the last is not near to the first.
    paragraphs = [numbered(range(i, 200 + i)) for i in (300, 313, 326)]
    assert decide(sign(paragraphs, BOTH), BOTH) == Decision([1], near=1)


def test_nothing_to_decide() -> None:
    assert decide(sign([], BOTH), BOTH) == Decision([])


def in_turn(rows: npt.NDArray[np.void], options: QualityOptions) -> Decision:
    """The decision with every paragraph in datasketch's index, one after the other."""
    threshold = options.near_duplicate_threshold or 0.0
    index = datasketch.MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    blank = datasketch.MinHash(num_perm=PERMUTATIONS, scheme="affine32")
    exact, near = [], []
    seen = set()
    for number, row in enumerate(rows):
        if options.drop_duplicates and int(row["exact"]) in seen:
            exact.append(number)
            continue
        seen.add(int(row["exact"]))
        sketch = blank.copy()
        sketch.hashvalues = row["near"]
        if any((rows[other]["near"] == row["near"]).mean() >= threshold for other in index.query(sketch)):
            near.append(number)
        else:
            index.insert(number, sketch)
    return Decision(sorted(exact + near), len(exact), len(near))


@functools.cache
def passage(kind: int, start: int) -> npt.NDArray[np.void]:
    """The row of a hundred words of one of several texts."""
    return sign([numbered(range(1000 * kind + start, 1000 * kind + start + 100))], BOTH)


@tries(40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=30), st.sampled_from([0.5, 0.8]), st.booleans()
)
def test_looking_at_shared_bands_alone_loses_nothing(
    starts: list[tuple[int, int]], threshold: float, exact: bool
) -> None:
    options = QualityOptions(drop_duplicates=exact, near_duplicate_threshold=threshold)
    rows = np.concatenate([np.zeros(0, paragraphs_type(options)), *(passage(kind, start) for kind, start in starts)])
    expected = in_turn(rows, options)
    assert decide(rows, options) == expected
    assert decide(rows, options, piece=7, shares=5) == expected


def test_many_families_of_paragraphs_in_many_shares() -> None:
    random = np.random.default_rng(5)
    rows = np.zeros(3000, paragraphs_type(BOTH))
    families = random.integers(0, 2**32, (300, PERMUTATIONS), np.uint32)
    of_row = random.integers(0, len(families), len(rows))
    rows["near"] = families[of_row]
    rows["exact"] = of_row * 1000 + random.integers(0, 20, len(rows))
    # Of the rows of a family the same share differs, more or less; those with the same words do not.
    for row in rows:
        of_words = np.random.default_rng(row["exact"])
        places = of_words.permutation(PERMUTATIONS)[: of_words.integers(0, 50)]
        row["near"][places] = of_words.integers(0, 2**32, len(places), np.uint32)
    expected = in_turn(rows, BOTH)
    assert min(expected.exact, expected.near, len(rows) - len(expected.dropped)) > 300
    for piece, shares in ((3000, 1), (170, 7), (1000, 40)):
        assert decide(rows, BOTH, piece, shares) == expected


# ---- over the fragments of a build

PAGES = [
    article(1, PROSE, OTHER),
    article(2, "A paragraph that stands alone in this dump, as the first of its kind.", PROSE.upper()),
    article(3, "Short.", "Short."),
    article(4, OTHER.removesuffix(".") + " again.", "Short.", PROSE),
    article(5, OTHER),
]
DECIDING = dataclasses.replace(PLAIN, quality=QualityOptions(drop_duplicates=True, near_duplicate_threshold=0.7))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dump(tmp_path_factory.mktemp("dump"), PAGES)


@pytest.mark.parametrize("unit_bytes", [50, 300, ONE_UNIT])
def test_the_paragraphs_that_go_are_found_in_their_fragments(unit_bytes: int, dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path, DECIDING, unit_bytes)
    dropped = find_duplicates(shuffled(fragments), DECIDING, str(tmp_path))
    texts = []
    for row in dropped:
        fragment = in_order(fragments)[row["fragment"]]
        ranges = np.array([[row["offset"], row["offset"] + row["size"]]])
        texts += [b.decode() for b in read_ranges([(fragment, ranges)], {"": DECIDING}, str(tmp_path))]
    assert texts == [f"{t}\n" for t in (PROSE.upper(), OTHER.removesuffix(".") + " again.", PROSE, OTHER)]
    assert dropped["sentences"].tolist() == [1, 1, 1, 1]
    assert dropped["body"].tolist() == [2, 3, 3, 1]
    counts = {"read": 7, "exact_duplicates": 3, "near_duplicates": 1}
    assert duplicate_counts(fragments, DECIDING, str(tmp_path)) == counts


def test_a_build_decides_once(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fragments = make_fragments(dump, tmp_path, DECIDING)
    dropped = find_duplicates(fragments, DECIDING, str(tmp_path))
    monkeypatch.setattr(duplicates, "_search_here", None)
    assert find_duplicates(fragments, DECIDING, str(tmp_path)).tobytes() == dropped.tobytes()
    # Another threshold is another decision.
    other = dataclasses.replace(DECIDING, quality=QualityOptions(drop_duplicates=True))
    assert duplicates.decision_key(fragments, other) != duplicates.decision_key(fragments, DECIDING)


@pytest.mark.builds
def test_the_steps_of_the_graph_decide_the_same(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fragments = make_fragments(dump, tmp_path, DECIDING)
    expected = find_duplicates(fragments, DECIDING, str(tmp_path))
    made = {path: path.read_bytes() for path in (tmp_path / ".maskmill" / "duplicates").iterdir()}
    assert len(made) == 2
    for path in made:
        path.unlink()
    monkeypatch.setattr(duplicate_search, "_TEXT_BYTES", 100)  # several shares
    monkeypatch.setattr(duplicate_search, "_PART_TEXT_BYTES", 100)  # several parts
    step = DecideOnDuplicates(extraction=DECIDING, output=str(tmp_path))
    check = equal_sorted(fragments, lambda fragment: fragment.batch.number)
    for _ in range(2):  # the second time the decision is there
        run_step(shuffled(fragments), step, check)
        assert {path: path.read_bytes() for path in made} == made
        assert find_duplicates(fragments, DECIDING, str(tmp_path)).tobytes() == expected.tobytes()
    # One that is damaged is made again, though its search was left out.
    table = next(path for path in made if path.suffix == ".npy")
    table.write_bytes(made[table][:-1])
    run_step(shuffled(fragments), step, check)
    assert table.read_bytes() == made[table]


def test_counts_of_a_decision_that_was_not_made_are_an_error(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path, DECIDING)
    with pytest.raises(RunFailedError):
        duplicate_counts(fragments, DECIDING, str(tmp_path))


def test_nothing_dropped_is_an_empty_table(tmp_path: Path) -> None:
    path = write_dump(tmp_path, PAGES[:1])
    fragments = make_fragments(path, tmp_path / "out", DECIDING)
    assert len(find_duplicates(fragments, DECIDING, str(tmp_path / "out"))) == 0
    assert duplicate_counts(fragments, DECIDING, str(tmp_path / "out"))["read"] == 2
