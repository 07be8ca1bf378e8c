"""Wikitext to plain text: which site a dump is of, and the text of its pages.

The work is done by compiled kernels (transforms.extraction.kernels); this module builds their tables from what the
dump says of its site (`Site`), from what is known of its language (data/languages.toml) and from the rules for
templates (transforms.template_rules).
"""

import datetime
import functools
import re
import tomllib
from collections.abc import Callable
from html.entities import html5
from importlib import resources
from typing import Any

import numpy as np

from transforms.errors import UnusableInputError
from transforms.extraction import template_rules
from transforms.extraction.kernels import tables as kernels
from transforms.extraction.kernels.wikitext import extract, is_disambiguation
from transforms.extraction.options import WikitextOptions
from transforms.extraction.template_expansion import TemplateExpander
from transforms.inputs.site import Site

_KEPT = 1 << 20  # bytes of the page buffer that is kept
_FILE = 6
_TEMPLATE = 10
_CATEGORY = 14

_TAGS = {
    kernels.TAG_HIDDEN: (
        "references gallery timeline pre source syntaxhighlight score hiero imagemap graph chem ce mapframe maplink "
        "inputbox templatedata categorytree dynamicpagelist includeonly indicator templatestyles charinsert rss "
        "script style phonos ref-list translate-hidden section-hidden"
    ),
    kernels.TAG_LITERAL: "nowiki",
    kernels.TAG_REFERENCE: "ref",
    kernels.TAG_MATH: "math",
    kernels.TAG_TABLE: "table",
    kernels.TAG_INLINE: (
        "b i u s em strong small big span font sub tt code var kbd samp dfn abbr acronym bdi bdo cite ins del strike "
        "mark q time data wbr nobr noinclude onlyinclude ruby rb rp rt rtc section a label languages translate "
        "tvar noindex"
    ),
    kernels.TAG_BLOCK: (
        "p div center blockquote ul ol dl li dt dd h1 h2 h3 h4 h5 h6 tr td th tbody thead tfoot caption poem hr "
        "section onlyinclude details summary figure"
    ),
    kernels.TAG_BREAK: "br",
    kernels.TAG_SUPERSCRIPT: "sup",
}


_LISTS = {"sentences": kernels.LISTS_SENTENCES, "keep": kernels.LISTS_KEEP, "drop": kernels.LISTS_DROP}

# How data/tex_commands.tsv writes what is no text.
_TEX_COMMANDS = {
    "": kernels.TEX_IGNORED,
    "{}": kernels.TEX_GROUP,
    "{}/{}": kernels.TEX_FRACTION,
    "delimiter": kernels.TEX_DELIMITER,
    "text": kernels.TEX_TEXT,
}


@functools.cache
def _language_data() -> dict[str, Any]:
    path = resources.files("transforms.extraction") / "data" / "languages.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def language_words(language: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What data/languages.toml knows of a language code (empty if nothing), and of English."""
    languages = _language_data()["language"]
    language = _language_data()["aliases"].get(language, language)
    return languages.get(language) or languages.get(language.split("-")[0], {}), languages["en"]


