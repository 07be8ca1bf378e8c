"""Which language a text is in, by its words."""

from pathlib import Path

import pytest

from maskmill.sentences.choice import (
    choice_of_document,
    choice_of_input,
    choice_of_language,
    known_code,
    language_names,
)
from maskmill.sentences.detection import SURE, codes_by_long_code, detect_language, is_plainly_in
from maskmill.sentences.rules import SentenceRules, data, rules_for

PARAGRAPHS = Path(__file__).with_name("paragraphs.tsv").read_text(encoding="utf-8").splitlines()
TEXTS = dict(line.split("\t") for line in PARAGRAPHS)
UNKNOWN = ("Swahili", "Zulu")  # of these languages there are no rules
UNSURE = {name: TEXTS[name] for name in UNKNOWN} | {
    "numbers": " ".join(map(str, range(300))),
    "code": 'int main(void) { for (int k = 0; k < 10; k++) { printf("%d", k); } return x; } // foo bar baz qux ' * 3,
    "nothing": "",
}


@pytest.mark.parametrize("code", [code for code in TEXTS if code not in UNKNOWN])
def test_a_paragraph_tells_its_language(code: str) -> None:
    found = detect_language(TEXTS[code].encode())
    assert (found.language, found.is_sure) == (code, True), found


@pytest.mark.parametrize("name", UNSURE)
def test_other_text_is_of_no_language_that_is_known(name: str) -> None:
    assert not detect_language(UNSURE[name].encode()).is_sure


def test_a_text_of_two_languages_is_not_sure() -> None:
    assert not detect_language((TEXTS["en"] + TEXTS["de"]).encode()).is_sure
    assert detect_language((TEXTS["en"] * 20 + TEXTS["de"]).encode()).is_sure


@pytest.mark.parametrize("code", [code for code in TEXTS if code not in UNKNOWN])
def test_a_quick_look_agrees(code: str) -> None:
    text = TEXTS[code].encode()
    assert [other for other in TEXTS if is_plainly_in(other, text, len(text))] in ([], [code])


def test_a_quick_look_looks_no_further_than_it_may() -> None:
    text = b"12 " * 20 + TEXTS["en"].encode()
    assert is_plainly_in("en", text, len(text))
    assert not is_plainly_in("en", text, 70)
    assert not is_plainly_in("sw", text, len(text))


def test_a_word_again_and_again_tells_nothing() -> None:
    assert not detect_language(b"the of " * 100).is_sure


def test_a_few_words_of_english_in_a_script_without_spaces_tell_nothing() -> None:
    assert not detect_language(f"{'川は海に流れている。' * 30} {TEXTS['en']}".encode()).is_sure


def test_all_bytes_of_a_letter_that_ends_a_word_at_once_are_passed_over() -> None:
    assert detect_language("ℓ ℓℓ ªº".encode()).language == ""


def test_every_language_of_the_table_has_rules_and_a_name() -> None:
    for code in codes_by_long_code().values():
        assert code in language_names()
        assert rules_for(code).words != ("common",) or data()["aliases"].get(code) == "common"


def test_the_choice_is_by_the_words_where_they_are_sure_and_fit_the_script() -> None:
    finnish = choice_of_input("", [TEXTS["fi"].encode()])
    assert (finnish.rules, finnish.why, finnish.name) == (rules_for("fi"), "text", "Finnish")
    assert choice_of_input("de", [TEXTS["fi"].encode()]).why == "dump"
    unsure = choice_of_input("", [UNSURE["Swahili"].encode()])
    assert (unsure.rules.words, unsure.why, unsure.script) == (("en",), "script", "LATIN")
    sure = detect_language(TEXTS["fi"].encode())
    assert choice_of_language(sure, TEXTS["ru"]).why == "script"
    assert sure.sure >= SURE


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("fi", "fi"), ("Finnish", "fi"), ("fin", "fi"), ("fin_Latn", "fi"), ("pt-BR", "pt"), ("ENG", "en"),
        ("be-tarask", "be-tarask"), ("", None), ("xx", None), ("the", None), ("uk", "uk"),
    ],
)  # fmt: skip
def test_a_record_names_its_language_by_codes_or_names(given: str, code: str | None) -> None:
    choice = choice_of_document(given)
    assert (None if choice is None else known_code(choice.rules.language)) == code
    if choice is not None:
        assert isinstance(choice.rules, SentenceRules)
        assert not choice.needs_training
        choice.splitter()
