"""Measures how good the extracted text is and writes docs/extraction-quality.md.

    python -m benchmarks.extraction [--corpus NAME DUMP]... [--output FILE]

It makes two measurements. The first counts left-over markup per million characters in the articles of each dump, in the
text of maskmill, of WikiExtractor, and of mwparserfromhell's `strip_code` where that package is installed.
WikiExtractor's text is made by `--extractor wikiextractor`; docs/wikiextractor-compat.md shows that it is the same.

The second shows 100 sentences in which maskmill's text of the sample dump differs from the text that WikiExtractor
(commit 3162bb6) wrote. They are drawn with a fixed seed, and a reader has judged them. The verdicts are in
benchmarks/verdicts.tsv under the sha256 of both sentences. The command prints drawn sentences that have no verdict, and
then exits with 1.
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

from benchmarks.measure import describe_machine, print_machine
from benchmarks.wikiextractor_compat import ROOT, SAMPLE, cell, read_pages, reference_documents
from transforms.extraction.wikiextractor import WikiExtractorCompat
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.dump_dates import dump_date
from transforms.inputs.mediawiki import Page, read_header
from transforms.inputs.site import Site
from transforms.sentences.punkt import SentenceSplitter

MARKUP = ("[[", "]]", "{{", "}}", "<ref", "|}", "&nbsp;", "()", " ,")
VERDICTS = Path(__file__).parent / "verdicts.tsv"
VERDICT_NAMES = ("maskmill better", "WikiExtractor better", "equal")
SEED = 20261121
SAMPLE_SIZE = 100
# From this similarity on (difflib's ratio), two sentences count as two forms of one.
_SIMILAR = 0.5
_SAMPLE_DATE = "2016-03-05"  # of the sample dump

INTRODUCTION = """\
# The text of `extract` beside other extractors'

Written by `python -m benchmarks.extraction`.

## Left-over markup

The tables give occurrences per million characters in the text of articles (no redirects, no disambiguation pages).
WikiExtractor is the program at commit 3162bb6; mwparserfromhell's text comes from its `strip_code()`. CPU seconds are
those of the extraction alone. Not every occurrence is markup: articles on programming contain `()` and `[[` in their
text.

Machine: {machine}.

"""


@dataclasses.dataclass
class Garbage:
    """The markup that one extractor left in the text of one dump.

    Attributes:
      characters, seconds: the length of the text, and the CPU seconds that the extraction took.
      failed: pages on which the extractor failed.
      occurrences: of each piece of MARKUP.
    """

    characters: int = 0
    seconds: float = 0.0
    failed: int = 0
    occurrences: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, extract: Callable[[Page], str], page: Page) -> None:
        """Extracts a page and adds up its text and its markup."""
        began = time.process_time()
        try:
            text = extract(page)
        except RecursionError:  # mwparserfromhell fails on deep nesting
            self.failed += 1
            return
        self.seconds += time.process_time() - began
        self.characters += len(text)
        for markup in MARKUP:
            self.occurrences[markup] += text.count(markup)


@dataclasses.dataclass(frozen=True)
class Difference:
    """A sentence in both texts' forms; a form is empty where the text does not have the sentence."""

    page: str
    theirs: str
    ours: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.page}\n{self.theirs}\n{self.ours}".encode()).hexdigest()[:16]


def articles(path: str, extractor: WikitextExtractor) -> Iterator[Page]:
    """The articles of a dump, without redirects and disambiguation pages."""
    for page in read_pages(path):
        is_redirect = page.is_redirect or extractor.is_redirect(page.text)
        if page.namespace == 0 and not is_redirect and not extractor.is_disambiguation(page.title, page.text):
            yield page


def garbage(path: str) -> dict[str, Garbage]:
    """Counts the left-over markup in the text of a dump's articles. Returns the counts by extractor."""
    site = Site.parse(read_header(path))
    date = dump_date(path) or _SAMPLE_DATE
    ours = WikitextExtractor(site, WikitextOptions(date=date))
    theirs = WikiExtractorCompat(date)
    extractors: dict[str, Callable[[Page], str]] = {
        "maskmill": lambda page: ours.extract(page.title, page.text).decode("utf-8"),
        "WikiExtractor": lambda page: theirs.extract(page.title, page.text).decode("utf-8"),
    }
    if importlib.util.find_spec("mwparserfromhell"):
        import mwparserfromhell

        extractors["mwparserfromhell"] = lambda page: str(mwparserfromhell.parse(page.text.decode()).strip_code())
    counts = {name: Garbage() for name in extractors}
    for page in articles(path, ours):
        for name, extract in extractors.items():
            counts[name].add(extract, page)
    return counts


