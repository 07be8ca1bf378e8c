"""What a dump's header says about its wiki."""

import pytest
from made_up.dump_files import header

from maskmill.inputs.site import CANONICAL_NAMESPACES, Site, other_project


def siteinfo(*, language: str | None = None, base: str = "", rest: str = "") -> bytes:
    attribute = f' xml:lang="{language}"' if language is not None else ""
    return f"<mediawiki{attribute}>\n<siteinfo><base>{base}</base>{rest}</siteinfo>".encode()


def test_without_a_header_it_is_the_english_wikipedia() -> None:
    site = Site.parse(b"")
    assert site == Site()
    assert (site.language, site.name, site.case) == ("en", "Wikipedia", "first-letter")
    assert site.namespaces == {number: (name,) for number, name in CANONICAL_NAMESPACES.items()}


@pytest.mark.parametrize(
    ("language", "base", "expected"),
    [
        ("de", "https://de.wikipedia.org/wiki/X", "de"),
        ("pt-BR", "https://pt.wikipedia.org/wiki/X", "pt-br"),
        # Before schema 0.5 the attribute of every wiki was "en".
        ("en", "http://ltg.wikipedia.org/wiki/X", "ltg"),
        ("en", "https://de.m.wikipedia.org/wiki/X", "de"),
        ("en", "https://en.wikipedia.org/wiki/X", "en"),
        ("en", "https://simple.wikipedia.org/wiki/X", "en"),
        ("en", "https://www.wikidata.org/wiki/X", "en"),
        ("en", "https://example.org/X", "en"),
        (None, "https://zh-yue.wikipedia.org/wiki/X", "zh-yue"),
        (None, "", "en"),
    ],
)
def test_the_language(language: str | None, base: str, expected: str) -> None:
    assert Site.parse(siteinfo(language=language, base=base)).language == expected


def test_namespaces_have_the_local_name_first() -> None:
    names = (
        '<namespace key="1" case="first-letter">Diskussion</namespace>'
        '<namespace key="2" case="first-letter">User</namespace>'
        "<namespace key='-2'>Medium &amp; Co</namespace>"
        '<namespace key="0" case="first-letter" />'
        '<namespace key="828" case="first-letter"> Modul </namespace>'
    )
    namespaces = Site.parse(siteinfo(rest=names)).namespaces
    assert namespaces[1] == ("Diskussion", "Talk")
    assert namespaces[2] == ("User",)
    assert namespaces[-2] == ("Medium & Co", "Media")
    assert namespaces[828] == ("Modul",)
    assert namespaces[10] == ("Template",)
    assert 0 not in namespaces


def test_the_header_of_a_dump() -> None:
    site = Site.parse(header().encode())
    assert (site.language, site.name, site.case) == ("test", "Testwiki", "first-letter")
    assert site.namespaces[14] == ("Cat & Co", "Category")


@pytest.mark.parametrize(
    ("case", "expected"),
    [("case-sensitive", "case-sensitive"), (" first-letter ", "first-letter"), ("2nd-letter", "first-letter")],
)
def test_the_case_of_titles(case: str, expected: str) -> None:
    assert Site.parse(siteinfo(rest=f"<case>{case}</case>")).case == expected


def test_a_name_is_unescaped_and_bad_bytes_do_no_harm() -> None:
    raw = siteinfo(language="fr", rest="<sitename>A &amp; B</sitename>") + b"\xff"
    assert (Site.parse(raw).name, Site.parse(raw).language) == ("A & B", "fr")


@pytest.mark.parametrize(
    ("base", "rest", "expected"),
    [
        ("https://it.wiktionary.org/wiki/X", "<sitename>Wikizionario</sitename>", "Wikizionario (it.wiktionary.org)"),
        ("https://commons.wikimedia.org/wiki/X", "<dbname>commonswiki</dbname>", "commonswiki (commons.wikimedia.org)"),
        (
            "https://wiki.example.org/X",
            "<sitename>R &amp; D</sitename><dbname>wikidb</dbname>",
            "R & D (wiki.example.org)",
        ),
        ("", "<sitename>Wikisource</sitename><dbname>enwikisource</dbname>", "Wikisource"),
        ("", "<dbname>specieswiki</dbname>", "specieswiki"),
        ("https://example.org/X", "", "example.org"),
        ("https://ru.wikipedia.org/wiki/X", "<sitename>Википедия</sitename><dbname>ruwiki</dbname>", ""),
        ("https://simple.wikipedia.org/wiki/X", "", ""),
        # Copies of a Wikipedia on another host.
        ("http://localhost/wiki/X", "<sitename>Википедия</sitename><dbname>ruwiki</dbname>", ""),
        ("http://localhost/wiki/X", "<sitename>Wikipedia</sitename>", ""),
        ("", "<dbname>zh_yuewiki</dbname>", ""),
        ("", "", ""),
    ],
)
def test_projects_that_are_no_wikipedia(base: str, rest: str, expected: str) -> None:
    assert other_project(siteinfo(base=base, rest=rest)) == expected


def test_no_header_is_of_no_other_project() -> None:
    assert other_project(b"") == ""
