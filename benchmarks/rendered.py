"""Compares the text of articles with their rendered pages, word by word. Also run with an older checkout.

    python -m benchmarks.rendered FILE... [--templates 40] [--passages 20]

FILE holds records of Wikimedia Enterprise, one a line, which have an article's HTML beside its wikitext (`*.ndjson`,
`*.ndjson.gz`, `*.tar.gz` of such files). The words of the text that the default options make are aligned with all words
that a reader of the page sees. Prints for each language

- how many words of its paragraphs, of these the words that templates write, and of its list items outside appendices
  and lists of works stand in the text, in their order; words of sentences that `--holes drop` drops are a column of
  their own, and not among those of which a share is given,
- which share of the text's words stand on the page,

and for each template how many calls within paragraphs and list items gave exactly what the page shows, with the first
that did not. `--passages` prints lost passages and such as stand on no page.
"""

import argparse
import bisect
import collections
import dataclasses
import difflib
import gzip
import json
import re
import tarfile
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from transforms.extraction import languages
from transforms.extraction.options import WikitextOptions
from transforms.inputs.mediawiki import Page
from transforms.sentences.choice import SentenceChoice
from transforms.sentences.rules import TRAINED, rules_for
from transforms.shards.document_extractor import DocumentExtractor, Origin
from transforms.shards.options import ExtractionOptions

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
_CONTEXT = 6  # words that are printed before a passage


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
        """The page's element."""
        self.feed(page)
        while self._open:
            self._builder.end(self._open.pop())
        return self._builder.close()


@dataclasses.dataclass
class Call:
    """A call of one template, or of several with text between them (then without a name), by the words it writes."""

    name: str
    kind: int
    start: int
    end: int


@dataclasses.dataclass
class RenderedPage:
    """The words of a page in their order; kinds, blocks (paragraphs, items, cells) and calls (-1: none) are numbers."""

    words: list[str] = dataclasses.field(default_factory=list)
    kinds: list[int] = dataclasses.field(default_factory=list)
    blocks: list[int] = dataclasses.field(default_factory=list)
    calls_of_words: list[int] = dataclasses.field(default_factory=list)
    calls: list[Call] = dataclasses.field(default_factory=list)


class PageReader:
    """Reads the words of Parsoid's HTML: https://www.mediawiki.org/wiki/Specs/HTML."""

    def __init__(self, appendices: frozenset[str], works: frozenset[str]) -> None:
        self._appendices = appendices
        self._works = works
        self._appendix_level = _NO_LEVEL  # of the heading that began an appendix
        self._works_level = _NO_LEVEL  # of the heading that began a list of works
        self._pieces: list[str] = []
        self._labels: list[tuple[int, int, int]] = []  # of each piece: kind, block and call
        self._length = 0
        self._block = 0
        self._calls: list[Call] = []  # with places in the text
        self._calls_by_about: dict[str, int] = {}

    def read(self, page: str) -> RenderedPage:
        """The page's words."""
        self._walk(_Tree().root(page), OTHER, -1)
        read = RenderedPage()
        ends, end = [], 0
        for piece in self._pieces:
            end += len(piece)
            ends.append(end)
        starts = []
        for match in _WORD.finditer("".join(self._pieces)):
            kind, block, call = self._labels[bisect.bisect_right(ends, match.start())]
            starts.append(match.start())
            read.words.append(match[0])
            read.kinds.append(kind)
            read.blocks.append(block)
            read.calls_of_words.append(call)
        for call in self._calls:
            start, end = bisect.bisect_left(starts, call.start), bisect.bisect_left(starts, call.end)
            read.calls.append(dataclasses.replace(call, start=start, end=end))
        return read

    def _add(self, text: str | None, kind: int, call: int) -> None:
        if text:
            self._pieces.append(unicodedata.normalize("NFKC", text))
            self._labels.append((kind, self._block, call))
            self._length += len(self._pieces[-1])

    def _walk(self, element: ElementTree.Element, kind: int, call: int) -> None:
        tag = element.tag
        kind = self._kind(element, kind)
        if call < 0:
            call = self._call(element, kind)
        if _is_unseen(element):
            return
        if _HEADING.fullmatch(tag):
            self._note_heading(int(tag[1]), "".join(element.itertext()).strip())
        if _BLOCKS.fullmatch(tag):
            self._block += 1
            self._add("\n", OTHER, -1)
        self._add(element.text, kind, call)
        for child in element:
            self._walk(child, kind, call)
            self._add(child.tail, kind, call)
        if call >= 0:
            self._calls[call].end = self._length
        if _BLOCKS.fullmatch(tag):
            self._block += 1
            self._add("\n", OTHER, -1)

    def _note_heading(self, level: int, title: str) -> None:
        if level <= self._appendix_level:
            self._appendix_level = level if title.lower() in self._appendices else _NO_LEVEL
        if level <= self._works_level:
            is_list = title.lower() in self._works or title.lower().partition("(")[0].strip() in self._works
            self._works_level = level if is_list else _NO_LEVEL

    def _kind(self, element: ElementTree.Element, kind: int) -> int:
        """The kind of the words in an element that stands in one of a kind."""
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

    def _call(self, element: ElementTree.Element, kind: int) -> int:
        """The number of the call that wrote an element; -1 if none did."""
        about = element.get("about", "")
        if about and about in self._calls_by_about:
            return self._calls_by_about[about]
        if "mw:Transclusion" not in element.get("typeof", ""):
            return -1
        try:
            parts = json.loads(element.get("data-mw", "{}"), strict=False).get("parts", [])
        except ValueError:
            return -1
        self._calls_by_about[about] = len(self._calls)
        self._calls.append(Call(_template_name(parts), kind, self._length, self._length))
        return len(self._calls) - 1


