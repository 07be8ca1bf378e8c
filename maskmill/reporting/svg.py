"""Charts as inline SVG: drawn and laid out by matplotlib, coloured by the page's style sheet.

Charts are drawn in the width of a phone, in points that are the page's pixels, so their text is as large as the page's.
Colours are placeholders that become variables of the style sheet; text stays text.
"""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from maskmill.inspection.shown_text import shown as harmless
from maskmill.reporting import shown

# Each colour is replaced by the variable of this name in the style sheet.
_VARIABLES = ("ink", "muted", "line", "first", "second")
_COLOURS = tuple(f"#00ab{number:02x}" for number in range(len(_VARIABLES)))
INK, MUTED, _GRID, FIRST, SECOND = _COLOURS
_OF_DATA_SETS = (FIRST, SECOND)
WIDTH, _HEIGHT, _BAR = 320, 210, 38  # points; _BAR: for a bar and its label
_POINTS = 72  # of an inch
_MOST_LABEL = 34  # characters
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "maskmill",
    "font.size": 12,
    "text.color": INK,
    "text.parse_math": False,
    "axes.facecolor": "none",
    "axes.edgecolor": _GRID,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 12,
    **{f"axes.spines.{side}": False for side in ("top", "right", "left")},
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": _GRID,
    **{f"{axis}tick.color": MUTED for axis in "xy"},
    **{f"{axis}tick.{kind}.size": 0 for axis in "xy" for kind in ("major", "minor")},
    "figure.facecolor": "none",
}
_LEFT_OUT = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>|\n\s*", re.DOTALL)
_IDS = re.compile(r'(\bid="|\bhref="#|url\(#)')
# Some versions of matplotlib write the font as one property, others as several.
_FONT = re.compile(r"font: ([\d.]+px) [^;\"]*|font-family: [^;\"]*;? ?")
_SIZE = re.compile(r'width="[\d.]+pt" height="[\d.]+pt" viewBox="0 0 ([\d.]+) ([\d.]+)"')


class Chart(NamedTuple):
    """A chart with its figures.

    Attributes:
      name: its id on the page. title: what it shows. summary: its message, in a sentence or two.
      svg: the drawing.
      columns, rows: the table of its figures below it, as text; every column but the first holds numbers.
      legend: the names of the data sets if there are two.
    """

    name: str
    title: str
    summary: str
    svg: Markup
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...] = ()


Named = tuple[str, str, str]  # name, title and summary of a chart


def bars(
    named: Named, labels: Sequence[str], values: Sequence[Sequence[float]], show: Callable[[float], str]
) -> Markup:
    """Draw a bar for each label, from top to bottom; two bars for two data sets. values: by data set and label."""
    most = max((value for one in values for value in one), default=0) or 1

    def onto(plane: Axes) -> None:
        thickness = 0.4 / len(values)
        for number, (one, colour) in enumerate(zip(values, _OF_DATA_SETS, strict=False)):
            places = [place + 0.08 + thickness * (number + 0.5) for place in range(len(labels))]
            plane.barh(places, [value and max(value, most / 200) for value in one], thickness, color=colour)
        for place, label in enumerate(labels):
            text = harmless(label)
            text = text if len(text) <= _MOST_LABEL else f"{text[:_MOST_LABEL]}…"
            plane.text(0, place - 0.16, text, color=INK, va="center", in_layout=False)
            value = show(values[0][place])
            plane.text(most, place - 0.16, value, color=MUTED, va="center", ha="right", in_layout=False)
        plane.set(xlim=(0, most), ylim=(len(labels) - 0.4, -0.4))
        plane.set_axis_off()

    return drawn(named, onto, height=_BAR * len(labels))


def curve(
    named: Named,
    x: str,
    data: Sequence[Sequence[tuple[float, float, float]]],
    show: Callable[[float], str],
    *,
    log: bool,
) -> Markup:
    """Draw values of neighbouring ranges [first, last] as steps; those of a second data set as a line.

    x: the name of the axis. data: for each data set the first, last and value of each range. log: logarithmic axes.
    """

    def onto(plane: Axes) -> None:
        for number, (one, colour) in enumerate(zip(data, _OF_DATA_SETS, strict=False)):
            edges = [first for first, _, _ in one] + [last + 1 for _, last, _ in one[-1:]]
            values = [value for *_, value in one]
            if one:
                plane.stairs(values, edges, color=colour, fill=not number, linewidth=2, baseline=0 if not log else 1e-9)
        scale = "log" if log else "linear"
        plane.set(xscale=scale, yscale=scale)
        for axis in (plane.xaxis, plane.yaxis):
            is_share = axis is plane.yaxis and show is shown.percent
            axis.set_major_locator(LogLocator(numticks=6) if log else MaxNLocator(5, integer=axis is plane.xaxis))
            axis.set_major_formatter(PercentFormatter(1, symbol=" %") if is_share else EngFormatter(sep=""))
            axis.set_minor_formatter(NullFormatter())
        plane.set(xlabel=x, ylim=(0.8 if log else 0, None))

    return drawn(named, onto, height=_HEIGHT)


def drawn(named: Named, onto: Callable[[Axes], object], *, height: int) -> Markup:
    """Return a drawing as part of the page, named for screen readers, with the page's colours and unique ids."""
    written = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # type: ignore[arg-type]
        # The browser draws the text in the page's font, so that missing glyphs in matplotlib's do not matter.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH / _POINTS, height / _POINTS), layout="constrained")
        FigureCanvasSVG(figure)
        onto(figure.add_subplot())
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    name, title, summary = named
    svg = _IDS.sub(rf"\g<1>{name}-", _LEFT_OUT.sub("", written.getvalue()))
    svg = _FONT.sub(lambda found: f"font-size: {found[1]}" if found[1] else "", svg)  # in the page's font
    head = (
        f'class="chart" role="img" aria-labelledby="{name}-title {name}-summary" '
        r'style="aspect-ratio: \1 / \2" viewBox="0 0 \1 \2"'
    )
    svg = _SIZE.sub(head, svg, count=1)
    described = (("title", "title", title), ("desc", "summary", harmless(summary)))
    labels = "".join(f'<{tag} id="{name}-{what}">{escape(text)}</{tag}>' for tag, what, text in described)
    svg = svg.replace(">", f">{labels}", 1)
    for colour, variable in zip(_COLOURS, _VARIABLES, strict=True):
        svg = svg.replace(colour, f"var(--{variable})")
    return Markup(svg)
