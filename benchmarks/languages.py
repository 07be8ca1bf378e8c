"""Measures the extraction of many languages' dumps beside other extractors, for `benchmarks.extraction DIR`.

Two tables: left-over markup per million characters, and the calls of templates for languages, measures and dates that
lose their text. A call counts if it stands within a line of an article and its surroundings are in the text: two marks
are put around the call, and the text between them is looked at when the page is extracted. Calls in tables, infoboxes,
footnotes and other templates lose their marks and do not count.
"""

import collections
import dataclasses
import re
import sys
import textwrap
from pathlib import Path

import maskmill.extraction
from benchmarks.measure import describe_machine
from benchmarks.wikipedias import Dump, all_texts, dumps_by_language

MARKUP = ("[[", "]]", "{{", "}}", "<ref", "|}", "&nbsp;", "()", " ,")
MANY_CALLS, MANY_ARTICLES = 100, 20  # a language with fewer has no row of its own
_WIDTH = 118
_IDENTITIES = Path(maskmill.extraction.__file__).parent / "data" / "identities.tsv"
# What the measured templates mean, by their English names; those of other wikis are in the data file of identities.
_MEANINGS = (
    "convert",
    "as of",
    "birth date",
    "birth date and age",
    "death date",
    "death date and age",
    "start date",
    "start date and age",
    "end date",
    "date",
    "age",
)
_LANGUAGE_NAMES = r"lang|langx|lang[ -][a-z][a-z-]+"

# Private characters, which no page holds.
_OPEN, _CLOSE = "\ue000", "\ue001"
_KEPT = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_TEXT = re.compile(r"[^\W_]|[^\x00-\x7f\s«»“”„‘’‚（）「」『』、。，]")  # more than spaces, brackets and punctuation
# The marks stand outside a space or a bracket beside the call, so that the call's own neighbours stay what they are.
_BEFORE = " \u00a0([\"'„“«「『（"
_AFTER = " \u00a0)]\"'“”»」』）.,;:、。，"

INTRODUCTION = """\
# The text of other languages

Written by `python -m benchmarks.extraction DIR`, where DIR holds dumps of many languages. Nothing of the dumps is in
this repository. {source}

Machine: {machine}.

"""

TEMPLATES = """\
## Templates that carry text

Calls of templates for languages (`{{lang-xx}}`), measures (`{{convert}}`) and dates (`{{as of}}`, `{{birth date}}`, …),
under the names that they have in each language, within lines of articles, and how many of them give no text.

"""

MARKUP_LEFT = """\
## Left-over markup

Occurrences of {markup} per million characters in the text of articles (no redirects, no disambiguation pages).
WikiExtractor is the program at commit 3162bb6. Not every occurrence is markup: articles on programming contain `()`.

"""


@dataclasses.dataclass
class Markup:
    """The markup that one extractor left in some texts; failed counts the pages on which it gave none."""

    characters: int = 0
    failed: int = 0
    occurrences: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, texts: list[str | None]) -> None:
        for text in texts:
            if text is None:
                self.failed += 1
                continue
            self.characters += len(text)
            for markup in MARKUP:
                self.occurrences[markup] += text.count(markup)

    @property
    def rate(self) -> float:
        """Occurrences per million characters."""
        return 1e6 * self.occurrences.total() / max(self.characters, 1)


def template_names(language: str) -> str:
    """Return a regular expression for the names of the measured templates on a language's Wikipedia."""
    rows = (line.split("\t") for line in _IDENTITIES.read_text(encoding="utf-8").splitlines() if line[0] != "#")
    local = {name for meaning, code, name in rows if meaning in _MEANINGS and code == language}
    names = {*_MEANINGS, *local}
    return "|".join([_LANGUAGE_NAMES, *(re.escape(name) for name in sorted(names, key=len, reverse=True))])


def mark_calls(text: str, names: re.Pattern[str]) -> str:
    """Return the wikitext with marks around the calls of some templates that stand within lines and hold no other
    template.
    """
    call = re.compile(r"\{\{[ _]*(" + names.pattern + r")[ _]*\|[^{}\n]*\}\}", names.flags)
    pieces, done = [], 0
    for match in call.finditer(text):
        start, end = match.span()
        line = text.rfind("\n", 0, start) + 1
        if not text[line:start].strip(" *#:;'"):
            continue
        if start - 1 > line and text[start - 1] in _BEFORE:
            start -= 1
        if end < len(text) and text[end] in _AFTER:
            end += 1
        if start < done:
            continue
        pieces += [text[done:start], _OPEN, text[start:end], _CLOSE]
        done = end
    return "".join([*pieces, text[done:]])


