"""Compares `--extractor wikiextractor` with WikiExtractor and writes docs/wikiextractor-compat.md.

    python -m benchmarks.wikiextractor_compat [--corpus NAME DUMP FOLDER DATE]... [--output FILE]

FOLDER holds the output of WikiExtractor (commit 3162bb6, default options) for the dump, gzipped or not. DATE is the day
on which it ran. Without --corpus, the sample dump is compared with its gold. Both texts of each page go through
MLPerf's clean-up, and their sentences are compared. A difference that vanishes when our clock is set to DATE comes from
the clock.
"""

import argparse
import collections
import dataclasses
import gzip
import re
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import describe_machine, print_machine
from maskmill.compat import mlperf_cleanup
from maskmill.compat.wikiextractor import WikiExtractorCompat, format_document
from maskmill.extraction.wikitext import WikitextExtractor, WikitextOptions
from maskmill.inputs.mediawiki import Page, read_header, site_base
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.site import Site
from maskmill.inputs.units import plan_units, read_unit
from maskmill.mirrors.dump_names import date_in_name
from maskmill.sentences.punkt import SentenceSplitter
from maskmill.storage import files

ROOT = Path(__file__).parent.parent
GOLD = ROOT / "tests" / "data"
SAMPLE = (
    "English, 2016",
    str(GOLD / "dump" / "enwiki-sample-multistream.xml.bz2"),
    str(GOLD / "gold" / "wikiextractor"),
)
_SHOWN_SAMPLES = 20

INTRODUCTION = """\
# `--extractor wikiextractor` beside WikiExtractor

Written by `python -m benchmarks.wikiextractor_compat`. WikiExtractor is the program at commit 3162bb6 with its default
options, under Python 3.7. Both texts of a page go through MLPerf's clean-up and NLTK 3.4.5's sentence splitter.
"Verbatim" counts the sentences of a page that the other text of this page contains word for word.

Machine: {machine}.

"""

KNOWN = """
## What differs by design

- Clock: in maskmill `{{CURRENTYEAR}}` and similar words give the dump's date, so that a build can be repeated. In
  WikiExtractor they give the day of the run.
- Pages: WikiExtractor leaves out a page with `<redirect/>`, or with an `<ns>` other than 0. In a dump without these
  elements (schema 0.3) it keeps every page. maskmill also recognises redirects by their text and namespaces by the
  titles; `--namespaces` and `--keep_redirects` keep such pages.
- Failures: a numeric reference to half of a surrogate pair (`&#xD800;`) ends WikiExtractor's run, and it loses a page
  with functions nested hundreds of levels deep. maskmill leaves the reference as it is; functions nested more than
  40 levels deep give nothing.
- `#expr`: WikiExtractor passes the expression to Python's `eval`. maskmill calculates arithmetic; everything else is an
  error in the expression, as a syntax error is in WikiExtractor.
- `#invoke`: WikiExtractor imitates a few functions of Module:String and Module:Roman. In maskmill it gives nothing.
- Templates: WikiExtractor expands them with `--templates FILE`, which is not its default and was not used for MLPerf's
  data. In maskmill they give nothing.
- Control characters: maskmill turns U+0001 to U+0003, which XML does not allow, into `"`, `<` and `>`.
"""


