"""Wikitext to plain text: the text of a site's pages.

The work is done by compiled kernels (maskmill.extraction.kernels); this module builds their tables from a dump's
description of its site (`Site`), from facts about its language (languages.py) and from the rules for templates
(template_rules.py).
"""

import dataclasses
import datetime
import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
from html.entities import html5
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maskmill.errors import UnusableInputError
from maskmill.extraction import holes, languages, template_rules, unknown_templates
from maskmill.extraction.expanded_text import TextFilter
from maskmill.extraction.kernels import codes, tables
from maskmill.extraction.kernels.text import byte_set
from maskmill.extraction.kernels.wikitext import extract, is_disambiguation
from maskmill.extraction.languages import Language
from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_definitions import MODULE_MARK, TEMPLATE_NAMESPACE, Definitions
from maskmill.extraction.unknown_templates import UnknownTemplate, describe_call
from maskmill.inputs.site import Site

if TYPE_CHECKING:
    from maskmill.extraction.template_expansion import TemplateExpander

_KEPT_BYTES = 1 << 20  # of the page buffer; a larger one is freed after the page that needed it
_REDIRECT_BYTES = 400  # of a page's beginning that are searched for a redirect
_SHORTEST_REDIRECT_WORD = 4  # characters of an unknown word that redirects

# Numbers of namespaces, on every wiki.
_FILE = 6
_CATEGORY = 14

# Possible prefixes of a template's name in a call.
_CALL_PREFIXES = ("subst", "safesubst", "msg", "msgnw", "raw")

# The bytes at which the two passes over a page stop; so does the hyphen if pages are written in several variants.
_STRUCTURE_BYTES = b"\n{}[]<"
_RENDER_BYTES = b"\n'&|=]}[{<_\x01\x02\x03\r"

_MOST_CALLS = 1 << 14  # on one page that are reported, or expanded
# Replaces a call that gives nothing: brackets around such a comment are repaired.
_NOTHING = b"<!-- -->"
_BEFORE_CALL, _AFTER_CALL = b"It is ", b" there."  # make a sentence of a call's text, for the report

# The kernels' counts by their names in manifests.
_COUNTS = dict(
    zip(
        unknown_templates.COUNTS,
        (
            codes.COUNT_UNKNOWN, codes.COUNT_KEPT, codes.COUNT_BRACKETS, codes.COUNT_KNOWN, codes.COUNT_EXPANDED,
            codes.COUNT_EMPTY, codes.COUNT_FAILED,
        ),
        strict=True,
    )
)  # fmt: skip
_LISTED = {False: codes.LISTED_UNKNOWN, "unknown": codes.LISTED_FUNCTIONS, "all": codes.LISTED_ALL}

_LISTS = {"sentences": codes.LISTS_SENTENCES, "keep": codes.LISTS_KEEP, "drop": codes.LISTS_DROP}

# The text in data/tex_commands.tsv of commands that are not text: `{}` shows their argument, others have a name.
_TEX_COMMANDS = {"": codes.TEX_IGNORED, "{}": codes.TEX_GROUP, "{}/{}": codes.TEX_FRACTION} | {
    name.removeprefix("TEX_").lower(): number for name, number in vars(codes).items() if name.startswith("TEX_")
}
_NEGATION = "\u0338"  # combined with the sign before it
_SIGNS = "=<>"  # that `\\not` negates, besides commands


def _all_cases(name: str) -> set[str]:
    """Return a name in the cases that wikis use."""
    return {name, name.lower(), name.upper(), name.title()}


def _add_markup(words: template_rules.WordTable) -> None:
    """Add the words of all wikis: tags, entities, TeX commands, prefixes of links, hidden classes."""
    for number, (name, kind) in enumerate(languages.tags()):
        words.add(codes.DOMAIN_TAG, name, getattr(codes, f"TAG_{kind.upper()}"), number)
    for name, text in html5.items():
        if name.endswith(";"):
            words.add_text(codes.DOMAIN_ENTITY, name[:-1], text)
    _add_tex(words)
    for name in languages.interlanguage_prefixes():
        words.add(codes.DOMAIN_NAMESPACE, name, codes.NAMESPACE_LANGUAGE)
    for name in languages.interwiki_prefixes():
        words.add(codes.DOMAIN_NAMESPACE, name, codes.NAMESPACE_SITE)
    for name in languages.hidden_classes():
        words.add(codes.DOMAIN_HIDDEN, name, 1)


