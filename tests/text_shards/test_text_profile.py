"""What the lines and the letters of a text are counted as, in blocks and over many inputs."""

import collections
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.sentences.rules import scripts_of
from maskmill.text_shards.text_profile import STEP, TextProfile, add_up, is_cut

TEXTS = {
    "LATIN": "The river runs to the sea.\nCafé, naïve, Łódź!\n",
    "CYRILLIC": "Річка тече до моря.\nВона довга й широка.\n",
    "DEVANAGARI": "नदी समुद्र तक बहती है।\n",
    "CJK": "河流入海。\n河很长。\n",
    "HIRAGANA": "の、は。\n",
}


def profile(text: str) -> dict[str, object]:
    counted = TextProfile()
    counted.add(text.encode())
    return counted.record


@given(st.lists(st.text("ab я字\u0928𐌰", max_size=60), max_size=20))
def test_lines_count_by_their_characters(lines: list[str]) -> None:
    counted = TextProfile()
    for line in lines:
        counted.add(f"{line}\n".encode())
    together = TextProfile()
    together.add("".join(f"{line}\n" for line in lines).encode())
    assert counted.record == together.record
    lengths = [len(line) for line in lines if line]
    steps = collections.Counter(length // STEP for length in lengths)
    assert {k: number for k, number in enumerate(counted.record["lengths"]) if number} == steps
    assert counted.record["longest"] == max(lengths, default=0)


@pytest.mark.parametrize("script", TEXTS)
def test_letters_count_for_their_script(script: str) -> None:
    found = profile(TEXTS[script])["scripts"]
    assert isinstance(found, dict)
    assert set(found) == {script}
    # Vowel signs count with the letters of their script.
    assert scripts_of(TEXTS[script])[script] <= found[script]


def test_profiles_add_up() -> None:
    lines, scripts = add_up([profile("a" * 34 + "\n"), profile("b" * 5 + "\n" + "я" * 52 + "\n\n"), profile("")])
    assert lines == {
        "lines": 3, "median_characters": 30, "longest_characters": 52, "begin_small": 3, "begin_capital": 0
    }  # fmt: skip
    assert list(scripts.items()) == [("CYRILLIC", 52), ("LATIN", 39)]
    assert add_up([profile("\n\n")]) == ({}, {})
    assert add_up([]) == ({}, {})


PROSE = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness. "
    "There were a king with a large jaw and a queen with a plain face, on the throne of England. In both countries it "
    "was clearer than crystal to the lords of the State preserves of loaves and fishes, that all was settled for ever. "
)
RUSSIAN = (
    "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. Все смешалось в доме "
    "Облонских. Жена узнала, что муж был в связи с бывшею в их доме француженкою-гувернанткой, и объявила мужу, что не "
    "может жить с ним в одном доме. "
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (textwrap.fill(PROSE * 5, 72), True),
        (textwrap.fill(PROSE * 5, 40), True),
        (textwrap.fill(RUSSIAN * 5, 72), True),
        (PROSE.replace(". ", ".\n") * 5, False),
        (textwrap.fill(PROSE * 5, 72).lower(), False),  # no letter tells where a sentence begins
        ("\n".join(["The river runs.", "iPhones sell.", "It is long.", "(an aside)", "5 of them.", "Łódź."]), False),
        ("河流入海。\n" * 9, False),
        ("", False),
    ],
)
def test_lines_that_are_cut_at_a_width_begin_with_small_letters(text: str, found: bool) -> None:
    assert is_cut(add_up([profile(f"{text}\n")])[0]) is found


def test_a_very_long_line_counts_as_long() -> None:
    lines, _ = add_up([profile("字" * 100_000 + "\n")])
    assert (lines["median_characters"] >= 1000, lines["longest_characters"]) == (True, 100_000)


def test_scripts_of_few_letters_are_left_out() -> None:
    assert add_up([profile("a" * 1000 + "я\n")])[1] == {"LATIN": 1000}
