"""Compares the text of articles with their rendered pages, word by word.

    python -m benchmarks.rendered FILE...

FILE holds records of Wikimedia Enterprise, one a line, which have an article's HTML beside its wikitext (`*.ndjson`,
`*.ndjson.gz`, `*.tar.gz` of such files). The words of the text that the default options make are aligned with all words
that a reader of the page sees. Prints for each language

- how many words of its paragraphs, of these the words that templates write, and of its list items outside appendices
  and lists of works stand in the text, in their order; words of sentences that `--holes drop` drops are a column of
  their own, and not among those of which a share is given,
- which share of the text's words stand on the page.
"""

import argparse
import bisect
import collections
import dataclasses
import difflib
import gzip
import itertools
import json
import re
import tarfile
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from maskmill.extraction import languages
from maskmill.extraction.options import WikitextOptions
from maskmill.inputs.mediawiki import Page
from maskmill.sentences.choice import SentenceChoice
from maskmill.sentences.rules import TRAINED, rules_for
from maskmill.text_shards.document_extractor import DocumentExtractor, Origin
from maskmill.text_shards.options import ExtractionOptions

PARAGRAPH, ITEM, APPENDIX, OTHER, BESIDE = range(5)  # kinds of a page's words; BESIDE: in tables, boxes, captions
_NO_PROSE = (OTHER, BESIDE)

_DATE = "2024-01-01"
_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr")
_BLOCKS = re.compile(
    "blockquote|br|caption|center|dd|div|dl|dt|figcaption|figure|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul"
)
_NO_LEVEL = 7  # deeper than any heading
_HEADING = re.compile(r"h[1-6]")
_UNSEEN = frozenset(("style", "script", "head", "annotation"))
_ASIDE = frozenset(("table", "figure", "nav", "aside"))
# Classes and roles of what stands beside the prose, and of what print leaves out.
_ASIDE_CLASS = re.compile(
    r"(?i)\b(nav|infobox|sidebar|hatnote|dablink|rellink|references|reflist|mw-references|metadata|thumb|toc|gallery)"
)
_ASIDE_ROLES = frozenset(("note", "navigation", "complementary"))
_UNSEEN_CLASS = re.compile(r"\b(noprint|mw-editsection|geo-nondefault|geo-multi-punct|mw-empty-elt|noexcerpt)\b")
_HAN_AND_KANA = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # a character of these counts as a word
_WORD = re.compile(f"[{_HAN_AND_KANA}]|(?:(?![{_HAN_AND_KANA}])[^\\W_])+")
_ANCHOR = 3  # words in a row that stand once in both texts, and so belong together


