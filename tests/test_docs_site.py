"""The site that `make docs` builds: links lead somewhere, it asks nobody else, fits, is accessible, and is searched."""

import html.parser
import os
import urllib.parse
from pathlib import Path

import pytest
from browsers import TOO_WIDE, Opened, picture
from browsers import browser as browser
from conftest import ROOT
from playwright.sync_api import Browser

import maskmill
from maskmill.records import features
from pipelines.commands.command_list import COMMANDS
from pipelines.settings import presets

pytestmark = pytest.mark.builds

SITE = ROOT / "build" / "site"
# index.html only leads to the first page.
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if path != SITE / "index.html")
MOST_BYTES = 1_000_000  # of a page with all that it loads


class _Links(html.parser.HTMLParser):
    """The ids of a page, where its links lead, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values["id"]} if "id" in values else set()
        if tag == "a" and "href" in values:
            self.targets.append(values["href"])
        elif "src" in values or (tag == "link" and values.get("rel") not in ("search", "index", "next", "prev")):
            self.loaded.append(values.get("src") or values.get("href", ""))


@pytest.fixture(scope="module")
def pages() -> dict[Path, _Links]:
    """All pages of the site, read."""
    assert len(PAGES) > 40, "run `make docs`"
    return {SITE / name: _Links(SITE / name) for name in PAGES}


def test_every_link_and_anchor_leads_somewhere(pages: dict[Path, _Links]) -> None:
    assert _Links(SITE / "index.html").targets == ["README.html"]
    dead = []
    for path, page in pages.items():
        for target in page.targets + page.loaded:
            address = urllib.parse.urlsplit(target)
            if address.scheme:
                continue
            there = Path(os.path.normpath(path.parent / urllib.parse.unquote(address.path))) if address.path else path
            anchor = urllib.parse.unquote(address.fragment)
            if not there.is_file() or (anchor and there in pages and anchor not in pages[there].ids):
                dead.append(f"{path.relative_to(SITE)}: {target}")
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, _Links]) -> None:
    assert [load for page in pages.values() for load in page.loaded if urllib.parse.urlsplit(load).netloc] == []
    styles = [path.read_text("utf-8") for path in (SITE / "_static").rglob("*.css")]
    assert [text[:80] for text in styles if "url(http" in text or "url(//" in text or "@import" in text] == []


def test_the_reference_has_all_that_is_declared(pages: dict[Path, _Links]) -> None:
    text = {
        name: (SITE / "docs" / f"reference-{name}.html").read_text("utf-8") for name in ("commands", "presets", "files")
    }
    assert [
        flag for command in COMMANDS.values() for flag in command.flags if f"--{flag}" not in text["commands"]
    ] == []
    assert [
        name for name in COMMANDS if f"maskmill-{name}" not in pages[SITE / "docs/reference-commands.html"].ids
    ] == []
    assert [name for name in presets.names() if name not in text["presets"]] == []
    assert [name for name in features.FEATURES if name not in text["files"]] == []
    ids = pages[SITE / "docs" / "reference-python.html"].ids
    assert [name for name in maskmill.__all__ if f"maskmill.{name}" not in ids | {"maskmill.__version__"}] == []


# Pages of each kind; the others are exhaustive.
SOME = ("README.html", "docs/tutorial.html", "search.html")
VIEWS = ((360, "light"), (768, "dark"), (1440, "light"))


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_pages_fit_and_ask_for_nothing_else(width: int, scheme: str, browser: Browser) -> None:
    problems = []
    with Opened(browser, SITE / "README.html", width=width, scheme=scheme, beside=SITE) as opened:
        for name in PAGES:
            opened.page.goto((SITE / name).as_uri())
            if opened.page.evaluate("document.documentElement.scrollWidth") > width:
                problems.append(f"{name} is too wide: {opened.page.evaluate(TOO_WIDE)}")
            if name in SOME:
                picture(opened.page, f"{name.replace('/', '-')}-{width}-{scheme}")
        assert problems + opened.events == []


@pytest.mark.exhaustive_but(*SOME)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(name: str, browser: Browser) -> None:
    for width, scheme in VIEWS:
        with Opened(browser, SITE / name, width=width, scheme=scheme, beside=SITE) as opened:
            assert opened.violations() == []


def test_pages_are_small(pages: dict[Path, _Links]) -> None:
    weights = {}
    for path, page in pages.items():
        loaded = {
            path,
            *((path.parent / load.partition("?")[0]).resolve() for load in page.loaded if load[:5] != "data:"),
        }
        weights[str(path.relative_to(SITE))] = sum(file.stat().st_size for file in loaded)
    print({name: f"{weight:,}" for name, weight in weights.items()})
    assert {name: weight for name, weight in weights.items() if weight > MOST_BYTES} == {}


# What a stranger asks, the words that they search for, the page that answers, and what it says.
QUESTIONS = (
    ("whole word", "docs/objectives.html", "whole_word"),  # How do I mask whole words?
    ("exit codes", "docs/reference-environment.html", "run the same command again"),  # When do I run it again?
    ("PyTorch resume ranks", "docs/loading.html", "any number of ranks"),  # May I go on with another number of ranks?
    ("disk memory", "docs/getting-started.html", "45 times the packed dump"),  # How much disk does it take?
    ("mlm_probability", "docs/migration.html", "--masked_lm_prob 0.15"),  # What replaces my flag of run_mlm.py?
)


def test_questions_are_answered_by_a_search_without_a_server(browser: Browser) -> None:
    with Opened(browser, SITE / "README.html", beside=SITE) as opened:
        page = opened.page
        for words, name, answer in QUESTIONS:
            page.goto((SITE / "README.html").as_uri())
            page.locator("input[name=q]").fill(words)
            page.keyboard.press("Enter")
            page.wait_for_selector("ul.search li a")
            found = [link.get_attribute("href") for link in page.locator("ul.search li a").all()[:3]]
            assert name in found, (words, found)
            page.goto((SITE / name).as_uri())
            assert answer in page.inner_text("article")
        assert opened.events == []
