"""Punkt that is trained on a corpus: what it learns, the folder of its parameters, and NLTK that reads it."""

from pathlib import Path

import nltk.data
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.languages import ABBREVIATION, paragraphs
from nltk.tokenize.punkt import PunktTokenizer

from maskmill.errors import UnusableInputError
from maskmill.sentences import training
from maskmill.sentences.choice import named_choice
from maskmill.sentences.training import beginning_of, train_parameters

TEXTS = ["\n".join(paragraphs("uk", number)).encode() for number in range(60)]


def test_an_abbreviation_of_the_corpus_is_learned() -> None:
    parameters, size = train_parameters(TEXTS)
    assert parameters is not None
    assert size == sum(len(text) + 2 for text in TEXTS) > training.FEWEST_BYTES
    assert ABBREVIATION in parameters.abbreviations


def test_what_there_is_little_evidence_for_is_not() -> None:
    rare = "Вона жила на вкрт. Петра. Довжина дорівнює 5 км². Маса дорівнює 7 h2o. ".encode()
    parameters, _ = train_parameters([*TEXTS, rare, "а км². ".encode() * 9])
    assert parameters is not None
    assert {"вкрт", "км²", "h2o"}.isdisjoint(parameters.abbreviations)


def test_too_little_text_gives_no_parameters() -> None:
    assert train_parameters(TEXTS[:2]) == (None, sum(len(text) + 2 for text in TEXTS[:2]))
    assert train_parameters([]) == (None, 0)


def test_the_end_of_a_large_corpus_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "TRAINING_BYTES", 120_000)
    asked = []

    def texts() -> object:
        for number, text in enumerate([*TEXTS, *TEXTS]):
            asked.append(number)
            yield text

    first, size = train_parameters(texts())  # type: ignore[arg-type]
    assert 119_990 < size <= 120_000
    assert len(asked) < len(TEXTS)
    assert (first, size) == train_parameters([*TEXTS, "Інший текст.".encode()])


@given(st.lists(st.text("ab\n.ж字", max_size=30).map(str.encode), max_size=6), st.integers(1, 80), st.integers(1, 40))
def test_the_beginning_of_texts(texts: list[bytes], size: int, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "_CHUNK_BYTES", chunk)
        chunks = list(beginning_of(texts, size))
    whole = b"".join(text.removesuffix(b"\n") + b"\n\n" for text in texts)
    assert "".join(chunks) == whole[:size].decode("utf-8", "ignore")
    assert all(chunk.endswith("\n") for chunk in chunks[:-1])


def write(folder: Path) -> training.PunktParameters:
    parameters, _ = train_parameters(TEXTS)
    assert parameters is not None
    folder.mkdir()
    for name, content in training.parameter_files(parameters).items():
        (folder / name).write_bytes(content)
    return parameters


def test_a_folder_holds_all_parameters(tmp_path: Path) -> None:
    parameters = write(tmp_path / "uk")
    assert training.read_parameters(str(tmp_path / "uk")) == parameters
    described = training.describe_folder(str(tmp_path / "uk"))
    assert described.abbreviations == len(parameters.abbreviations)
    assert described.sha256 == training.checksum_of(training.parameter_files(parameters))
    assert described.place("/out") == str(tmp_path / "uk")


def test_nltk_splits_by_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = tmp_path / "tokenizers" / "punkt_tab"
    collection.mkdir(parents=True)
    write(collection / "mine")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    text = "\n".join(paragraphs("uk", 1000)).encode()
    expected = [sentence for line in text.decode().split("\n") for sentence in PunktTokenizer("mine").tokenize(line)]
    assert named_choice(str(collection / "mine")).splitter().split_lines(text).decode().splitlines() == expected
    assert sum(f"{ABBREVIATION}. " in sentence for sentence in expected) == 3


@pytest.mark.parametrize("name", training.PARAMETER_FILES)
def test_a_folder_without_a_file_is_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path / "uk")
    (tmp_path / "uk" / name).unlink()
    with pytest.raises(UnusableInputError, match=f"{name} is missing; a folder of Punkt parameters has"):
        training.read_parameters(str(tmp_path / "uk"))


@pytest.mark.parametrize(
    ("name", "content"),
    [("collocations.tab", b"one\n"), ("ortho_context.tab", b"word\tmany\n"), ("abbrev_types.txt", b"\xff\n")],
)
def test_a_folder_of_other_files_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    write(tmp_path / "uk")
    (tmp_path / "uk" / name).write_bytes(content)
    with pytest.raises(UnusableInputError, match="its files do not hold Punkt parameters"):
        training.read_parameters(str(tmp_path / "uk"))
