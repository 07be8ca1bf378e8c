"""Duplicate paragraphs: signatures, and one decision over a build in the order of its documents."""

import sys
from collections.abc import Sequence

import datasketch
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.errors import UnusableInputError
from transforms.shards import duplicates
from transforms.shards.duplicates import EXACT, NEAR, STAYS
from transforms.shards.options import QualityOptions
from transforms.shards.signatures import PERMUTATIONS, ParagraphSigner, paragraphs_type

PROSE = "The quick brown fox jumps over the lazy dog near the old stone bridge every morning."
OTHER = "A slow green turtle walks under the busy road beside a new wooden fence each night."
BOTH = QualityOptions(drop_duplicates=True, near_duplicate_threshold=0.8)


def sign(paragraphs: Sequence[str], options: QualityOptions) -> npt.NDArray[np.void]:
    """The rows of the paragraphs, each of which must have words enough."""
    rows = np.zeros(len(paragraphs), duplicates.paragraphs_type(options))
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


def test_short_paragraphs_are_not_looked_at() -> None:
    row = np.zeros(1, duplicates.paragraphs_type(BOTH))
    assert not ParagraphSigner(BOTH).sign(row, b"nine words are one word less than are wanted")
    assert not row[0]["exact"]
    assert not row[0]["near"].any()


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


def test_a_signature_is_the_same_in_every_process() -> None:
    # datasketch 2, affine32, seed 1: a change here changes what builds drop.
    (row,) = sign([PROSE], BOTH)
    assert row["exact"] == 3026167595382194493
    assert row["near"][[0, 1, 127]].tolist() == [42148951, 389258849, 852453523]


def in_turn(rows: npt.NDArray[np.void], threshold: float) -> list[int]:
    """The decision with every paragraph in datasketch's index."""
    index = datasketch.MinHashLSH(threshold=threshold, num_perm=duplicates.PERMUTATIONS)
    kinds = []
    for number, row in enumerate(rows):
        sketch = datasketch.MinHash(hashvalues=row["near"], scheme="affine32")
        near = any((rows[other]["near"] == row["near"]).mean() >= threshold for other in index.query(sketch))
        kinds.append(NEAR if near else STAYS)
        if not near:
            index.insert(number, sketch)
    return kinds


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=30), st.sampled_from([0.5, 0.8]))
def test_looking_at_shared_bands_alone_loses_nothing(starts: list[tuple[int, int]], threshold: float) -> None:
    options = QualityOptions(near_duplicate_threshold=threshold)
    rows = sign([numbered(range(1000 * kind + start, 1000 * kind + start + 100)) for kind, start in starts], options)
    found = decide(rows, options)
    assert found == in_turn(rows, threshold)
    assert found == decide(rows, options, piece=7)


def test_a_missing_datasketch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    with pytest.raises(UnusableInputError, match=r"install maskmill with its extra: maskmill\[quality\]\."):
        duplicates.check_installed(BOTH)
    duplicates.check_installed(QualityOptions(drop_duplicates=True))


@given(st.lists(st.booleans(), max_size=60), st.lists(st.booleans(), max_size=60))
def test_holes_are_cut_out_of_ranges(inside: list[bool], dropped: list[bool]) -> None:
    # Ten bytes each; a hole of one byte or of all, as the drawn bits say.
    ranges = np.array([[10 * i, 10 * i + 10] for i, is_in in enumerate([*inside, True]) if is_in], np.int64)
    holes = np.array(
        [[10 * i + 3 * (i % 2), 10 * i + (10 if i % 2 else 4)] for i, d in enumerate(dropped) if d], np.int64
    ).reshape(-1, 2)
    wanted = {b for start, end in ranges.tolist() for b in range(start, end)}
    wanted -= {b for start, end in holes.tolist() for b in range(start, end)}
    left = cut_out(ranges, holes).tolist()
    assert [b for start, end in left for b in range(start, end)] == sorted(wanted)
    assert all(start < end for start, end in left)
