"""Whose rules split an input's sentences: what --language may name, and what an input says itself."""

from pathlib import Path

import nltk.data
import pytest

from maskmill.errors import UnusableInputError
from maskmill.sentences import choice, training
from maskmill.sentences.choice import SentenceChoice, choice_of_dump, choice_of_text, named_choice
from maskmill.sentences.punkt import PunktParameters, SentenceSplitter
from maskmill.sentences.rules import SentenceRules, rules_for

HINDI = "नदी समुद्र तक बहती है। वह लम्बी है। "
ENGLISH = b"Dr. Smith lives in St. Louis. He is old! Is he? Yes."


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("uk", "uk"), ("UK", "uk"), ("zh-Hans", "zh"), ("pt_BR", "pt"), ("chinese", "zh"), ("Japanese", "ja"),
        ("ukrainian", "uk"), ("be-tarask", "be-tarask"), ("simple", "simple"),
    ],
)  # fmt: skip
def test_a_code_and_an_english_name_name_a_language(language: str, code: str) -> None:
    rules = named_choice(language).rules
    assert choice.known_code(rules.language) == code
    assert (rules.stops, rules.by_spaces, rules.words) == (
        rules_for(code).stops, rules_for(code).by_spaces, rules_for(code).words
    )  # fmt: skip


@pytest.mark.parametrize("language", ["english", "german", "russian"])
def test_the_name_of_punkt_parameters_is_punkt_alone(language: str) -> None:
    assert named_choice(language).rules == SentenceRules(language="", punkt=language)


@pytest.mark.parametrize("language", ["english", "en", "simple"])
def test_english_is_what_it_always_was(language: str) -> None:
    assert named_choice(language).splitter().split_lines(ENGLISH) == SentenceSplitter().split_lines(ENGLISH)
    if language != "english":
        assert choice_of_dump(language).rules.words == ("en",)


def test_parameters_among_nltks_data_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    write_parameters(tmp_path / "tokenizers" / "punkt_tab" / "klingon")
    assert named_choice("klingon").rules.punkt == "klingon"


@pytest.mark.parametrize(
    ("language", "nearest"), [("ukranian", "ukrainian"), ("Chinise", "chinese"), ("xq", ""), ("en.txt", "")]
)
def test_another_name_is_refused_with_the_nearest(language: str, nearest: str) -> None:
    with pytest.raises(UnusableInputError) as caught:
        named_choice(language)
    message = str(caught.value)
    assert message.startswith(f"--language={language} names no language that maskmill knows")
    assert f"(the nearest is {nearest})" in message if nearest else True


def write_parameters(folder: Path) -> Path:
    folder.mkdir(parents=True)
    parameters = PunktParameters(
        abbreviations=frozenset(["прк"]), starters=frozenset(), collocations=frozenset(), contexts={"мира": 8}
    )
    for name, content in training.parameter_files(parameters).items():
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_named_after_a_language_has_its_rules_too(tmp_path: Path) -> None:
    found = named_choice(str(write_parameters(tmp_path / "uk")))
    assert (found.rules.language, found.rules.punkt, found.needs_training) == ("uk", "trained", False)
    assert found.rules.words == rules_for("uk").words
    assert found.parameters is not None
    assert (found.parameters.path, found.parameters.abbreviations) == (str(tmp_path / "uk"), 1)
    text = "Він живе на прк. Мира в Києві. Вона також.".encode()
    assert found.splitter().split_lines(text).decode() == "Він живе на прк. Мира в Києві.\nВона також.\n"
    assert len(SentenceSplitter(rules_for("uk")).split_lines(text).splitlines()) == 3


def test_another_folder_is_punkt_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_parameters(tmp_path / "of-mine")
    assert named_choice(str(folder)).rules == SentenceRules(language="", punkt="trained")
    monkeypatch.chdir(tmp_path)
    assert named_choice("of-mine").rules == named_choice("./of-mine").rules == named_choice(str(folder)).rules


def test_a_choice_survives_its_journey(tmp_path: Path) -> None:
    for one in (
        named_choice("uk"),
        named_choice(str(write_parameters(tmp_path / "uk"))),
        choice_of_text(HINDI),
        choice_of_dump("de"),
        choice_of_dump("hu").after_training(None, 123),
    ):
        assert SentenceChoice.from_json(one.to_json()) == one
    assert SentenceChoice.from_json("").rules == SentenceRules(language="", punkt="english")


@pytest.mark.parametrize("code", ["uk", "hu", "ro", "id", "vi", "ltg", "be"])
def test_punkt_is_trained_where_nothing_else_is_known_of_full_stops(code: str) -> None:
    found = choice_of_dump(code)
    assert found.needs_training
    too_little = found.after_training(None, 1000)
    assert (too_little.needs_training, too_little.rules.punkt, too_little.text_bytes) == (False, None, 1000)
    assert too_little.splitter().split_lines(b"Abcde fghij. Klmno.") == b"Abcde fghij.\nKlmno.\n"


@pytest.mark.parametrize("code", ["en", "de", "tr", "zh", "ja", "hi", "th", "hy", "ar", "ka"])
def test_it_is_not_trained_where_parameters_exist_or_capitals_do_not(code: str) -> None:
    assert not choice_of_dump(code).needs_training


@pytest.mark.parametrize(
    ("sample", "script", "trains"),
    [
        ("The river runs to the sea.", "LATIN", False),
        (HINDI, "DEVANAGARI", False),
        ("河流入海。", "CJK", False),
        ("川は海に流れている。", "HIRAGANA", False),
        ("Річка тече до моря.", "CYRILLIC", True),
        ("", "LATIN", False),
        ("1 2 3.", "LATIN", False),
    ],
)
def test_a_text_is_split_by_its_script(sample: str, script: str, trains: bool) -> None:
    found = choice_of_text(sample)
    assert (found.why, found.script, found.needs_training) == ("script", script, trains)
    assert script in found.expected_scripts
    assert (found.rules.words == ("en",)) == (script == "LATIN")


def test_what_a_choice_is_called() -> None:
    found = [named_choice("uk"), named_choice("german"), choice_of_dump("zh-hans"), choice_of_text(HINDI)]
    assert [one.name for one in found] == ["Ukrainian", "German", "Chinese", "Devanagari script"]


def test_the_scripts_that_a_language_is_written_in() -> None:
    assert named_choice("english").expected_scripts == ("LATIN",)
    assert choice_of_dump("sr").expected_scripts == ("CYRILLIC", "LATIN")
    assert "HIRAGANA" in choice_of_text("川は海に流れている。").expected_scripts


def test_rules_are_known_of_every_language_that_has_a_name() -> None:
    for code, language in choice.language_names().items():
        named_choice(code)
        assert language.name
        assert all(script.isupper() for script in language.scripts), code
    assert {"LATIN", "CYRILLIC", "DEVANAGARI", "CJK"} <= choice.known_scripts()
    assert "JAVANESE" not in choice.known_scripts()
