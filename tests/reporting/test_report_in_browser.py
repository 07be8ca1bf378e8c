"""The report in a real browser: it loads nothing, runs nothing, fits, is accessible, and shows hostile text as text."""

import os
from pathlib import Path

import pytest
import report_pages
from browsers import TOO_WIDE, Opened, picture
from browsers import browser as browser
from playwright.sync_api import Browser
from report_pages import Reports

pytestmark = pytest.mark.builds

NAMES = ("build", "comparison", "examples", "not-verified", "hostile", "damaged")
# Widths and schemes of colours: a scheme changes no place.
VIEWS = ((360, "light"), (768, "dark"), (1440, "light"))
MOST_BYTES = 3_000_000
# Text that its box cuts off, and boxes of charts' texts that overlap each other.
CUT_OFF = """() => [...document.body.querySelectorAll("p, h1, h2, h3, th, td, dt, dd, li, a")].filter(element => {
    const style = getComputedStyle(element);
    return style.overflowX !== "visible" && element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1;
}).slice(0, 5).map(element => element.outerHTML.slice(0, 120))"""
OUT_OF_CHARTS = """() => [...document.querySelectorAll("svg text")].filter(text => {
    const chart = text.closest("svg").getBoundingClientRect(), box = text.getBoundingClientRect();
    return box.width && (box.left < chart.left - 1 || box.right > chart.right + 1
        || box.top < chart.top - 1 || box.bottom > chart.bottom + 1);
}).slice(0, 5).map(text => text.textContent)"""
OVERLAPPING = """() => [...document.querySelectorAll("svg")].flatMap(chart => {
    const boxes = [...chart.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()])
        .filter(([text, box]) => text.trim() && box.width);
    return boxes.flatMap(([text, a], place) => boxes.slice(place + 1)
        .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
        .map(([other]) => `${text} | ${other}`));
}).slice(0, 5)"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The pages by name, for all processes of this run."""
    folder = tmp_path_factory.getbasetemp()
    return Reports((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "reports")


@pytest.mark.exhaustive_but(
    "build-1440-light", "comparison-360-light", "examples-768-dark", "damaged-1440-light", "hostile-360-light"
)
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_and_asks_for_nothing(
    name: str, width: int, scheme: str, reports: Reports, browser: Browser
) -> None:
    assert reports[name].stat().st_size < MOST_BYTES
    with Opened(browser, reports[name], width=width, scheme=scheme) as opened:
        page = opened.page
        picture(page, f"{name}-{width}-{scheme}")
        for unfolded in (False, True):
            if unfolded:
                opened.open_all()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, page.evaluate(TOO_WIDE)
            for problem in (TOO_WIDE, CUT_OFF, OUT_OF_CHARTS, OVERLAPPING):
                assert page.evaluate(problem) == []
        assert opened.events == []


@pytest.mark.exhaustive_but(
    "build-1440-dark", "comparison-360-light", "not-verified-360-light", "damaged-1440-dark", "hostile-360-light"
)
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1440, "dark")])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_no_violation(name: str, width: int, scheme: str, reports: Reports, browser: Browser) -> None:
    with Opened(browser, reports[name], width=width, scheme=scheme) as opened:
        opened.open_all()
        assert opened.violations() == []


@pytest.mark.parametrize("name", ["build", "comparison"])
def test_a_page_can_be_printed(name: str, reports: Reports, browser: Browser) -> None:
    with Opened(browser, reports[name], width=720, scheme="dark") as opened:
        page = opened.page
        page.emulate_media(media="print")
        picture(page, f"{name}-print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        assert page.locator("nav").is_hidden()
        assert page.locator("figure svg").first.is_visible()
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        assert printed.count(b"/Type /Page\n") in range(2, 30)


def test_dark_mode_changes_charts_too(reports: Reports, browser: Browser) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        with Opened(browser, reports["build"], scheme=scheme) as opened:
            colours[scheme] = opened.page.evaluate(
                """() => [getComputedStyle(document.body).backgroundColor,
                    ...[...document.querySelectorAll("svg text, svg path")].map(
                        shape => `${getComputedStyle(shape).fill} ${getComputedStyle(shape).stroke}`)]"""
            )
    assert colours["light"][0] == "rgb(250, 249, 247)"
    assert max(map(int, colours["dark"][0][4:-1].split(", "))) < 64
    assert len(colours["light"]) > 50
    painted = [pair for pair in zip(colours["light"], colours["dark"], strict=True) if "rgb" in pair[0]]
    assert sum(light == dark for light, dark in painted) == 0


def test_everything_can_be_reached_by_keys(reports: Reports, browser: Browser) -> None:
    with Opened(browser, reports["build"]) as opened:
        page = opened.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.url.endswith("#main")
        seen = set()
        for _ in range(200):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.tagName"))
        assert "SUMMARY" in seen
        page.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("details").first.get_attribute("open") is not None
        assert opened.events == []


def test_hostile_titles_and_texts_are_shown_and_not_run(reports: Reports, browser: Browser) -> None:
    with Opened(browser, reports["hostile"]) as opened:
        page = opened.page
        opened.open_all()
        page.wait_for_timeout(300)
        assert page.evaluate("window.harmed") is None
        harmful = "script, img, iframe, object, embed, link, base, form, audio, video, [onload], [onclick], [onerror]"
        assert page.locator(harmful).count() == 0
        assert (
            page.evaluate(
                "[...document.querySelectorAll('*')].filter(e => [...e.attributes]"
                ".some(a => a.name.startsWith('on') || /javascript:/i.test(a.value))).length"
            )
            == 0
        )
        text = page.evaluate("document.body.innerText")
        assert report_pages.SCRIPT in text
        assert "onclick=harm()" in text
        assert "a <b>bold & 'quoted' dump.xml" in text
        assert "{{ 7 * 7 }}" in text
        assert "49{%" not in text
        # Characters that change the order of what stands around them are shown by their numbers.
        assert not {"\u202e", "\u202c", "\u2067", "\u2069"} & set(text)
        assert opened.events == []


def test_a_page_without_its_policy_is_harmless_too(reports: Reports, browser: Browser, tmp_path: Path) -> None:
    content = reports["hostile"].read_text(encoding="utf-8")
    bare = tmp_path / "bare.html"
    assert content.count("Content-Security-Policy") >= 1
    bare.write_text(content.replace("Content-Security-Policy", "nothing", 1), encoding="utf-8")
    with Opened(browser, bare) as opened:
        opened.open_all()
        opened.page.wait_for_timeout(300)
        assert opened.page.evaluate("window.harmed") is None
        assert opened.events == []


def test_what_verify_found_stands_first(reports: Reports, browser: Browser) -> None:
    with Opened(browser, reports["damaged"], width=360) as opened:
        verdict = opened.page.locator(".verdict")
        assert "found errors" in verdict.inner_text()
        assert verdict.bounding_box()["y"] < 900
        assert "part-00000" in opened.page.locator(".findings").first.inner_text()
