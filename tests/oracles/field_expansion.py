"""Inline calls of a dump's articles and their text by another program: wikitextprocessor, and plain scanning of lines.

Nothing here is maskmill's. The library is patched where it does not run under Python 3.11 or newer, and it is given
titles that it understands: English namespaces, redirects that are followed, both cases of a first letter.
"""

import bz2
import html
import re
import types
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

_NOT_PROSE = tuple("{|!*#:;=<[ \n")
_BLOCK = re.compile(r"<(?:div|table|ul|li|center|p)\b|\{\||\n\n|class=\"error\"|<ref", re.IGNORECASE)
_UNSEEN = re.compile(r"<!--.*?-->|\[\[(?:File|Image|Category|Fails|Kategoreja):[^\]]*\]\]", re.DOTALL | re.IGNORECASE)
_REDIRECT = re.compile(r"\s*#\w+\s*:?\s*\[\[[^:\]|]*:([^\]|#]+)")


class Call(NamedTuple):
    """A call within a line of an article, and its text."""

    title: str
    call: str
    text: str


def _pages(dump: Path) -> Iterator[tuple[int, str, str, bool]]:
    """(namespace, title, text, whether it redirects) of each page."""
    with bz2.open(dump) as file:
        for _, element in ElementTree.iterparse(file):
            if element.tag.endswith("}page"):
                fields = {child.tag.split("}")[1]: child for child in element.iter()}
                text = fields["text"].text or ""
                yield int(fields["ns"].text or 0), fields["title"].text or "", text, "redirect" in fields
                element.clear()


def _library() -> Any:
    """The library's context, made to run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lupa.lua53
        from wikitextprocessor import Wtp, luaexec

    pattern = types.SimpleNamespace(**vars(re))
    pattern.match = lambda expression, *given: re.match(expression.replace("^(?s)", "(?s)^"), *given)
    luaexec.re = pattern
    luaexec.LuaRuntime = lupa.lua53.LuaRuntime
    luaexec.lupa = types.SimpleNamespace(_lupa=lupa.lua53, lua_type=lupa.lua53.lua_type)
    return Wtp(quiet=True, num_threads=1)


def _add_templates(library: Any, templates: Mapping[str, str]) -> None:
    for name, text in templates.items():
        for _ in range(3):
            redirect = _REDIRECT.match(text)
            if redirect:
                target = redirect[1].strip().replace("_", " ")
                text = templates.get(target[:1].upper() + target[1:], "")
        for form in {name, name[:1].lower() + name[1:]}:
            library.add_page("wikitext", f"Template:{form}", text)


def _calls_of(line: str) -> Iterator[str]:
    """The outermost calls of a line."""
    depth = start = 0
    for found in re.finditer(r"\{\{|\}\}", line):
        if found[0] == "{{":
            start = found.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield line[start : found.end()]


def plain(expanded: str) -> str:
    """The text of an expansion, as far as a line of prose has it: without links, marks of bold type, tags."""
    text = _UNSEEN.sub("", expanded)
    text = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]", r"\1", text)
    return " ".join(html.unescape(re.sub(r"'{2,}|<[^<>]*>", " ", text)).split())


def inline_calls(dump: Path) -> list[Call]:
    """The calls within lines of prose that have text, each with it."""
    library = _library()
    templates: dict[str, str] = {}
    articles: list[tuple[str, str]] = []
    for namespace, title, text, redirects in _pages(dump):
        name = title.partition(":")[2]
        if namespace == 10:
            templates[name] = text
        elif namespace == 828:
            library.add_page("Scribunto", f"Module:{name}", text)
        elif namespace == 0 and not redirects:
            articles.append((title, text))
    _add_templates(library, templates)
    library.analyze_templates()
    found = []
    for title, text in articles:
        library.start_page(title)
        for line in re.sub(r"<!--.*?-->|<ref[^<>]*/>|<ref.*?</ref>", "", text, flags=re.DOTALL).split("\n"):
            begins_with_call = re.match(r"\{\{[^{}]*\}\} ?\w", line)
            if line.startswith(_NOT_PROSE) and not begins_with_call:
                continue
            for call in _calls_of(line):
                expanded = library.expand(call)
                if "{{" not in expanded and not _BLOCK.search(expanded) and re.search(r"\w", plain(expanded)):
                    found.append(Call(title, call, plain(expanded)))
    return found
