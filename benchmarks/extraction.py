"""How good the extracted text is: writes docs/extraction-quality.md.

    python -m benchmarks.extraction [--corpus NAME DUMP]... [--output FILE]

Two measurements. Left-over markup in the text of the articles of each dump, per million characters: ours,
WikiExtractor's (its text as `--extractor wikiextractor` gives it, which docs/wikiextractor-compat.md shows to be the
same), and that of mwparserfromhell's `strip_code`, where that package is installed. And 100 sentences in which our text
of the sample dump differs from what WikiExtractor (commit 3162bb6) wrote of it, drawn with a fixed seed and judged by
a reader: the verdicts stand in benchmarks/verdicts.tsv, by the sha256 of both sentences; a sentence without one is
printed, and the command ends with 1.
"""

import argparse
import collections
import dataclasses
import difflib
import hashlib
import importlib.util
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.wikiextractor_compat import ROOT, SAMPLE, cell, read_pages, reference_documents
from transforms.extraction.wikiextractor import WikiExtractorCompat
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.mediawiki import Page, dump_date, read_header
from transforms.inputs.site import Site
from transforms.sentences.punkt import SentenceSplitter

MARKUP = ("[[", "]]", "{{", "}}", "<ref", "|}", "&nbsp;", "()", " ,")
VERDICTS = Path(__file__).parent / "verdicts.tsv"
VERDICT_NAMES = ("ours better", "theirs better", "equal")
SEED = 20261121
SAMPLE_SIZE = 100
# Below this similarity (difflib's ratio) two sentences are not two forms of one.
_SIMILAR = 0.5
_DATE = "2016-03-05"

INTRODUCTION = """\
# The text of `extract` beside other extractors'

Written by `python -m benchmarks.extraction`.

## Left-over markup

Occurrences per million characters in the text of articles (no redirects, no disambiguation pages). WikiExtractor is the
program at commit 3162bb6, mwparserfromhell its `strip_code()`; CPU seconds are those of the extraction alone. Some of
what is counted is no markup: `()` and `[[` stand in the text of articles on programming.

"""


@dataclasses.dataclass
class Garbage:
    """What one extractor left in the text of one dump."""

    characters: int = 0
    seconds: float = 0.0
    failed: int = 0
    found: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, extract: Callable[[Page], str], page: Page) -> None:
        """Extracts a page and counts."""
        began = time.process_time()
        try:
            text = extract(page)
        except RecursionError:  # mwparserfromhell, on deep nesting
            self.failed += 1
            return
        self.seconds += time.process_time() - began
        self.characters += len(text)
        for markup in MARKUP:
            self.found[markup] += text.count(markup)


@dataclasses.dataclass(frozen=True)
class Difference:
    """A sentence of one text, the other's form of it where it has one; empty where it has none."""

    page: str
    theirs: str
    ours: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.page}\n{self.theirs}\n{self.ours}".encode()).hexdigest()[:16]


def articles(path: str, extractor: WikitextExtractor) -> Iterator[Page]:
    """The articles of a dump: neither redirects nor disambiguation pages."""
    for page in read_pages(path):
        is_redirect = page.is_redirect or extractor.is_redirect(page.text)
        if page.namespace == 0 and not is_redirect and not extractor.is_disambiguation(page.title, page.text):
            yield page


def garbage(path: str) -> dict[str, Garbage]:
    """Counts left-over markup in the text of a dump's articles, by extractor."""
    site = Site.parse(read_header(path))
    date = dump_date(path) or _DATE
    ours = WikitextExtractor(site, WikitextOptions(date=date))
    theirs = WikiExtractorCompat(date)
    extractors: dict[str, Callable[[Page], str]] = {
        "maskmill": lambda page: ours.extract(page.title, page.text).decode("utf-8"),
        "WikiExtractor": lambda page: theirs.extract(page.title, page.text).decode("utf-8"),
    }
    if importlib.util.find_spec("mwparserfromhell"):
        import mwparserfromhell

        extractors["mwparserfromhell"] = lambda page: str(mwparserfromhell.parse(page.text.decode()).strip_code())
    found = {name: Garbage() for name in extractors}
    for page in articles(path, ours):
        for name, extract in extractors.items():
            found[name].add(extract, page)
    return found


def differences() -> tuple[collections.Counter[str], list[Difference]]:
    """Compares our text of the sample dump with WikiExtractor's, by page.

    Returns the number of sentences of each (`theirs`, `ours`) and of those in both (`common`), and the differences:
    a sentence with its most similar counterpart, or alone.
    """
    _, path, folder = SAMPLE
    extractor = WikitextExtractor(Site.parse(read_header(path)), WikitextOptions(date=_DATE))
    splitter = SentenceSplitter()
    documents = reference_documents(folder)
    counts: collections.Counter[str] = collections.Counter()
    found: list[Difference] = []
    for page in articles(path, extractor):
        document = documents.get(page.page_id)
        if document is None:
            continue
        body = re.sub(rb"\A<doc .*?>\n.*?\n\n|\n</doc>\n\Z", b"", document)
        texts = (body, extractor.extract(page.title, page.text))
        theirs, ours = (collections.Counter(splitter.split_lines(t).decode("utf-8").split("\n")) for t in texts)
        common = theirs & ours
        counts.update(theirs=theirs.total(), ours=ours.total(), common=common.total())
        found += pair(page.title.decode("utf-8"), list((theirs - common).elements()), list((ours - common).elements()))
    return counts, found