def _is_unseen(element: ElementTree.Element) -> bool:
    """Whether a reader does not see an element, or it only points to a footnote or to the maintenance of the page."""
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


def _template_name(parts: list[Any]) -> str:
    """The name of the template that a call names; empty if there are several, or text, or a parser function."""
    if len(parts) != 1 or not isinstance(parts[0], dict) or "template" not in parts[0]:
        return ""
    target = parts[0]["template"]["target"]
    if "function" in target:
        return ""
    name = re.sub(r"<!--.*?-->", "", target.get("wt", ""), flags=re.DOTALL).replace("_", " ").strip()
    return name[:1].lower() + name[1:]


def find_words(text: str) -> list[str]:
    """The words of a text, without punctuation."""
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
    """The places of the rows of words that stand once in a text."""
    rows = list(zip(*(words[offset:] for offset in range(_ANCHOR)), strict=False))
    count = collections.Counter(rows)
    return {row: place for place, row in enumerate(rows) if count[row] == 1}


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of pairs, sorted by the first number, in which the second number grows, too."""
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
    """What was counted of the pages of one language; kept and dropped have a count for each kind of words."""

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


@dataclasses.dataclass
class Judged:
    """The calls of one template: how many were judged and right, and the first that was wrong."""

    calls: int = 0
    right: int = 0
    first_wrong: str = ""


class Comparison:
    """Compares pages with their text, and adds up what it finds by language."""

    def __init__(self) -> None:
        self.figures: dict[str, Figures] = collections.defaultdict(Figures)
        self.templates: dict[tuple[str, str], Judged] = collections.defaultdict(Judged)
        self.lost: list[tuple[int, str]] = []
        self.added: list[tuple[int, str]] = []
        self._extractors: dict[tuple[str, str], DocumentExtractor] = {}
        self._has_holes = any(field.name == "holes" for field in dataclasses.fields(WikitextOptions))

    def add(self, record: dict[str, Any]) -> None:
        """Compares the article of a record; one that is no article, or lacks HTML or wikitext, is passed over."""
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
        if self._has_holes:
            whole = self._words_of(code, record, "keep")
            if whole is not None and whole != ours:
                dropped = _dropped(places, find_places(whole, page), page.blocks)
        name = f"{code} {record['name']}"
        self._count(self.figures[code], page, ours, places, dropped)
        self._judge_calls(code, name, page, ours, places)
        self._note_passages(name, page, ours, places, dropped)

    def _words_of(self, code: str, record: dict[str, Any], holes: str) -> list[str] | None:
        """The words of the article's sentences; None where a page is left out, as a redirect is."""
        key = code, holes
        if key not in self._extractors:
            self._extractors[key] = _make_extractor(code, {"holes": holes} if self._has_holes else {})
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
        for kind, call, place, is_dropped in zip(page.kinds, page.calls_of_words, places, dropped, strict=True):
            if is_dropped:
                figures.dropped[kind] += 1
                continue
            figures.words[kind] += 1
            figures.kept[kind] += place >= 0
            if kind == PARAGRAPH and call >= 0:
                figures.of_templates += 1
                figures.kept_of_templates += place >= 0

    def _judge_calls(self, code: str, name: str, page: RenderedPage, ours: list[str], places: list[int]) -> None:
        for call in page.calls:
            if not call.name or call.kind not in (PARAGRAPH, ITEM):
                continue
            start, end = call.start, call.end
            before = places[start - 1] if start and start < len(page.words) and _joined(page, start - 1, start) else -1
            after = places[end] if 0 < end < len(page.words) and _joined(page, end - 1, end) else -1
            own = [place for place in places[start:end] if place >= 0]
            if before < 0 and after < 0 and not own:
                continue  # what stands around it is not in the text either
            first = before + 1 if before >= 0 else min(own, default=after)
            last = after if after >= 0 else max(own, default=before) + 1
            judged = self.templates[code, call.name]
            judged.calls += 1
            if ours[first:last] == page.words[start:end]:
                judged.right += 1
            elif not judged.first_wrong:
                context = " ".join(page.words[max(0, start - _CONTEXT) : start])
                judged.first_wrong = (
                    f"{name}: … {context} ⟨page: {' '.join(page.words[start:end])}⟩ "
                    f"⟨ours: {' '.join(ours[first:last])}⟩"
                )

    def _note_passages(
        self, name: str, page: RenderedPage, ours: list[str], places: list[int], dropped: list[bool]
    ) -> None:
        for start, end in _runs(
            [
                place < 0 and kind == PARAGRAPH and not gone
                for place, kind, gone in zip(places, page.kinds, dropped, strict=True)
            ]
        ):
            calls = {page.calls[call].name for call in page.calls_of_words[start:end] if call >= 0}
            context = " ".join(page.words[max(0, start - _CONTEXT) : start])
            by = f" {{{{{', '.join(sorted(calls))}}}}}" if calls else ""
            self.lost.append((end - start, f"{name}: … {context} ⟨{' '.join(page.words[start:end])}⟩{by}"))
        on_page = set(places)
        for start, end in _runs([place not in on_page for place in range(len(ours))]):
            context = " ".join(ours[max(0, start - _CONTEXT) : start])
            self.added.append((end - start, f"{name}: … {context} ⟨{' '.join(ours[start:end])}⟩"))


