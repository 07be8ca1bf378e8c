"""Expansion of templates with a dump's own definitions, for extraction with `expand_templates`.

A page's template calls are replaced by what their definitions give, as MediaWiki does it. This is plain Python and
far slower than the rules of template_rules.py, which take precedence: a call of a template that has a rule stays a
call, with its arguments expanded. Names that the dump redirects to one another mean one template: a rule for one of
them is a rule for all.

Scribunto modules (`#invoke`) cannot be run: a call whose definition needs one stays a call, and so does one that has no
definition. The extractor then keeps its argument if that reads as text.

What a page gives depends on the page and the definitions alone: its limits count calls, characters and steps, never
seconds, and are far from Python's own.
"""

import datetime
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from transforms.extraction import parser_functions
from transforms.extraction.options import WikitextOptions
from transforms.extraction.parser_functions import Arguments
from transforms.extraction.preprocessor import Call, Node, Separator, parse, plain_text, transcluded_text
from transforms.inputs.site import Site

_MOST_PARSED = 4 << 20  # characters of definitions that are kept parsed
_MOST_DIGESTS = 1 << 17  # of titles, kept in memory
_DIGEST_BYTES = 16
_STEP_CHARACTERS = 100  # characters of a definition that count as one step
_MOST_REDIRECTS = 3  # that lead from a name to its definition
_REDIRECT = re.compile(r"\s*#[^\W\d]+\s*:?\s*\[\[\s*([^\]|#]+)")
_INVOKE = "#invoke"  # the parser function that runs a Scribunto module
_MODIFIERS = ("subst:", "safesubst:", "msg:", "raw:")  # may stand before a template's name, in this order
TEMPLATE_NAMESPACE = 10  # on every wiki
# Stands for a call that gives nothing: the extractor mends brackets around such a comment.
_NOTHING = "<!-- -->"


class _LimitReachedError(Exception):
    """A page's limit of characters or steps is reached."""


class _ModuleNeededError(Exception):
    """A template's definition calls a Scribunto module."""


class _Definition(NamedTuple):
    """A template's definition: its title behind redirects, its nodes, and the steps that reading it counts."""

    title: str
    nodes: list[Node]
    steps: int


