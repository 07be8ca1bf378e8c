"""The tables of characters: their layout, and the characters in which the versions of NLTK differ."""

import numpy as np
import pytest

from maskmill.characters.classes import CharacterRules, character_tables
from maskmill.characters.kernels import characters as kernels

RULES: list[CharacterRules] = ["nltk-3.4", "nltk-3.10.4"]


def has(rules: CharacterRules, character: str, bit: int) -> bool:
    return bool(kernels.entry(character_tables(rules), ord(character)) & bit)


@pytest.mark.parametrize("rules", RULES)
def test_the_layout(rules: CharacterRules) -> None:
    tables = character_tables(rules)
    assert tables.dtype == np.int32
    assert tables[kernels.PAGES] == kernels.ASCII
    assert not tables[: kernels.PAGES].any()
    starts = tables[kernels.PAGES : kernels.ASCII]
    assert len(starts) == 0x110000 // kernels.PAGE
    assert (tables.size - kernels.ASCII) % kernels.PAGE == 0
    assert np.array_equal(np.unique(starts), np.arange(kernels.ASCII, tables.size, kernels.PAGE))
    assert character_tables(rules) is tables


def test_the_versions_differ_in_separators_and_curly_quotes() -> None:
    assert has("nltk-3.4", "\x1c", kernels.SPACE)
    assert not has("nltk-3.10.4", "\x1c", kernels.SPACE)
    for quote in "‘’“”«»":
        for bit in (kernels.CLOSER, kernels.NON_WORD):
            assert [has(rules, quote, bit) for rules in RULES] == [False, True]


@pytest.mark.parametrize("rules", RULES)
def test_white_space_is_that_of_python(rules: CharacterRules) -> None:
    separators = {} if rules == "nltk-3.4" else set("\x1c\x1d\x1e\x1f")
    expected = [c for c in map(chr, range(0x3100)) if c.isspace() and c not in separators]
    assert [c for c in map(chr, range(0x3100)) if has(rules, c, kernels.SPACE)] == expected


@pytest.mark.parametrize("rules", RULES)
def test_what_they_have_in_common(rules: CharacterRules) -> None:
    assert all(has(rules, character, kernels.SPACE) for character in " \t\n\xa0\u3000")
    assert all(has(rules, character, kernels.CLOSER) for character in "\"')]}")
    assert all(has(rules, character, kernels.NO_WORD_START) for character in '("`{[:;&#*@)}]-,')
    assert [c for c in map(chr, range(128)) if has(rules, c, kernels.CHECK)] == [",", "-", "."]
    assert [c for c in map(chr, range(128)) if has(rules, c, kernels.DIGIT)] == list("0123456789")
