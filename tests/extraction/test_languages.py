"""Facts on languages: aliases, words with English after them, how numbers are written; the data itself."""

import tomllib
from pathlib import Path
from typing import get_args

import pytest

from maskmill.extraction import languages
from maskmill.extraction.languages import WordKind, find_language

DATA = tomllib.loads((Path(languages.__file__).parent / "data" / "languages.toml").read_text(encoding="utf-8"))
KINDS: tuple[WordKind, ...] = get_args(WordKind)


def test_words_of_a_language_come_before_those_of_english() -> None:
    assert find_language("de").words("file") == ("Datei", "Bild", "File", "Image")
    assert find_language("de").words("redirect") == ("WEITERLEITUNG", "REDIRECT")
    assert find_language("xx").words("redirect") == ("REDIRECT",)


@pytest.mark.parametrize(
    ("code", "data_code", "redirect"),
    [
        ("nb", "no", "OMDIRIGERING"),
        ("simple", "en", "REDIRECT"),
        ("be-x-old", "be-tarask", "ПЕРАНАКІРАВАНЬНЕ"),
        # A variant without data of its own keeps its code and takes the words of its language.
        ("zh-hans", "zh-hans", "重定向"),
        ("xx-yy", "xx-yy", "REDIRECT"),
    ],
)
def test_codes_that_a_wiki_goes_by(code: str, data_code: str, redirect: str) -> None:
    language = find_language(code)
    assert language.code == data_code
    assert language.words("redirect")[0] == redirect


@pytest.mark.parametrize(
    ("code", "separators", "group_from"),
    [
        ("en", (",", "."), 4),
        ("de", (".", ","), 4),
        ("af", ("\u00a0", ","), 5),
        ("fa", ("٬", "٫"), 4),
        ("xx", (",", "."), 4),
    ],
)
def test_how_numbers_are_written(code: str, separators: tuple[str, str], group_from: int) -> None:
    language = find_language(code)
    assert (language.group_separator, language.decimal_separator) == separators
    assert language.group_from == group_from


def test_variants_start_with_the_one_to_show() -> None:
    assert find_language("zh").variants[:2] == ("zh-hans", "zh-cn")
    assert find_language("en").variants == ()


def test_prefixes_and_classes_of_every_wiki() -> None:
    assert {"de", "zh-min-nan", "ltg"} <= set(languages.interlanguage_prefixes())
    assert {"wikt", "commons"} <= set(languages.interwiki_prefixes())
    assert {"navbox", "infobox", "noprint"} <= set(languages.hidden_classes())


def test_every_key_of_the_data_is_one_that_is_read() -> None:
    numbers = {"group_separator": str, "decimal_separator": str, "group_from": int}
    for code, words in DATA["language"].items():
        for key, value in words.items():
            if key in numbers:
                assert isinstance(value, numbers[key]), (code, key)
            else:
                assert key == "variants" or key in KINDS, (code, key)
                assert value, (code, key)
                assert all(isinstance(word, str) and word == word.strip() and word for word in value), (code, key)
    # English titles of lists start alike, and its stub templates end alike.
    assert set(KINDS) - {"list_title_end", "stub_start", "literature"} <= set(DATA["language"]["en"])


def test_an_alias_is_neither_a_language_nor_leads_to_another_alias() -> None:
    aliases = DATA["aliases"]
    assert set(aliases) & set(DATA["language"]) == set()
    assert set(aliases) & set(aliases.values()) == set()
