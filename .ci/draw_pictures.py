"""Draws the pictures of docs/pictures: the report's, a terminal's, and charts of the figures that pages give.

    python .ci/draw_pictures.py            # charts; `make pictures` draws all of them
    python .ci/draw_pictures.py terminal report charts

`terminal` runs the demo in a folder of its own, on a terminal, and keeps what it prints when: demo.cast, which
`asciinema play` plays, and demo.svg, which shows each line when it was complete. `report` takes a picture of parts
of the report (needs Chromium). `charts` reads tables of the pages, so a chart says what its page says. data-flow.svg
is drawn by hand. The pictures ask for no file, font or script from elsewhere.
"""

import codecs
import contextlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from maskmill.reporting import svg

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
COMMAND = ("maskmill", "build", "examples/demo.yaml")
COLUMNS, LINES = 80, 48
LONGEST_PAUSE = 0.5  # seconds; a recording shows no longer one

# Which parts of the report are in its picture.
PARTS = """
nav, main > section:not(#samples, #rows), #samples > :not(h2, .key, #first-example), #rows > :not(.charts),
#first-example > .muted, details, .skip, footer, .charts > figure:nth-child(n + 4) { display: none !important; }
section { margin: 1.25rem 0 !important; } header { padding-top: 1rem !important; }
"""


@contextlib.contextmanager
def demo_folder() -> Iterator[Path]:
    """A folder with what examples/demo.yaml names, and nothing else: no picture shows a path of this machine."""
    with tempfile.TemporaryDirectory() as name:
        for needed in ("examples", "tests"):
            (Path(name) / needed).symlink_to(ROOT / needed)
        yield Path(name)


