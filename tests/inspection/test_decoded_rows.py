"""Rows become words: held against a plain reading of the files, each other's formats, and what a loader gives."""

from pathlib import Path
from typing import Any

import pytest
from data_sets.example_rows import read_tfrecord
from data_sets.example_sets import setup_of, write_set
from data_sets.gold_examples import VOCABULARY

import maskmill
from maskmill.errors import UnusableInputError
from maskmill.inspection.decoding import DecodedExample, running_text
from maskmill.inspection.opened_examples import open_examples

KINDS: dict[str, dict[str, Any]] = {
    "nsp": {},
    "v2-words": {"feature_names": "v2", "mask_unit": "word"},
    "sop-spans": {"objective": "sop", "mask_unit": "span"},
    "mlm": {"objective": "mlm", "special_tokens_mask": True},
    "blocks": {"objective": "blocks", "block_separators": "sep"},
    "bins": {"bins": 3},
    "packed-pairs": {"pack": True, "max_seq_length": 64},
    "dynamic": {"objective": "mlm", "dynamic_masking": True},
    "dynamic-packed": {"objective": "mlm", "dynamic_masking": True, "pack": True},
}
PIECES = Path(VOCABULARY).read_text().split("\n")
LABELS = {"nsp": ("next sentence", "random sentence"), "sop": ("in order", "swapped")}


def decoded(path: str | Path, **options: Any) -> list[DecodedExample]:
    with open_examples(path, **options) as opened:
        return list(opened.all())


def written(tmp_path: Path, **options: Any) -> str:
    return write_set(tmp_path, setup_of(**options))


def assert_is_row(example: DecodedExample, row: dict[str, list[Any]], objective: str) -> None:
    """Compares an example with the columns of its record, one piece after the other."""
    ids = row.get("input_ids") or row["input_word_ids"]
    length = sum(row["input_mask"])
    masks = {}
    if "masked_lm_positions" in row:
        columns = (row[f"masked_lm_{name}"] for name in ("positions", "ids", "weights"))
        masks = {position: label for position, label, weight in zip(*columns, strict=True) if weight}
    assert [piece.id for piece in example.pieces] == ids[:length]
    assert [piece.text for piece in example.pieces] == [PIECES[id] for id in ids[:length]]
    segments = row.get("segment_ids") or row.get("input_type_ids") or [0] * length
    sequences = row.get("sequence_ids", [1] * length)
    for piece, segment, sequence in zip(example.pieces, segments[:length], sequences[:length], strict=True):
        original = PIECES[masks.get(piece.position, piece.id)]
        assert (piece.segment, piece.sequence) == (segment, sequence - 1)
        assert piece.label == (original if piece.position in masks else None)
        assert piece.surface == original.removeprefix("##")
        if piece.position in masks:
            same = "kept" if piece.text == original else "random"
            assert piece.role == ("masked" if piece.text == "[MASK]" else same)
        else:
            assert piece.role == ("special" if original in ("[CLS]", "[SEP]") else "text")
    names = LABELS.get(objective)
    labels = row.get("next_sentence_labels", [])
    assert example.label == (None if names is None else " / ".join(names[label] for label in labels))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "dynamic" not in kind])
def test_examples_are_the_records(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, **KINDS[kind])
    with open_examples(path) as opened:
        examples = list(opened.all())
        rows = [row for file in opened.data_set.files for row in read_tfrecord(file.path)]
    assert [example.sample for example in examples] == list(range(len(rows)))
    for example, row in zip(examples, rows, strict=True):
        assert_is_row(example, row, KINDS[kind].get("objective", "nsp"))
        assert example.width == len(row["input_mask"])
        assert example.record >= 1
        assert read_tfrecord(example.file)[example.record - 1] == row


@pytest.mark.parametrize("kind", ["dynamic", "dynamic-packed"])
def test_drawn_masks_are_those_of_the_loader(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, **KINDS[kind])
    examples = decoded(path, seed=7, epoch=2)
    with maskmill.open(path, batch_size=1, seed=7, shuffle=False, with_samples=True) as loader:
        for _ in range(2):
            assert len(list(loader)) == len(examples)
        for example, batch in zip(examples, loader, strict=True):
            assert batch["samples"][0] == example.sample
            count = int(batch["masked_lm_weights"].sum())
            assert batch["input_ids"][0, : len(example.pieces)].tolist() == [piece.id for piece in example.pieces]
            positions = [piece.position for piece in example.pieces if piece.label is not None]
            assert positions == batch["masked_lm_positions"][0, :count].tolist()
            labels = [piece.label for piece in example.pieces if piece.label is not None]
            assert labels == [PIECES[id] for id in batch["masked_lm_ids"][0, :count].tolist()]


def test_sample_is_counted_in_the_data_set_whatever_is_named(tmp_path: Path) -> None:
    path = Path(written(tmp_path, format="mds", bins=2))
    whole = decoded(path)
    for file in sorted((path / "train").rglob("*.mds")):
        of_file = decoded(file)
        assert of_file == [example for example in whole if example.file == str(file)]
    assert decoded(path / "train") == whole
    assert decoded(path / "eval") == decoded(path, split="eval")
    assert all(Path(example.file).is_relative_to(path / "eval") for example in decoded(path / "eval"))


def test_without_manifest_the_records_tell(tmp_path: Path) -> None:
    path = Path(written(tmp_path))
    made = decoded(path)
    (path / "manifest.json").unlink()
    named = decoded(path, vocab_file=VOCABULARY)
    by_place = {(example.file, example.record): example.pieces for example in named}
    assert made
    assert all(by_place[example.file, example.record] == example.pieces for example in made)
    with pytest.raises(UnusableInputError, match="name it"):
        decoded(path)


def test_picked_examples_say_their_words_and_a_missing_vocabulary_is_said(tmp_path: Path) -> None:
    path = Path(write_set(tmp_path, setup_of(), picked=3))
    of_eval = {running_text(example.pieces) for example in decoded(path, split="eval")}
    assert {running_text(example.pieces) for example in decoded(tmp_path / "eval")} <= of_eval
    (path / "vocab.txt").unlink()
    with pytest.raises(UnusableInputError, match=r"vocab\.txt: the vocabulary of these examples is not here"):
        decoded(path)


def test_damaged_rows_are_decoded_as_far_as_they_go(tmp_path: Path) -> None:
    """Padding in the middle and masks after the row's end are shown, not refused: verify names them."""
    with open_examples(written(tmp_path)) as opened:
        rows = opened.rows(0, 1)
    rows.arrays["input_mask"][0, 3] = 0
    rows.arrays["input_ids"][0, 4] = 0
    rows.arrays["masked_lm_positions"][0, 0] = 31
    example = opened.decoder.decode(rows, 0, 0)
    assert example.pieces[3].role in ("padding", "masked", "random", "kept")
    assert example.pieces[4].text == "[PAD]"
