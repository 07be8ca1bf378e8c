"""Renders the page of a data set: one HTML file that needs no other file, no script and no network."""

import functools
from typing import Any

import jinja2
from markupsafe import Markup

from maskmill.inspection.decoding import marked
from maskmill.inspection.shown_text import shown as harmless
from maskmill.reporting import shown
from maskmill.reporting.charts import charts_of
from maskmill.reporting.comparison import compare
from maskmill.reporting.facts import Facts
from maskmill.storage import files


def render(facts: Facts, other: Facts | None = None) -> str:
    """Return the page of a data set, or of two side by side, as HTML.

    Args:
      facts: of the data set.
      other: of another one to compare it with.
    """
    comparison = None if other is None else compare(facts, other)
    template = _environment().get_template("report.html.j2")
    return template.render(facts=facts, other=other, comparison=comparison, charts=charts_of(facts, other))


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
        "marked": lambda pieces: Markup(marked(pieces)),
        "plural": shown.plural,
        "base_name": files.base_name,
    }
    return environment


def _shown(value: Any) -> Any:
    """Return the value of an expression in the template, with all foreign text made harmless."""
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value
