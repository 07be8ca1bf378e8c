"""How near `--extractor wikiextractor` comes to WikiExtractor: writes docs/wikiextractor-compat.md.

    python -m benchmarks.wikiextractor_compat [--corpus NAME DUMP FOLDER DATE]... [--output FILE]

FOLDER holds what WikiExtractor (commit 3162bb6, default options) wrote of the dump, gzipped or not; DATE is the day it
ran. Without --corpus: the sample dump and its gold. Both texts of each page go through MLPerf's clean-up, and their
sentences are compared; a difference that vanishes when our clock is set to DATE is the clock's.
"""

import argparse
import collections
import dataclasses
import gzip
import re
import time
from collections.abc import Iterator
from pathlib import Path

from transforms.extraction.wikiextractor import WikiExtractorCompat, format_document
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs import mediawiki
from transforms.inputs.mediawiki import Page, read_header, site_base
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import plan_units, read_unit
from transforms.sentences.punkt import SentenceSplitter
from transforms.shards import mlperf_cleanup
from transforms.storage import files

ROOT = Path(__file__).parent.parent
GOLD = ROOT / "tests" / "data"
SAMPLE = (
    "English, 2016",
    str(GOLD / "dump" / "enwiki-sample-multistream.xml.bz2"),
    str(GOLD / "gold" / "wikiextractor"),
)
_SHOWN = 20

INTRODUCTION = """\
# `--extractor wikiextractor` beside WikiExtractor

Written by `python -m benchmarks.wikiextractor_compat`. WikiExtractor is the program at commit 3162bb6 with its default
options, under Python 3.7. Both texts of a page go through MLPerf's clean-up and NLTK 3.4.5's sentence splitter;
"verbatim" counts the sentences of a page that stand in the other text of that page, word for word.

"""

KNOWN = """
## What differs by design

- Clock: `{{CURRENTYEAR}}` and the like give the dump's date, not the day of the run, so that a build can be repeated.
- Pages: WikiExtractor leaves out a page with `<redirect/>`, or with an `<ns>` other than 0; in a dump without these
  elements (schema 0.3) it keeps every page. Here redirects are also known by their text, and namespaces by the titles;
  `--namespaces` and `--keep_redirects` keep them.
- Failures: a numeric reference to half of a surrogate pair (`&#xD800;`) ends WikiExtractor's run, functions nested
  hundreds of levels deep lose it the page. Here the reference stays as it is, and more than 40 levels give nothing.
- `#expr`: WikiExtractor hands the expression to Python's `eval`. Here arithmetic is calculated; all else is a failed
  expression, as a syntax error is there.
- `#invoke`: WikiExtractor imitates a few functions of Module:String and Module:Roman. Here it gives nothing.
- Templates: WikiExtractor expands them with `--templates FILE`, which is not its default and was not used for MLPerf's
  data. Here they give nothing.
- Control characters: U+0001 to U+0003, which XML does not allow, become `"`, `<` and `>`.
"""


@dataclasses.dataclass
class Comparison:
    """What one dump gave."""

    name: str
    pages: int = 0
    identical: int = 0
    identical_at_date: int = 0
    kept_by_rule: int = 0
    missing: int = 0
    theirs: int = 0
    ours: int = 0
    common: int = 0
    clock: int = 0
    megabytes: float = 0.0
    seconds: float = 0.0
    clock_samples: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    other_samples: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)