def pair(page: str, theirs: list[str], ours: list[str]) -> Iterator[Difference]:
    """Pairs each sentence with the most similar of the other side, greedily; the rest stand alone."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    scores = []
    for i, sentence in enumerate(theirs):
        matcher.set_seq2(sentence)
        for k, other in enumerate(ours):
            matcher.set_seq1(other)
            if matcher.real_quick_ratio() > _SIMILAR and matcher.quick_ratio() > _SIMILAR:
                scores.append((-matcher.ratio(), i, k))
    partner: dict[int, int] = {}
    for score, i, k in sorted(scores):
        if -score > _SIMILAR and i not in partner and k not in partner.values():
            partner[i] = k
    for i, sentence in enumerate(theirs):
        yield Difference(page, sentence, ours[partner[i]] if i in partner else "")
    for k in sorted(set(range(len(ours))) - set(partner.values())):
        yield Difference(page, "", ours[k])


def read_verdicts() -> dict[str, tuple[str, str]]:
    """The verdict and its reason, by the key of the difference."""
    found = {}
    for line in VERDICTS.read_text(encoding="utf-8").splitlines() if VERDICTS.exists() else []:
        key, verdict, reason = line.split("\t")
        if verdict not in VERDICT_NAMES:
            sys.exit(f"{VERDICTS}: {key}: {verdict!r} is none of {', '.join(VERDICT_NAMES)}")
        found[key] = (verdict, reason)
    return found


def garbage_section(name: str, found: dict[str, Garbage]) -> str:
    """A table: a row for each extractor."""
    lines = [f"**{name}**\n", "| | " + " | ".join(f"`{cell(m)}`" for m in MARKUP) + " | all | Mchars | CPU s |"]
    lines.append("|---|" + "---|" * (len(MARKUP) + 3))
    for extractor, of in found.items():
        rates = [1e6 * of.found[m] / of.characters for m in MARKUP]
        values = [f"{rate:.1f}" for rate in (*rates, sum(rates))]
        lost = f" ({of.failed} pages failed)" if of.failed else ""
        size = [f"{of.characters / 1e6:.2f}{lost}", f"{of.seconds:.1f}"]
        lines.append(f"| {extractor} | " + " | ".join(values + size) + " |")
    return "\n".join(lines) + "\n\n"


def differences_section(counts: collections.Counter[str], found: list[Difference]) -> str:
    """The judged sentences as a table, with the sums of the verdicts; exits where one is not judged."""
    # Drawn by a hash, not by place: a rule that changes one sentence leaves the others drawn.
    drawn = sorted(found, key=lambda d: hashlib.sha256(f"{SEED}:{d.key}".encode()).digest())[:SAMPLE_SIZE]
    drawn.sort(key=lambda d: (not d.ours, not d.theirs, d.page))
    verdicts = read_verdicts()
    missing = [d for d in drawn if d.key not in verdicts]
    if missing:
        for d in missing:
            print(f"{d.key}\n  page   {d.page}\n  theirs {d.theirs}\n  ours   {d.ours}")
        sys.exit(f"{len(missing)} of {SAMPLE_SIZE} differences have no verdict in {VERDICTS}.")
    paired = sum(bool(d.theirs and d.ours) for d in found)
    sums = collections.Counter(verdicts[d.key][0] for d in drawn)
    lines = [
        f"## {SAMPLE_SIZE} sentences that differ from WikiExtractor's\n",
        f"The articles of the sample dump: {counts['theirs']:,} sentences of WikiExtractor's, "
        f"{counts['ours']:,} of ours, {counts['common']:,} the same. {paired:,} differ and have a counterpart,",
        f"{sum(not d.theirs for d in found):,} are only in ours, {sum(not d.ours for d in found):,} only in its text.",
        f"Of these {len(found):,}, {SAMPLE_SIZE} were drawn (seed {SEED}) and judged as training text by a reader:",
        ", ".join(f"**{name} {sums[name]}**" for name in VERDICT_NAMES) + ".\n",
        "| page | WikiExtractor | here | verdict |\n|---|---|---|---|",
    ]
    for d in drawn:
        verdict, reason = verdicts[d.key]
        lines.append(f"| {cell(d.page)} | {cell(d.theirs)} | {cell(d.ours)} | **{verdict}**: {cell(reason)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs=2, action="append", metavar=("NAME", "DUMP"))
    parser.add_argument("--output", default=str(ROOT / "docs" / "extraction-quality.md"))
    arguments = parser.parse_args()
    judged = differences_section(*differences())
    sections = [garbage_section(name, garbage(path)) for name, path in arguments.corpus or [SAMPLE[:2]]]
    page = "".join([INTRODUCTION, *sections, judged])
    Path(arguments.output).write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
