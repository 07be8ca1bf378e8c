"""Pages whose calls in lines of text are expanded by the dump's own definitions: which, and what becomes of them."""

import functools
from typing import Any, Literal

import pytest

from maskmill.extraction.expanded_text import TextFilter
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_definitions import MODULE_MARK
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site
from maskmill.storage import completions

TEMPLATES = {
    "Word": "word {{{1|}}}",
    "Nowrap": "defined {{{1}}}",
    "Own nowrap": "#REDIRECT [[Template:Nowrap]]",
    "Infobox": "{| class=infobox\n| {{{1}}}\n|}",
    "Box": "<div>{{{1}}}</div>",
    "Category": "[[Category:Towns]]<!-- sorted -->",
    "Failing": "{{#invoke:Failing|f}}",
    "Error": '<strong class="error">wrong</strong>',
    "Inner": "({{nowrap|{{{1}}} km}})",
    "Own quote": "a\n\nb",
    "Own list": "* a\n* b",
    "Endless": "x{{endless}}",
    "Two lines": "one\ntwo\n",
    "Broken": "one<br />\n(two)<br>",
    "New line": "<br clear=all>",
    "Medals": "Medals (勲章<span><sup>[[:w:Help:Japanese|<b>?</b>]]</sup></span>)",
    "Doubt": "{{{1|}}}<sup>&#91;''[[Project:Sources|which?]]''&#93;</sup>",
    "Cite": "<sup>''&#91;citation&nbsp;needed&#93;''</sup>",
    "Raised link": "<sup>[[Carbon-14|14]]</sup>C",
    "Lang-de": "Word: {{{1}}}",
    "Lang-chr": "Cherokee word: {{{1}}}",
    "Convert": "many miles",
    MODULE_MARK + "Failing": "return { f = function() error('x') end }",
    MODULE_MARK + "Real": "return { f = function(frame) return 'real ' .. frame:getParent().args[1] end }",
    "Real": "{{#invoke:Real|f}}",
    MODULE_MARK: "there are modules",
}


def find(name: bytes) -> bytes | None:
    text = TEMPLATES.get(name.decode())
    return None if text is None else text.encode()


@functools.cache
def extractor(mode: Literal["unknown", "all"]) -> WikitextExtractor:
    return WikitextExtractor(Site(), WikitextOptions(expand_templates=mode), find)


def extracted(text: str, mode: Literal["unknown", "all"] = "unknown") -> tuple[str, dict[str, int]]:
    """The text of a page, and what was counted."""
    plain = extractor(mode).extract(b"Page", text.encode()).decode()
    return plain, extractor(mode).take_template_counts()


@pytest.mark.parametrize(
    ("text", "unknown", "everything"),
    [
        ("It is {{word|x}} here.", "It is word x here.", "It is word x here."),
        ("It is {{real|x}} here.", "It is real x here.", "It is real x here."),
        ("It is {{nowrap|3 km}} long.", "It is 3 km long.", "It is defined 3 km long."),
        ("It is {{own nowrap|3 km}} long.", "It is 3 km long.", "It is defined 3 km long."),
        ("It is {{inner|3}} long.", "It is (3 km) long.", "It is (defined 3 km) long."),
        ("It is {{nowrap|a {{word|x}}}} here.", "It is a word x here.", "It is defined a word x here."),
        # The rule does not describe such a call.
        ("It is {{convert|3|mi|disp=number}} long.", "It is many miles long.", "It is many miles long."),
        # The argument shows if the definition gives nothing that can be used.
        ("It is {{failing|some words}} here.", "It is some words here.", "It is some words here."),
        ("It is {{nowhere|some words}} here.", "It is some words here.", "It is some words here."),
        ("It is {{nowhere|{{word|x}}}} here.", "It is word x here.", "It is word x here."),
        # What is not text shows nothing.
        ("It is {{box|some words}} here.", "It is here.", "It is here."),
        ("It is {{category|some words}} here.", "It is here.", "It is here."),
        ("It is {{error|some words}} here ({{error}}).", "It is here.", "It is here."),
        ("It is {{own quote|x}}{{own list|x}} here.", "It is here.", "It is here."),
        ("It is {{two lines}} here.", "It is one two here.", "It is one two here."),
        ("It is {{broken}} here.", "It is one (two) here.", "It is one (two) here."),
        ("It is{{new line}}here.", "It is\nhere.", "It is\nhere."),
        ("It is {{medals}} here.", "It is Medals (勲章) here.", "It is Medals (勲章) here."),
        ("It is {{doubt|so}} here{{doubt}}.", "It is so here.", "It is so here."),
        ("It is so{{cite}} here{{cite}}.", "It is so here.", "It is so here."),
        ("It is {{raised link}} here.", "It is 14C here.", "It is 14C here."),
        # The rule of the outer call gives nothing without what the definition of the inner one gives.
        ("It is {{lang-de|{{word|x}}}} here.", "It is German: word x here.", "It is Word: word x here."),
        # A rule that does not know the language's name, and its own definition.
        ("It is {{lang-chr|Galigi}} here.", "It is Cherokee word: Galigi here.", "It is Cherokee word: Galigi here."),
        ("It is {{lang-bug|Texas}} here.", "It is Texas here.", "It is Texas here."),
        ("It is {{#if:x|{{word|x}}|y}} here.", "It is word x here.", "It is word x here."),
        ("It is {{#expr:3*4}} here.", "It is 12 here.", "It is 12 here."),
    ],
)
def test_calls_in_lines_of_text(text: str, unknown: str, everything: str) -> None:
    assert (extracted(text)[0], extracted(text, "all")[0]) == (unknown, everything)


