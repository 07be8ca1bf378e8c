"""Words are found in examples and documents as a plain search over the shown texts finds them."""

from pathlib import Path

import pytest
from data_sets.built_data_sets import build_data_set
from data_sets.example_sets import setup_of, write_set
from made_up.trained_tokenizers import trained

from maskmill.inspection.decoding import running_text
from maskmill.inspection.opened_examples import open_examples
from maskmill.inspection.opened_texts import open_texts
from maskmill.inspection.searching import Wanted
from maskmill.masking.objective_options import ObjectiveOptions


@pytest.mark.parametrize("objective", ["nsp", "mlm", "dynamic"])
def test_examples_with_a_word(objective: str, tmp_path: Path) -> None:
    is_dynamic = objective == "dynamic"
    options = ObjectiveOptions(objective="mlm" if is_dynamic else objective, dynamic_masking=is_dynamic)  # type: ignore[arg-type]
    opened = open_examples(build_data_set(tmp_path, objective=options))
    texts = [f" {running_text(example.pieces, special=True)}".replace("[SEP]", "|") for example in opened.all()]
    for words in ("river", "the river", "Season Town", "of 17 .", "nowhere"):
        expected = [sample for sample, text in enumerate(texts) if f" {words.lower()}" in text]
        assert [row.sample for row in opened.search(words)] == expected
        assert bool(expected) == (words != "nowhere")
    opened.close()


def test_search_in_one_file_gives_samples_of_the_data_set(tmp_path: Path) -> None:
    with open_examples(build_data_set(tmp_path)) as whole, open_examples(whole.data_set.files[1].path) as one:
        found = list(one.search("river"))
        assert found
        assert found == [row for row in whole.search("river") if row.file == whole.data_set.files[1].path]


def test_bytes_of_a_tokenizer_are_searched_as_text(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(trained("bpe"))
    texts = {"part-00000-of-00001": "Ābols aug kokā.\n苹果是一种常见的水果。\n\n" * 3}
    setup = setup_of(str(tmp_path / "tokenizer.json"), objective="mlm", max_seq_length=64)
    with open_examples(write_set(tmp_path, setup, texts=texts)) as opened:
        assert len(list(opened.search("kokā"))) == len(list(opened.search("苹果"))) == opened.count


@pytest.mark.parametrize(
    ("words", "text", "is_found"),
    [
        ("U.S. Army", "the u . s . army of", True),
        ("U.S. Army", "THE U.S.  ARMY", True),
        ("art", "an artist", True),
        ("art", "a start", False),
        ("ants'", "the ants ' nest", True),
        ("+1", "a +1 and", True),
        ("a.*b", "a xx b", False),
    ],
    ids=["pieces", "capitals", "begins-a-word", "within-a-word", "marks", "sign", "no-pattern"],
)
def test_patterns(words: str, text: str, is_found: bool) -> None:
    assert Wanted(words).stands_in(text) == is_found


def test_documents_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "part-00000-of-00002").write_text("\n\nOne fox.\nTwo.\n\n\nThree.\nA Fox again.\n")
    (tmp_path / "part-00001-of-00002").write_text("No such animal.\n\nfoxes")
    with open_texts(str(tmp_path)) as opened:
        found = [(Path(d.file).name[-14:-9], d.document, d.line, len(d.lines)) for d in opened.search("fox")]
        assert found == [("00000", 1, 3, 2), ("00000", 2, 7, 2), ("00001", 2, 3, 1)]
        assert [d.lines[0] for d in opened.all()] == ["One fox.", "Three.", "No such animal.", "foxes"]
        assert [d.lines for d in opened.all(2)] == [("No such animal.",), ("foxes",)]
