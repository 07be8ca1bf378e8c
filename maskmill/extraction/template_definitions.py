"""A dump's own templates and modules by name, after redirects, and the names that have rules."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from maskmill.extraction.preprocessor import Node, parse, transcluded_text
from maskmill.inputs.site import Site

TEMPLATE_NAMESPACE, MODULE_NAMESPACE = 10, 828  # on every wiki
MODULE_MARK = "#"  # begins the names of modules in a library: no title has it

_MOST_PARSED = 4 << 20  # characters of definitions that are kept parsed
_STEP_CHARACTERS = 100  # characters of a definition that count as one step
_MOST_REDIRECTS = 3  # from a name to its definition
# These patterns take time linear in any page.
_REDIRECT = re.compile(r"\s*+#[^\W\d]++\s*+:?\s*+\[\[\s*+([^\]|#]+)")
# A template's page may link to the same template of the English Wikipedia, whose names rules have.
_ENGLISH_NAME = re.compile(r"\[\[\s*+en\s*+:\s*+Template\s*+:([^\[\]|#/]+)\]\]", re.IGNORECASE)
_MODULE_REDIRECT = re.compile(r"""\s*+return require\s*+\(?\s*+['"\[]++([^'"\[\]:]++:[^'"\]]++)['"\]]++\s*+\)?\s*+$""")


class Definition(NamedTuple):
    """A template's definition: its title after redirects, its nodes, and the steps that it counts for reading."""

    title: str
    nodes: list[Node]
    steps: int


class Definitions:
    """A dump's templates and modules.

    find: returns a template's page by its title without the namespace, or a module's by its title after MODULE_MARK;
    None if there is none. has_rule: whether a name has a rule and stays a call. rule_names: names with rules, which the
    dump may redirect to local names. `was_asked` is set by each look-up of a template.
    """

    def __init__(
        self,
        find: Callable[[bytes], bytes | None],
        site: Site,
        *,
        has_rule: Callable[[str], bool],
        rule_names: Iterable[str],
    ) -> None:
        self.has_rule = has_rule
        self.was_asked = False
        self._find_page = find
        self._prefixes = _names_of(site, TEMPLATE_NAMESPACE)
        self._module_prefixes = _names_of(site, MODULE_NAMESPACE) | {"module"}
        self._first_letter = site.case == "first-letter"
        self._parsed: dict[str, Definition | None] = {}
        self._parsed_size = 0
        self._rule_names: dict[str, str | None] = {}
        self._aliases = self._find_aliases(rule_names)

    def _find_aliases(self, rule_names: Iterable[str]) -> dict[str, list[str]]:
        """Return the names with a rule that the dump redirects to a template, by the template's title."""
        aliases: dict[str, list[str]] = {}
        for name in rule_names:
            title = self._title(name)
            target, text = self._find(title)
            if text is not None and target != title:
                aliases.setdefault(target, []).append(name)
        return aliases

    def is_template_prefix(self, prefix: str) -> bool:
        """Return whether a prefix is a name of the template namespace."""
        return prefix.strip().lower() in self._prefixes

    def definition(self, name: str) -> Definition | None:
        """Return the definition of a template by its name in a call, without the namespace; None if there is none."""
        name = self._title(name)
        self.was_asked = True
        if name not in self._parsed:
            title, text = self._find(name)
            size = len(name) + len(text or "")
            self._parsed_size += size
            if self._parsed_size > _MOST_PARSED:
                self._parsed.clear()
                self._parsed_size = size
            self._parsed[name] = (
                None
                if text is None
                else Definition(title, parse(transcluded_text(text)), len(text) // _STEP_CHARACTERS)
            )
        return self._parsed[name]

    def _title(self, name: str) -> str:
        name = re.sub(r"[ _]+", " ", name).strip()
        return name[:1].upper() + name[1:] if self._first_letter else name

    def name_with_rule(self, name: str) -> str | None:
        """Return the name under which a template has a rule: its own, one that the dump redirects from or to it, or the
        English one that its page links to; None without a rule.
        """
        if self.has_rule(name):
            return name
        title = self._title(name)
        self.was_asked = True
        if title not in self._rule_names:
            found = None
            target, text = self._find(title)
            for other in (target, *self._aliases.get(target, ()), *map(str.strip, _ENGLISH_NAME.findall(text or ""))):
                if self.has_rule(other):
                    found = other
                    break
            self._rule_names[title] = found
        return self._rule_names[title]

    def page_text(self, title: str) -> str | None:
        """Return the text of a template or a module by its full title; None if there is none, and for other pages."""
        prefix, colon, rest = title.replace("_", " ").partition(":")
        prefix = prefix.strip().lower()
        name = self._title(rest)
        if not colon or (prefix not in self._prefixes and prefix not in self._module_prefixes):
            return None
        if prefix in self._prefixes:
            self.was_asked = True
            return self._find(name)[1]
        for _ in range(1 + _MOST_REDIRECTS):
            page = self._find_page((MODULE_MARK + name).encode())
            text = None if page is None else page.decode("utf-8", "replace")
            redirect = None if text is None else _MODULE_REDIRECT.match(text)
            if not redirect:
                return text
            name = self._title(redirect[1].partition(":")[2])
        return None

    def exists(self, title: str) -> bool:
        """Return whether a page exists; pages outside the library's namespaces count as existing."""
        prefix, colon, _ = title.partition(":")
        is_held = colon and prefix.strip().lower() in self._prefixes | self._module_prefixes
        return not is_held or self.page_text(title) is not None

    def _find(self, name: str) -> tuple[str, str | None]:
        """Return the title after redirects, and the page there; None if there is none."""
        for _ in range(1 + _MOST_REDIRECTS):
            page = self._find_page(name.encode())
            if page is None:
                return name, None
            text = page.decode("utf-8", "replace")
            redirect = _REDIRECT.match(text)
            if not redirect:
                return name, text
            prefix, colon, rest = redirect[1].partition(":")
            name = self._title(rest if colon and self.is_template_prefix(prefix) else redirect[1])
        return name, None


def _names_of(site: Site, namespace: int) -> frozenset[str]:
    return frozenset(name.lower() for name in site.namespaces.get(namespace, ()))
