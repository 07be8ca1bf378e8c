"""MediaWiki's preprocessor: which braces, pipes and equals signs make calls, and what of a template is transcluded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from maskmill.extraction.preprocessor import Call, Node, Separator, parse, plain_text, transcluded_text


def written(nodes: list[Node]) -> str:
    """The wikitext that nodes were read from."""
    out = []
    for node in nodes:
        if isinstance(node, Call):
            braces = 3 if node.is_parameter else 2
            out += ["{" * braces, "|".join(written(part) for part in node.parts), "}" * braces]
        else:
            out.append(plain_text(node))
    return "".join(out)


def shape(nodes: list[Node]) -> list[object]:
    """Nodes as nested lists: text joined, calls as ("call" or "parameter", parts)."""
    shapes: list[object] = []
    for node in nodes:
        if isinstance(node, Call):
            shapes.append(("parameter" if node.is_parameter else "call", [shape(part) for part in node.parts]))
        elif node is Separator.EQUALS:
            shapes.append(Separator.EQUALS)
        elif shapes and isinstance(shapes[-1], str):
            shapes[-1] += plain_text(node)
        elif plain_text(node):
            shapes.append(plain_text(node))
    return shapes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ["a"]),
        ("{{a}}", [("call", [["a"]])]),
        ("{{a|b|c}}", [("call", [["a"], ["b"], ["c"]])]),
        ("{{a|b=c=d}}", [("call", [["a"], ["b", Separator.EQUALS, "c", Separator.EQUALS, "d"]])]),
        ("{{{a|b}}}", [("parameter", [["a"], ["b"]])]),
        # Runs of braces are matched from the inside, parameters first.
        ("{{{{{a}}}}}", [("call", [[("parameter", [["a"]])]])]),
        ("{{{{a}}}}", ["{", ("parameter", [["a"]]), "}"]),
        ("{{{a}}", ["{", ("call", [["a"]])]),
        ("{{a}}}", [("call", [["a"]]), "}"]),
        # Pipes and equals signs in links belong to the links; those outside calls are text.
        ("{{a|[[b|c=d]]|e}}", [("call", [["a"], ["[[b|c=d]]"], ["e"]])]),
        ("a | b = c", ["a | b = c"]),
        ("{{a|]]|b}}", [("call", [["a"], ["]]"], ["b"]])]),
        # What the preprocessor does not look into.
        ("{{a|<nowiki>}}|</nowiki>}}", [("call", [["a"], ["<nowiki>}}|</nowiki>"]])]),
        ("{{a|<REF name=x>|</Ref >}}", [("call", [["a"], ["<REF name=x>|</Ref >"]])]),
        ("{{a|<ref/>|b}}", [("call", [["a"], ["<ref/>"], ["b"]])]),
        ("{{a<!-- | -->b}}", [("call", [["ab"]])]),
        ("{{a|<ref>b}}", [("call", [["a"], ["<ref>b"]])]),
        ("a <!-- {{b}}", ["a "]),
        # What nothing closes is text.
        ("{{a|b", ["{{a|b"]),
        ("{{a|{{b}}", ["{{a|", ("call", [["b"]])]),
        ("a }} b", ["a }} b"]),
    ],
)
def test_shapes(text: str, expected: list[object]) -> None:
    assert shape(parse(text)) == expected


@given(
    pieces=st.lists(
        st.sampled_from(
            ["{{", "}}", "{{{", "}}}", "{", "}", "|", "=", "[[", "]]", "a", " ", "<ref>", "</ref>", "<nowiki>", "<b>"]
        ),
        max_size=40,
    )
)
@tries(500)
def test_nothing_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert written(parse(text)) == text


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("text", "text"),
        ("text<noinclude>docs</noinclude>, more", "text, more"),
        ("text<NOINCLUDE>docs", "text"),
        ("<includeonly>a</includeonly>b", "ab"),
        ("x<onlyinclude>a</onlyinclude>y<onlyinclude>b</onlyinclude>z", "ab"),
        ("x<onlyinclude>a", "a"),
        ("a<!-- <onlyinclude>b</onlyinclude> -->c", "ac"),
        ("a<noinclude/>b", "ab"),
        ("a<!-- b", "a"),
    ],
)
def test_what_of_a_templates_page_is_transcluded(page: str, expected: str) -> None:
    assert transcluded_text(page) == expected
