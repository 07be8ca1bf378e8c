"""Sentences, against NLTK itself: the installed one, and 3.4.5's decisions rebuilt from it."""

import functools
import gzip
import pickle
from pathlib import Path

import hypothesis
import nltk.data
import pytest
from hypothesis import strategies as st
from nltk.tokenize import punkt
from oracles import punkt34 as oracle_punkt34
from properties import tries

from maskmill.characters import runs
from maskmill.characters.classes import CharacterRules
from maskmill.errors import UnusableInputError
from maskmill.sentences import punkt as splitter_module
from maskmill.sentences.punkt import SentenceSplitter

GOLD = Path(__file__).parent.parent / "data" / "gold"
ENGLISH = Path(splitter_module.__file__).parent / "data" / "punkt_tab" / "english"
ENGINES: dict[CharacterRules, str] = {"nltk-3.4": "re", "nltk-3.10.4": "regex"}
RULES = pytest.mark.parametrize("rules", ["nltk-3.4", "nltk-3.10.4"])

# Words that the heuristics know, and characters that each of the regular expressions treats in its own way.
WORDS = [
    *("Mr", "Dr", "U.S", "u.s", "e.g", "i.e", "p", "m", "St", "Inc", "Jan", "x-Inc", "a-m.d", "a", "the", "The", "He"),
    *("he", "but", "But", "However", "international", "coverage", "Hill", "S", "Bach", "i", "I", "toussie", "b"),
    *("Stewart", "o", "Ludcke", "1", "23", "1990", "-5", "3,000.5", ".5", "1.", "é", "É", "ß", "Σ", "ΑΣ", "ΑΣ'", "σ"),
    *("İ", "ı", "Ǆ", "ǅ", "中", "。", "\u0301", "\u094d", "²", "½", "ª", "Ⅷ", "𝒳", "😀", "٣", "_"),
    *("...", "..", ". . .", ". . . .", "--", "-", "?", "!", "?!", "!!", ",", ";", ":", '"', "'", "(", ")", "[", "]"),
    *("{", "}", "*", "@", "#", "&", "`", "“", "”", "‘", "’", "«", "»"),
]
SPACES = [" ", " ", " ", "  ", "\t", "\x0b", "\x0c", "\r", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u2003", "\u2028"]
SPACES += ["\u2029", "\u202f", "\u3000", "\u200b", "\ufeff", "\x00"]


def lines() -> st.SearchStrategy[str]:
    pieces = st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(SPACES),
        st.sampled_from([". ", "? ", "! ", ".", " "]),
        st.characters(exclude_categories=["Cs"]),
    )
    assigned = st.text(st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs", "Cn"]), max_size=4)
    return st.lists(st.one_of(pieces, pieces, pieces, assigned), max_size=40).map("".join).filter(is_one_known_line)


def is_one_known_line(text: str) -> bool:
    return "\n" not in text and not any(map(is_unsure, text))


@functools.cache
def oracle(rules: CharacterRules) -> punkt.PunktSentenceTokenizer:
    parameters = oracle_punkt34.parameters(ENGLISH)
    return oracle_punkt34.tokenizer(parameters) if rules == "nltk-3.4" else punkt.PunktSentenceTokenizer(parameters)


@functools.cache
def pinned_answers(rules: CharacterRules) -> dict[int, tuple[str, int]]:
    table = (Path(runs.__file__).parent / "data" / f"{rules}.tsv").read_text()
    return {code: (run.letters, run.delta) for run in runs.read_runs(table) for code in range(run.first, run.last + 1)}


@functools.cache
def is_unsure(character: str) -> bool:
    """Whether the running Python has other answers for a character than one of the pinned Unicode versions."""
    return any(
        runs.running_answer(engine, character) != pinned_answers(rules).get(ord(character), ("", 0))
        for rules, engine in ENGINES.items()
    )


def differing_characters(rules: CharacterRules) -> set[str]:
    """Characters that the running Python has other answers for than the pinned Unicode version."""
    pinned = pinned_answers(rules)
    running = runs.running_answers(ENGINES[rules])
    return {chr(code) for code, answer in enumerate(running) if answer != pinned.get(code, ("", 0))}


@pytest.mark.builds
def test_pinned_characters_are_those_of_this_python_but_for_what_unicode_changed() -> None:
    differing = {rules: differing_characters(rules) for rules in ENGINES}
    # Between Unicode 11 or 15.1 and what this Python has: new scripts, and a few corrections.
    assert len(differing["nltk-3.4"]) < 20000
    assert len(differing["nltk-3.10.4"]) < 600
    for characters in differing.values():
        assert not [character for character in characters if ord(character) < 0x250]
    assert {chr(code) for code in range(0x30000) if is_unsure(chr(code))} == {
        character for character in set.union(*differing.values()) if ord(character) < 0x30000
    }


@RULES
@hypothesis.given(line=lines())
@tries(1500)
def test_a_line_is_split_as_nltk_splits_it(rules: CharacterRules, line: str) -> None:
    found = SentenceSplitter(rules=rules).split(line.encode())
    assert [sentence.decode() for sentence in found] == oracle(rules).tokenize(line)


@RULES
@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "?! x",
        " ?! x",
        "He said (in St. John.) that. “Go.” He went.",
        "Very bad acting!!! I promise... He did. . . He did. . . . he.",
        "J. S. Bach and Mr. I. Toussie had 5. Pepper. The U.S. Army. The U.S. The end.",
        "Is it 'so?' -- \"Yes.\"-- No.) ) x",
        "One.\u00a0Two. Three.\u00a0Four.",
        "a" * 5000 + ". The" + "b" * 5000 + "-Mr. He",
        ". " * 400 + "x",
        "." * 3000 + " x" + "!" * 3000 + " y",
    ],
)
def test_lines_that_take_each_branch(rules: CharacterRules, line: str) -> None:
    found = SentenceSplitter(rules=rules).split(line.encode())
    assert [sentence.decode() for sentence in found] == oracle(rules).tokenize(line)