@dataclasses.dataclass
class Comparison:
    """The counts of one dump.

    Attributes:
      name: the dump's name in the table.
      pages: WikiExtractor's pages that are in the dump; `missing` counts those that are not.
      identical: pages whose documents are the same bytes; `identical_at_date`: with our clock set to WikiExtractor's.
      kept_by_default: pages that `extract` keeps without options.
      theirs, ours, common: WikiExtractor's sentences, ours, and those in both texts of a page.
      clock: WikiExtractor's sentences that differ because of the clock.
      megabytes, seconds: wikitext, and the CPU seconds that our extractor takes for it.
      clock_samples, other_samples: differences as (title, WikiExtractor's sentence, ours), by their reason.
    """

    name: str
    pages: int = 0
    identical: int = 0
    identical_at_date: int = 0
    kept_by_default: int = 0
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
    """Return the `<doc>` blocks that WikiExtractor wrote, by page id."""
    documents = {}
    for path in sorted(Path(folder).rglob("wiki_*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for match in re.finditer(rb'<doc id="(\d+)".*?\n</doc>\n', content, re.DOTALL):
            documents[int(match[1])] = match[0]
    return documents


def read_pages(path: str) -> Iterator[Page]:
    """Yield all pages of a dump, without those that cannot be read."""
    for unit in plan_units([files.FileInfo(path=path, size=Path(path).stat().st_size)]):
        for page in read_unit(unit, ReadOptions()):
            if isinstance(page, Page):
                yield page


def sentences(document: bytes, splitter: SentenceSplitter) -> list[str]:
    """Return the sentences of a document after MLPerf's clean-up."""
    text = mlperf_cleanup.clean_markup(mlperf_cleanup.remove_doc_tags(document))
    lines = mlperf_cleanup.split_sentences(text, splitter).decode("utf-8").split("\n")
    return [line for line in lines if line]


def compare(name: str, path: str, folder: str, date: str) -> Comparison:
    """Compare our text of each page of a dump with WikiExtractor's, which it wrote to `folder` on `date`."""
    documents = reference_documents(folder)
    header = read_header(path)
    base = site_base(header)
    dump_date = date_in_name(path) or date
    extractor, at_date = WikiExtractorCompat(dump_date), WikiExtractorCompat(date)
    wikitext = WikitextExtractor(Site.parse(header), WikitextOptions(date=dump_date))
    splitter = SentenceSplitter(rules="nltk-3.4")
    extractor.extract(b"", b"{{lc:compile}} [[a]]")  # compiles the kernels
    comparison = Comparison(name)
    for page in read_pages(path):
        theirs = documents.pop(page.page_id, None)
        if theirs is None:
            continue
        comparison.pages += 1
        comparison.megabytes += len(page.text) / 1e6
        comparison.kept_by_default += (
            page.namespace == 0 and not page.is_redirect and not wikitext.is_redirect(page.text)
        )
        began = time.process_time()
        text = extractor.extract(page.title, page.text)
        comparison.seconds += time.process_time() - began
        ours = format_document(page.page_id, base, page.title, text)
        comparison.identical += ours == theirs
        their_sentences, our_sentences = sentences(theirs, splitter), sentences(ours, splitter)
        comparison.theirs += len(their_sentences)
        comparison.ours += len(our_sentences)
        common = collections.Counter(their_sentences) & collections.Counter(our_sentences)
        comparison.common += common.total()
        if ours == theirs:
            comparison.identical_at_date += 1
            continue
        text = at_date.extract(page.title, page.text)
        is_clock = format_document(page.page_id, base, page.title, text) == theirs
        comparison.identical_at_date += is_clock
        comparison.clock += is_clock * (len(their_sentences) - common.total())
        samples = comparison.clock_samples if is_clock else comparison.other_samples
        only_theirs = collections.Counter(their_sentences) - common
        only_ours = collections.Counter(our_sentences) - common
        for number in range(max(len(only_theirs), len(only_ours))):
            pair = [[*only, *[""] * len(common)] for only in (only_theirs, only_ours)]
            samples.append((page.title.decode("utf-8"), pair[0][number], pair[1][number]))
    comparison.missing = len(documents)
    return comparison


def share(part: int, whole: int) -> str:
    """Return a share in percent, with three digits after the point."""
    return f"{100 * part / whole:.3f} %" if whole else "-"


def cell(text: str) -> str:
    """Return text as a cell of a table in Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def report(comparisons: list[Comparison]) -> str:
    """Return the document in Markdown."""
    rows: list[tuple[str, list[str]]] = [
        ("pages that WikiExtractor wrote", [f"{c.pages:,}" for c in comparisons]),
        ("… that maskmill does not find in the dump", [f"{c.missing:,}" for c in comparisons]),
        ("… that `extract` keeps by default (articles, no redirects)", [f"{c.kept_by_default:,}" for c in comparisons]),
        ("documents with the same bytes", [f"{c.identical:,}" for c in comparisons]),
        (
            "… with maskmill's clock set to the day of WikiExtractor's run",
            [f"{c.identical_at_date:,}" for c in comparisons],
        ),
        ("WikiExtractor's sentences", [f"{c.theirs:,}" for c in comparisons]),
        ("… verbatim in maskmill's text", [share(c.common, c.theirs) for c in comparisons]),
        ("maskmill's sentences verbatim in WikiExtractor's text", [share(c.common, c.ours) for c in comparisons]),
        ("WikiExtractor's sentences that differ because of the clock", [f"{c.clock:,}" for c in comparisons]),
        ("… for other reasons", [f"{c.theirs - c.common - c.clock:,}" for c in comparisons]),
        ("maskmill, MB of wikitext a CPU second", [f"{c.megabytes / c.seconds:.0f}" for c in comparisons]),
    ]
    lines = ["| | " + " | ".join(c.name for c in comparisons) + " |", "|---|" + "---|" * len(comparisons)]
    lines += [f"| {label} | " + " | ".join(values) + " |" for label, values in rows]
    page = [INTRODUCTION.format(machine=describe_machine()), "\n".join(lines), "\n"]
    for title, field in (("The clock", "clock_samples"), ("Other differences", "other_samples")):
        samples = [sample for c in comparisons for sample in getattr(c, field)]
        page.append(f"\n## {title}: {len(samples)} sentences\n\n")
        if samples:
            page.append("| page | WikiExtractor | maskmill |\n|---|---|---|\n")
            page += [f"| {cell(a)} | {cell(b)} | {cell(c)} |\n" for a, b, c in samples[:_SHOWN_SAMPLES]]
    return "".join([*page, KNOWN])


def main() -> None:
    """Compare the corpora and write the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs=4, action="append", metavar=("NAME", "DUMP", "FOLDER", "DATE"))
    parser.add_argument("--output", default=str(ROOT / "docs" / "wikiextractor-compat.md"))
    arguments = parser.parse_args()
    print_machine()
    corpora = arguments.corpus or [(*SAMPLE, "2026-11-21")]
    page = report([compare(*corpus) for corpus in corpora])
    Path(arguments.output).write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