def _add_tex(words: template_rules.WordTable) -> None:
    """Add TeX commands, and under `not NAME` the negations of signs."""
    path = resources.files("maskmill.extraction") / "data" / "tex_commands.tsv"
    commands = dict(line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    for name, text in commands.items():
        if text in _TEX_COMMANDS:
            words.add(codes.DOMAIN_TEX, name, 0, _TEX_COMMANDS[text])
            continue
        words.add_text(codes.DOMAIN_TEX, name, text)
        _add_negation(words, name, text)
    for sign in _SIGNS:
        _add_negation(words, sign, sign)


def _add_negation(words: template_rules.WordTable, name: str, sign: str) -> None:
    negated = unicodedata.normalize("NFC", sign.strip() + _NEGATION)
    if sign.strip() and len(negated) == 1:
        words.add_text(codes.DOMAIN_TEX, f"not {name}", f" {negated} ")


def _add_namespaces(words: template_rules.WordTable, site: Site, language: Language) -> None:
    """Add the site's namespaces; their names replace those of other sites."""
    kinds = {
        _FILE: codes.NAMESPACE_FILE,
        _CATEGORY: codes.NAMESPACE_CATEGORY,
        TEMPLATE_NAMESPACE: codes.NAMESPACE_TEMPLATE,
    }
    more_names = {_FILE: language.words("file"), _CATEGORY: language.words("category")}
    for key, names in {**dict.fromkeys(kinds, ()), **site.namespaces}.items():
        for name in (*names, *more_names.get(key, ())):
            for form in _all_cases(name):
                words.add(codes.DOMAIN_NAMESPACE, form, kinds.get(key, codes.NAMESPACE_OTHER))
    for name in _CALL_PREFIXES:
        words.add(codes.DOMAIN_NAMESPACE, name, codes.NAMESPACE_TEMPLATE)


def _add_language(words: template_rules.WordTable, language: Language) -> None:
    """Add the language's names of appendices and lists of works, variants and disambiguation templates."""
    titles = [(name, codes.SECTION_OF_WORKS) for name in language.words("works")]
    titles += [(name, codes.SECTION_OF_SOURCES) for name in language.words("appendix")]
    titles += [(name, codes.SECTION_OR_TOPIC) for name in language.words("literature")]
    for name, value in titles:
        for form in _all_cases(name):
            words.add(codes.DOMAIN_SECTION, form, value)
    for rank, name in enumerate(language.variants):
        words.add(codes.DOMAIN_VARIANT, name, rank)
    for name in language.words("switch"):
        words.add(codes.DOMAIN_SWITCH, name, 1)
    for name in language.words("disambiguation"):
        words.add(codes.DOMAIN_DISAMBIGUATION, name, 1)
        if name.startswith("__"):
            words.add(codes.DOMAIN_SWITCH, name.strip("_"), 1)


def _redirect_pattern(language: Language) -> re.Pattern[str]:
    words = {word.lstrip("#＃") for word in language.words("redirect")}
    alternatives = "|".join(re.escape(word) for word in sorted(words))
    return re.compile(rf"\s*[#＃](?:{alternatives})\s*[:：]?\s*\[\[", re.IGNORECASE)


# Any one word before a link: languages without data, and words that the data lacks.
_ANY_REDIRECT = re.compile(r"\s*[#＃]\s?([^\W\d]+)\s*[:：]?\s*\[\[[^\[\]\n]+\]\]")


def _case_tables() -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return the upper and the lower case of the first code points, uint16 [codes.CASED] each."""
    upper = np.arange(codes.CASED, dtype=np.uint16)
    lower = upper.copy()
    for code in range(codes.CASED):
        for cases, form in ((upper, chr(code).upper()), (lower, chr(code).lower())):
            # Skip mappings that change the length in UTF-8 or in characters.
            if len(form) == 1 and len(form.encode()) == len(chr(code).encode()):
                cases[code] = ord(form)
    return upper, lower


def _settings(
    words: template_rules.WordTable, language: Language, options: WikitextOptions, date: datetime.date
) -> NDArray[np.int64]:
    """Return the kernels' settings for the options and the language, int64 [codes.SETTINGS]."""
    settings = np.zeros(codes.SETTINGS, np.int64)
    settings[codes.SETTING_KEEP_HEADINGS] = options.headings == "keep"
    settings[codes.SETTING_LISTS] = _LISTS[options.lists]
    settings[codes.SETTING_YEAR : codes.SETTING_DAY + 1] = (date.year, date.month, date.day)
    for setting, separator in (
        (codes.SETTING_GROUP_OFFSET, language.group_separator.encode()),
        (codes.SETTING_DECIMAL_OFFSET, language.decimal_separator.encode()),
    ):
        settings[setting] = words.intern(separator)
        settings[setting + 1] = len(separator)
    settings[codes.SETTING_GROUP_FROM] = language.group_from
    settings[codes.SETTING_LISTED] = _LISTED[options.expand_templates]
    settings[codes.SETTING_HOLES] = options.holes != "keep"
    return settings


def _buffer(kept: NDArray[np.uint8], size: int, usual: int) -> NDArray[np.uint8]:
    """Return a buffer of at least `size` bytes: the kept one, unless it is too small, or far larger than usual."""
    return kept if size <= len(kept) <= max(size, usual) else np.empty(max(size, usual), np.uint8)


class WikitextExtractor:
    """Extracts plain text from a site's pages. Pickles as its arguments; one instance serves one thread at a time.

    templates: for `expand_templates`, a function that returns a template's page by its name without the namespace, or a
    module's by its name after MODULE_MARK; None if there is none. MODULE_MARK alone returns any value but None if there
    are modules.

    Raises UnusableInputError if templates must be expanded and none are passed.
    """

    def __init__(
        self, site: Site, options: WikitextOptions, templates: Callable[[bytes], bytes | None] | None = None
    ) -> None:
        self.site = site
        self.options = options
        self.templates = templates
        self._date = datetime.date.fromisoformat(options.date)
        self._expander: TemplateExpander | None = None
        if options.expand_templates:
            words = self._make_words()
            self._expander = self._make_expander(words)
            self._tables = self._make_tables(words)
        self._text = np.empty(0, np.uint8)
        self._out = np.empty(0, np.uint8)
        self._counts = np.zeros(codes.COUNTS, np.int64)
        self._filter = TextFilter(site)
        self._calls = np.zeros(_MOST_CALLS if options.report_templates or options.expand_templates else 0, tables.CALL)
        self._unknown: dict[str, UnknownTemplate] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return WikitextExtractor, (self.site, self.options, self.templates)

    # The following is made for the first page: reading the languages' words and compiling all rules takes 0.2 s, and
    # inputs
    # without wikitext need none of it.

    @functools.cached_property
    def _language(self) -> Language:
        return languages.find_language(self.site.language)

    @functools.cached_property
    def _redirect(self) -> re.Pattern[str]:
        return _redirect_pattern(self._language)

    @functools.cached_property
    def _title_ends(self) -> tuple[bytes, ...]:
        return tuple(f" ({word})".encode() for word in self._language.words("disambiguation_title"))

    @functools.cached_property
    def _tables(self) -> tables.Tables:
        return self._make_tables(self._make_words())

    def _make_words(self) -> template_rules.WordTable:
        """Return the words and rules for the kernels."""
        words = template_rules.WordTable()
        _add_markup(words)
        _add_namespaces(words, self.site, self._language)
        _add_language(words, self._language)
        rules = template_rules.load_rules(self._language.code)
        if self.options.rules_text:
            rules.append(template_rules.parse_rules(self.options.rules_text, self.options.template_rules or "rules"))
        template_rules.add_rules(words, rules, self._date, self._is_defined)
        return words

    def _is_defined(self, name: str) -> bool:
        """Return whether the dump's own definition of a template takes precedence over a guess."""
        if self.templates is None or self.options.expand_templates != "unknown":
            return False
        return self.templates((name[:1].upper() + name[1:]).encode()) is not None

    def _make_expander(self, words: template_rules.WordTable) -> "TemplateExpander":
        # Most runs expand nothing, so these imports are made only when needed.
        from maskmill.extraction.lua_process import LuaModules
        from maskmill.extraction.template_expansion import TemplateExpander, seconds_of, site_facts

        if self.templates is None:
            raise UnusableInputError("expand_templates needs the templates of the dump; none were given")
        uses_rules = self.options.expand_templates == "unknown"
        has_modules = self.templates(MODULE_MARK.encode()) is not None
        definitions = Definitions(
            self.templates,
            self.site,
            has_rule=template_rules.names_with_rules(words) if uses_rules else lambda _: False,
            rule_names=words.template_names if uses_rules else (),
        )
        modules = LuaModules(site_facts(self.site), seconds_of(self._date)) if has_modules else None
        return TemplateExpander(definitions, self.site, self.options, modules)

    def _make_tables(self, words: template_rules.WordTable) -> tables.Tables:
        variant = b"-" if self._language.variants else b""
        upper, lower = _case_tables()
        settings = _settings(words, self._language, self.options, self._date)
        table, pool, programs = words.arrays()
        return tables.Tables(
            structure_class=byte_set(_STRUCTURE_BYTES + variant),
            render_class=byte_set(_RENDER_BYTES + variant),
            fold=template_rules.FOLD,
            words=table,
            pool=pool,
            code=programs,
            upper=upper,
            lower=lower,
            settings=settings,
        )

    def _load(self, text: bytes) -> int:
        """Copy a page into the kernels' padded buffer; return its length in bytes."""
        n = len(text)
        self._text = _buffer(self._text, n + codes.PADDING, _KEPT_BYTES)
        self._text[:n] = np.frombuffer(text, np.uint8)
        self._text[n : n + codes.PADDING] = 0
        return n

    @property
    def limited_pages(self) -> int:
        """The number of pages that reached a limit, so that their templates were expanded only in part."""
        return self._expander.limited if self._expander is not None else 0

    def take_template_counts(self) -> dict[str, int]:
        """Return the counts of templates in the pages since the last call, by name, without zeros.

        unknown_calls: calls of templates without a rule, within lines of text. kept_arguments: those of them that gave
        their argument. dropped_brackets: pairs of brackets and quotation marks that were dropped with all their
        content. known_calls: calls of templates that a rule describes, within lines of text. expanded_calls,
        calls_expanded_to_nothing: further calls, for which the dump's own definitions gave text, or something else than
        text. failed_modules: calls whose definition needs a module that failed. given_up_modules: modules that reached
        their limits too often since the last call; from now on they are called again.
        """
        counts = {name: int(self._counts[row]) for name, row in _COUNTS.items() if self._counts[row]}
        self._counts[:] = 0
        if self._expander is not None:
            if self._expander.given_up:
                counts[unknown_templates.GIVEN_UP] = len(self._expander.given_up)
            self._expander.begin_unit()
        return counts

    def take_unknown_templates(self) -> list[UnknownTemplate]:
        """Return the templates without a rule in the pages since the last call, by name, if they are reported."""
        found = [self._unknown[name] for name in sorted(self._unknown)]
        self._unknown = {}
        return found

    def _note_unknown(self, title: bytes, text: bytes, calls: Sequence[tuple[int, int, int]]) -> None:
        """Record the listed calls of templates without a rule, before any is expanded."""
        prefixes = self.site.namespaces.get(TEMPLATE_NAMESPACE, ())
        for start, end, kept in calls:
            if kept in (codes.CALL_FUNCTION, codes.CALL_KNOWN):
                continue
            name, sample = describe_call(text, start, end, prefixes)
            known = self._unknown.get(name)
            if known is None:
                known = UnknownTemplate(
                    name=name,
                    calls=0,
                    kept=0,
                    holes=0,
                    gives=self._defined_text(title, text[start:end]),
                    title=title.decode("utf-8", "replace"),
                    sample=sample,
                )
            self._unknown[name] = dataclasses.replace(
                known,
                calls=known.calls + 1,
                kept=known.kept + (kept == codes.CALL_KEPT),
                holes=known.holes + (kept == codes.CALL_HOLE),
            )

    def _defined_text(self, title: bytes, call: bytes) -> str:
        """Return the text of a page's call by the wiki's own definition, for the report; "" without expansion."""
        if self._expander is None:
            return ""
        call_text = call.decode("utf-8", "replace")
        # The page is expanded a second time later, and counted then.
        (expanded,) = self._expander.expand(title.decode("utf-8", "replace"), [call_text], counts=False)
        if expanded.is_call:
            return "(its module failed)" if expanded.failed else "(no definition)"
        shown = self._filter.text_of(expanded.text)
        if not shown:
            return "(no text)"
        before = self._counts.copy()
        plain = self._render(title, _BEFORE_CALL + shown.encode("utf-8", "replace") + _AFTER_CALL)
        self._counts[:] = before
        plain = plain.replace(holes.MARK, b"")
        return plain[len(_BEFORE_CALL) : -len(_AFTER_CALL)].decode("utf-8", "replace").strip()

    def is_redirect(self, text: bytes) -> bool:
        """Return whether the page's wikitext redirects: `#REDIRECT [[…]]` in English or in the site's language."""
        start = text[:_REDIRECT_BYTES].lstrip()
        if not start.startswith((b"#", "＃".encode())):
            return False
        head = start.decode("utf-8", "ignore")
        if self._redirect.match(head):
            return True
        word = _ANY_REDIRECT.match(head)
        # A numbered list can start with a word and a link, too, but that word is not in capitals.
        return bool(word and len(word[1]) >= _SHORTEST_REDIRECT_WORD and word[1] == word[1].upper())

    def is_disambiguation(self, title: bytes, text: bytes) -> bool:
        """Return whether a page lists the meanings of its title, according to its title, a template or a switch."""
        if title.endswith(self._title_ends):
            return True
        n = self._load(text)  # first, because it may replace self._text by a larger buffer
        return bool(is_disambiguation(self._text, n, self._tables))

    def extract(self, title: bytes, text: bytes) -> bytes:
        """Return the plain text of a page, UTF-8: one paragraph a line, no blank lines, no newline at the end.

        title, text: UTF-8 from the reader, without XML escapes; other bytes are accepted.
        """
        return self.extract_with_holes(title, text)[0]

    def extract_with_holes(self, title: bytes, text: bytes) -> tuple[bytes, tuple[int, ...]]:
        """Return the result of `extract`, and the offsets of its holes, in order; none if holes are kept."""
        return holes.without_marks(self._extract_marked(title, text.replace(holes.MARK, b"")))

    def _extract_marked(self, title: bytes, text: bytes) -> bytes:
        before = self._counts.copy()
        plain = self._render(title, text)
        calls: list[tuple[int, int, int]] = sorted(self._calls[: self._counts[codes.COUNT_LOGGED]].tolist())
        if not calls:
            return plain
        if self.options.report_templates:
            self._note_unknown(title, text, calls)
        if self._expander is None:
            return plain
        self._counts[:] = before  # the next pass counts the page's calls again
        return self._render(title, self._replace_calls(title, text, calls))

    def _replace_calls(self, title: bytes, text: bytes, calls: Sequence[tuple[int, int, int]]) -> bytes:
        """Return the page with the listed calls replaced by their expansions, which are counted."""
        assert self._expander is not None
        outermost: list[tuple[int, int]] = []
        for start, end, _ in calls:
            if not outermost or start >= outermost[-1][1]:
                outermost.append((start, end))
        expanded = self._expander.expand(
            title.decode("utf-8", "replace"), [text[start:end].decode("utf-8", "replace") for start, end in outermost]
        )
        parts, at = [], 0
        for (start, end), one in zip(outermost, expanded, strict=True):
            shown = one.text if one.is_call else self._filter.text_of(one.text)
            self._counts[codes.COUNT_FAILED] += one.failed
            if not one.is_call:
                self._counts[codes.COUNT_EXPANDED if shown else codes.COUNT_EMPTY] += 1
            shown_text = holes.MARK if shown is None else shown.encode("utf-8", "replace") or _NOTHING
            parts += [text[at:start], shown_text]
            at = end
        return b"".join([*parts, text[at:]])

    def _render(self, title: bytes, text: bytes) -> bytes:
        """Return the kernels' text of a page; `_calls` then has its listed calls."""
        self._counts[codes.COUNT_LOGGED] = 0
        n = self._load(text)
        self._out = _buffer(self._out, 2 * n + codes.ROOM, 2 * _KEPT_BYTES)
        name = np.frombuffer(title or b" ", np.uint8).copy()
        length = extract(self._text, n, name, self._tables, self._out, self._counts, self._calls)
        return self._out[:length].tobytes()