class TemplateExpander:
    """Expands the templates of pages.

    find: gives a template's page by its title without the namespace, or None. has_rule: whether a name has a rule
    and stays a call. rule_names: names that have rules, which the dump may redirect to local names. `limited` counts
    the pages that met a limit. used_date, used_templates: whether the page expanded last asked for the date, and, if
    `notes_used` is set, for which titles of templates, each with the digest of what it gave (`digest_of`).
    """

    def __init__(
        self,
        find: Callable[[bytes], bytes | None],
        site: Site,
        options: WikitextOptions,
        *,
        has_rule: Callable[[str], bool],
        rule_names: Iterable[str],
    ) -> None:
        self.has_rule = has_rule
        self.options = options
        self.date = datetime.date.fromisoformat(options.date)
        self.clock = parser_functions.clock_variables(self.date)
        self.limited = 0
        self.used_date = False
        self.notes_used = False
        self.used_templates: dict[str, bytes] = {}
        self._digests: dict[str, bytes] = {}
        self._find_page = find
        self._prefixes = tuple(prefix.lower() for prefix in site.namespaces.get(TEMPLATE_NAMESPACE, ()))
        self._first_letter = site.case == "first-letter"
        self._parsed: dict[str, _Definition | None] = {}
        self._parsed_size = 0
        self._rule_names: dict[str, str | None] = {}
        self._aliases = self._find_aliases(rule_names)

    def _find_aliases(self, rule_names: Iterable[str]) -> dict[str, list[str]]:
        """For the title of a template the names with a rule that the dump redirects to it."""
        aliases: dict[str, list[str]] = {}
        for name in rule_names:
            title = self._title(name)
            target, text = self._find(title)
            if text is not None and target != title:
                aliases.setdefault(target, []).append(name)
        return aliases

    def expand(self, title: str, text: str) -> str:
        """The wikitext of a page with its templates expanded."""
        self.used_date = False
        self.used_templates = {}
        page = PageExpansion(self, title)
        expanded = page.expand(text)
        self.limited += page.met_limit
        return expanded

    def is_template_prefix(self, prefix: str) -> bool:
        """Whether a prefix is a name of the template namespace."""
        return prefix.strip().lower() in self._prefixes

    def definition(self, name: str) -> _Definition | None:
        """The definition of the template of a name as a call has it, without the namespace; None if there is none."""
        name = self._title(name)
        self._note_used(name)
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
                else _Definition(title, parse(transcluded_text(text)), len(text) // _STEP_CHARACTERS)
            )
        return self._parsed[name]

    def _title(self, name: str) -> str:
        name = re.sub(r"[ _]+", " ", name).strip()
        return name[:1].upper() + name[1:] if self._first_letter else name

    def name_with_rule(self, name: str) -> str | None:
        """The name under which a template has a rule: its own, or another that the dump redirects from or to it."""
        if self.has_rule(name):
            return name
        title = self._title(name)
        self._note_used(title)
        if title not in self._rule_names:
            found = None
            target, _ = self._find(title)
            for other in (target, *self._aliases.get(target, ())):
                if self.has_rule(other):
                    found = other
                    break
            self._rule_names[title] = found
        return self._rule_names[title]

    @property
    def aliases_digest(self) -> str:
        """A digest of the names with rules that the dump redirects to templates: they decide the text of every page."""
        return hashlib.sha256(repr(sorted(self._aliases.items())).encode()).hexdigest()

    def digest_of(self, title: str) -> bytes:
        """A digest, 16 bytes, of what a title gives: the title behind redirects and its page, or that there is none."""
        if title not in self._digests:
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            target, text = self._find(title)
            content = b"" if text is None else b"\0" + text.encode("utf-8", "replace")
            self._digests[title] = hashlib.sha256(target.encode() + content).digest()[:_DIGEST_BYTES]
        return self._digests[title]

    def _note_used(self, title: str) -> None:
        if self.notes_used and title not in self.used_templates:
            self.used_templates[title] = self.digest_of(title)

    def _find(self, name: str) -> tuple[str, str | None]:
        """The title behind redirects, and the page there; None if there is none."""
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


def _may_be_template(name: str) -> bool:
    """Whether a name without a definition can be that of a template: no parser function, no page of another kind."""
    return bool(name) and not re.search(r"[#:/<>\[\]{}|\n]", name)


@dataclass
class _Frame:
    """A template call being expanded.

    numbered: the nodes of its numbered arguments, which are expanded in the frame of the caller when a parameter asks
    for them. values: the arguments that are expanded, by name.
    """

    caller: "_Frame | None" = None
    numbered: dict[str, list[Node]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)


