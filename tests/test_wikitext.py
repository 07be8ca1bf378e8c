"""Wikitext to plain text: what each construct becomes."""

import pytest

from transforms.wikitext import Site, WikitextExtractor, WikitextOptions


@pytest.fixture(scope="module")
def english() -> WikitextExtractor:
    return WikitextExtractor(Site(), WikitextOptions(date="2016-06-01"))


CASES = [
    ("plain", "plain"),
    ("a [[b|c]] d [[e]]s", "a c d es"),
    ("'''Bold''' and ''italic'' and '''''both'''''", "Bold and italic and both"),
    ("l'''amour'' is", "l'amour is"),
    ("x {{unknown|a}} y", "x y"),
    ("x ({{unknown|a}}) y", "x y"),
    ("x ({{unknown|a}}; 1990), y", "x (1990), y"),
    ("x (1990, {{unknown}}) y", "x (1990) y"),
    ("x<ref>y</ref>, z<ref name=a/>.", "x, z."),
    ("x<!-- hidden --> y", "x y"),
    ("{| class=x\n| cell\n|}\ntext", "text"),
    ("== Heading ==\ntext", "text"),
    ("one\ntwo\n\nthree", "one two\nthree"),
    ("* one\n* two", "one\ntwo"),
    ("a &amp; b &lt; c&nbsp;d &#8211; e", "a & b < c d – e"),
    ("[[File:x.jpg|thumb|a [[b]] c]]text", "text"),
    ("[[Category:x]]", ""),
    ("[http://x.org text] and [http://y.org]", "text and"),
    ("a {{convert|10|km|mi}} b", "a 10 kilometres b"),
    ("<nowiki>[[x]]</nowiki> y", "[[x]] y"),
    ("10<sup>6</sup> m<sup>2</sup> H<sub>2</sub>O", "10⁶ m² H2O"),
    ("{{nihongo|Mount Fuji|富士山|Fujisan}} is", "Mount Fuji (富士山, Fujisan) is"),
    ("__NOTOC__text", "text"),
    ("a {{lang|fr|b {{nowrap|c d}}}} e", "a b c d e"),
    ("x\n== See also ==\n* y\n== Next ==\nz", "x\nz"),
    ("In {{CURRENTYEAR}} x", "In 2016 x"),
    ("a {{ b [[ c", "a b c"),
    ("a }} b ]] c", "a b c"),
]


@pytest.mark.parametrize(("wikitext", "text"), CASES)
def test_extract(english: WikitextExtractor, wikitext: str, text: str) -> None:
    assert english.extract(b"Title", wikitext.encode()).decode() == text
