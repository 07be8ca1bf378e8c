"""Sphinx extension: the parts of reference pages that are made of the program itself, as ```{made} commands."""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import maskmill
from maskmill.records import features
from pipelines.commands.command_list import COMMANDS
from pipelines.settings import help as help_texts
from pipelines.settings import presets

HERE = Path(__file__).parent


def _plain(text: str) -> str:
    """Return a text of the program as Markdown that shows it as it is."""
    return re.sub(r"([\\*_<>\[\]`#|$])", r"\\\1", text)


def commands() -> Iterator[str]:
    """All commands, each with its usage, an example, and its flags under their headings."""
    build = COMMANDS["build"].flags
    for name, command in COMMANDS.items():
        more = name != "build" and "extract.input" in command.flags
        flags = {flag: known for flag, known in command.flags.items() if not more or flag not in build}
        yield f"## maskmill {name}\n\n{_plain(command.help[0].upper() + command.help[1:])}.\n"
        yield f"```console\n$ {command.example}\n```\n"
        if command.usage:
            yield f"`maskmill {name} {command.usage}`\n"
        if more:
            yield "It takes the flags of [maskmill build](#maskmill-build), and:\n"
        for heading, options in help_texts.in_groups(flags).items():
            yield f"### {name}: {heading}\n"
            for option in options:
                values = "" if option.kind.type is bool else f" {help_texts.metavar(option.kind)}"
                yield f"`--{option.name}{values}`\n: {_plain(option.full_help)}\n"


def recipes() -> Iterator[str]:
    """All presets: each value with the place where it stands."""
    for name in presets.names():
        preset = presets.find(name)
        yield f"## {name}\n\nFollows {_plain(preset[presets.FOLLOWS])}.\n"
        yield "| option | value | where it stands |\n|---|---|---|"
        for section, values in preset.items():
            if section != presets.FOLLOWS:
                for option, (value, place) in values.items():
                    yield f"| `{section}.{option}` | `{value}` | {_plain(place)} |"
        yield ""


def interface() -> Iterator[str]:
    """All that is public in `maskmill`: its functions, classes and errors, by autodoc."""
    public = {name: getattr(maskmill, name) for name in maskmill.__all__ if name != "__version__"}
    classes = [name for name, thing in public.items() if inspect.isclass(thing)]
    errors = [name for name in classes if issubclass(public[name], Exception)]
    for heading, directive, names in (
        ("Functions", "autofunction", [name for name in public if name not in classes]),
        ("Classes", "autoclass", [name for name in classes if name not in errors]),
        ("Errors", "autoexception", errors),
    ):
        members = "" if directive == "autofunction" else "   :members:\n"
        yield f"## {heading}\n\n```{{eval-rst}}"
        yield from (f".. {directive}:: maskmill.{name}\n{members}" for name in names)
        yield "```\n"


def columns() -> Iterator[str]:
    """All columns that examples may have."""
    lengths = {"piece": "S", "mask": "P", "sequence": "1; packed: one for each sequence", "border": "sequences + 1"}
    yield "| column | length | what it is |\n|---|---|---|"
    for name, feature in features.FEATURES.items():
        yield f"| `{name}` | {lengths[feature.per]} | {_plain(features.MEANINGS[name])} |"


def manifest() -> Iterator[str]:
    """Return the fields of a manifest, from its schema."""
    schema = json.loads((HERE.parent / "manifest.schema.json").read_text("utf-8"))
    yield "| field | what it is |\n|---|---|"
    for name, field in schema["properties"].items():
        inside = field.get("items", field).get("properties", {})
        choices = ", ".join(field.get("enum", ()))
        parts = [_plain(field.get("description", "")), choices, ", ".join(f"`{part}`" for part in inside)]
        yield f"| `{name}` | {'; '.join(filter(None, parts))} |"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "presets": recipes,
    "python": interface,
    "columns": columns,
    "manifest": manifest,
}


class Made(SphinxDirective):
    """Markdown that a function of PARTS makes."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        text = "\n".join(PARTS[self.arguments[0]]())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def show_code(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Mark what is indented after a paragraph of a docstring as the code that it is."""
    for place in range(len(lines) - 1, 1, -1):
        before, blank, line = lines[place - 2 : place + 1]
        if line.startswith("    ") and not blank and not before.startswith(" "):
            lines[place:place] = [".. code-block:: python", ""]


def read_notebook(app: Sphinx, name: str, source: list[str]) -> None:
    """Make Markdown of a notebook: its text, its code and what that gave."""
    if app.env.doc2path(name).suffix != ".ipynb":
        return
    parts = []
    for cell in json.loads(source[0])["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
            if "text/html" in data:
                parts.append(f"```{{raw}} html\n{data['text/html']}\n```")
            elif "image/png" in data:
                drawn = f'<img alt="drawn by the code above" src="data:image/png;base64,{data["image/png"]}">'
                parts.append(f"```{{raw}} html\n{drawn}\n```")
            else:
                printed = data.get("text/plain") or "".join(output["text"])
                parts.append(f"```text\n{printed}\n```")
    source[0] = "\n\n".join(parts)


def add_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the table of contents to the first page: a forge would show it as code."""
    if name == app.config.root_doc:
        source[0] += (HERE / "navigation.md").read_text("utf-8")


# What axe-core misses in the theme's pages: names, levels, and places that keys reach if they scroll.
MENDED = (
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="all pages">'),
    (r'<aside class="toc-drawer', '<aside aria-label="this page" class="toc-drawer'),
    (r'role="heading">', 'role="heading" aria-level="2">'),
    (r"<pre>", '<pre tabindex="0">'),
    (r'<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    (r'<th class="([a-z -]*)"><p></p></th>', r'<td class="\1"></td>'),
    (r'<div id="search-results">', '<h1>Search</h1><div id="search-results" >'),
)


def mend(app: Sphinx, failure: Exception | None) -> None:
    """Make the pages accessible."""
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text("utf-8")
        for old, new in MENDED:
            text = re.sub(old, new, text)
        path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what this file adds."""
    app.add_directive("made", Made)
    app.connect("source-read", read_notebook)
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", show_code)
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
