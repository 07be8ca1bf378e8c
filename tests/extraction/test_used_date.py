"""A page whose text depends on the dump's date is known to: no build may take it from a release of another day."""

import dataclasses
import datetime
from importlib import resources

import pytest
from command_runs.commands import DUMP

from maskmill.storage import files
from transforms.compat.wikiextractor import WikiExtractorCompat
from transforms.extraction import template_rules
from transforms.extraction.options import WikitextOptions
from transforms.extraction.wikitext import WikitextExtractor
from transforms.inputs.mediawiki import Page, read_header
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import plan_units, read_unit

# No part of these days is the same.
DATES = ("2010-01-02", "2023-11-30")
LANGUAGES = sorted(
    path.name.removesuffix(".rules")
    for path in (resources.files("transforms.extraction") / "data" / "templates").iterdir()
    if path.name.endswith(".rules")
)
ARGUMENTS = (
    "",
    "|1950|3|4",
    "|1950-03-04",
    "|4|3|1950",
    "|df=y|1950|12|31",
    "|Y",
    "|year=1950|month=3|day=4",
    "|x|1|y|2",
)


def extractors(language: str = "en", **options: object) -> list[WikitextExtractor]:
    """An extractor for each date."""
    find = {
        "Now": b"the year {{CURRENTYEAR}}",
        "Then": b"{{#time:Y|2001-02-03}}",
        "Branch": b"{{#if:1|a|{{CURRENTYEAR}}}}",
    }
    templates = (lambda name: find.get(name.decode())) if options.get("expand_templates") else None
    base = WikitextOptions(**options)  # type: ignore[arg-type]
    return [WikitextExtractor(Site(language=language), dataclasses.replace(base, date=d), templates) for d in DATES]


@pytest.mark.parametrize(
    ("text", "is_dated"),
    [
        ("It is old.", False),
        ("He is {{age|1950|1|1}} now.", True),
        ("He died on {{death date and age|1970|1|1|1950|1|1}} there.", False),
        ("The year is {{CURRENTYEAR}}.", True),
        ("{{CURRENTMONTHNAME}} is a month.", True),
        ("{{Infobox person|age={{age|1950|1|1}}}}\nHe lives.", False),
    ],
)
def test_rules_tell_of_the_date(text: str, is_dated: bool) -> None:
    for extractor in extractors():
        extractor.extract(b"Title", text.encode())
        assert extractor.used_date == is_dated
        extractor.extract(b"Title", b"Another page.")
        assert not extractor.used_date


@pytest.mark.builds
@pytest.mark.parametrize(
    ("text", "is_dated"),
    [
        ("It is {{now}}.", True),
        ("It is {{then}}.", False),
        ("In {{#time:Y}} it is so.", True),
        ("In {{#time:Y|2000-01-01}} it is so.", False),
        ("It is {{branch}}.", False),
        ("In {{#if:{{LOCALDAY}}|a}} it is so.", True),
        ("In {{CURRENTTIMESTAMP}} it is so.", True),
    ],
)
def test_expanded_templates_tell_of_the_date(text: str, is_dated: bool) -> None:
    for extractor in extractors(expand_templates=True):
        extractor.extract(b"Title", text.encode())
        assert extractor.used_date == is_dated
        extractor.extract(b"Title", b"Another page.")
        assert not extractor.used_date


@pytest.mark.parametrize(
    ("text", "is_dated"),
    [
        ("The year is {{CURRENTYEAR}}.", True),
        ("{{CURR<!-- -->ENTDAY}}", False),
        ("{{#if:{{CURRENTMONTH}}|a}}", True),
        ("{{PAGENAME}} is {{#if:1|a}}.", False),
    ],
)
def test_wikiextractors_text_tells_of_the_date(text: str, is_dated: bool) -> None:
    for date in DATES:
        extractor = WikiExtractorCompat(date)
        extractor.extract(b"Title", text.encode())
        assert extractor.used_date == is_dated
        extractor.extract(b"Title", b"Another page.")
        assert not extractor.used_date


def check_pairs(texts: list[tuple[bytes, bytes]], pair: list[WikitextExtractor]) -> int:
    """Extracts pages for two dates: those that differ must be said to; returns how many do."""
    differ = 0
    for title, text in texts:
        first, second = (extractor.extract(title, text) for extractor in pair)
        if first != second:
            differ += 1
            assert [extractor.used_date for extractor in pair] == [True, True], text
    return differ


def calls_of_all_rules(language: str) -> list[tuple[bytes, bytes]]:
    """A page for each name that has a rule, with calls of it."""
    words = template_rules.WordTable()
    rules = template_rules.load_rules(language)
    template_rules.add_rules(words, rules, datetime.date(2000, 1, 1))
    return [
        (b"Title", "\n\n".join(f"This is {{{{{name}{given}}}}} of it." for given in ARGUMENTS).encode())
        for name in sorted(set(words.template_names))
    ]


# Those of most rules, and of dates in other scripts and orders.
@pytest.mark.exhaustive_but("common", "ar", "de", "en", "eu", "fr", "hu", "ja", "ru", "th", "vi", "zh")
@pytest.mark.releases
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_rule_gives_a_date_unnoticed(language: str) -> None:
    differ = check_pairs(calls_of_all_rules(language), extractors(language))
    assert differ > 0


def sample_pages() -> tuple[Site, list[tuple[bytes, bytes]]]:
    units = plan_units([files.FileInfo(path=str(DUMP), size=DUMP.stat().st_size)])
    pages = [page for unit in units for page in read_unit(unit, ReadOptions()) if isinstance(page, Page)]
    return Site.parse(read_header(str(DUMP))), [(page.title, page.text) for page in pages]


def test_no_real_page_depends_on_the_date_unnoticed() -> None:
    site, pages = sample_pages()
    pair = [WikitextExtractor(site, WikitextOptions(date=date)) for date in DATES]
    assert check_pairs(pages, pair) > 0
    few = 0
    for title, text in pages:
        pair[0].extract(title, text)
        few += pair[0].used_date
    assert few < 0.05 * len(pages)  # a flag that is always set would keep nothing