class PageExpansion:
    """The expansion of one page, with what it has used of its limits.

    Calls nest up to `expansion_depth`, and a runner's stack may be deep already: each level takes at most five
    of Python's frames (expand_call, _expand_template, a function, its argument, expand_nodes).
    """

    def __init__(self, expander: TemplateExpander, title: str) -> None:
        self.expander = expander
        self.met_limit = False
        self._options = expander.options
        self._variables = {**expander.clock, **parser_functions.page_variables(title)}
        self._depth = 0
        self._characters = 0
        self._steps = 0

    def expand(self, text: str) -> str:
        """The wikitext with its templates expanded; once a limit of characters or steps is met, without them."""
        frame = _Frame()
        out = []
        stopped = False
        for node in parse(text):
            if not isinstance(node, Call):
                out.append(plain_text(node))
            elif not stopped:
                self._depth = 0
                try:
                    out.append(self.expand_call(node, frame) or _NOTHING)
                except _ModuleNeededError:
                    out.append(_NOTHING)
                except _LimitReachedError:
                    stopped = self.met_limit = True
        return "".join(out)

    def use_date(self) -> datetime.date:
        """The dump's date; the page is noted to depend on it."""
        self.expander.used_date = True
        return self.expander.date

    def work(self, characters: int = 0, steps: int = 1) -> None:
        """Counts work. Raises _LimitReachedError if it is too much."""
        self._steps += steps
        self._characters += characters
        if self._steps > self._options.expansion_steps or self._characters > self._options.expansion_characters:
            raise _LimitReachedError

    def expand_nodes(self, nodes: list[Node], frame: _Frame) -> str:
        """The text of nodes of a definition or an argument."""
        out = []
        for node in nodes:
            self.work()
            out.append(self.expand_call(node, frame) if isinstance(node, Call) else plain_text(node))
        text = "".join(out)
        self.work(len(text))
        return text

    def expand_call(self, call: Call, frame: _Frame) -> str:
        """What a call or a parameter gives; nothing if it is too deep."""
        if self._depth >= self._options.expansion_depth:
            self.met_limit = True
            return ""
        self._depth += 1
        text = self._expand_parameter(call, frame) if call.is_parameter else self._expand_template(call, frame)
        self._depth -= 1
        return text

    def _expand_parameter(self, call: Call, frame: _Frame) -> str:
        name = self.expand_nodes(call.parts[0], frame).strip()
        if name in frame.values:
            return frame.values[name]
        if name in frame.numbered and frame.caller is not None:
            frame.values[name] = self.expand_nodes(frame.numbered[name], frame.caller)
            return frame.values[name]
        return self.expand_nodes(call.parts[1], frame) if len(call.parts) > 1 else ""

    def _expand_template(self, call: Call, frame: _Frame) -> str:
        """What a call of a parser function, a variable or a template gives."""
        name = self.expand_nodes(call.parts[0], frame).strip()
        for modifier in _MODIFIERS:
            if name.lower().startswith(modifier):
                name = name[len(modifier) :].strip()
        head, colon, rest = name.partition(":")
        if colon:
            if head.strip().lower() == _INVOKE:
                raise _ModuleNeededError
            function = parser_functions.FUNCTIONS.get(head.strip().lower())
            if function is not None:
                return function(Arguments(self, frame, rest.strip(), call.parts[1:]))
            if self.expander.is_template_prefix(head):
                name = rest.strip()
        if len(call.parts) == 1 and name in self._variables:
            self.expander.used_date |= name in self.expander.clock
            return self._variables[name]
        known = self.expander.name_with_rule(name)
        if known is not None:
            return self._kept_call(known, call, frame)
        definition = self.expander.definition(name)
        if definition is None:
            return self._kept_call(name, call, frame) if _may_be_template(name) else ""
        # Counted at each call, even of a definition that is kept parsed: a page's limits must not depend on the pages
        # before it.
        self.work(steps=definition.steps)
        depth = self._depth
        try:
            return self.expand_nodes(definition.nodes, self._bind(call.parts[1:], frame))
        except _ModuleNeededError:
            self._depth = depth
            return self._kept_call(name, call, frame)

    def _kept_call(self, name: str, call: Call, frame: _Frame) -> str:
        """The call with its arguments expanded, for the extractor."""
        parts = [self.expand_nodes(part, frame) for part in call.parts[1:]]
        return "{{" + "|".join([name, *parts]) + "}}"

    def _bind(self, parts: list[list[Node]], caller: _Frame) -> _Frame:
        """The frame of a call with these arguments."""
        frame = _Frame(caller)
        number = 0
        for part in parts:
            if Separator.EQUALS in part:
                at = part.index(Separator.EQUALS)
                name = self.expand_nodes(part[:at], caller).strip()
                # Named arguments are trimmed, numbered ones are not.
                frame.values[name] = self.expand_nodes(part[at + 1 :], caller).strip()
            else:
                number += 1
                frame.numbered[str(number)] = part
                frame.values.pop(str(number), None)
        return frame
