"""The statistics of benchmarks/peer_objectives.py, on rows that can be counted by hand."""

from pathlib import Path

import numpy as np

from benchmarks import peer_code, peer_objectives
from benchmarks.peer_objectives import MaskedRows

CLS, SEP, MASK = 0, 1, 2
GOES_ON = 9  # a "##" piece; all other ids start a word
STARTS_WORD = np.arange(20) != GOES_ON


def rows(*masked_ids: tuple[str, list[int], list[int]]) -> MaskedRows:
    """Rows of (which pieces are masked, by x; their ids; as the model reads them)."""
    marks, ids, written = zip(*masked_ids, strict=True)
    return MaskedRows(
        ids=np.concatenate([np.array(row) for row in ids]),
        written=np.concatenate([np.array(row) for row in written]),
        masked=np.array([mark == "x" for row in marks for mark in row]),
        ends=np.cumsum([len(row) for row in marks]),
        labels=np.empty(0, np.int64),
    )


ROWS = rows(
    (".xx.x.", [CLS, 5, 6, 7, 8, SEP], [CLS, MASK, 6, 7, 11, SEP]),  # a run of two words, a run of one
    (".x.x.", [CLS, 5, GOES_ON, 6, SEP], [CLS, MASK, GOES_ON, MASK, SEP]),  # half a word, and a run of one
    (".xx.x", [CLS, 5, GOES_ON, SEP, 6], [CLS, MASK, MASK, SEP, MASK]),  # a word of two pieces; the row ends in a run
)


def test_runs_are_counted_in_words_and_end_with_their_row() -> None:
    runs, partly = peer_objectives.runs_of_words(ROWS, STARTS_WORD, [CLS, SEP])
    assert runs[1:4].tolist() == [5, 1, 0]
    assert partly == 1


def test_kinds_of_masks() -> None:
    kinds = peer_objectives.kinds(ROWS, MASK)[ROWS.masked]
    assert kinds.tolist() == [0, 2, 1, 0, 0, 0, 0, 0]
    assert peer_objectives.one_kind(ROWS, MASK, STARTS_WORD) == (1.0, 0.0)


def test_distance_of_histograms() -> None:
    same, other = np.array([1, 1, 2]), np.array([2, 2, 4])
    assert peer_objectives.distance(same, other) == 0
    assert peer_objectives.distance(np.array([1, 0]), np.array([0, 7])) == 1
    assert peer_objectives.distance(np.array([3, 1]), np.array([1, 1])) == 0.25


def test_length_histogram_counts_every_row_once() -> None:
    lengths = np.array([1, 32, 33, 480, 481, 512, 700])
    assert peer_objectives.length_histogram(lengths, 512, 16).tolist() == [2, 1, *[0] * 12, 1, 3]
    assert peer_objectives.length_histogram(lengths, 512).sum() == len(lengths)


def test_functions_of_a_script_are_found_inside_its_main(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import not_installed\ndef main():\n    def grow(x):\n        return x + by\n")
    (grow,) = peer_code.functions_of(str(script), ("grow",), {"by": 2})
    assert grow(1) == 3
