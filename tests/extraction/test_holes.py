"""Holes: which places of a page the text lacks something at, and which sentences are dropped for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.extractors import extractor_of
from properties import tries

from maskmill.extraction.holes import drop_broken, without_marks
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_definitions import MODULE_MARK
from maskmill.extraction.wikitext import WikitextExtractor
from maskmill.inputs.site import Site
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.sentences.rules import rules_for


def split(wikitext: str, language: str = "en", extractor: WikitextExtractor | None = None) -> tuple[str, list[str]]:
    """The sentences of a page, and those that were dropped."""
    text, holes = (extractor or extractor_of(language)).extract_with_holes(b"Title", wikitext.encode())
    whole, broken = drop_broken(text, holes, SentenceSplitter(rules_for(language)).split_lines(text))
    return whole.decode(), [sentence.decode() for sentence in broken]


BROKEN = {
    "a call": "The share rose to {{xa|b|c}} million in May.",
    "a call without arguments": "The share rose to {{xa}} million in May.",
    "before a comma": "The share rose to {{xa|b|c}}, and fell in May.",
    "a call at the end": "The share rose to {{xa|b|c}}.",
    "a call and a reference at the end": "The share rose to {{xa|b|c}}.<ref>d</ref>",
    "at the end of the line": "The share rose, he said: {{xa|b|c}}\n\nIt is.",
    "a small letter after it": "{{xa|b|c}} is a town in it.",
    "a parser function": "The share rose to {{#xa:b}} million in May.",
    "a database": "The share rose to {{Population GER-BE}} people in May.",
    "a call that its rule does not describe": "It is {{convert|3|mi|disp=number}} long.",
    "within what another shows": "It is {{lang|fr|{{xa|b|c}}}} in French.",
    "within a parser function": "It is {{lc:{{xa|b|c}}}} in French.",
    "within two": "It is {{nowrap|{{uc: {{ucfirst:{{xa|b|c}}}} }} km}} in French.",
    "what a number is made of": "The town had {{formatnum:{{xa|b|c}}|R}} people.",
    "first in an argument": "It is {{nowrap|{{xa|b|c}} km}} long.",
    "last in an argument": "It is {{nowrap|km {{xa|b|c}}}} long.",
    "within an element": "It is <small>{{xa|b|c}}</small> in French.",
    "within an element with attributes": 'It is <span style="a">{{xa|b|c}}</span> in French.',
    "within elements": "It is '''<b><i> ''{{xa|b|c}}'' </i></b>''' in French.",
    "within an element in a call": "It is {{nowrap|<small>{{xa|b|c}}</small> km}} in French.",
    "a key": "The town has {{xa|0105}} km² in May.",
    "a key alone": "The town {{xa|13101}} is here.",
    "within a link": "It is [[Town|{{xa|b|c}}]] in French.",
    "in quotation marks": 'The word "{{xa|b|c}}" is here.',
    "after an apostrophe": "He played for l'{{xa|b|c}} until May.",
    "in the middle of a word": "It is H{{xa|b|c}}O in May.",
    "in a bracket": "He (born in {{xa|b|c}} in May) is here.",
    "alone in the rest of a bracket": "He (born {{xa|b|c}}) is here.",
    "between brackets' words": "It ({{IPAc-en|a}} or {{IPAc-en|b}}) is here.",
    "in an item": "* The share rose to {{xa|b|c}} million in May.",
    "two": "From {{xa|b|c}} to {{xa|b|d}} it rose.",
    "a value that its rule does not know": "It cost {{inflation|US|5|1990}} in May.",
    "a drawing": "The sign <hiero>A1</hiero> is read so.",
    "a link without a label after the only word in its bracket": "They were angry (see [http://a.b/c]), he said.",
    "such a link before more": "They (cf. [http://a.b/c], p. 5) are here.",
    "such a link after a colon, at the end": "They are listed here: [http://a.b/c]",
    "such a link at the start": "[http://a.b/c] is a town in it.",
    "first in an element that holds more": 'It is <span style="a">{{xa|b|c}} metres</span> long.',
    "a comma that is named": "The fields are separated by <code>,</code> and by lines.",
    "a small picture for a word": "It is old, and today [[File:A.png|10px]] is its sign.",
    "a small picture before a comma": "The symbol [[File:A.png|thumb=B.png|8px]], of stone, is old.",
    "the value of a page below": "The version is {{xa/GIMP}}.",
    "an empty formula": r"The value <math>\mbox{}</math> is large.",
}

# Their rules show something else where the hole is kept.
DECIDED = {
    "what decides": "It is {{#if:{{xa|b|c}}|old|new}} in French.",
    "beside words of the rule": "It was {{circa|{{xa|b|c}}}} in French.",
    "one of several": "It is {{hlist|a|{{xa|b|c}}|d}} here.",
}

WHOLE = {
    "nothing is missing": "It is a town.",
    "an argument shows": "The share rose to {{xa|four}} million in May.",
    "a footnote's place": "The town{{xa|b|c}} is old{{xa}}, and large.{{xa|b|c}} It is.",
    "a footnote within elements": "The town<sup>{{xa|b|c}}</sup> and the house<b><i>{{xa|b|c}}</i></b> are old.",
    "after a break": "The town<br>{{xa|b|c}} is old.",
    "elements that do not fit": "The town</b>{{xa|b|c}}</i> and it<b>{{xa|b|c}}</i> are old.",
    "an argument that no rule reads": "The town {{lang|fr|name|{{xa|b|c}}|x={{xa|b|c}}}} is old.",
    "a year": "It won in {{xa|1998}} and {{xa|2010}}.",
    "a number with separators": "It had {{xa|12,345}} people and {{xa|84.390}} houses.",
    "after a reference": "The town<ref>a</ref>{{xa|b|c}} is old.",
    "a note to editors": "The town {{xa|date=May 2020}} is {{xa|date=May 2020|reason=a}} old.",
    "a note without arguments at the end": "The town is old {{xa}}. It is {{xa}}",
    "maintenance": "The town {{citation needed}} is old.",
    "a reference": "The town <ref>a</ref> is old.",
    "a citation in a bracket": "The town is old {{ref harvard|a1961|A 1961|b}}.",
    "a link without a label where a footnote stands": "The town [http://a.b/c] is old [http://a.b/c]. It is.[http://a.b/c]",
    "such a link after what a bracket says": "The town (since 1979 [http://a.b/c]) is old (of stones [http://a.b/c]).",
    "such a link in a bracket with its label": "The town is old (source: [http://a.b/c]): [http://a.b/c] it is.",
    "a link with a label": "They (see [http://a.b/c it]) are listed here: [http://a.b/c there]",
    "a comment": "The town <!-- a --> is old.",
    "a category, an image": "The town [[Category:A]] [[File:A.png|20px]] is old.",
    "pictures beside names": "The [[File:A.png|20px]] [[Town]], [[File:A.png|99px|left]] it [[File:A.png|100px]] is.",
    "a comma in bold letters": "The town<b>,</b> which <b>, in the north,</b> is old.",
    "a bracket that goes": "The town ({{xa|b|c}}) is old.",
    "a bracket with a value that its rule does not know": "It cost $5 (${{inflation|US|5|1990}} today) in May.",
    "a part of a bracket": "The town ({{xa|b|c}}; old) is (old, {{xa|b|c}}) here.",
    "a part of a bracket with its label": "The town (Greek: {{xa|b|c}}, old) is here.",
    "the end of a bracket": "The town (an old name {{xa|b|c}}) is here.",
    "between sentences": "It is. {{xa|b|c}} Old it is. {{xa|b|c}}",
    "at the start": "{{xa|b|c}} The town is old.",
    "a line of its own": "The town is old.\n\n{{xa|b|c}}\n\nIt is.",
    "a formula of its own": "The town is\n: <math>\\mbox{}</math>\nold.",
    "an argument that does not show": "The town {{citation needed|{{xa|b|c}}}} is old.",
    "control characters": "The town \x03 is\x03 old.",
}


@pytest.mark.parametrize("name", BROKEN | DECIDED)
def test_a_sentence_with_a_hole_is_dropped(name: str) -> None:
    whole, broken = split(f"Before it.\n\n{(BROKEN | DECIDED)[name]}\n\nAfter it.")
    assert len(broken) == 1
    assert whole.replace("It is.\n", "") == "Before it.\nAfter it.\n"


@pytest.mark.parametrize("name", WHOLE)
def test_a_sentence_without_one_is_kept(name: str) -> None:
    assert split(WHOLE[name])[1] == []


@pytest.mark.parametrize(
    ("language", "wikitext", "broken"),
    [
        ("ja", "人口は{{甲|b|c}}人である。町は古い。", ["人口は人である。"]),
        ("ja", "町{{甲|b|c}}は古い。", ["町は古い。"]),
        ("ja", "人口は{{formatnum:{{町人口}}}}人である。", ["人口は人である。"]),
        ("ja", "人口は{{甲|13101}}人である。", ["人口は人である。"]),
        ("fr", "Il compte {{nombre|{{xa|b|c}}|habitants}} en mai.", ["Il compte en mai."]),
        ("nl", "Er wonen {{formatnum:{{inwoners nu}}}} mensen.", ["Er wonen mensen."]),
        ("pt", "Tem {{formatnum: {{xa}} }} habitantes e {{xa|0105}} casas.", ["Tem habitantes e casas."]),
        ("fa", "شهر {{الف|۱۳۱۰۱}} نفر دارد.", ["شهر نفر دارد."]),
        ("ja", "町は古い{{甲|b|c}}。{{甲|b|c}}次の町{{甲|b|c}}、古い町。", []),
        ("ja", "通称「{{甲|b|c}}」である。", ["通称である。"]),
        ("ja", "町（{{甲|b|c}}）は古い。", []),
        ("ja", "通称 {{Audio|a.ogg||de|b}}。町は古い。", ["通称。"]),
        ("zh", "人口为{{甲|b|c}}人。", ["人口为人。"]),
        ("it", "Andò dall'{{calcio xa|N}} alla {{calcio xb|N}}. Poi vinse.", ["Andò dall' alla."]),
        ("fr", "Né à {{xa|b|c}} en 1990.", ["Né à en 1990."]),
        ("ru", "Население {{xa|b|c}} человек.", ["Население человек."]),
        ("ru", "{{xa|b|c}} родился в мае. Он стар.", ["родился в мае."]),
    ],
)
def test_languages(language: str, wikitext: str, broken: list[str]) -> None:
    assert [sentence.replace("  ", " ") for sentence in split(wikitext, language)[1]] == broken


def test_only_the_sentence_with_the_hole_goes() -> None:
    whole, broken = split("It is old. It rose to {{xa|b|c}} million. It is large.\n\nIt is {{xa|b|c}} long.")
    assert whole == "It is old.\nIt is large.\n"
    assert broken == ["It rose to million.", "It is long."]


def test_none_is_dropped_where_holes_are_kept() -> None:
    page = "\n\n".join(BROKEN.values())
    text, holes = extractor_of(holes="keep").extract_with_holes(b"Title", page.encode())
    assert holes == ()
    assert text == extractor_of().extract(b"Title", page.encode())


TEXT = [
    *"()“”[]/5$。、「」（）'",
    '"',
    " ",
    "  ",
    "\n",
    "\n\n",
    "* ",
    "word",
    "two words ",
    ", ",
    ". ",
    "; ",
    ": ",
    "日本",
]
MARKUP = [
    "{{xa", "|", "}}", "{{convert}}", "{{lang|fr|", "<ref>a</ref>", "<math></math>", "<hiero>a</hiero>", "[[Town]]",
    "[[File:A.png]]", "IPA: ", "{{IPA-en|a}}", "{{inflation|US|5|1990}}",
]  # fmt: skip
PIECES = st.sampled_from([*TEXT, *MARKUP])
CALLS = st.sampled_from(["{{xa|b|c}}", "{{xa}}", "{{lang|fr|{{xa|b|c}}}}", "{{nowrap|5 {{xa|b|c}} km}}"])


@tries(1000)
@given(st.lists(st.one_of(PIECES, CALLS), max_size=25).map("".join))
def test_a_hole_changes_no_byte_of_whole_sentences(wikitext: str) -> None:
    text, holes = extractor_of().extract_with_holes(b"Title", wikitext.encode())
    assert list(holes) == sorted(holes)
    kept = extractor_of(holes="keep").extract(b"Title", wikitext.encode())
    assert text == kept
    splitter = SentenceSplitter(rules_for("en"))
    whole, broken = drop_broken(text, holes, splitter.split_lines(text))
    sentences = splitter.split_lines(kept).decode().split("\n")[:-1]
    left = [" ".join(sentence.decode().split()) for sentence in broken]
    for sentence in whole.decode().split("\n")[:-1]:
        assert sentence in sentences
        sentences.remove(sentence)
    assert sorted(" ".join(sentence.split()) for sentence in sentences) == sorted(left)


def test_marks_are_taken_out_of_a_text() -> None:
    assert without_marks(b"\x03a \x03b\x03\x03\nc") == (b"a b\nc", (0, 2, 3, 3))
    assert without_marks(b"a") == (b"a", ())


# ---- with the dump's own definitions

TEMPLATES = {
    "Word": b"word {{{1|}}}",
    "Nothing": b"{{#if:|a}}",
    "Category": b"[[Category:Towns]]<!-- sorted -->",
    "Clear": b'<div style="clear:both"></div>',
    "Cite": b"<sup>[''citation needed'']</sup>",
    "Box": b"<div>{{{1}}}</div>",
    "Failing": b"{{#invoke:Failing|f}}",
    MODULE_MARK + "Failing": b"return { f = function() error('x') end }",
    MODULE_MARK: b"there are modules",
}


@pytest.mark.parametrize(
    ("name", "is_broken"),
    [
        ("word", False),
        ("nothing", False),
        ("category", False),
        ("clear", False),
        ("cite", False),
        ("box", True),
        ("failing", True),
        ("no definition", True),
    ],
)
def test_what_a_definition_shows_nothing_for_is_no_hole(name: str, is_broken: bool) -> None:
    extractor = WikitextExtractor(
        Site(), WikitextOptions(expand_templates="unknown"), lambda title: TEMPLATES.get(title.decode())
    )
    whole, broken = split(f"The town {{{{{name}|b|c}}}} is old. It is.", extractor=extractor)
    assert len(broken) == is_broken
    assert whole.endswith("It is.\n")