class _Tree(HTMLParser):
    """Makes a tree of a page."""

    def __init__(self) -> None:
        super().__init__()
        self._builder = ElementTree.TreeBuilder()
        self._open: list[str] = []
        self.handle_starttag("page", [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._builder.start(tag, {name: value or "" for name, value in attrs})
        self._open.append(tag)
        if _VOID.fullmatch(tag):
            self.handle_endtag(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if not _VOID.fullmatch(tag):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open[1:]:
            self._builder.end(self._open[-1])
            if self._open.pop() == tag:
                break

    def handle_data(self, data: str) -> None:
        self._builder.data(data)

    def root(self, page: str) -> ElementTree.Element:
        """Return the page's element."""
        self.feed(page)
        while self._open:
            self._builder.end(self._open.pop())
        return self._builder.close()


@dataclasses.dataclass
class RenderedPage:
    """The words of a page in their order, the kind and block of each, and whether a template wrote it.

    A block is a paragraph, an item of a list or a cell of a table.
    """

    words: list[str] = dataclasses.field(default_factory=list)
    kinds: list[int] = dataclasses.field(default_factory=list)
    blocks: list[int] = dataclasses.field(default_factory=list)
    of_templates: list[bool] = dataclasses.field(default_factory=list)


class PageReader:
    """Reads the words of Parsoid's HTML: https://www.mediawiki.org/wiki/Specs/HTML."""

    def __init__(self, appendices: frozenset[str], works: frozenset[str]) -> None:
        self._appendices = appendices
        self._works = works
        self._appendix_level = _NO_LEVEL  # of the heading that began an appendix
        self._works_level = _NO_LEVEL  # of the heading that began a list of works
        self._pieces: list[str] = []
        self._labels: list[tuple[int, int, bool]] = []  # of each piece: kind, block, whether a template wrote it
        self._block = 0
        self._templates: set[str] = set()  # the attributes `about` of what templates wrote

    def read(self, page: str) -> RenderedPage:
        """Return the page's words."""
        self._walk(_Tree().root(page), OTHER, False)
        read = RenderedPage()
        ends = list(itertools.accumulate(map(len, self._pieces)))
        for match in _WORD.finditer("".join(self._pieces)):
            kind, block, of_template = self._labels[bisect.bisect_right(ends, match.start())]
            read.words.append(match[0])
            read.kinds.append(kind)
            read.blocks.append(block)
            read.of_templates.append(of_template)
        return read

    def _add(self, text: str | None, kind: int, of_template: bool) -> None:
        if text:
            self._pieces.append(unicodedata.normalize("NFKC", text))
            self._labels.append((kind, self._block, of_template))

    def _walk(self, element: ElementTree.Element, kind: int, of_template: bool) -> None:
        tag = element.tag
        kind = self._kind(element, kind)
        of_template = of_template or self._is_of_template(element)
        if _is_unseen(element):
            return
        if _HEADING.fullmatch(tag):
            self._note_heading(int(tag[1]), "".join(element.itertext()).strip())
        if _BLOCKS.fullmatch(tag):
            self._block += 1
            self._add("\n", OTHER, False)
        self._add(element.text, kind, of_template)
        for child in element:
            self._walk(child, kind, of_template)
            self._add(child.tail, kind, of_template)
        if _BLOCKS.fullmatch(tag):
            self._block += 1
            self._add("\n", OTHER, False)

    def _is_of_template(self, element: ElementTree.Element) -> bool:
        """Return True if a template wrote an element: only the first of several has the type, all have one `about`."""
        about = element.get("about", "")
        if "mw:Transclusion" in element.get("typeof", ""):
            self._templates.add(about)
            return True
        return bool(about) and about in self._templates

    def _note_heading(self, level: int, title: str) -> None:
        if level <= self._appendix_level:
            self._appendix_level = level if title.lower() in self._appendices else _NO_LEVEL
        if level <= self._works_level:
            is_list = title.lower() in self._works or title.lower().partition("(")[0].strip() in self._works
            self._works_level = level if is_list else _NO_LEVEL

    def _kind(self, element: ElementTree.Element, kind: int) -> int:
        """Return the kind of the words in an element that stands in one of a kind."""
        if (
            element.tag in _ASIDE
            or element.get("role") in _ASIDE_ROLES
            or _ASIDE_CLASS.search(element.get("class", ""))
        ):
            return BESIDE
        if kind in (ITEM, APPENDIX, BESIDE) or element.tag not in ("p", "li", "dd"):
            return kind
        if self._appendix_level < _NO_LEVEL or (element.tag != "p" and self._works_level < _NO_LEVEL):
            return APPENDIX
        return PARAGRAPH if element.tag == "p" else ITEM


def _is_unseen(element: ElementTree.Element) -> bool:
    """Return whether a reader does not see an element, or it only points to a footnote or to the maintenance of the
    page.
    """
    style = element.get("style", "").replace(" ", "")
    if "display:none" in style and "mwe-math" not in element.get("class", ""):
        return True
    if element.get("id") == "coordinates":  # those of the page, beside its title
        return True
    if element.tag in _UNSEEN or _UNSEEN_CLASS.search(element.get("class", "")):
        return True
    if element.tag != "sup":
        return False
    if "reference" in element.get("class", ""):
        return True
    text = "".join(element.itertext()).strip()
    return text.startswith("[") and text.endswith("]")


def find_words(text: str) -> list[str]:
    """Return the words of a text, without punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def align(ours: list[str], page: list[str]) -> list[int]:
    """For each word of the page the place of the word of ours that is the same one; -1 where there is none.

    Rows of words that stand once in both are taken in their longest common order; difflib aligns what is between them.
    """
    places = [-1] * len(page)
    rows_of_ours, rows_of_page = _single_rows(ours), _single_rows(page)
    anchors = sorted((rows_of_page[row], place) for row, place in rows_of_ours.items() if row in rows_of_page)
    done_ours = done_page = 0
    for at_page, at_ours in [*_longest_increasing(anchors), (len(page), len(ours))]:
        if at_page < done_page or at_ours < done_ours:
            continue
        _align_between(ours, page, (done_ours, at_ours), (done_page, at_page), places)
        while at_page < len(page) and at_ours < len(ours) and page[at_page] == ours[at_ours]:
            places[at_page] = at_ours
            at_page, at_ours = at_page + 1, at_ours + 1
        done_ours, done_page = at_ours, at_page
    return places


def find_places(ours: list[str], page: RenderedPage) -> list[int]:
    """As `align`; what may be the first word of prose, or the same word of the heading before it, is the former."""
    places = align(ours, page.words)
    owners = {place: number for number, place in enumerate(places) if place >= 0}
    for number in range(len(places) - 2, -1, -1):
        place = places[number + 1] - 1
        if places[number] >= 0 or place < 0 or ours[place] != page.words[number] or page.kinds[number] in _NO_PROSE:
            continue
        owner = owners.get(place)
        if owner is None or page.kinds[owner] in _NO_PROSE:
            if owner is not None:
                places[owner] = -1
            places[number] = place
            owners[place] = number
    return places


def _single_rows(words: list[str]) -> dict[tuple[str, ...], int]:
    """Return the places of the rows of words that stand once in a text."""
    rows = list(zip(*(words[offset:] for offset in range(_ANCHOR)), strict=False))
    count = collections.Counter(rows)
    return {row: place for place, row in enumerate(rows) if count[row] == 1}


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest choice of pairs, sorted by the first number, in which the second number grows, too."""
    ends: list[int] = []
    chains: list[int] = []
    before: list[int] = []
    for number, (_, value) in enumerate(pairs):
        at = bisect.bisect_left(ends, value)
        ends[at : at + 1] = [value]
        chains[at : at + 1] = [number]
        before.append(chains[at - 1] if at else -1)
    chosen = []
    number = chains[-1] if chains else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _align_between(
    ours: list[str], page: list[str], of_ours: tuple[int, int], of_page: tuple[int, int], places: list[int]
) -> None:
    if of_ours[0] == of_ours[1] or of_page[0] == of_page[1]:
        return
    matcher = difflib.SequenceMatcher(None, ours[slice(*of_ours)], page[slice(*of_page)], autojunk=False)
    for at_ours, at_page, size in matcher.get_matching_blocks():
        for offset in range(size):
            places[of_page[0] + at_page + offset] = of_ours[0] + at_ours + offset


@dataclasses.dataclass
class Figures:
    """The counts for the pages of one language; kept and dropped have a count for each kind of words."""

    pages: int = 0
    words: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    kept: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    dropped: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    of_templates: int = 0
    kept_of_templates: int = 0
    ours: int = 0
    ours_on_page: int = 0

    def add(self, other: "Figures") -> None:
        for field in dataclasses.fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, mine + its)


class Comparison:
    """Compares pages with their text, and adds up what it finds by language."""

    def __init__(self) -> None:
        self.figures: dict[str, Figures] = collections.defaultdict(Figures)
        self._extractors: dict[tuple[str, str], DocumentExtractor] = {}

    def add(self, record: dict[str, Any]) -> None:
        """Compare the article of a record; one that is no article, or lacks HTML or wikitext, is passed over."""
        body = record.get("article_body", {})
        if record.get("namespace", {}).get("identifier", 0) or not body.get("html") or not body.get("wikitext"):
            return
        code = record["in_language"]["identifier"]
        language = languages.find_language(code)
        appendices = frozenset(word.lower() for word in (*language.words("appendix"), *language.words("literature")))
        works = frozenset(word.lower() for word in language.words("works"))
        page = PageReader(appendices, works).read(body["html"])
        ours = self._words_of(code, record, "drop")
        if ours is None:
            return
        places = find_places(ours, page)
        dropped = [False] * len(places)
        whole = self._words_of(code, record, "keep")
        if whole is not None and whole != ours:
            dropped = _dropped(places, find_places(whole, page), page.blocks)
        self._count(self.figures[code], page, ours, places, dropped)

    def _words_of(self, code: str, record: dict[str, Any], holes: str) -> list[str] | None:
        """Return the words of the article's sentences; None where a page is left out, as a redirect is."""
        key = code, holes
        if key not in self._extractors:
            self._extractors[key] = _make_extractor(code, {"holes": holes})
        page = Page(
            title=record["name"].encode(),
            namespace=0,
            page_id=1,
            revision_id=1,
            is_redirect=False,
            timestamp=b"",
            model=b"wikitext",
            text=record["article_body"]["wikitext"].encode(),
        )
        document = self._extractors[key].extract(page)
        return None if isinstance(document, str) else find_words(document.text.decode())

    def _count(
        self, figures: Figures, page: RenderedPage, ours: list[str], places: list[int], dropped: list[bool]
    ) -> None:
        figures.pages += 1
        figures.ours += len(ours)
        figures.ours_on_page += sum(place >= 0 for place in places)
        for kind, of_template, place, is_dropped in zip(page.kinds, page.of_templates, places, dropped, strict=True):
            if is_dropped:
                figures.dropped[kind] += 1
                continue
            figures.words[kind] += 1
            figures.kept[kind] += place >= 0
            if kind == PARAGRAPH and of_template:
                figures.of_templates += 1
                figures.kept_of_templates += place >= 0


def _make_extractor(code: str, options: dict[str, Any]) -> DocumentExtractor:
    """Return what splits the pages of a language's Wikipedia. Punkt, where it would be trained, has no parameters."""
    rules = rules_for(code)
    if rules.punkt == TRAINED:
        rules = dataclasses.replace(rules, punkt=None)
    origin = Origin(
        date=_DATE,
        header=f"<base>https://{code}.wikipedia.org/</base>".encode(),
        sentences=SentenceChoice(rules=rules, why="dump").to_json(),
    )
    return DocumentExtractor(ExtractionOptions(wikitext=WikitextOptions(**options)), origin)


def _dropped(places: list[int], whole: list[int], blocks: list[int]) -> list[bool]:
    """Return which words of the page went with a sentence that a hole is in: those whose text the other mode keeps, and
    what the hole lacks between them."""
    dropped = [False] * len(places)
    start = 0
    for end in range(1, len(places) + 1):
        if end < len(places) and (blocks[end] == blocks[start] and (places[end] < 0) == (places[start] < 0)):
            continue
        if places[start] < 0 and any(place >= 0 for place in whole[start:end]):
            dropped[start:end] = [True] * (end - start)
        start = end
    return dropped


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file."""
    if path.name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(path) as archive:
            for member in archive:
                lines = archive.extractfile(member)
                if lines is not None:
                    yield from map(json.loads, lines)
        return
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        yield from map(json.loads, lines)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:8.2f}" if whole else f"{'-':>8}"


def print_figures(figures: dict[str, Figures]) -> None:
    """Print a line of shares in per cent for each language, and one for all."""
    total = Figures()
    for one in figures.values():
        total.add(one)
    print("language pages  prose words     kept  dropped  of templates     kept  item words     kept  on page")
    for code, one in [*sorted(figures.items()), ("all", total)]:
        of_prose = one.words[PARAGRAPH] + one.dropped[PARAGRAPH]
        print(
            f"{code:<8} {one.pages:5} {one.words[PARAGRAPH]:12,} {_share(one.kept[PARAGRAPH], one.words[PARAGRAPH])} "
            f"{_share(one.dropped[PARAGRAPH], of_prose)} {one.of_templates:13,} "
            f"{_share(one.kept_of_templates, one.of_templates)} {one.words[ITEM]:11,} "
            f"{_share(one.kept[ITEM], one.words[ITEM])} {_share(one.ours_on_page, one.ours)}"
        )


def main(arguments_given: list[str] | None = None) -> None:
    """Compare the records of the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    arguments = parser.parse_args(arguments_given)
    comparison = Comparison()
    for path in arguments.files:
        for record in read_records(path):
            comparison.add(record)
    print_figures(comparison.figures)


if __name__ == "__main__":
    main()
