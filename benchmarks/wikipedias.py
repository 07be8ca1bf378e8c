"""The wikis whose text the measurements compare: dumps by language, and the text that each extractor makes of them.

The other extractors: WikiExtractor at commit 3162bb6 (its text by `--extractor wikiextractor`, which is the same, see
docs/wikiextractor-compat.md) and, where it is installed, mwparserfromhell's `strip_code()`.
"""

import dataclasses
import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.wikiextractor_compat import read_pages
from maskmill.compat.wikiextractor import WikiExtractorCompat
from maskmill.extraction.wikitext import WikitextExtractor, WikitextOptions
from maskmill.inputs.mediawiki import Page, read_header
from maskmill.inputs.site import Site
from maskmill.mirrors.dump_names import date_in_name

DEFAULT_DATE = "2016-03-05"  # of the sample dump, whose name has none
_ARTICLES = 0  # the number of the namespace


@dataclasses.dataclass(frozen=True)
class Dump:
    """A dump and what its header says. date: ISO, of its name."""

    path: str
    site: Site
    date: str

    @classmethod
    def open(cls, path: str) -> "Dump":
        return cls(path, Site.parse(read_header(path)), date_in_name(path) or DEFAULT_DATE)

    def extractor(self) -> WikitextExtractor:
        """Return our extractor, with its default options."""
        return WikitextExtractor(self.site, WikitextOptions(date=self.date))

    def articles(self) -> list[Page]:
        """Return the articles, without redirects and disambiguation pages."""
        extractor = self.extractor()
        return [
            page
            for page in read_pages(self.path)
            if page.namespace == _ARTICLES
            and not (page.is_redirect or extractor.is_redirect(page.text))
            and not extractor.is_disambiguation(page.title, page.text)
        ]


@dataclasses.dataclass
class Texts:
    """The result of one extractor for a list of pages: a text for each (None where it failed), and its CPU seconds."""

    pages: list[str | None]
    seconds: float


def dumps_by_language(folder: str) -> dict[str, list[Dump]]:
    """Return the dumps below a folder (`*.xml`, packed or not) by the language of their site."""
    languages: dict[str, list[Dump]] = {}
    for path in sorted(Path(folder).rglob("*.xml*")):
        dump = Dump.open(str(path))
        languages.setdefault(dump.site.language, []).append(dump)
    if not languages:
        sys.exit(f"{folder}: no file in it has a name in .xml, .xml.bz2, .xml.gz or .xml.xz; name a folder of dumps.")
    return dict(sorted(languages.items()))


def texts_of(extractor: WikitextExtractor | WikiExtractorCompat, pages: list[Page]) -> Texts:
    """Return the text that one of our extractors takes from pages, one paragraph a line."""
    began = time.process_time()
    texts: list[str | None] = [extractor.extract(page.title, page.text).decode("utf-8") for page in pages]
    return Texts(texts, time.process_time() - began)


def mwparserfromhell_texts(pages: list[Page]) -> Texts | None:
    """Return mwparserfromhell's text of pages; None where it is not installed."""
    if not importlib.util.find_spec("mwparserfromhell"):
        return None
    import mwparserfromhell

    texts: list[str | None] = []
    began = time.process_time()
    for page in pages:
        try:
            texts.append(str(mwparserfromhell.parse(page.text.decode("utf-8")).strip_code()))
        except RecursionError:  # it fails on deep nesting
            texts.append(None)
    return Texts(texts, time.process_time() - began)


def all_texts(dump: Dump, pages: list[Page]) -> Iterator[tuple[str, Texts]]:
    """Yield (name, texts) of each extractor that is installed, ours first."""
    yield "maskmill", texts_of(dump.extractor(), pages)
    yield "WikiExtractor", texts_of(WikiExtractorCompat(dump.date), pages)
    texts = mwparserfromhell_texts(pages)
    if texts is not None:
        yield "mwparserfromhell", texts


def read_verdicts(path: Path, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return (verdict, reason) by key; empty without the file. Ends the command if a verdict is not in `names`."""
    verdicts = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        key, verdict, *reason = line.split("\t")
        if verdict not in names:
            sys.exit(f"{path}: {key}: {verdict!r} must be one of {', '.join(names)}.")
        verdicts[key] = (verdict, reason[0] if reason else "")
    return verdicts
