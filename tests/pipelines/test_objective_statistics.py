"""What examples of real text (enwik8's) are like, within bounds of the binomial law: masks, their kinds, their places.

The bounds are five standard deviations, so a right program fails one of these tests less than once in a hundred
thousand runs; and the seeds are fixed.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs.commands import VOCAB

from pipelines.commands import cli

pytestmark = pytest.mark.builds

LENGTH, PREDICTIONS = 128, 20
DEVIATIONS = 5
PIECES = VOCAB.read_text("utf-8").split("\n")
MASK = PIECES.index("[MASK]")
CONTINUES = np.array([piece.startswith("##") for piece in PIECES])


@pytest.fixture(scope="module")
def text(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text shards of the first pages of enwik8."""
    output = tmp_path_factory.mktemp("enwik8") / "text"
    dump = shared / "data" / "dumps" / "enwik8-pages-articles-multistream.xml.bz2"
    arguments = [f"--input={dump}", f"--output={output}", "--num_eval_articles=0", "--max_documents=400"]
    assert cli.main(["extract", *arguments, "--quiet"]) == cli.DONE
    return output


def examples(text: Path, output: Path, *flags: str) -> dict[str, Any]:
    """The columns of examples as arrays: [rows, values] for fixed lengths."""
    arguments = [f"--input={text}", f"--output={output}", f"--vocab_file={VOCAB}", "--format=parquet", "--quiet"]
    lengths = [f"--max_seq_length={LENGTH}", f"--max_predictions_per_seq={PREDICTIONS}"]
    assert cli.main(["examples", *arguments, *lengths, *flags]) == cli.DONE
    table = pa.concat_tables([pq.read_table(path) for path in sorted(output.glob("*.parquet"))])
    rows = {name: table[name].combine_chunks() for name in table.column_names}
    return {name: column.flatten().to_numpy().reshape(len(column), -1) for name, column in rows.items()}


def within(count: float, trials: float, share: float) -> bool:
    """Whether a count out of so many trials is within the bounds of a share."""
    return abs(count - trials * share) <= DEVIATIONS * math.sqrt(trials * share * (1 - share)) + 1


def masked(rows: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels of all masked positions, what is written there, and whether they start a word."""
    weights = rows["masked_lm_weights"] > 0
    written = np.take_along_axis(rows["input_ids"], rows["masked_lm_positions"].astype(np.int64), axis=1)
    labels = rows["masked_lm_ids"][weights]
    return labels, written[weights], ~CONTINUES[labels]


@pytest.mark.parametrize(
    ("objective", "unit"),
    [
        *(("mlm", unit) for unit in ("piece", "whole_word", "word", "ngram", "span")),
        *(("nsp", unit) for unit in ("piece", "whole_word", "word")),
        ("sop", "ngram"),
        ("sop", "piece"),
        ("blocks", "piece"),
        ("blocks", "span"),
    ],
)
def test_masks(text: Path, tmp_path: Path, objective: str, unit: str) -> None:
    flags = (f"--objective={objective}", f"--mask_unit={unit}", "--dupe_factor=2")
    rows = examples(text, tmp_path / "out", *flags)
    pieces = rows["input_mask"].sum(axis=1)
    counts = (rows["masked_lm_weights"] > 0).sum(axis=1)
    wanted = np.array([min(PREDICTIONS, max(1, round(0.15 * n))) for n in pieces.tolist()])
    assert (counts <= wanted).all()
    # Words that do not fit leave a place or two free.
    assert counts.sum() >= (1 if unit == "piece" else 0.98) * wanted.sum()
    labels, written, starts = masked(rows)
    decided = len(labels)
    if unit in ("word", "span"):
        # One decision for all pieces of a word, or of a span of at most ten words of a few pieces each.
        decided = int(starts.sum()) // (1 if unit == "word" else 10)
    kinds = {0.8: written == MASK, 0.1: (written != MASK) & (written != labels)}
    for share, is_kind in kinds.items():
        assert within(is_kind.mean() * decided, decided, share), share


@pytest.mark.parametrize("unit", ["piece", "word", "ngram", "span"])
def test_masks_are_even_over_positions(text: Path, tmp_path: Path, unit: str) -> None:
    rows = examples(text, tmp_path / "out", "--objective=mlm", f"--mask_unit={unit}", "--dupe_factor=4")
    full = rows["input_mask"].sum(axis=1) == LENGTH
    positions = rows["masked_lm_positions"][full].ravel()
    inside = positions[(positions > 15) & (positions < LENGTH - 16)]
    parts = np.bincount((inside - 16) // 16)
    # Pieces of a span stand side by side: it counts as one trial.
    together = {"piece": 1, "word": 2, "ngram": 4, "span": 12}[unit]
    assert all(within(part / together, inside.size / together, 1 / len(parts)) for part in parts)


def test_random_pieces_are_even_over_the_vocabulary(text: Path, tmp_path: Path) -> None:
    rows = examples(text, tmp_path / "out", "--objective=mlm", "--random_share=1", "--mask_share=0", "--keep_share=0")
    _, written, _ = masked(rows)
    parts = np.bincount(written // 1000, minlength=31)
    assert all(within(part, written.size, 1000 / len(PIECES[:-1])) for part in parts[:30])


def test_half_of_the_pairs_are_swapped(text: Path, tmp_path: Path) -> None:
    labels = examples(text, tmp_path / "out", "--objective=sop", "--dupe_factor=4")["next_sentence_labels"]
    assert within(labels.sum(), labels.size, 0.5)


def test_half_of_the_pairs_that_have_a_choice_are_random(text: Path, tmp_path: Path) -> None:
    # A stretch of one sentence has no next one, so its pair is random: those add to the half.
    labels = examples(text, tmp_path / "out", "--strict_labels", "--dupe_factor=4")["next_sentence_labels"]
    assert 0.5 <= labels.mean() <= 0.6
