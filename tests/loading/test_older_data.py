"""Data sets of older versions give the rows that they gave."""

import json
import shutil
from pathlib import Path

import pytest
from data_sets.example_sets import setup_of, write_set
from data_sets.gold_examples import VOCABULARY
from made_up.trained_tokenizers import trained

import maskmill
from maskmill.masking.options import MaskingOptions
from maskmill.records.tokenizing import tokenization_in
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify

SHARD = "part-00000-of-00001"
OLD_SPANS = Path(__file__).parents[1] / "data" / "spans-1"


def test_a_data_set_of_an_older_version_gives_its_rows(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OLD_SPANS, tmp_path / "old"))
    expected = json.loads((folder / "rows.json").read_text())
    index = folder / "examples" / f"{SHARD}.spans"
    assert index.read_bytes().startswith(b"spans-1\n")
    with maskmill.open(folder / "examples", batch_size=1, shuffle=False, tail="pad", seed=3) as loader:
        rows = [{name: array[0].tolist() for name, array in batch.items()} for batch in loader]
    assert rows == expected
    assert verify([str(folder / "examples")], VerifyOptions(remake=0)).is_right
    made_again = setup_of(
        f"{folder}/examples/tokenizer.json", format="spans", objective="mlm", dynamic_masking=True,
        dupe_factor=1, max_seq_length=48, max_predictions_per_seq=8, cross_documents=False,
    )  # fmt: skip
    text = (folder / "text" / SHARD).read_text()
    path = Path(write_set(tmp_path, made_again, texts={SHARD: text}))
    assert (path / index.name).read_bytes().startswith(b"spans-2\n")
    with maskmill.open(path, batch_size=1, shuffle=False, tail="pad", seed=3) as loader:
        again = [{name: array[0].tolist() for name, array in batch.items()} for batch in loader]
    assert again != expected


@pytest.mark.parametrize("vocabulary", ["vocab.txt", "tokenizer.json"])
def test_carriage_returns_of_older_data_are_dropped(vocabulary: str, tmp_path: Path) -> None:
    content = Path(VOCABULARY).read_bytes() if vocabulary == "vocab.txt" else trained("bpe").encode()
    special_ids = {name: number for number, name in enumerate(("cls_id", "pad_id", "sep_id", "unknown_id", "mask_id"))}
    pieces = []
    for text in (b"the sun\rset on it\r\n", b"the sunset on it\n", b"the sun set on it\n"):
        for by_version_2 in (True, False):
            masking = MaskingOptions(unicode="15.1.0")
            loaded = tokenization_in(vocabulary, content, masking, special_ids, by_version_2=by_version_2)
            pieces.append(loaded.tokenizer().tokenize_bytes(text).ids.tolist())
    assert pieces[0] == pieces[2] == pieces[3] != pieces[4]
    assert pieces[1] == pieces[4] == pieces[5]
