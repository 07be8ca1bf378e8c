"""Template expanders over definitions made up for the tests."""

from collections.abc import Mapping

from transforms.extraction.options import WikitextOptions
from transforms.extraction.template_expansion import TEMPLATE_NAMESPACE, TemplateExpander
from transforms.inputs.site import Site


def make_expander(templates: Mapping[str, str], *, first_letter: bool = True, **limits: int) -> TemplateExpander:
    """An expander on 3 February 2020, with rules for `Ruled` and `Known`; `limits` replace those of extraction."""
    pages = {name.encode(): text.encode() for name, text in templates.items()}
    return TemplateExpander(
        pages.get,
        Site(
            namespaces={TEMPLATE_NAMESPACE: ("Taiss", "Template")},
            case="first-letter" if first_letter else "case-sensitive",
        ),
        WikitextOptions(date="2020-02-03", **{f"expansion_{name}": limit for name, limit in limits.items()}),  # type: ignore[arg-type]
        has_rule=lambda name: name.lower() in ("ruled", "known"),
        rule_names=("Ruled", "known"),
    )