def reference_documents(folder: str) -> dict[int, bytes]:
    """The `<doc>` blocks that WikiExtractor wrote, by page id."""
    found = {}
    for path in sorted(Path(folder).rglob("wiki_*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for match in re.finditer(rb'<doc id="(\d+)".*?\n</doc>\n', content, re.DOTALL):
            found[int(match[1])] = match[0]
    return found


def read_pages(path: str) -> Iterator[Page]:
    """All pages of a dump that can be read."""
    for unit in plan_units([files.FileInfo(path=path, size=Path(path).stat().st_size)]):
        for page in read_unit(unit, ReadOptions()):
            if isinstance(page, Page):
                yield page


def sentences(document: bytes, splitter: SentenceSplitter) -> list[str]:
    """The sentences of a document after MLPerf's clean-up."""
    text = mlperf_cleanup.clean_markup(mlperf_cleanup.remove_doc_tags(document))
    lines = mlperf_cleanup.split_sentences(text, splitter).decode("utf-8").split("\n")
    return [line for line in lines if line]


def compare(name: str, path: str, folder: str, date: str) -> Comparison:
    """Compares our text of each page of a dump with WikiExtractor's in `folder`, written on `date`."""
    documents = reference_documents(folder)
    header = read_header(path)
    base = site_base(header)
    dump_date = mediawiki.dump_date(path) or date
    extractor, at_date = WikiExtractorCompat(dump_date), WikiExtractorCompat(date)
    wikitext = WikitextExtractor(Site.parse(header), WikitextOptions(date=dump_date))
    splitter = SentenceSplitter(rules="nltk-3.4")
    extractor.extract(b"", b"{{lc:compile}} [[a]]")
    found = Comparison(name)
    for page in read_pages(path):
        theirs = documents.pop(page.page_id, None)
        if theirs is None:
            continue
        found.pages += 1
        found.megabytes += len(page.text) / 1e6
        found.kept_by_rule += page.namespace == 0 and not page.is_redirect and not wikitext.is_redirect(page.text)
        began = time.process_time()
        text = extractor.extract(page.title, page.text)
        found.seconds += time.process_time() - began
        ours = format_document(page.page_id, base, page.title, text)
        found.identical += ours == theirs
        their_sentences, our_sentences = sentences(theirs, splitter), sentences(ours, splitter)
        found.theirs += len(their_sentences)
        found.ours += len(our_sentences)
        common = collections.Counter(their_sentences) & collections.Counter(our_sentences)
        found.common += common.total()
        if ours == theirs:
            found.identical_at_date += 1
            continue
        text = at_date.extract(page.title, page.text)
        is_clock = format_document(page.page_id, base, page.title, text) == theirs
        found.identical_at_date += is_clock
        found.clock += is_clock * (len(their_sentences) - common.total())
        samples = found.clock_samples if is_clock else found.other_samples
        only_theirs = collections.Counter(their_sentences) - common
        only_ours = collections.Counter(our_sentences) - common
        for number in range(max(len(only_theirs), len(only_ours))):
            pair = [[*only, *[""] * len(common)] for only in (only_theirs, only_ours)]
            samples.append((page.title.decode("utf-8"), pair[0][number], pair[1][number]))
    found.missing = len(documents)
    return found


def share(part: int, whole: int) -> str:
    """A share with three digits after the point."""
    return f"{100 * part / whole:.3f} %" if whole else "-"


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def report(found: list[Comparison]) -> str:
    """The page in Markdown."""
    rows: list[tuple[str, list[str]]] = [
        ("pages of WikiExtractor's", [f"{c.pages:,}" for c in found]),
        ("… that we do not find in the dump", [f"{c.missing:,}" for c in found]),
        ("… that `extract` keeps by default (articles, no redirects)", [f"{c.kept_by_rule:,}" for c in found]),
        ("documents with the same bytes", [f"{c.identical:,}" for c in found]),
        ("… with the clock set to its run", [f"{c.identical_at_date:,}" for c in found]),
        ("its sentences", [f"{c.theirs:,}" for c in found]),
        ("… verbatim in ours", [share(c.common, c.theirs) for c in found]),
        ("our sentences verbatim in its", [share(c.common, c.ours) for c in found]),
        ("its sentences that differ: by the clock", [f"{c.clock:,}" for c in found]),
        ("… for other reasons", [f"{c.theirs - c.common - c.clock:,}" for c in found]),
        ("ours, MB of wikitext a CPU second", [f"{c.megabytes / c.seconds:.0f}" for c in found]),
    ]
    lines = ["| | " + " | ".join(c.name for c in found) + " |", "|---|" + "---|" * len(found)]
    lines += [f"| {label} | " + " | ".join(values) + " |" for label, values in rows]
    page = [INTRODUCTION, "\n".join(lines), "\n"]
    for title, field in (("The clock", "clock_samples"), ("Other differences", "other_samples")):
        samples = [sample for c in found for sample in getattr(c, field)]
        page.append(f"\n## {title}: {len(samples)} sentences\n\n")
        if samples:
            page.append("| page | WikiExtractor | here |\n|---|---|---|\n")
            page += [f"| {cell(a)} | {cell(b)} | {cell(c)} |\n" for a, b, c in samples[:_SHOWN]]
    return "".join([*page, KNOWN])


def main() -> None:
    """Compares and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs=4, action="append", metavar=("NAME", "DUMP", "FOLDER", "DATE"))
    parser.add_argument("--output", default=str(ROOT / "docs" / "wikiextractor-compat.md"))
    arguments = parser.parse_args()
    corpora = arguments.corpus or [(*SAMPLE, "2026-11-21")]
    page = report([compare(*corpus) for corpus in corpora])
    Path(arguments.output).write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