class WikitextExtractor:
    """Makes plain text of a site's pages. Pickles as its arguments; one instance serves one thread at a time.

    templates: for `expand_templates` gives a template's page by its name without the namespace; None if there is none.
    """

    def __init__(
        self, site: Site, options: WikitextOptions, templates: Callable[[bytes], bytes | None] | None = None
    ) -> None:
        self.site = site
        self.options = options
        self.templates = templates
        data = _language_data()
        own, english = language_words(site.language)
        words = template_rules.WordTable()
        self._add_markup(words, data, own, english)
        date = datetime.date.fromisoformat(options.date)
        rules = template_rules.load_rules(data["aliases"].get(site.language, site.language))
        template_rules.add_rules(words, rules, (date.year, date.month, date.day))
        redirects = {word.lstrip("#＃") for word in (*own.get("redirect", ()), *english["redirect"])}
        # Any single word in capitals before a link also redirects: languages this table lacks, aliases of those it has.
        self._redirect = re.compile(
            r"\s*[#＃](?:" + "|".join(re.escape(word) for word in sorted(redirects)) + r")\s*[:：]?\s*\[\[",
            re.IGNORECASE,
        )
        self._any_redirect = re.compile(r"\s*[#＃]\s?([^\W\d]+)\s*[:：]?\s*\[\[[^\[\]\n]+\]\]")
        self._titles = tuple(
            f" ({word})".encode() for word in {*own.get("disambiguation_title", ()), *english["disambiguation_title"]}
        )
        self._expander = self._make_expander(words, date) if options.expand_templates else None
        self._tables = self._make_tables(words, own, date, bool(own.get("variants")))
        self._text = np.empty(0, np.uint8)
        self._out = np.empty(0, np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        return WikitextExtractor, (self.site, self.options, self.templates)

    def _add_markup(
        self, words: template_rules.WordTable, data: dict[str, Any], own: dict[str, Any], english: dict[str, Any]
    ) -> None:
        number = 0
        for kind, names in _TAGS.items():
            for name in names.split():
                words.add(kernels.DOMAIN_TAG, name, kind, number)
                number += 1
        for name, text in html5.items():
            if name.endswith(";"):
                words.add_text(kernels.DOMAIN_ENTITY, name[:-1], text)
        path = resources.files("transforms.extraction") / "data" / "tex_commands.tsv"
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, text = line.partition("\t")
            if text in _TEX_COMMANDS:
                words.add(kernels.DOMAIN_TEX, name, 0, _TEX_COMMANDS[text])
            else:
                words.add_text(kernels.DOMAIN_TEX, name, text)
        for name in data["interlanguage"]:
            words.add(kernels.DOMAIN_NAMESPACE, name, kernels.NAMESPACE_LANGUAGE)
        for name in data["interwiki"]:
            words.add(kernels.DOMAIN_NAMESPACE, name, kernels.NAMESPACE_SITE)
        kinds = {
            _FILE: kernels.NAMESPACE_FILE,
            _CATEGORY: kernels.NAMESPACE_CATEGORY,
            _TEMPLATE: kernels.NAMESPACE_TEMPLATE,
        }
        for key, names_of_key in {**dict.fromkeys(kinds, ()), **self.site.namespaces}.items():
            aliases = {_FILE: "file", _CATEGORY: "category"}.get(key)
            more = (*own.get(aliases, ()), *english[aliases]) if aliases else ()
            for name in (*names_of_key, *more):
                for form in {name, name.lower(), name.upper(), name.title()}:
                    words.add(kernels.DOMAIN_NAMESPACE, form, kinds.get(key, kernels.NAMESPACE_OTHER))
        for name in ("subst", "safesubst", "msg", "msgnw", "raw"):
            words.add(kernels.DOMAIN_NAMESPACE, name, kernels.NAMESPACE_TEMPLATE)
        for name in (*own.get("appendix", ()), *english["appendix"]):
            for form in {name, name.lower(), name.upper(), name.title()}:
                words.add(kernels.DOMAIN_SECTION, form, 1)
        for name in data["hidden_classes"]:
            words.add(kernels.DOMAIN_HIDDEN, name, 1)
        for rank, name in enumerate(own.get("variants", ())):
            words.add(kernels.DOMAIN_VARIANT, name, rank)
        for name in (*own.get("disambiguation", ()), *english["disambiguation"]):
            words.add(kernels.DOMAIN_DISAMBIGUATION, name, 1)

    def _make_expander(self, words: template_rules.WordTable, date: datetime.date) -> TemplateExpander:
        if self.templates is None:
            raise UnusableInputError("expand_templates needs the templates of the dump; none were given")
        return TemplateExpander(
            self.templates,
            has_rule=template_rules.names_with_rules(words),
            prefixes=self.site.namespaces.get(_TEMPLATE, ()),
            first_letter=self.site.case == "first-letter",
            date=date,
            depth=self.options.expansion_depth,
            size=self.options.expansion_characters,
            steps=self.options.expansion_steps,
        )

    def _make_tables(
        self, words: template_rules.WordTable, own: dict[str, Any], date: datetime.date, variants: bool
    ) -> kernels.Tables:
        structure_class = np.zeros(256, np.uint8)
        structure_class[list(b"\n{}[]<-" if variants else b"\n{}[]<")] = 1
        render_class = np.zeros(256, np.uint8)
        render_class[list(b"\n'&|=]}[{<_\x01\r")] = 1
        if variants:
            render_class[ord("-")] = 1
        upper = np.arange(kernels.CASED, dtype=np.uint16)
        lower = upper.copy()
        for code in range(kernels.CASED):
            for cases, form in ((upper, chr(code).upper()), (lower, chr(code).lower())):
                # Mappings that change the length in UTF-8 or in characters are left out.
                if len(form) == 1 and len(form.encode()) == len(chr(code).encode()):
                    cases[code] = ord(form)
        settings = np.zeros(kernels.SETTINGS, np.int64)
        settings[kernels.SETTING_KEEP_HEADINGS] = self.options.headings == "keep"
        settings[kernels.SETTING_LISTS] = _LISTS[self.options.lists]
        settings[kernels.SETTING_KEEP_APPENDICES] = self.options.appendices == "keep"
        settings[kernels.SETTING_YEAR : kernels.SETTING_DAY + 1] = (date.year, date.month, date.day)
        for key, setting, default in (
            ("group_separator", kernels.SETTING_GROUP_OFFSET, ","),
            ("decimal_separator", kernels.SETTING_DECIMAL_OFFSET, "."),
        ):
            separator = own.get(key, default).encode()
            settings[setting] = words.intern(separator)
            settings[setting + 1] = len(separator)
        settings[kernels.SETTING_GROUP_FROM] = own.get("group_from", 4)
        table, pool, programs = words.arrays()
        return kernels.Tables(
            structure_class=structure_class,
            render_class=render_class,
            fold=template_rules.FOLD,
            words=table,
            pool=pool,
            code=programs,
            upper=upper,
            lower=lower,
            settings=settings,
        )

    def _load(self, text: bytes) -> int:
        """Copies a page into the kernels' padded buffer; its length."""
        n = len(text)
        # Buffers are kept for the next page, but not those that one enormous page needed.
        if not n + kernels.PADDING <= len(self._text) <= max(n + kernels.PADDING, _KEPT):
            self._text = np.empty(max(n + kernels.PADDING, _KEPT), np.uint8)
        self._text[:n] = np.frombuffer(text, np.uint8)
        self._text[n : n + kernels.PADDING] = 0
        return n

    @property
    def limited_pages(self) -> int:
        """Pages whose templates were expanded in part only, because a limit of the options was reached."""
        return self._expander.limited if self._expander is not None else 0

    def is_redirect(self, text: bytes) -> bool:
        """True if the page's wikitext redirects: `#REDIRECT [[…]]` in English or in the site's language."""
        start = text[:400].lstrip()
        if not start.startswith((b"#", "＃".encode())):
            return False
        head = start.decode("utf-8", "ignore")
        if self._redirect.match(head):
            return True
        word = self._any_redirect.match(head)
        # A numbered list can start with a word and a link too, but not with one that is shouted.
        return bool(word and len(word[1]) > 3 and word[1] == word[1].upper())

    def is_disambiguation(self, title: bytes, text: bytes) -> bool:
        """True for a page that lists the meanings of its title, told by its title, its templates or its switch."""
        if title.endswith(self._titles):
            return True
        n = self._load(text)  # first: it may put a larger buffer in the place of self._text
        return bool(is_disambiguation(self._text, n, self._tables))

    def extract(self, title: bytes, text: bytes) -> bytes:
        """The plain text of a page: UTF-8 in, UTF-8 out, one paragraph a line, no blank lines.

        title, text: as the reader gives them, without XML escapes.
        """
        if self._expander is not None:
            expanded = self._expander.expand(title.decode("utf-8", "replace"), text.decode("utf-8", "replace"))
            text = expanded.encode("utf-8", "replace")
        n = self._load(text)
        room = 2 * n + kernels.ROOM
        if not room <= len(self._out) <= max(room, 2 * _KEPT):
            self._out = np.empty(max(room, 2 * _KEPT), np.uint8)
        name = np.frombuffer(title or b" ", np.uint8).copy()
        length = extract(self._text, n, name, self._tables, self._out)
        return self._out[:length].tobytes()
