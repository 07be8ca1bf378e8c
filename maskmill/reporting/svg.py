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
from typing import Any, NamedTuple

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from maskmill.reporting import shown

# Each is replaced by the variable of this name in the style sheet.
_VARIABLES = ("ink", "muted", "line", "first", "second", "third", "card")
_COLOURS = tuple(f"#00ab{number:02x}" for number in range(len(_VARIABLES)))
INK, MUTED, GRID, FIRST, SECOND, THIRD, BACK = _COLOURS
WIDTH, HEIGHT = 320, 210
_POINTS = 72  # of an inch
FONT_SIZE = 12
_EDGE, _CHARACTER, _LINE = 8, 8, 18  # pixels: of an edge; of a wide character of a label, and of a line of labels
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
    **{f"axes.spines.{side}": False for side in ("top", "right", "left")},
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.xmargin": 0.01,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    **{f"{axis}tick.color": MUTED for axis in "xy"},
    **{f"{axis}tick.{kind}.size": 0 for axis in "xy" for kind in ("major", "minor")},
    "figure.facecolor": "none",
    "path.simplify": True,
}


class Table(NamedTuple):
    """The figures behind a chart: the columns' names, and rows of text. Every column but the first is of numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Chart:
    """A chart with its figures.

    Attributes:
      name: its id on the page.
      title: what it shows.
      summary: what there is to see, in a sentence or two.
      svg: the drawing.
      table: its figures.
      legend: (class of the colour, what it stands for), if there are several.
    """

    name: str
    title: str
    summary: str
    svg: Markup
    table: Table
    legend: tuple[tuple[str, str], ...] = ()


def drawn(
    named: tuple[str, str, str],
    table: Table,
    onto: Callable[[Axes], object],
    *,
    legend: tuple[tuple[str, str], ...] = (),
    height: int | None = None,
) -> Chart:
    """Draws a chart.

    Args:
      named: its id on the page, by which no two charts are called; its title and its summary, for screen readers, too.
      table: its figures.
      onto: draws it onto axes.
      legend: see Chart.
      height: in pixels, of a chart without axes, drawn from (0, 0) at the lower left to (width, height) in pixels;
        None: it has axes.
    """
    axes = height is None
    height = HEIGHT if height is None else height
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        # The page's font draws the text, so it does not matter what matplotlib's lacks.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH / _POINTS, height / _POINTS))
        FigureCanvasSVG(figure)
        plane = figure.add_axes((0, 0, 1, 1))
        if not axes:
            plane.set_axis_off()
            plane.set(xlim=(0, WIDTH), ylim=(0, height))
        onto(plane)
        if axes:
            _leave_room(plane)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return Chart(*named, _inlined(written.getvalue(), *named), table, legend)


def _leave_room(plane: Axes) -> None:
    """Leaves room for the labels of the axes. To measure how wide they are drawn would take as long as the drawing."""
    labels = plane.yaxis.get_major_formatter().format_ticks(plane.yaxis.get_majorticklocs().tolist())
    left = _EDGE + _CHARACTER * max(map(len, labels), default=0) + (_LINE if plane.get_ylabel() else 0)
    bottom = _LINE + (_LINE if plane.get_xlabel() else 0) + _EDGE
    width, height = WIDTH - left - 2 * _EDGE, HEIGHT - bottom - _EDGE
    plane.set_position((left / WIDTH, bottom / HEIGHT, width / WIDTH, height / HEIGHT))


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
    for colour, variable in zip(_COLOURS, _VARIABLES, strict=True):
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


def percents(axis: Any) -> None:
    """Numbers an axis in percent."""
    axis.set_major_locator(MaxNLocator(nbins=5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))


def logarithms(axis: Any) -> None:
    """Numbers a logarithmic axis as `20k`."""
    axis.set_major_locator(LogLocator(numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def box(plane: Axes, left: float, right: float, low: float, high: float, colour: str) -> None:
    """Draws a rectangle."""
    plane.fill([left, right, right, left], [low, low, high, high], facecolor=colour, linewidth=0)


def short(value: float) -> str:
    """A number in few characters: `1.5M`."""
    for sign, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{sign}"
    return f"{value:.3g}"


def band(plane: Axes, starts: Sequence[float], ends: Sequence[float], values: Sequence[float]) -> None:
    """Draws a histogram as one filled outline."""
    xs, ys = [starts[0]], [0.0]
    for start, end, value in zip(starts, ends, values, strict=True):
        xs += [start, end]
        ys += [value, value]
    plane.fill([*xs, xs[-1]], [*ys, 0.0], facecolor=FIRST, edgecolor="none", linewidth=0)


def outline(plane: Axes, starts: Sequence[float], ends: Sequence[float], values: Sequence[float]) -> None:
    """Draws the histogram of another data set as a line."""
    xs = [x for pair in zip(starts, ends, strict=True) for x in pair]
    plane.plot(xs, [value for value in values for _ in range(2)], color=SECOND, linewidth=1.6)
