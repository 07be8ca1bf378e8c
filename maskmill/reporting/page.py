"""Makes the page of a data set: one file of HTML that needs nothing else, no script and no network."""

import dataclasses
import functools
import itertools
from typing import Any

import jinja2
from markupsafe import Markup

from maskmill.inspection.decoding import DecodedExample, DecodedPiece, marked
from maskmill.inspection.shown_text import shown as harmless
from maskmill.reporting import shown
from maskmill.reporting.charts import charts_of
from maskmill.reporting.comparison import compare
from maskmill.reporting.facts import Facts
from maskmill.storage import files

_FIRST_PIECES = 120  # of a part of an example; the others are behind a click


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """A part of an example: neighbouring pieces of one sequence and segment, and those that are behind a click."""

    title: str
    first: tuple[DecodedPiece, ...]
    others: tuple[DecodedPiece, ...]


def render(facts: Facts, other: Facts | None = None) -> str:
    """The page of a data set, or of two beside each other.

    Args:
      facts: of the data set.
      other: of another one, with which it is compared.
    """
    charts = charts_of(facts, other)
    template = _environment().get_template("report.html.j2")
    return template.render(
        facts=facts,
        other=other,
        comparison=None if other is None else compare(facts, other),
        charts=charts,
        parts_of=parts_of,
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("maskmill.reporting", "data"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {
        "count": shown.count,
        "size": shown.size,
        "percent": shown.percent,
        "number": shown.number,
        "duration": shown.duration,
        "marked": lambda pieces: Markup(marked(pieces)),
        "plural": shown.plural,
        "base_name": files.base_name,
    }
    return environment


def _shown(value: Any) -> Any:
    """What an expression of the template gives, with all foreign text made harmless."""
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def parts_of(example: DecodedExample) -> list[Part]:
    """The parts of an example."""
    groups = [list(group) for _, group in itertools.groupby(example.pieces, key=lambda p: (p.sequence, p.segment))]
    several = len({piece.sequence for piece in example.pieces}) > 1
    with_segments = any(piece.segment for piece in example.pieces)
    parts = []
    for group in groups:
        named = [f"Sequence {group[0].sequence + 1}"] if several else []
        named += [f"Segment {'AB'[group[0].segment]}" if group[0].segment < 2 else "Segment"] if with_segments else []
        cut = len(group) if len(group) <= _FIRST_PIECES * 3 // 2 else _FIRST_PIECES
        title = ", ".join(named)
        parts.append(Part(title=title, first=tuple(group[:cut]), others=tuple(group[cut:])))
    return parts
