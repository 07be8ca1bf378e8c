"""Parser functions and variables, in pages that call them: MediaWiki's documented results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.template_expanders import expand_page, make_expander
from properties import tries

# An expansion of Loop meets the limit of depth, which is counted.
TEMPLATES = {"Loop": "{{Loop}}", "One": "1", "Case": "b"}


def expand(text: str, title: str = "Page") -> str:
    return expand_page(make_expander(TEMPLATES), title, text)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{{#if: a | yes | no}}", "yes"),
        ("{{#if: | yes | no}}", "no"),
        ("{{#if:\n\n| yes | no}}", "no"),
        ("{{#if: a }}{{#if: a || no}}x", "<!-- --><!-- -->x"),
        ("{{#ifeq: 01 | 1 | same | other}}", "same"),
        ("{{#ifeq: 1e3 | 1000 | same | other}}", "same"),
        ("{{#ifeq: foo | Foo | same | other}}", "other"),
        ("{{#ifeq: | | same | other}}", "same"),
        ("{{#iferror: {{#expr: 1 + 2 }} | error | correct }}", "correct"),
        ("{{#iferror: {{#expr: 1 + x }} | error | correct }}", "error"),
        ("{{#iferror: {{#expr: 1 + 2 }} | error }}", "3"),
        ("{{#iferror: {{#ifexpr: 1 / 0 }} | error }}", "error"),
        ("{{#ifexist: Any page | there | not there}}", "there"),
        ("{{#ifexpr: | yes | no}}", "no"),
        ("{{#ifexpr: 1 > 0 | yes | no}}", "yes"),
        ("{{#ifexpr: (-1) * 0 | yes | no}}", "no"),
        ("{{#expr:}}x", "<!-- -->x"),
        ("{{#switch: b | a = 1 | b = 2 | 3}}", "2"),
        ("{{#switch: {{Case}} | a = 1 | {{Case}} = 2 | 3}}", "2"),
        ("{{#switch: c | a = 1 | b = 2 | 3}}", "3"),
        ("{{#switch: a | a | b = 2 | 3}}", "2"),
        ("{{#switch: 1.0 | 1 = one | 2 = two}}", "one"),
        ("{{#switch: c | #default = 4 | a = 1}}", "4"),
        ("{{#switch: c | #default = 4 | a = 1 | 3}}", "3"),
        ("{{#switch: | = empty | #default = else}}", "empty"),
        ("{{#switch: c | a = 1}}x", "<!-- -->x"),
    ],
)
def test_conditions(call: str, expected: str) -> None:
    assert expand(call) == expected


def test_only_the_branch_that_is_taken_is_expanded() -> None:
    expander = make_expander(TEMPLATES)
    page = "{{#if:|{{Loop}}|a}}{{#ifeq:1|2|{{Loop}}|b}}{{#switch:c|d={{Loop}}|c=c|{{Loop}}}}{{#ifexpr:1|d|{{Loop}}}}"
    assert expand_page(expander, "Page", page) == "abcd"
    assert expander.limited == 0


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{{#time: Y-m-d H:i:s}}", "2020-02-03 00:00:00"),
        ("{{#time: j F Y | 2001-09-11}}", "11 September 2001"),
        ("{{#time: D, d M y | 1988-02-28 23:00}}", "Sun, 28 Feb 88"),
        ("{{#time: l N w z n | 2000-12-31}}", "Sunday 7 0 365 12"),
        ("{{#time: U | 1970-01-02}}", "86400"),
        ('{{#time: "Year" Y}}', "Year 2020"),
        ("{{#time: Y | 2001-02-30}}x", "<!-- -->x"),
        ("{{#time: Y | next week}}x", "<!-- -->x"),
        ("{{#timel: Y}}", "2020"),
    ],
)
def test_time(call: str, expected: str) -> None:
    assert expand(call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{{lc: ÀB c}}", "àb c"),
        ("{{uc: Éa}}", "ÉA"),
        ("{{lcfirst: ABC}}", "aBC"),
        ("{{ucfirst: éa}}", "Éa"),
        ("{{ LC : AB }}", "ab"),
        ("{{padleft: 7 | 3}}", "007"),
        ("{{padleft: abc | 8 | xy}}", "xyxyxabc"),
        ("{{padright: abc | 6 | -}}", "abc---"),
        ("{{padleft: abc | 2}}", "abc"),
        ("{{padleft: abc | many}}", "abc"),
        ("{{#len: žlina }}", "5"),
        ("{{#pos: Žmržlina | žlina}}", "3"),
        ("{{#pos: abc | x}}x", "<!-- -->x"),
        ("{{#sub: Icecream | 3}}", "cream"),
        ("{{#sub: Icecream | 0 | 3}}", "Ice"),
        ("{{#sub: Icecream | -3}}", "eam"),
        ("{{#sub: Icecream | -3 | 2}}", "ea"),
        ("{{#sub: Icecream | 3 | 3}}", "cre"),
        ("{{#replace: aXbX | X | --}}", "a--b--"),
        ("{{#replace: aXb | | y}}", "aXb"),
        ("{{#tag: b | text}}", "<b>text</b>"),
        ("{{#if: a | {{#vardefine: x | 1}}({{#var: x}}, {{#var: y | 2}}){{#vardefineecho: x | 3}} }}", "(1, 2)3"),
        ("{{#language: de | en}} {{#language: de}} {{#language: xx-none}}", "German Deutsch xx-none"),
        ("{{plural: 1 | page | pages}}", "page"),
        ("{{plural: 2 | page | pages}}", "pages"),
        ("{{plural: 2 | pages}}", "pages"),
        ("{{formatnum: 1,234 | R}}", "1234"),
        ("{{formatnum: {{One}} }}", "{{formatnum:1}}"),
        ("{{gender: Someone | he | she | they}}", "they"),
        ("{{gender: Someone | he | she}}", "he"),
        ("{{grammar: genitive | word}}", "word"),
        ("{{urlencode: a b}} {{int: sidebar}}", "a b <!-- -->"),
        ("{{#invoke: Module | main}} {{pagesize: Page}}", "{{#invoke: Module | main}} 0"),
    ],
)
def test_text(call: str, expected: str) -> None:
    assert expand(call) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "A/b/c/d"),
        ("|1", "A"),
        ("|2", "A/b"),
        ("|-3", "A"),
        ("||1", "A/b/c/d"),
        ("||2", "b/c/d"),
        ("||-2", "c/d"),
        ("|1|2", "b"),
        ("|1|-2", "c"),
        ("|x", "A/b/c/d"),
    ],
)
def test_titleparts(arguments: str, expected: str) -> None:
    assert expand("{{#titleparts: A/b/c/d" + arguments + "}}") == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("{{PAGENAME}}", "The page/of/now"),
        ("{{FULLPAGENAMEE}}", "The_page/of/now"),
        ("{{BASEPAGENAME}}", "The page/of"),
        ("{{SUBPAGENAME}}", "now"),
        ("{{ROOTPAGENAME}}", "The page"),
        ("{{NAMESPACE}}{{NAMESPACENUMBER}}", "<!-- -->0"),
        ("{{SITENAME}}", "Wikipedia"),
        ("{{!}}{{=}}", "|="),
        ("{{CURRENTYEAR}}-{{CURRENTMONTH}}-{{CURRENTDAY2}}", "2020-02-03"),
        ("{{LOCALMONTH1}} {{LOCALDAY}} {{CURRENTDOW}} {{CURRENTWEEK}}", "2 3 1 6"),
        ("{{CURRENTTIME}} {{LOCALHOUR}} {{CURRENTTIMESTAMP}}", "00:00 00 20200203000000"),
        ("{{BASEPAGENAME: A/b/c}} {{subpagename: A/b/c}} {{pagename: Other}}", "A/b c Other"),
        ("{{ns: 0}}{{ns: Talk}}", "<!-- -->Talk"),
    ],
)
def test_variables_and_titles(call: str, expected: str) -> None:
    assert expand(call, title="The page/of/now") == expected


words = st.text("abcé 1", max_size=12).map(str.strip)


@given(text=words, width=st.integers(-5, 30), filling=st.sampled_from(["", "0", "xy"]))
@tries(200)
def test_padding_fills_up_to_the_width(text: str, width: int, filling: str) -> None:
    left = expand(f"<{{{{padleft:{text}|{width}|{filling}}}}}>").replace("<!-- -->", "")
    right = expand(f"<{{{{padright:{text}|{width}|{filling}}}}}>").replace("<!-- -->", "")
    assert left.endswith(text + ">")
    assert right.startswith("<" + text)
    assert len(left) - 2 == len(right) - 2 == max(width, len(text))


def test_padding_has_a_bound() -> None:
    assert len(expand("{{padleft:a|100000|xyz}}")) == 500


@given(text=words, start=st.integers(0, 12), length=st.integers(1, 12))
@tries(200)
def test_a_substring_is_that_of_python(text: str, start: int, length: int) -> None:
    found = expand(f"{{{{#sub:{text}|{start}|{length}}}}}").replace("<!-- -->", "")
    assert found == text[start : start + length]