def _make_extractor(code: str, options: dict[str, Any]) -> DocumentExtractor:
    """Returns what splits the pages of a language's Wikipedia. Punkt, where it would be trained, has no parameters."""
    rules = rules_for(code)
    if rules.punkt == TRAINED:
        rules = dataclasses.replace(rules, punkt=None)
    origin = Origin(
        date=_DATE,
        header=f"<base>https://{code}.wikipedia.org/</base>".encode(),
        sentences=SentenceChoice(rules=rules, why="dump").to_json(),
    )
    return DocumentExtractor(ExtractionOptions(wikitext=WikitextOptions(**options)), origin)


def _joined(page: RenderedPage, one: int, other: int) -> bool:
    """Whether two words stand in the same paragraph, item or cell."""
    return page.blocks[one] == page.blocks[other]


def _dropped(places: list[int], whole: list[int], blocks: list[int]) -> list[bool]:
    """Which words of the page went with a sentence that a hole is in: those whose text the other mode keeps, and what
    the hole lacks between them."""
    dropped = [False] * len(places)
    start = 0
    for end in range(1, len(places) + 1):
        if end < len(places) and (blocks[end] == blocks[start] and (places[end] < 0) == (places[start] < 0)):
            continue
        if places[start] < 0 and any(place >= 0 for place in whole[start:end]):
            dropped[start:end] = [True] * (end - start)
        start = end
    return dropped


def _runs(marks: list[bool]) -> Iterator[tuple[int, int]]:
    """The starts and ends of the runs of marked places."""
    start = -1
    for place, mark in enumerate([*marks, False]):
        if mark and start < 0:
            start = place
        elif not mark and start >= 0:
            yield start, place
            start = -1


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file."""
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
    """Prints a line of shares in per cent for each language, and one for all."""
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
    """Compares the records of the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("--templates", type=int, default=40, help="how many templates with wrong calls are printed")
    parser.add_argument("--passages", type=int, default=0, help="how many passages are printed, the longest first")
    arguments = parser.parse_args(arguments_given)
    comparison = Comparison()
    for path in arguments.files:
        for record in read_records(path):
            comparison.add(record)
    print_figures(comparison.figures)
    wrong = [(judged.calls - judged.right, key, judged) for key, judged in comparison.templates.items()]
    print("\nlanguage, template: calls, of these right; the first that is wrong")
    for number, (code, name), judged in sorted(wrong, key=lambda one: (-one[0], one[1]))[: arguments.templates]:
        if number:
            print(
                f"{code}, {name}: {judged.calls}, {_share(judged.right, judged.calls).strip()} %; {judged.first_wrong}"
            )
    for title, passages in (("lost", comparison.lost), ("on no page", comparison.added)):
        if arguments.passages:
            print(f"\npassages {title}: {len(passages)}")
        for length, passage in sorted(passages, key=lambda one: -one[0])[: arguments.passages]:
            print(f"{length:5} {passage}")


if __name__ == "__main__":
    main()
