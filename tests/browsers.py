"""Pages in Chromium, as it is installed on this machine: what they ask for, and what axe-core says of them."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Browser, Page, sync_playwright

# axe-core's rules for WCAG 2.2, levels A and AA, and its best practices.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_NAMES_OF_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Elements that reach over the right edge without being in a box that scrolls by itself.
TOO_WIDE = """() => [...document.body.querySelectorAll("*")].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.right > document.documentElement.clientWidth + 1 && !element.closest(".wide");
}).slice(0, 5).map(element => element.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, as it is installed on this machine."""
    named = os.environ.get("MASKMILL_BROWSER") or next(filter(None, map(shutil.which, _NAMES_OF_CHROMIUM)), None)
    if named is None:
        pytest.fail(
            "There is no Chromium on the path; install it (`apt-get install chromium`, or `playwright install "
            "chromium`), or name one in MASKMILL_BROWSER."
        )
    with sync_playwright() as playwright:
        # As root, which tests in a container often run as, Chromium has no sandbox.
        opened = playwright.chromium.launch(executable_path=named, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page in a window of its own, and all that it said, asked for and threw.

    beside: the folder whose files it may ask for; None: it may ask for nothing.
    """

    def __init__(
        self, browser: Browser, path: Path, *, width: int = 1440, scheme: Any = "light", beside: Path | None = None
    ) -> None:
        self.events: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.context.set_default_timeout(300_000)  # milliseconds, for a busy machine
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self.events.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.events.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.events.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self._note_request(request.url, path, beside))
        self.page.on("popup", lambda popup: self.events.append(f"popup: {popup.url}"))
        began = time.perf_counter()
        self.page.goto(path.as_uri(), wait_until="load")
        self.seconds = time.perf_counter() - began

    def _note_request(self, url: str, path: Path, beside: Path | None) -> None:
        # What a page has in itself (data:) is no request.
        allowed = beside is not None and url.startswith((f"{beside.as_uri()}/", "data:"))
        if url.partition("#")[0] != path.as_uri() and not allowed:
            self.events.append(f"request: {url[:100]}")

    def open_all(self) -> None:
        """Unfolds everything that a click unfolds."""
        self.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")

    def violations(self) -> list[str]:
        """What axe-core finds, a line for each of the first elements of a rule."""
        self.page.evaluate(Path(AXE_FILE_PATH).read_text(encoding="utf-8"))
        run = "{preload: false, resultTypes: ['violations'], runOnly: {type: 'tag', values: rules}}"
        found = self.page.evaluate(
            f"rules => axe.run({run}).then(({{passes, violations}}) => ({{passed: passes.length, violations}}))", RULES
        )
        assert found["passed"] > 15
        return [
            f"{violation['id']} ({violation['impact']}): {node['html'][:160]}: {node['failureSummary']}"
            for violation in found["violations"]
            for node in violation["nodes"][:3]
        ]

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def picture(page: Page, name: str) -> None:
    """Keeps a picture where MASKMILL_PICTURES names a folder for them: they are to be looked at."""
    folder = os.environ.get("MASKMILL_PICTURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
