"""Charts as inline SVG: drawn by matplotlib, coloured and set by the page's style sheet.

Charts are drawn in the width of a phone, in points that are the page's pixels, so their text is as large as the page's.
Colours are placeholders that become variables of the style sheet; text stays text.
"""

import dataclasses
import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from maskmill.reporting import shown

# Each is replaced by the variable of the same name in the style sheet.
INK, MUTED, GRID, FIRST, SECOND, THIRD, BACK = (f"#00ab{number:02x}" for number in range(7))
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "line",
    FIRST: "first",
    SECOND: "second",
    THIRD: "third",
    BACK: "card",
}
WIDTH, HEIGHT = 320, 210
_POINTS = 72  # of an inch
FONT_SIZE = 12
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "maskmill",
    "font.size": FONT_SIZE,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "text.parse_math": False,
    "axes.facecolor": "none",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.labelsize": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.xmargin": 0.01,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": "none",
    "path.simplify": True,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """The figures behind a chart: the columns' names, and rows of text. Every column but the first is of numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart with its figures.

    Attributes:
      name: its id on the page.
      title: what it shows.
      summary: what there is to see, in a sentence or two.
      svg: the drawing.
      table: its figures.
      legend: (class of the colour, what it stands for), where there are several.
    """

    name: str
    title: str
    summary: str
    svg: Markup
    table: Table
    legend: tuple[tuple[str, str], ...] = ()


def draw(
    name: str, title: str, summary: str, onto: Callable[[Axes], object], *, height: int = HEIGHT, axes: bool = True
) -> Markup:
    """Draws a chart.

    Args:
      name: its id on the page, by which no two charts are called.
      title, summary: what a screen reader reads of it.
      onto: draws it onto axes.
      height: in pixels.
      axes: whether it has axes; without, it is drawn from (0, 0) at the lower left to (width, height) in pixels.
    """
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        # The page's font draws the text, so it does not matter what matplotlib's lacks.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH / _POINTS, height / _POINTS), layout="constrained" if axes else None)
        FigureCanvasSVG(figure)
        plane = figure.add_subplot() if axes else figure.add_axes((0, 0, 1, 1))
        if not axes:
            plane.set_axis_off()
            plane.set(xlim=(0, WIDTH), ylim=(0, height))
        onto(plane)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inlined(written.getvalue(), name, title, summary)


def _inlined(svg: str, name: str, title: str, summary: str) -> Markup:
    """An SVG file as part of a page: named for screen readers, its colours those of the page, its ids its own."""
    root = ET.fromstring(svg)
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    for element in root.iter():
        _own(element, name, used)
    width, height = root.get("viewBox", "0 0 1 1").split()[2:]
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-summary"}
    root.attrib |= {"class": "chart", "style": f"aspect-ratio: {width} / {height}"}
    for place, (tag, text) in enumerate((("title", title), ("desc", summary))):
        described = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{'summary' if tag == 'desc' else tag}"})
        described.text = shown.text(text)
        root.insert(place, described)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    text = ET.tostring(root, encoding="unicode")
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    return Markup(re.sub(r"\n\s*", "", text))


def _own(element: ET.Element, name: str, used: set[str]) -> None:
    """Makes ids and references of an element this chart's, and leaves its font to the page."""
    own = element.attrib
    if (named := own.get("id")) is not None:
        if named in used:
            own["id"] = f"{name}-{named}"
        else:
            del own["id"]
    for attribute, value in list(own.items()):
        if attribute.endswith("href") and value.startswith("#"):
            own[attribute] = f"#{name}-{value[1:]}"
        elif "url(#" in value:
            own[attribute] = value.replace("url(#", f"url(#{name}-")
    if element.tag == f"{{{_SVG}}}text" and "style" in own:
        # matplotlib writes the font as one property or as several, which its version decides.
        style = re.sub(r"font: (bold |700 )?([\d.]+)px [^;]*", r"font-size: \2px; \1", own["style"])
        style = re.sub(r"; (?:bold|700) (?=;|$)", "; font-weight: 650", style)
        own["style"] = re.sub(r"font-family: [^;]*(?:; |$)", "", style)


def thousands(axis: Any, *, most: int = 5) -> None:
    """Numbers an axis as `20k`, at a few whole places."""
    axis.set_major_locator(MaxNLocator(nbins=most, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def percents(axis: Any, *, most: int = 5) -> None:
    """Numbers an axis in percent."""
    axis.set_major_locator(MaxNLocator(nbins=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))


def short(value: float) -> str:
    """A number in few characters: `1.5M`."""
    for sign, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{sign}"
    return f"{value:.3g}"


def band(plane: Axes, starts: Sequence[float], ends: Sequence[float], values: Sequence[float], colour: str) -> None:
    """Draws a histogram as one filled outline."""
    xs, ys = [starts[0]], [0.0]
    for start, end, value in zip(starts, ends, values, strict=True):
        xs += [start, end]
        ys += [value, value]
    plane.fill([*xs, xs[-1]], [*ys, 0.0], facecolor=colour, edgecolor="none", linewidth=0)


def outline(plane: Axes, starts: Sequence[float], ends: Sequence[float], values: Sequence[float]) -> None:
    """Draws the histogram of another data set as a line."""
    xs = [x for pair in zip(starts, ends, strict=True) for x in pair]
    plane.plot(xs, [value for value in values for _ in range(2)], color=SECOND, linewidth=1.6)