def lost_text(dump: Dump, names: re.Pattern[str]) -> tuple[int, list[str]]:
    """Return (calls, the lost ones with what stands before them) in the articles of a dump."""
    extractor, calls, lost = dump.extractor(), 0, []
    for page in dump.articles():
        marked = mark_calls(page.text.decode("utf-8"), names)
        if _OPEN not in marked:
            continue
        text = extractor.extract(page.title, marked.encode("utf-8")).decode("utf-8")
        for match in _KEPT.finditer(text):
            calls += 1
            if not _TEXT.search(match[1]):
                lost.append(f"{page.title.decode('utf-8')}: {text[max(0, match.start() - 60) : match.end()]!r}")
    return calls, lost


def markup_left(dumps: list[Dump]) -> tuple[dict[str, Markup], int]:
    """Return (what each extractor leaves in the articles of a language, their number)."""
    counts: dict[str, Markup] = collections.defaultdict(Markup)
    articles = 0
    for dump in dumps:
        pages = dump.articles()
        articles += len(pages)
        for name, texts in all_texts(dump, pages):
            counts[name].add(texts.pages)
    return counts, articles


def templates_section(languages: dict[str, list[Dump]]) -> str:
    """Return the table of lost calls, languages with few in one row; print the lost calls to standard error."""
    rows: dict[str, tuple[int, int]] = {}
    few: list[tuple[int, int]] = []
    for language, dumps in languages.items():
        names = re.compile(template_names(language), re.IGNORECASE)
        found = [lost_text(dump, names) for dump in dumps]
        calls, lost = sum(one for one, _ in found), [sample for _, some in found for sample in some]
        if calls >= MANY_CALLS:
            rows[language] = calls, len(lost)
        elif calls:
            few.append((calls, len(lost)))
        for sample in lost:
            print(f"lost, {language}: {sample}", file=sys.stderr)
    if few:
        rows[f"{len(few)} others"] = sum(calls for calls, _ in few), sum(lost for _, lost in few)
    lines = [f"| {name} | {calls} | {lost} ({100 * lost / calls:.1f} %) |" for name, (calls, lost) in rows.items()]
    return TEMPLATES + "\n".join(["| language | calls | lost |", "|---|---|---|", *lines]) + "\n\n"


def markup_section(languages: dict[str, list[Dump]]) -> str:
    """Return the table of left-over markup; of the languages with few articles only those where ours has some."""
    rows, names, clean = [], [], []
    for language, dumps in languages.items():
        counts, articles = markup_left(dumps)
        if not counts or not counts["maskmill"].characters:
            continue
        names = list(counts)
        cells = [
            f"{count.rate:.0f}" + (f" ({count.failed} failed)" if count.failed else "") for count in counts.values()
        ]
        if articles < MANY_ARTICLES and cells[names.index("maskmill")] == "0":
            clean.append(articles)
            continue
        rows.append(
            f"| {language} | {articles} | {counts['maskmill'].characters / 1e6:.2f} | " + " | ".join(cells) + " |"
        )
    heading = "| language | articles | Mchars | " + " | ".join(names) + " |\n|---|---|---|" + "---|" * len(names)
    markup = ", ".join(f"`{mark}`" for mark in MARKUP).replace("|", "\\|")
    others = f"\nThe {len(clean)} other languages, with {sum(clean)} articles, have 0 in maskmill's text.\n"
    return MARKUP_LEFT.format(markup=markup) + heading + "\n" + "\n".join(rows) + "\n" + others


def document(folder: str, source: str) -> str:
    """Return the whole document on the dumps below a folder."""
    languages = dumps_by_language(folder)
    sections = [
        INTRODUCTION.format(source=source, machine=describe_machine()),
        templates_section(languages),
        markup_section(languages),
    ]
    return "\n\n".join(map(_wrapped, "".join(sections).strip().split("\n\n"))) + "\n"


def _wrapped(paragraph: str) -> str:
    """Return a paragraph in lines of the usual length; headings and tables stay as they are."""
    if paragraph.startswith(("#", "|")):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)
