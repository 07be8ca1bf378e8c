"""Expansion of calls with a dump's own definitions, for extraction with `expand_templates`.

A call is replaced by the result of its definition, as in MediaWiki. This is plain Python and far slower than the rules
of template_rules.py, so the extractor requests it only for calls within lines of text. With `unknown`, rules take
precedence within definitions, too: a call of a template that has a rule stays a call, with its arguments expanded.
Names that the dump redirects to one another mean one template: a rule for one of them is a rule for all.

Scribunto modules (`#invoke`) run in a process of their own (lua_process.py). A call whose definition needs a module
that is missing or fails stays a call, and so does one without a definition: the extractor then keeps its argument if
that reads as text.

A page's result depends only on the page and the definitions: its limits count calls, characters and steps, never
seconds, and are far below Python's own. A call's result is kept for other pages with the same call, unless it used
facts of the page; such a page still counts the cost of the call.
"""

import calendar
import collections
import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from maskmill.extraction import language_tables, parser_functions
from maskmill.extraction.lua_process import LuaModules, UnsureError
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.parser_functions import Arguments
from maskmill.extraction.preprocessor import Call, Node, Separator, parse, plain_text
from maskmill.extraction.template_definitions import (
    MODULE_NAMESPACE,
    TEMPLATE_NAMESPACE,
    Definition,
    Definitions,
)
from maskmill.inputs.site import Site

_INVOKE = "#invoke"  # the parser function that runs a Scribunto module
_MODIFIERS = ("subst:", "safesubst:", "msg:", "raw:")  # prefixes of a template's name, in this order
_MOST_LIMITED = 2  # calls of a module that reach a limit, before its page gives the module up
# Pages of a unit on which a module reaches a limit of its own, before the unit gives the module up. A page that runs
# out of seconds costs as much as many others.
_MOST_LIMITED_PAGES = 10
_PAGES_OF = {"own": 1, "seconds": 5}
_DEEPEST_INVOCATIONS = 10  # modules that call modules through templates
_MOST_RESULTS = 1 << 14  # of calls, kept for other pages
_CALLED_ERROR = '<strong class="error"></strong>'


class _LimitReachedError(Exception):
    """A page's limit of characters or steps is reached."""


class _ModuleFailedError(Exception):
    """A template's definition calls a Scribunto module that is missing, or that failed."""


class Expansion(NamedTuple):
    """The result of a call: its wikitext; whether that is the call itself with its arguments expanded; whether a module
    failed.
    """

    text: str
    is_call: bool = False
    failed: bool = False


class _Result(NamedTuple):
    """An expansion that is kept, and its costs; `asked`, `invoked` as in PageExpansion."""

    expansion: Expansion
    asked: frozenset[str]
    invoked: frozenset[str]
    steps: int
    characters: int
    ticks: int
    met_limit: bool


class TemplateExpander:
    """Expands the calls of pages.

    definitions: the dump's. modules: runs its modules; None: calls that need one stay calls. `limited` counts the pages
    that reached a limit. A module that reaches its limits again and again is given up until `begin_unit`: one worker
    reads a unit in order, so this depends on no other worker.
    """

    def __init__(
        self, definitions: Definitions, site: Site, options: WikitextOptions, modules: LuaModules | None = None
    ) -> None:
        self.definitions: Definitions = definitions
        self.options = options
        self.site = site
        self.modules = modules
        self.date: datetime.date = datetime.date.fromisoformat(options.date)
        self.clock = parser_functions.clock_variables(self.date)
        self.limited = 0
        self.given_up: set[str] = set()
        self._limited_pages: collections.Counter[str] = collections.Counter()
        self._results: dict[str, _Result] = {}

    def begin_unit(self) -> None:
        """Begin a unit: call modules that were given up again."""
        self.given_up.clear()
        self._limited_pages.clear()

    def expand(self, title: str, calls: Iterable[str], *, counts: bool = True) -> list[Expansion]:
        """Return the results of a page's calls, each given from its opening to its closing braces.

        counts: whether the page and its modules count if they reach a limit.
        """
        calls = list(calls)
        try:
            page, found = self._expand(title, calls, anew=False)
        except UnsureError:
            page, found = self._expand(title, calls, anew=True)
        if counts:
            self.limited += page.met_limit
            self._limited_pages.update(page.limited_modules)
            self.given_up.update(m for m in page.limited_modules if self._limited_pages[m] >= _MOST_LIMITED_PAGES)
        return found

    def _expand(self, title: str, calls: Iterable[str], *, anew: bool) -> tuple["PageExpansion", list[Expansion]]:
        if self.modules is not None:
            self.modules.begin_page(anew=anew)
        page = PageExpansion(self, title)
        return page, [self._expand_call(page, call, is_kept=not anew) for call in calls]

    def _expand_call(self, page: "PageExpansion", call: str, *, is_kept: bool) -> Expansion:
        known = self._results.get(call) if is_kept else None
        if known is None or known.invoked & self.given_up:
            known = page.result(call)
            if is_kept and "page" not in known.asked:
                if len(self._results) >= _MOST_RESULTS:
                    self._results.clear()
                self._results[call] = known
        else:
            known = page.use(known)
        return known.expansion