def record(folder: Path) -> Iterator[tuple[float, str]]:
    """Runs the demo on a terminal: (seconds since its start, what it printed)."""
    mine, its = pty.openpty()
    termios.tcsetwinsize(its, (LINES, COLUMNS))
    environment = os.environ | {"TERM": "xterm-256color", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    running = subprocess.Popen(COMMAND, cwd=folder, env=environment, stdin=its, stdout=its, stderr=its)
    os.close(its)
    began = time.monotonic()
    with open(mine, "rb", buffering=0) as terminal, contextlib.suppress(OSError):  # a terminal ends with EIO on Linux
        decoder = codecs.getincrementaldecoder("utf-8")()
        while printed := terminal.read(65536):
            yield time.monotonic() - began, decoder.decode(printed)
    if running.wait():
        raise SystemExit(f"{' '.join(COMMAND)} failed with exit code {running.returncode}.")


def write_cast(events: Iterable[tuple[float, str]], to: Path) -> None:
    """Writes a recording in asciinema's format, version 2: a line of what it is, then [seconds, "o", printed]."""
    head = {
        "version": 2,
        "width": COLUMNS,
        "height": LINES,
        "idle_time_limit": LONGEST_PAUSE,
        "title": " ".join(COMMAND),
    }
    lines = [head, [0.0, "o", f"$ {' '.join(COMMAND)}\r\n"], *([round(1 + at, 3), "o", text] for at, text in events)]
    to.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def screen(cast: Path) -> list[tuple[float, str]]:
    """What a recording has on the terminal at its end: (seconds until the line was complete, the line).

    Pauses count as the longest that is shown. Of a terminal's movements it knows those that rich makes, which writes
    lines from their beginning.
    """
    lines, row, clock, before = [(0.0, "")], 0, 0.0, 0.0
    for at, _, printed in map(json.loads, cast.read_text().splitlines()[1:]):
        clock, before = clock + min(at - before, LONGEST_PAUSE), at
        for moves, text in re.findall(r"(\r\n|\r|\x1b\[\d*[AJK])|((?:\x1b\[[\d;]*m|[^\x1b\r\n])+)", printed):
            if text:
                lines[row] = (clock, lines[row][1] + text)
            elif moves[-1] == "J":
                lines[row:] = [(clock, "")]
            elif moves[-1] != "K":
                row += -int(moves[2:-1]) if moves[-1] == "A" else moves == "\r\n"
                lines[row : row + 1] = [(clock, "")]
    return lines


def write_played(cast: Path, to: Path) -> None:
    """Draws the screen at the end of a recording; each line appears when it did, unless the reader wants no motion."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    appears: list[float] = []
    for at, line in screen(cast):
        for shown in Text.from_ansi(line).wrap(console, COLUMNS):
            console.print(shown, no_wrap=True, highlight=False)
            appears.append(at)
    motion = """
    @keyframes appear {{ from {{ opacity: 0 }} }}
    @media (prefers-reduced-motion: no-preference) {{ .{unique_id}-matrix text {{ animation: appear .01s both }} }}
    """
    form = re.sub(r"@font-face {{.*?}}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", "ui-monospace, 'DejaVu Sans Mono', monospace").replace(
        "{styles}", motion + "{styles}"
    )
    drawn = console.export_svg(title=" ".join(COMMAND), code_format=form, unique_id="demo")
    # rich draws the ends of lines too, and cuts each line off at its own end.
    drawn = re.sub(r"<text [^>]*>\n</text>", "\n", drawn)
    drawn = re.sub(r'<clipPath id="demo-line-.*?</clipPath>\s*', "", drawn, flags=re.DOTALL)
    drawn = re.sub(
        r'clip-path="url\(#demo-line-(\d+)\)"',
        lambda line: f'style="animation-delay:{appears[int(line[1])]:.2f}s"',
        drawn,
    )
    to.write_text(re.sub(r"\n\s*", "\n", drawn))


def write_report(report: Path, to: Path) -> None:
    """Takes a picture of the beginning of a report, an example and charts, in 64 colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    named = os.environ.get("MASKMILL_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=named, args=["--no-sandbox"]) as browser,
    ):
        page = browser.new_page(viewport={"width": 1100, "height": 400})
        page.goto(report.as_uri())
        page.add_style_tag(content=PARTS)
        taken = page.screenshot(full_page=True)
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(to, optimize=True)


class Chart(NamedTuple):
    """A chart of bars: its title, the head of its table, and what makes bars (label, figure) of the rows."""

    title: str
    head: str
    bars: Callable[[list[list[str]]], list[tuple[str, str]]]


def _chain(rows: list[list[str]]) -> list[tuple[str, str]]:
    parts = [(row[0].removesuffix(", 1 worker"), row) for row in rows if row[0].endswith(", 1 worker")]
    return [(f"{who}, {part}", row[at]) for part, row in parts for who, at in (("reference", 1), ("maskmill", 2))]


def _loading(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(row[0], row[4].removesuffix(" million")) for row in rows if row[1] == "dynamic"]


def _training(rows: list[list[str]]) -> list[tuple[str, str]]:
    both = [row for row in rows if row[5] not in ("", "not measured")]
    return [(f"{who}, {row[0]}", row[at]) for row in both for who, at in (("maskmill", 3), ("Hugging Face", 5))]


CHARTS = {
    "chart-chain": Chart("enwik8 to examples: CPU seconds, less is better", "| | reference | maskmill | |", _chain),
    "chart-loading": Chart(
        "Reading on one core: million tokens a second",
        "| loader | data | masks | samples/s | tokens/s | µs a sample | MB | first batch, s |",
        _loading,
    ),
    "chart-training": Chart(
        "Training on one H100: tokens a second",
        "| | H200: tokens/s | share | H100, 80 GB: tokens/s | share | the same H100, Hugging Face: tokens/s | share |",
        _training,
    ),
}


def table(head: str) -> list[list[str]]:
    """The rows of the table with this head, on whichever page it is; raises SystemExit unless one page has it."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [page.read_text().partition(f"\n{head}\n") for page in pages]
    behind = [after for _, between, after in found if between]
    if len(behind) != 1:
        raise SystemExit(f"{len(behind)} pages have a table with the head {head}; one must.")
    rows = behind[0].splitlines()[1:]
    ends = next(at for at, row in enumerate(rows) if not row.startswith("|"))
    return [[cell.strip(" *") for cell in row.strip("|").split("|")] for row in rows[:ends]]


def chart(name: str) -> str:
    """The chart as an SVG file in the colours of the report, light or dark as the reader's system is."""
    title, head, bars_of = CHARTS[name]
    bars = bars_of(table(head))
    step, height = 38, 38 * len(bars) + 24
    most = max(float(figure.replace(",", "")) for _, figure in bars)

    def onto(plane: Axes) -> None:
        plane.set(xlim=(0, svg.WIDTH), ylim=(0, height))
        plane.set_axis_off()
        plane.text(0, height - 9, title, color=svg.INK, va="center", weight="bold")
        for place, (label, figure) in enumerate(bars):
            top = height - 24 - step * place
            ours = label.startswith("maskmill")
            length = max(1.0, float(figure.replace(",", "")) / most * (svg.WIDTH - 70))
            plane.text(0, top - 9, label, color=svg.MUTED, va="center")
            plane.barh(top - 25, length, 14, color=svg.FIRST if ours else svg.SECOND)
            plane.text(length + 6, top - 25, figure, color=svg.INK, va="center", weight="bold")

    summary = "; ".join(f"{label}: {figure}" for label, figure in bars)
    drawn = re.sub(' style="aspect-ratio[^"]*"', "", svg.drawn((name, title, summary), onto, height=height), count=1)
    variables = (ROOT / "maskmill/reporting/data/report.css").read_text()
    colours = re.findall(r"^ +(--page:.*\n.*)\n", variables, re.MULTILINE)
    style = (
        f"<style>svg {{{colours[0]}}} @media (prefers-color-scheme: dark) {{ svg {{{colours[1]}}} }}"
        " svg { background: var(--page) } text { font-family: system-ui, sans-serif }</style>"
    )
    edge = 10
    box = f'viewBox="{-edge} {-edge} {svg.WIDTH + 2 * edge} {height + 2 * edge}" width="{2 * svg.WIDTH}"'
    return re.sub(r'viewBox="[^"]*"([^>]*)>', rf"{box}\1>{style}", drawn, count=1) + "\n"


def main(wanted: Sequence[str]) -> None:
    """Draws the pictures that are wanted."""
    if {"terminal", "report"} & set(wanted):
        with demo_folder() as folder:
            write_cast(record(folder), PICTURES / "demo.cast")
            write_report(folder / "demo" / "report.html", PICTURES / "report.png")
        write_played(PICTURES / "demo.cast", PICTURES / "demo.svg")
    if "charts" in wanted:
        for name in CHARTS:
            (PICTURES / f"{name}.svg").write_text(chart(name))


if __name__ == "__main__":
    main(sys.argv[1:] or ["charts"])