@RULES
def test_every_line_of_real_text_is_split_as_nltk_splits_it(rules: CharacterRules) -> None:
    splitter = SentenceSplitter(rules=rules)
    text = gzip.decompress((GOLD / "wikiextractor" / "wiki_02.gz").read_bytes())
    expected = []
    for line in text.decode().split("\n"):
        found = oracle(rules).tokenize(line)
        assert [sentence.decode() for sentence in splitter.split(line.encode())] == found
        expected += [sentence.strip() + "\n" for sentence in found if sentence.strip()]
    assert len(expected) > 2000
    assert splitter.split_lines(text) == "".join(expected).encode()


@hypothesis.given(text=st.lists(lines(), max_size=6).map("\n".join))
@tries(300)
def test_lines_are_split_one_by_one_and_stripped(text: str) -> None:
    splitter = SentenceSplitter()
    every = [sentence.strip() for line in text.split("\n") for sentence in oracle("nltk-3.10.4").tokenize(line)]
    assert splitter.split_lines(text.encode()).decode() == "".join(f"{sentence}\n" for sentence in every if sentence)


@hypothesis.given(text=st.lists(st.one_of(lines(), st.sampled_from(["", "x", "é", " "])), max_size=6).map("\n".join))
@tries(300)
def test_blank_lines_are_kept_as_mlperf_keeps_them(text: str) -> None:
    expected = []
    for line in split_keeping_ends(text):
        if len(line) == 1:
            expected.append("\n")
        expected += [sentence.strip() + "\n" for sentence in oracle("nltk-3.4").tokenize(line)]
    found = SentenceSplitter(rules="nltk-3.4").split_lines_keeping_blank(text.encode())
    assert found.decode() == "".join(expected)


def split_keeping_ends(text: str) -> list[str]:
    pieces = text.split("\n")
    last = [pieces[-1]] if pieces[-1] else []
    return [piece + "\n" for piece in pieces[:-1]] + last


def test_a_splitter_pickles_as_its_names_and_splits_the_same() -> None:
    splitter = SentenceSplitter(rules="nltk-3.4")
    pickled = pickle.dumps(splitter)
    assert len(pickled) < 300
    line = b"He said so. Mr. Hill did (not.) \xe2\x80\x9cNo.\xe2\x80\x9d He."
    assert pickle.loads(pickled).split(line) == splitter.split(line)


def test_the_two_versions_differ_on_curly_quotes() -> None:
    line = "He said “Stop.” She did.".encode()
    assert len(SentenceSplitter(rules="nltk-3.10.4").split(line)) == 2
    assert len(SentenceSplitter(rules="nltk-3.4").split(line)) == 1


def test_a_newline_inside_a_line_is_refused() -> None:
    with pytest.raises(ValueError, match="one line"):
        SentenceSplitter().split(b"a.\nB.")
    assert SentenceSplitter().split(b"A. B.\n") == [b"A.", b"B."]


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UnusableInputError, match="not valid UTF-8 at byte 3"):
        SentenceSplitter().split_lines(b"abc\xff")


@pytest.fixture
def nltk_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    splitter_module._model.cache_clear()
    return tmp_path / "tokenizers" / "punkt_tab"


def test_a_language_without_parameters_is_refused_with_the_way_to_get_them(nltk_folder: Path) -> None:
    with pytest.raises(UnusableInputError, match=r"nltk\.downloader punkt_tab"):
        SentenceSplitter("elvish")
    with pytest.raises(UnusableInputError, match="not the name of a Punkt language"):
        SentenceSplitter("../english")


def test_another_language_is_taken_from_nltks_data_path(nltk_folder: Path) -> None:
    folder = nltk_folder / "koine"
    folder.mkdir(parents=True)
    (folder / "abbrev_types.txt").write_text("κος\nδρ", encoding="utf-8")
    (folder / "sent_starters.txt").write_text("")
    (folder / "collocations.tab").write_text("")
    (folder / "ortho_context.tab").write_text("ο\t10\n", encoding="utf-8")
    held = oracle_punkt34.parameters(folder)
    for rules, oracle in (
        ("nltk-3.4", oracle_punkt34.tokenizer(held)),
        ("nltk-3.10.4", punkt.PunktSentenceTokenizer(held)),
    ):
        splitter = SentenceSplitter("koine", rules=rules)
        # The lower case of a capital sigma depends on its place in the word.
        for line in ("Ο ΚΟΣ. Ηλίας. Ο δρ. Σ. Ναι.", "ΚΟΣ'. Α ΚΟΣΑ. Α α-ΚΟΣ. Α Σ. Α", "κοσ. Α"):
            assert [sentence.decode() for sentence in splitter.split(line.encode())] == oracle.tokenize(line)
        assert len(splitter.split("Ο ΚΟΣ. Ηλίας.".encode())) == 1