def _may_be_template(name: str) -> bool:
    """Return whether a name without a definition can be a template's, not a parser function's or another page's."""
    return bool(name) and not re.search(r"[#:/<>\[\]{}|\n]", name)


@dataclass
class _Frame:
    """A template call being expanded.

    numbered: the nodes of its numbered arguments, which are expanded in the caller's frame on first use. values: the
    expanded arguments, by name. title: of the template; empty for the page itself.
    """

    caller: "_Frame | None" = None
    numbered: dict[str, list[Node]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    title: str = ""


class PageExpansion:
    """The expansion of one page's calls, with their use of its limits.

    Calls nest up to `expansion_depth`, and a runner's stack may already be deep: each level takes at most five of
    Python's frames (expand_call, _expand_template, a function, its argument, expand_nodes). `asked`: what the call
    depends on: "page", "date", and "templates" if a module requested any. `invoked`: the modules that the call has
    called. `limited_modules`: modules that reached a limit of their own, and for how many pages this page counts.
    """

    def __init__(self, expander: TemplateExpander, title: str) -> None:
        self.expander: TemplateExpander = expander
        self.met_limit = False
        self._definitions = expander.definitions
        self.asked: set[str] = set()
        self.invoked: set[str] = set()
        self.limited_modules: dict[str, int] = {}
        self.defined: dict[str, str] = {}  # variables of the extension Variables
        self.is_in_module = False
        self._limited: collections.Counter[str] = collections.Counter()  # calls that reached a limit, by module
        self._title = title
        self._options = expander.options
        self._variables = {**expander.clock, **parser_functions.page_variables(title)}
        self._depth = 0
        self._invocations = 0
        self._is_call = False
        self._failed = False
        self._characters = 0
        self._steps = 0
        self._is_stopped = False  # after a limit of characters or steps is reached

    def result(self, text: str) -> _Result:
        """Return the result of a call, and its costs."""
        modules = self.expander.modules
        steps, characters, ticks = self._steps, self._characters, modules.ticks if modules else 0
        self.asked, self._is_call, self._failed, self._depth, self._invocations = set(), False, False, 0, 0
        self.defined, self.invoked = {}, set()
        before, self.met_limit = self.met_limit, False
        expansion = Expansion("") if self._is_stopped else self._expand_only(text)
        result = _Result(
            expansion=expansion,
            asked=frozenset(self.asked),
            invoked=frozenset(self.invoked),
            steps=self._steps - steps,
            characters=self._characters - characters,
            ticks=(modules.ticks if modules else 0) - ticks,
            met_limit=self.met_limit,
        )
        if self._is_stopped:
            # The room that was left for the call depends on the calls before it.
            result = result._replace(asked=result.asked | {"page"})
        self.met_limit |= before
        return result

    def use(self, known: _Result) -> _Result:
        """Count the costs of a call that was expanded before; return its result here."""
        try:
            if self._is_stopped:
                raise _LimitReachedError
            self.work(known.characters, known.steps)
            if self.expander.modules is not None:
                self.expander.modules.use(known.ticks)
        except _LimitReachedError:
            self._is_stopped = self.met_limit = True
            return known._replace(expansion=Expansion(""))
        self.met_limit |= known.met_limit
        return known

    def _expand_only(self, text: str) -> Expansion:
        """Return the wikitext of a text that is a single call."""
        nodes = [node for node in parse(text) if node != ""]
        if len(nodes) != 1 or not isinstance(nodes[0], Call):
            return Expansion(text, is_call=True)
        try:
            expanded = self.expand_call(nodes[0], _Frame(), is_outermost=True)
        except _ModuleFailedError:
            return Expansion(text, is_call=True, failed=True)
        except _LimitReachedError:
            self._is_stopped = self.met_limit = True
            return Expansion("")
        return Expansion(expanded, self._is_call, self._failed)

    def use_date(self) -> datetime.date:
        """Return the dump's date, and note that the call depends on it."""
        self.asked.add("date")
        return self.expander.date

    def work(self, characters: int = 0, steps: int = 1) -> None:
        """Count work. Raise _LimitReachedError if it is too much."""
        self._steps += steps
        self._characters += characters
        if self._steps > self._options.expansion_steps or self._characters > self._options.expansion_characters:
            raise _LimitReachedError

    def expand_nodes(self, nodes: list[Node], frame: _Frame) -> str:
        """Return the text of nodes of a definition or an argument."""
        out = []
        for node in nodes:
            self.work()
            out.append(self.expand_call(node, frame) if isinstance(node, Call) else plain_text(node))
        text = "".join(out)
        self.work(len(text))
        return text

    def expand_call(self, call: Call, frame: _Frame, *, is_outermost: bool = False) -> str:
        """Return the text of a call or a parameter; "" if it is too deep. is_outermost: the page itself has it."""
        if self._depth >= self._options.expansion_depth:
            self.met_limit = True
            return ""
        self._depth += 1
        if call.is_parameter:
            text = self._expand_parameter(call, frame)
        else:
            text = self._expand_template(call, frame, is_outermost)
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

    def _expand_template(self, call: Call, frame: _Frame, is_outermost: bool) -> str:
        """Return the text of a call of a parser function, a variable or a template."""
        name = self.expand_nodes(call.parts[0], frame).strip()
        for modifier in _MODIFIERS:
            if name.lower().startswith(modifier):
                name = name[len(modifier) :].strip()
        head, colon, rest = name.partition(":")
        if colon:
            if head.strip().lower() == _INVOKE:
                return self._invoke(rest.strip(), call.parts[1:], frame)
            function = parser_functions.FUNCTIONS.get(head.strip().lower())
            if function is not None:
                return function(Arguments(self, frame, rest.strip(), call.parts[1:]))
            if self._definitions.is_template_prefix(head):
                name = rest.strip()
        if len(call.parts) == 1 and name in self._variables:
            return self._variable(name)
        known = None if self.is_in_module else self._definitions.name_with_rule(name)
        # The rule of a template does not describe its outermost calls here, or they would not be expanded.
        if known is not None and not (is_outermost and self._definitions.has_rule(name)):
            self._is_call = is_outermost
            return self._kept_call(known, call, frame)
        definition = self._definitions.definition(name)
        if definition is None:
            self._is_call = is_outermost
            return self._kept_call(name, call, frame) if _may_be_template(name) else ""
        depth = self._depth
        try:
            return self._expand_definition(definition, self._bind(call.parts[1:], frame))
        except _ModuleFailedError:
            self._depth, self._failed, self._is_call = depth, True, is_outermost
            return self._kept_call(name, call, frame)

    def _expand_definition(self, definition: Definition, frame: _Frame) -> str:
        # Counted at each call, even if the definition is kept parsed: a page's limits must not depend on the pages
        # before it.
        self.work(steps=definition.steps)
        frame.title = definition.title
        return self.expand_nodes(definition.nodes, frame)

    def _variable(self, name: str) -> str:
        if name in self.expander.clock:
            self.asked.add("date")
        elif name not in parser_functions.SAME_EVERYWHERE:
            self.asked.add("page")
        return self._variables[name]

    def _kept_call(self, name: str, call: Call, frame: _Frame) -> str:
        """Return the call with its arguments expanded, for the extractor."""
        parts = [self.expand_nodes(part, frame) for part in call.parts[1:]]
        return "{{" + "|".join([name, *parts]) + "}}"

    def _bind(self, parts: list[list[Node]], caller: _Frame) -> _Frame:
        """Return the frame of a call with these arguments."""
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

    # ---- modules

    def _invoke(self, module: str, parts: list[list[Node]], frame: _Frame) -> str:
        """Return the text of a module's function, called by the template or the page of `frame`.

        Raises:
          _ModuleFailedError: it gives nothing.
        """
        modules = self.expander.modules
        if modules is None or not parts or self._invocations >= _DEEPEST_INVOCATIONS:
            raise _ModuleFailedError
        function = self.expand_nodes(parts[0], frame).strip()
        prefix = (self.expander.site.namespaces.get(MODULE_NAMESPACE) or ("Module",))[0]
        title = f"{prefix}:{module}"
        self.invoked.add(title)
        if title in self.expander.given_up or self._limited[title] >= _MOST_LIMITED:
            self.met_limit = True
            self.asked.add("page")  # the next unit may call it again
            raise _ModuleFailedError
        template = (self.expander.site.namespaces.get(TEMPLATE_NAMESPACE) or ("Template",))[0]
        frames = {
            "current": {"title": title, "arguments": self._all_arguments(self._bind(parts[1:], frame))},
            "parent": {
                "title": f"{template}:{frame.title}" if frame.title else self._title,
                "arguments": self._all_arguments(frame),
                "is_page": not frame.title,
            },
            "empty": {"title": title, "arguments": {}},
        }
        before, self.is_in_module = self.is_in_module, True
        depth = self._depth
        self._invocations += 1
        try:
            called = modules.call(title, function, frames, self._title, self._answer)
        finally:
            self._invocations -= 1
            self.is_in_module = before
        self._depth = depth
        self.asked |= called.asked
        self.met_limit |= called.limit is not None
        # A limit ends a call only if its page has a process of its own, so no other page is affected.
        if called.limit is not None and not self._invocations:
            self._limited[title] += 1
            if called.limit != "page":
                self.limited_modules[title] = max(self.limited_modules.get(title, 0), _PAGES_OF[called.limit])
        if called.text is None:
            raise _ModuleFailedError
        self.work(len(called.text))
        return called.text

    def _all_arguments(self, frame: _Frame) -> dict[str, str]:
        """Return the arguments of a call by name, all expanded."""
        if frame.caller is not None:
            for name, nodes in frame.numbered.items():
                if name not in frame.values:
                    frame.values[name] = self.expand_nodes(nodes, frame.caller)
        return frame.values

    def _answer(self, name: str, arguments: list[Any]) -> tuple[Any, set[str]]:
        """Return the answer to a module's request, and what it depends on."""
        definitions, depth = self._definitions, self._depth
        before, self.asked = self.asked, set()
        was_asked, definitions.was_asked = definitions.was_asked, False
        try:
            answer = getattr(self, f"_answer_{name}")(*arguments)
        except _ModuleFailedError:
            self._depth = depth
            answer = _CALLED_ERROR
        finally:
            if definitions.was_asked:
                self.asked.add("templates")
            asked, self.asked = self.asked, self.asked | before
            definitions.was_asked |= was_asked  # a request may come while another one is answered
        return answer, asked

    def _answer_module_text(self, title: str) -> str | None:
        return self._definitions.page_text(title)

    def _answer_exists(self, title: str) -> bool:
        return self._definitions.exists(title)

    def _answer_preprocess(self, text: str, arguments: Mapping[str, str]) -> str:
        self.work(len(text))  # comments, too
        return self.expand_nodes(parse(text), _Frame(values=dict(arguments or {})))

    def _answer_expand_template(self, title: str, arguments: Mapping[str, str]) -> str:
        return self.expand_call(Call([[title], *_parts_of(arguments)]), _Frame())

    def _answer_call_function(self, name: str, arguments: Mapping[str, str]) -> str:
        parts = _parts_of(arguments)
        if ":" not in name and parts:
            first, *parts = parts
            name = f"{name}:{plain_text(first[-1])}"  # type: ignore[arg-type]
        return self.expand_call(Call([[name], *parts]), _Frame())

    def _answer_format_date(self, form: str, date: str) -> str:
        return parser_functions.format_time(self, form, date)

    def _answer_language_names(self, code: str) -> Mapping[str, str]:
        return language_tables.language_names(code)


def _parts_of(arguments: Mapping[str, Any]) -> list[list[Node]]:
    """Return the parts of a call with these arguments: numbered ones in order, then those with names."""
    values = {str(name): str(value) for name, value in (arguments or {}).items()}
    numbered: list[list[Node]] = []
    while (value := values.pop(str(len(numbered) + 1), None)) is not None:
        numbered.append([value])
    return numbered + [[name, Separator.EQUALS, value] for name, value in values.items()]


def site_facts(site: Site) -> dict[str, Any]:
    """Return the facts about a site for the process that runs modules (lua_libraries.Libraries)."""
    namespaces: dict[str, list[str]] = {str(number): list(names) for number, names in site.namespaces.items()}
    defaults = {0: [""], TEMPLATE_NAMESPACE: ["Template"], MODULE_NAMESPACE: ["Module"]}
    for number, names in defaults.items():
        namespaces.setdefault(str(number), names)
    return {
        "language": site.language,
        "name": site.name,
        "case": site.case,
        "namespaces": namespaces,
        "separators": language_tables.separators_of(site.language),
    }


def seconds_of(date: datetime.date) -> int:
    """Return the seconds from 1970 to the midnight that begins a day, in UTC."""
    return calendar.timegm(date.timetuple())
