"""The texts that benchmarks/vocabulary.py makes, and the figures of benchmarks/pieces.py."""

from pathlib import Path

from benchmarks import pieces
from benchmarks.vocabulary import copy_text

TEXT = "Zoë met a cat.\nIt sat.\n\n"


def test_copies_have_new_words_of_the_same_lengths(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "part-00000-of-00001").write_text(TEXT)
    copy_text(tmp_path / "text", 2, True, tmp_path / "new")
    copies = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert copies == {
        "part-00000-of-00002": TEXT + "0\n\n",
        "part-00001-of-00002": "Apë nfu b dbu.\nJu tbu.\n\n1\n\n",
    }


def test_a_text_is_counted_in_the_words_of_berts_basic_tokenizer(tmp_path: Path) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "a", "##s", "."]))
    found = pieces.cut("mine", pieces.load(vocabulary), ["A cat.", "Cats, a cat."])
    assert (found.words, found.pieces, found.unknown, found.bytes) == (8, 9, 1, 18)
    assert found.row() == "| mine | 9 | 1.1250 | 2.000 | 12.500% |"