@pytest.mark.parametrize("mode", ["unknown", "all"])
@pytest.mark.parametrize(
    "text",
    [
        "{{infobox|{{word|x}}}}\nIt is old.",
        "{{word|x}}\n\nIt is old.",
        "It is old.<ref>{{word|x}}</ref>",
        "It is old.\n{| \n| {{word|x}}\n|}",
        "It is old.\n\n== {{word|x}} ==",
        "It is old.\n\n== References ==\nIt is {{word|x}}, and {{nowrap|more}}.",
        "It is old.\n* {{word|x}}\n",
        "It is old.<!-- {{word|x}} --><nowiki></nowiki>",
        "It is old.{{nowrap|}}",
    ],
)
def test_what_is_dropped_is_never_expanded(text: str, mode: Literal["unknown", "all"]) -> None:
    plain, counts = extracted(text, mode)
    assert plain == "It is old."
    assert not {"expanded_calls", "calls_expanded_to_nothing"} & set(counts)


def test_what_becomes_of_calls_is_counted() -> None:
    page = "It is {{word|x}}, {{box|y}}, {{failing|some words}} and {{nowhere|other words}} {{nowrap|here}}."
    assert extracted(page)[1] == {
        "unknown_calls": 2,
        "kept_arguments": 2,
        "known_calls": 1,
        "expanded_calls": 1,
        "calls_expanded_to_nothing": 1,
        "failed_modules": 1,
    }


def test_the_report_says_what_the_definitions_give() -> None:
    options = WikitextOptions(expand_templates="unknown", report_templates=True)
    extractor = WikitextExtractor(Site(), options, find)
    extractor.extract(
        b"P", b"It is {{inner|3}}, {{box|y}}, {{failing|x y}}, {{nowhere|x y}}, {{inner|4}}, {{nowrap|b}} so."
    )
    given = {template.name: (template.calls, template.gives) for template in extractor.take_unknown_templates()}
    assert given == {
        "Inner": (2, "(3 km)"),
        "Box": (1, "(no text)"),
        "Failing": (1, "(its module failed)"),
        "Nowhere": (1, "(no definition)"),
    }


def test_a_page_that_meets_a_limit_counts_once_beside_a_report() -> None:
    extractor = WikitextExtractor(Site(), WikitextOptions(expand_templates="unknown", report_templates=True), find)
    assert extractor.extract(b"P", b"It is {{endless}} here.") == b"It is " + b"x" * 100 + b" here."
    assert extractor.limited_pages == 1


def test_links_to_files_and_categories_of_the_site_are_no_text() -> None:
    of_site = TextFilter(Site(namespaces={6: ("Fails", "File"), 14: ("Kategoreja", "Category")}))
    text = "[[Fails:a b.png|thumb]][[kategoreja:Mīsti]]<templatestyles src='a' />\nx [[Kategorejys]]\n"
    assert of_site.text_of(text) == "x [[Kategorejys]]"
    assert of_site.text_of("class=" * 5000) == "class=" * 5000  # at once
    assert of_site.text_of("<span class=tooltip>[[|]]<span>[[File:a.png|link=]]</span></span>") == ""


@pytest.mark.parametrize(("given", "kept"), [(True, "unknown"), (False, False), ("off", False), ("all", "all")])
def test_the_option_as_a_switch_means_unknown(given: Any, kept: object) -> None:
    assert WikitextOptions(expand_templates=given).expand_templates == kept


def test_what_is_kept_of_runs_without_expansion_is_found_as_before() -> None:
    # The option was a switch then.
    assert '"expand_templates": false' in completions.canonical_json(WikitextOptions())
