"""Duplicate paragraphs: one decision over a build, in the order of its documents."""

import dataclasses
import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import datasketch
import numpy as np
import numpy.typing as npt
import pytest
from data_sets.shard_builds import ONE_UNIT, PLAIN, article, make_fragments, shuffled, write_dump
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from maskmill.errors import RunFailedError, UnusableInputError
from transforms.shards import duplicates
from transforms.shards.duplicates import EXACT, NEAR, STAYS, duplicate_counts, find_duplicates
from transforms.shards.fragments import in_order, read_ranges
from transforms.shards.options import QualityOptions
from transforms.shards.signatures import PERMUTATIONS, ParagraphSigner, paragraphs_type

PROSE = "The quick brown fox jumps over the lazy dog near the old stone bridge every morning."
OTHER = "A slow green turtle walks under the busy road beside a new wooden fence each night."
BOTH = QualityOptions(drop_duplicates=True, near_duplicate_threshold=0.8)


def sign(paragraphs: Sequence[str], options: QualityOptions) -> npt.NDArray[np.void]:
    """The rows of the paragraphs, each of which must have words enough."""
    rows = np.zeros(len(paragraphs), paragraphs_type(options))
    signer = ParagraphSigner(options)
    assert all(signer.sign(rows[i : i + 1], p.encode()) for i, p in enumerate(paragraphs))
    return rows


def decide(rows: npt.NDArray[np.void], options: QualityOptions, piece: int = 1000) -> list[int]:
    return duplicates.decide(lambda: (rows[i : i + piece] for i in range(0, len(rows), piece)), options).tolist()


def numbered(*ranges: range) -> str:
    return " ".join(f"word{i}" for numbers in ranges for i in numbers)


def test_exact_duplicates_ignore_case_and_punctuation() -> None:
    options = QualityOptions(drop_duplicates=True)
    rows = sign([PROSE, OTHER, PROSE.upper().replace(".", "!"), PROSE], options)
    assert decide(rows, options) == [STAYS, STAYS, EXACT, EXACT]


def test_near_duplicates() -> None:
    paragraphs = [
        numbered(range(200)),
        numbered(range(100), range(999, 1000), range(101, 200)),
        numbered(range(100), range(300, 400)),
        numbered(range(200)),
    ]
    assert decide(sign(paragraphs, BOTH), BOTH) == [STAYS, NEAR, STAYS, EXACT]
    only_near = QualityOptions(near_duplicate_threshold=0.8)
    assert decide(sign(paragraphs, only_near), only_near) == [STAYS, NEAR, STAYS, NEAR]
    only_equal = QualityOptions(near_duplicate_threshold=1.0)
    assert decide(sign(paragraphs, only_equal), only_equal) == [STAYS, STAYS, STAYS, NEAR]


def test_the_first_one_stays_and_what_is_dropped_drops_nothing() -> None:
    # Each is near to the one before it, but the last is not near to the first.
    paragraphs = [numbered(range(i, 200 + i)) for i in (300, 313, 326)]
    assert decide(sign(paragraphs, BOTH), BOTH) == [STAYS, NEAR, STAYS]


def test_nothing_to_decide() -> None:
    assert decide(sign([], BOTH), BOTH) == []


def in_turn(rows: npt.NDArray[np.void], threshold: float) -> list[int]:
    """The decision with every paragraph in datasketch's index."""
    index = datasketch.MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    blank = datasketch.MinHash(num_perm=PERMUTATIONS, scheme="affine32")
    kinds = []
    for number, row in enumerate(rows):
        sketch = blank.copy()
        sketch.hashvalues = row["near"]
        near = any((rows[other]["near"] == row["near"]).mean() >= threshold for other in index.query(sketch))
        kinds.append(NEAR if near else STAYS)
        if not near:
            index.insert(number, sketch)
    return kinds


@functools.cache
def passage(kind: int, start: int) -> npt.NDArray[np.void]:
    """The row of a hundred words of one of several texts."""
    return sign([numbered(range(1000 * kind + start, 1000 * kind + start + 100))], BOTH)


@tries(40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=30), st.sampled_from([0.5, 0.8]))
def test_looking_at_shared_bands_alone_loses_nothing(starts: list[tuple[int, int]], threshold: float) -> None:
    options = QualityOptions(near_duplicate_threshold=threshold)
    rows = np.concatenate([np.zeros(0, paragraphs_type(options)), *(passage(kind, start) for kind, start in starts)])
    kinds = decide(rows, options)
    assert kinds == in_turn(rows, threshold)
    assert kinds == decide(rows, options, piece=7)


def test_a_missing_datasketch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(UnusableInputError, match=r"install it: pip install 'maskmill\[quality\]'\."):
        ParagraphSigner(BOTH)
    ParagraphSigner(QualityOptions(drop_duplicates=True))


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
        texts += [b.decode() for b in read_ranges(fragment, ranges, DECIDING, str(tmp_path))]
    assert texts == [f"{t}\n" for t in (PROSE.upper(), OTHER.removesuffix(".") + " again.", PROSE, OTHER)]
    assert dropped["sentences"].tolist() == [1, 1, 1, 1]
    assert dropped["body"].tolist() == [2, 3, 3, 1]
    counts = {"read": 7, "exact_duplicates": 3, "near_duplicates": 1}
    assert duplicate_counts(fragments, DECIDING, str(tmp_path)) == counts


def test_a_build_decides_once(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fragments = make_fragments(dump, tmp_path, DECIDING)
    dropped = find_duplicates(fragments, DECIDING, str(tmp_path))
    monkeypatch.setattr(duplicates, "decide", None)
    assert find_duplicates(fragments, DECIDING, str(tmp_path)).tobytes() == dropped.tobytes()
    # Another threshold is another decision.
    other = dataclasses.replace(DECIDING, quality=QualityOptions(drop_duplicates=True))
    assert duplicates.decision_key(fragments, other) != duplicates.decision_key(fragments, DECIDING)


def test_counts_of_a_decision_that_was_not_made_are_an_error(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path, DECIDING)
    with pytest.raises(RunFailedError):
        duplicate_counts(fragments, DECIDING, str(tmp_path))


def test_nothing_dropped_is_an_empty_table(tmp_path: Path) -> None:
    path = write_dump(tmp_path, PAGES[:1])
    fragments = make_fragments(path, tmp_path / "out", DECIDING)
    assert len(find_duplicates(fragments, DECIDING, str(tmp_path / "out"))) == 0
    assert duplicate_counts(fragments, DECIDING, str(tmp_path / "out"))["read"] == 2
