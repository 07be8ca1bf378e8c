"""Templates expanded with a dump's own definitions: MediaWiki's results, limits, hostile pages."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.template_expanders import expand_page, make_expander
from properties import tries

from maskmill.extraction.preprocessor import parse

TEMPLATES = {
    "Hello": "Hello, {{{1|world}}}!",
    "Named": "{{{name}}} is {{{age|unknown}}}",
    "Outer": "<{{hello|{{{1}}}}}>",
    "Redirected": "#REDIRECT [[Template:Hello]]",
    "Documented": "text<noinclude>docs {{hello}}</noinclude><includeonly>, {{{1}}}</includeonly>",
    "Only": "around<onlyinclude>inside</onlyinclude>around",
    "Branch": "{{#if:{{{1|}}}|yes {{{1}}}|no}}",
    "Choice": "{{#switch:{{{1}}}|a|b=first|c=second|#default=other}}",
    "Loop": "x{{Loop}}",
    "Double": "{{{1}}}{{{1}}}",
    "Ruled": "never looked at",
    "Module": "a{{#invoke:Thing|main}}b",
    "Around": "({{Module|x}})",
    "Local name": "#REDIRECT [[Template:Ruled]]",
    "Known": "#REDIRECT [[Template:Own]]",
    "Own": "never looked at",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{Hello}}", "Hello, world!"),
        ("{{hello|you}}", "Hello, you!"),
        ("{{hello|1=you}}", "Hello, you!"),
        ("{{ Template:hello | you }}", "Hello,  you !"),
        ("{{taiss:hello|you}}", "Hello, you!"),
        ("{{Outer|you}}", "<Hello, you!>"),
        ("{{Redirected|you}}", "Hello, you!"),
        ("{{named|name= A |age=3}}", "A is 3"),
        ("{{Named|name=A}}", "A is unknown"),
        ("{{Documented|more}}", "text, more"),
        ("{{Only}}", "inside"),
        ("{{Branch|x}} {{Branch}}", "yes x no"),
        ("{{Choice|a}}{{Choice|c}}{{Choice|z}}", "firstsecondother"),
        ("{{hello|[[a|b]]}}", "Hello, [[a|b]]!"),
        ("{{hello|<nowiki>}}|</nowiki>}}", "Hello, <nowiki>}}|</nowiki>!"),
        ("{{hello|<!-- | -->you}}", "Hello, you!"),
        ("{{hello|<ref>you}}", "Hello, <ref>you!"),
        ("<ref a=b>{{hello}}</ref>", "<ref a=b>{{hello}}</ref>"),
        ("{{hello|{{ruled|{{hello}}|a=b}}}}", "Hello, {{ruled|Hello, world!|a=b}}!"),
        # The extractor asks for one that has a rule if this does not describe the call.
        ("{{ruled|x}}", "never looked at"),
        # The extractor may keep the argument of what cannot be expanded.
        ("{{Module}} {{Module|{{Hello}}|b=c}}", "{{Module}} {{Module|Hello, world!|b=c}}"),
        ("{{Around}}", "({{Module|x}})"),
        ("{{No such template|a}} {{no {{lc:X}}|{{hello}}}}", "{{No such template|a}} {{no x|Hello, world!}}"),
        ("{{Nowhere:x|a}} {{#nothing:x}}", "<!-- --> <!-- -->"),
        # Redirects say that names mean one template.
        ("{{Local name|a}}", "{{Ruled|a}}"),
        ("{{Own|a}}", "{{known|a}}"),
        ("{{#expr: 2 * (3 + 4) ^ 2}}", "98"),
        ("{{#expr: 7 / 2 round 0}}", "4"),
        ("{{#iferror: {{#expr: 1 / 0}} | bad | good }}", "bad"),
        ("{{#ifexpr: 1 > 2 | a | b}}", "b"),
        ("{{#time: j F Y | 2001-09-11}}", "11 September 2001"),
        ("{{CURRENTYEAR}}-{{CURRENTMONTH}}-{{CURRENTDAY2}}", "2020-02-03"),
        ("{{PAGENAME}}", "Page"),
        ("{{lc:ABC}}{{ucfirst:abc}}{{padleft:7|3}}", "abcAbc007"),
        ("{{#replace:aXbX|X|--}}", "a--b--"),
        ("{{{1|left}}} {{{2}}}", "left <!-- -->"),
        ("a {{b c", "a {{b c"),
        ("a }} b | c = d [[e]]", "a }} b | c = d [[e]]"),
    ],
)
def test_what_a_page_becomes(text: str, expected: str) -> None:
    made = make_expander(TEMPLATES)
    assert expand_page(made, "Page", text) == expected
    assert made.limited == 0


def test_titles_of_a_case_sensitive_wiki() -> None:
    names = {"word": "small", "Word": "large"}
    assert expand_page(make_expander(names, first_letter=False), "Page", "{{word}} {{Word}}") == "small large"
    assert expand_page(make_expander(names), "Page", "{{word}} {{Word}}") == "large large"


# ---- limits: counted, and the same on every machine


def test_a_loop_ends_and_is_counted() -> None:
    made = make_expander(TEMPLATES, depth=5)
    assert expand_page(made, "Page", "a {{Loop}} b {{hello}}") == "a xxxxx b Hello, world!"
    assert made.limited == 1
    assert expand_page(made, "Page", "{{hello}}") == "Hello, world!"
    assert made.limited == 1


def test_past_the_limit_of_size_calls_give_nothing() -> None:
    made = make_expander(TEMPLATES, characters=100)
    assert expand_page(made, "Page", "a {{Double|" + "x" * 80 + "}} b {{hello}} c") == "a <!-- --> b <!-- --> c"
    assert made.limited == 1


def test_the_limit_of_steps_does_not_depend_on_other_pages() -> None:
    templates = {"Long": "<!--" + "x" * 5000 + "-->y", "Short": "z"}
    page = "{{Long}}" * 8
    alone = make_expander(templates, steps=300)
    warm = make_expander(templates, steps=300)
    expand_page(warm, "Other", "{{Long}}{{Short}}")
    assert expand_page(alone, "Page", page) == expand_page(warm, "Page", page) == "y" * 5 + "<!-- -->" * 3
    assert (alone.limited, warm.limited) == (1, 1)


def test_a_definition_that_grows_without_end_is_cut_off() -> None:
    # 2^60 letters, if it were let.
    templates = {f"D{i}": f"{{{{D{i + 1}|{{{{{{1}}}}}}{{{{{{1}}}}}}}}}}" for i in range(60)} | {"D60": "{{{1}}}"}
    made = make_expander(templates)
    assert len(expand_page(made, "Page", "{{D0|x}}")) < 100
    assert made.limited == 1


def test_a_replacement_is_counted_before_it_is_made() -> None:
    made = make_expander({"A": "x" * 900_000})
    assert expand_page(made, "Page", "{{#replace:{{A}}|x|{{A}}}}") == "<!-- -->"
    assert made.limited == 1


@pytest.mark.parametrize("nest", ["{{Double|", "{{#if:a|", "{{#switch:a|a=", "{{#ifexpr:1|", "{{{x|", "{{lc:"])
def test_the_depth_is_far_from_pythons(nest: str) -> None:
    # Runners call us from stacks of any depth: it must be our limit that ends a page, never Python's.
    def call(frames: int) -> str:
        return call(frames - 1) if frames else made.expand("Page", [text])[0].text

    made = make_expander(TEMPLATES)
    text = nest * 500 + "a" + ("}}}" if nest == "{{{x|" else "}}") * 500
    shallow = made.expand("Page", [text])[0].text
    assert call(max(0, 350 - len(inspect.stack(0)))) == shallow
    assert made.limited == 2


# ---- hostile pages


@pytest.mark.builds
@pytest.mark.parametrize(
    "piece",
    [
        "<ref>",
        "<ref",
        "<nowiki ",
        "{{",
        "}}",
        "{{{",
        "[[",
        "{{a|",
        "|",
        "=",
        "<!--",
        "<noinclude>",
        "<onlyinclude>",
        "{{#if:",
    ],
)
def test_hostile_pages_come_through(piece: str) -> None:
    # Quadratic time would be a minute each.
    text = piece * (200_000 // len(piece))
    parse(text)
    made = make_expander({"A": text, "B": "{{A}}"})
    expand_page(made, "Page", "{{A}}{{B}}")
    expand_page(made, "Page", text)


@tries(300)
@given(
    st.lists(
        st.sampled_from(
            ["{{", "}}", "{{{", "}}}", "|", "=", "[[", "]]", "a", "1", " ", "#if:", "#switch:", "#expr:", "#time:Y",
             "-", "#replace:", "#sub:", "padleft:", "hello", "loop", "<ref>", "</ref>", "<!--", "-->", "<nowiki>", "e9"]
        ),
        max_size=40,
    )
)  # fmt: skip
def test_any_page_is_expanded_and_twice_the_same(pieces: list[str]) -> None:
    text = "".join(pieces)
    first = expand_page(make_expander(TEMPLATES), "Page", text)
    made = make_expander(TEMPLATES)
    expand_page(made, "Other", "{{hello}}{{loop}}")
    assert expand_page(made, "Page", text) == first


def test_a_template_that_links_to_an_english_one_with_a_rule_has_this_rule() -> None:
    expander = make_expander(
        {
            "Zynoms": "local {{{1}}}<noinclude>[[lv:Veidne:X]] [[en:Template:Known]]</noinclude>",
            "Cyts": "#REDIRECT [[Taiss:Zynoms]]",
            "Svešs": "foreign {{{1}}}<noinclude>[[en:Template:Nobody's]] [[en:Template:Known/doc]]</noinclude>",
        }
    )
    assert expand_page(expander, "P", "{{zynoms|a}} {{Cyts|b}}") == "{{Known|a}} {{Known|b}}"
    assert expand_page(expander, "P", "{{svešs|c}}") == "foreign c"