def differences() -> tuple[collections.Counter[str], list[Difference]]:
    """Compares our text of the sample dump with WikiExtractor's, page by page.

    Returns:
      The numbers of sentences in WikiExtractor's text (`theirs`), in ours (`ours`) and in both (`common`), and the
      differences: each sentence with its most similar counterpart, or alone.
    """
    _, path, folder = SAMPLE
    extractor = WikitextExtractor(Site.parse(read_header(path)), WikitextOptions(date=_SAMPLE_DATE))
    splitter = SentenceSplitter()
    documents = reference_documents(folder)
    counts: collections.Counter[str] = collections.Counter()
    different: list[Difference] = []
    for page in articles(path, extractor):
        document = documents.get(page.page_id)
        if document is None:
            continue
        body = re.sub(rb"\A<doc .*?>\n.*?\n\n|\n</doc>\n\Z", b"", document)
        texts = (body, extractor.extract(page.title, page.text))
        theirs, ours = (collections.Counter(splitter.split_lines(t).decode("utf-8").split("\n")) for t in texts)
        common = theirs & ours
        counts.update(theirs=theirs.total(), ours=ours.total(), common=common.total())
        only_theirs, only_ours = list((theirs - common).elements()), list((ours - common).elements())
        different += pair(page.title.decode("utf-8"), only_theirs, only_ours)
    return counts, different


def pair(page: str, theirs: list[str], ours: list[str]) -> Iterator[Difference]:
    """Pairs each sentence greedily with the most similar one of the other text; the rest stay alone."""
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
    """Each verdict and its reason, by the key of the difference."""
    verdicts = {}
    for line in VERDICTS.read_text(encoding="utf-8").splitlines() if VERDICTS.exists() else []:
        key, verdict, reason = line.split("\t")
        if verdict not in VERDICT_NAMES:
            sys.exit(f"{VERDICTS}: {key}: {verdict!r} must be one of {', '.join(VERDICT_NAMES)}.")
        verdicts[key] = (verdict, reason)
    return verdicts


def garbage_section(name: str, counts: dict[str, Garbage]) -> str:
    """The table of a dump, with a row for each extractor."""
    lines = [f"**{name}**\n", "| | " + " | ".join(f"`{cell(m)}`" for m in MARKUP) + " | all | Mchars | CPU s |"]
    lines.append("|---|" + "---|" * (len(MARKUP) + 3))
    for extractor, count in counts.items():
        rates = [1e6 * count.occurrences[m] / count.characters for m in MARKUP]
        values = [f"{rate:.1f}" for rate in (*rates, sum(rates))]
        failed = f" ({count.failed} pages failed)" if count.failed else ""
        size = [f"{count.characters / 1e6:.2f}{failed}", f"{count.seconds:.1f}"]
        lines.append(f"| {extractor} | " + " | ".join(values + size) + " |")
    return "\n".join(lines) + "\n\n"


def differences_section(counts: collections.Counter[str], different: list[Difference]) -> str:
    """The judged sentences as a table, with the sums of the verdicts; exits if one has no verdict."""
    # Drawn by a hash, not by position: when a rule changes one sentence, the other drawn ones stay.
    drawn = sorted(different, key=lambda d: hashlib.sha256(f"{SEED}:{d.key}".encode()).digest())[:SAMPLE_SIZE]
    drawn.sort(key=lambda d: (not d.ours, not d.theirs, d.page))
    verdicts = read_verdicts()
    missing = [d for d in drawn if d.key not in verdicts]
    if missing:
        for d in missing:
            print(f"{d.key}\n  page   {d.page}\n  theirs {d.theirs}\n  ours   {d.ours}")
        sys.exit(f"{len(missing)} of {SAMPLE_SIZE} differences have no verdict in {VERDICTS}.")
    paired = sum(bool(d.theirs and d.ours) for d in different)
    only_ours, only_theirs = sum(not d.theirs for d in different), sum(not d.ours for d in different)
    sums = collections.Counter(verdicts[d.key][0] for d in drawn)
    lines = [
        f"## {SAMPLE_SIZE} sentences that differ from WikiExtractor's\n",
        f"For the articles of the sample dump, WikiExtractor gives {counts['theirs']:,} sentences and maskmill "
        f"{counts['ours']:,}; {counts['common']:,} are the same.",
        f"{paired:,} sentences differ from a counterpart in the other text, {only_ours:,} are only in maskmill's text, "
        f"and {only_theirs:,} only in WikiExtractor's.",
        f"Of these {len(different):,} differences, {SAMPLE_SIZE} were drawn (seed {SEED}), and a reader judged them as "
        "training text:",
        ", ".join(f"**{name} {sums[name]}**" for name in VERDICT_NAMES) + ".\n",
        "| page | WikiExtractor | maskmill | verdict |\n|---|---|---|---|",
    ]
    for d in drawn:
        verdict, reason = verdicts[d.key]
        lines.append(f"| {cell(d.page)} | {cell(d.theirs)} | {cell(d.ours)} | **{verdict}**: {cell(reason)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures the corpora and writes the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs=2, action="append", metavar=("NAME", "DUMP"))
    parser.add_argument("--output", default=str(ROOT / "docs" / "extraction-quality.md"))
    arguments = parser.parse_args()
    print_machine()
    judged = differences_section(*differences())
    sections = [garbage_section(name, garbage(path)) for name, path in arguments.corpus or [SAMPLE[:2]]]
    page = "".join([INTRODUCTION.format(machine=describe_machine()), *sections, judged])
    Path(arguments.output).write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
