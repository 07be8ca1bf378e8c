"""Template expanders over definitions made up for the tests."""

import datetime
from collections.abc import Mapping

from transforms.extraction.template_expansion import ExpansionLimits, TemplateExpander


def make_expander(templates: Mapping[str, str], *, first_letter: bool = True, **limits: int) -> TemplateExpander:
    """An expander on 3 February 2020, with rules for `Ruled` and `Known`; `limits` replace those of extraction."""
    pages = {name.encode(): text.encode() for name, text in templates.items()}
    return TemplateExpander(
        pages.get,
        has_rule=lambda name: name.lower() in ("ruled", "known"),
        rule_names=("Ruled", "known"),
        prefixes=("Taiss", "Template"),
        first_letter=first_letter,
        date=datetime.date(2020, 2, 3),
        limits=ExpansionLimits(**{"depth": 100, "characters": 2_000_000, "steps": 100_000} | limits),
    )
