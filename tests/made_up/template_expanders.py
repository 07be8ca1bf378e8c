"""Template expanders over definitions made up for the tests."""

import datetime
from collections.abc import Mapping

from maskmill.extraction.lua_process import Limits, LuaModules
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.preprocessor import Call, Node, parse, plain_text
from maskmill.extraction.template_definitions import MODULE_NAMESPACE, TEMPLATE_NAMESPACE, Definitions
from maskmill.extraction.template_expansion import TemplateExpander, seconds_of, site_facts
from maskmill.inputs.site import Site


def make_expander(
    templates: Mapping[str, str], *, first_letter: bool = True, modules: Limits | None = None, **limits: int
) -> TemplateExpander:
    """An expander on 3 February 2020, with rules for `Ruled` and `Known`; `limits` replace those of extraction.

    modules: the limits of modules, whose names begin with `#`; None: they are not run.
    """
    pages = {name.encode(): text.encode() for name, text in templates.items()}
    site = Site(
        namespaces={
            0: ("",),
            1: ("Talk",),
            -1: ("Special",),
            TEMPLATE_NAMESPACE: ("Taiss", "Template"),
            MODULE_NAMESPACE: ("Modulis", "Module"),
        },
        case="first-letter" if first_letter else "case-sensitive",
    )
    options = WikitextOptions(date="2020-02-03", **{f"expansion_{name}": limit for name, limit in limits.items()})  # type: ignore[arg-type]
    definitions = Definitions(
        pages.get, site, has_rule=lambda name: name.lower() in ("ruled", "known"), rule_names=("Ruled", "known")
    )
    run = None if modules is None else LuaModules(site_facts(site), seconds_of(datetime.date(2020, 2, 3)), modules)
    return TemplateExpander(definitions, site, options, run)


def expand_page(expander: TemplateExpander, title: str, text: str) -> str:
    """A page with all its calls expanded; a comment stands for one that gives nothing."""
    nodes = parse(text)
    given = iter(expander.expand(title, [source_of(node) for node in nodes if isinstance(node, Call)]))
    return "".join(next(given).text or "<!-- -->" if isinstance(node, Call) else plain_text(node) for node in nodes)


def source_of(node: Node) -> str:
    """The wikitext of a node."""
    if not isinstance(node, Call):
        return plain_text(node)
    opening, closing = ("{{{", "}}}") if node.is_parameter else ("{{", "}}")
    return opening + "|".join("".join(map(source_of, part)) for part in node.parts) + closing
