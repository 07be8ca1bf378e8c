"""Measures how good the extracted text is and writes docs/extraction-quality.md.

    python -m benchmarks.extraction [--corpus NAME DUMP]... [--output FILE]
    python -m benchmarks.extraction DIR [--source TEXT] [--output FILE]

With a folder of dumps it measures those by language and writes docs/extraction-languages.md (benchmarks/languages.py).
Without one it makes two measurements of the sample dump or of the named ones. The first counts left-over markup per
million characters in the articles of each dump, in the text of maskmill, of WikiExtractor, and of
mwparserfromhell's `strip_code` where that package is installed. WikiExtractor's text is made by
`--extractor wikiextractor`; docs/wikiextractor-compat.md shows that it is the same.

The second counts the verdicts on 100 sentences in which maskmill's text of the sample dump differs from that of
WikiExtractor (commit 3162bb6). They are drawn with a fixed seed, and a reader has judged them. The verdicts are in
benchmarks/verdicts.tsv under the sha256 of both sentences. The command prints drawn sentences that have no verdict, and
then exits with 1.
"""

import argparse
import collections
import dataclasses
import difflib
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import languages
from benchmarks.languages import MARKUP, Markup
from benchmarks.measure import describe_machine, print_machine
from benchmarks.wikiextractor_compat import ROOT, SAMPLE, cell, reference_documents
from benchmarks.wikipedias import Dump, all_texts, read_verdicts
from maskmill.sentences.punkt import SentenceSplitter

VERDICTS = Path(__file__).parent / "verdicts.tsv"
VERDICT_NAMES = ("maskmill better", "WikiExtractor better", "equal")
SEED = 20261121
SAMPLE_SIZE = 100
# From this similarity on (difflib's ratio), two sentences count as two forms of one.
_SIMILAR = 0.5

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


@dataclasses.dataclass(frozen=True)
class Difference:
    """A sentence in both texts' forms; a form is empty where the text does not have the sentence."""

    page: str
    theirs: str
    ours: str

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.page}\n{self.theirs}\n{self.ours}".encode()).hexdigest()[:16]


def garbage(path: str) -> dict[str, tuple[Markup, float]]:
    """Return what each extractor leaves in the text of a dump's articles, and the CPU seconds that it took."""
    dump = Dump.open(path)
    counts = {}
    for name, texts in all_texts(dump, dump.articles()):
        left = Markup()
        left.add(texts.pages)
        counts[name] = (left, texts.seconds)
    return counts


def differences() -> tuple[collections.Counter[str], list[Difference]]:
    """Compare our text of the sample dump with WikiExtractor's, page by page.

    Returns:
      The numbers of sentences in WikiExtractor's text (`theirs`), in ours (`ours`) and in both (`common`), and the
      differences: each sentence with its most similar counterpart, or alone.
    """
    _, path, folder = SAMPLE
    dump = Dump.open(path)
    extractor = dump.extractor()
    splitter = SentenceSplitter()
    documents = reference_documents(folder)
    counts: collections.Counter[str] = collections.Counter()
    different: list[Difference] = []
    for page in dump.articles():
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
    """Pair each sentence greedily with the most similar one of the other text; the rest stay alone."""
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


def garbage_section(name: str, counts: dict[str, tuple[Markup, float]]) -> str:
    """Return the table of a dump, with a row for each extractor."""
    lines = [f"**{name}**\n", "| | " + " | ".join(f"`{cell(m)}`" for m in MARKUP) + " | all | Mchars | CPU s |"]
    lines.append("|---|" + "---|" * (len(MARKUP) + 3))
    for extractor, (left, seconds) in counts.items():
        rates = [1e6 * left.occurrences[m] / left.characters for m in MARKUP]
        values = [f"{rate:.1f}" for rate in (*rates, left.rate)]
        failed = f" ({left.failed} pages failed)" if left.failed else ""
        size = [f"{left.characters / 1e6:.2f}{failed}", f"{seconds:.1f}"]
        lines.append(f"| {extractor} | " + " | ".join(values + size) + " |")
    return "\n".join(lines) + "\n\n"


def differences_section(counts: collections.Counter[str], different: list[Difference]) -> str:
    """Return the sums of the verdicts, and some of the judged sentences as a table; exits if one has no verdict."""
    # Drawn by a hash, not by position: when a rule changes one sentence, the other drawn ones stay.
    drawn = sorted(different, key=lambda d: hashlib.sha256(f"{SEED}:{d.key}".encode()).digest())[:SAMPLE_SIZE]
    drawn.sort(key=lambda d: (not d.ours, not d.theirs, d.page))
    verdicts = read_verdicts(VERDICTS, VERDICT_NAMES)
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
        ", ".join(f"**{name} {sums[name]}**" for name in VERDICT_NAMES) + ".",
        "Here are those where WikiExtractor's is better.\n",
        "| page | WikiExtractor | maskmill | why |\n|---|---|---|---|",
    ]
    for d in drawn:
        verdict, reason = verdicts[d.key]
        if verdict == "WikiExtractor better":
            lines.append(f"| {cell(d.page)} | {cell(d.theirs)} | {cell(d.ours)} | {cell(reason)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the corpora and write the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", metavar="DIR", help="a folder of dumps of many languages")
    parser.add_argument("--source", default="", help="with DIR: a sentence on where the dumps come from")
    parser.add_argument("--corpus", nargs=2, action="append", metavar=("NAME", "DUMP"))
    parser.add_argument("--output", help="the document to write")
    arguments = parser.parse_args()
    print_machine()
    if arguments.folder:
        page = languages.document(arguments.folder, arguments.source)
        Path(arguments.output or ROOT / "docs" / "extraction-languages.md").write_text(page, encoding="utf-8")
        print(page)
        return
    judged = differences_section(*differences())
    sections = [garbage_section(name, garbage(path)) for name, path in arguments.corpus or [SAMPLE[:2]]]
    page = "".join([INTRODUCTION.format(machine=describe_machine()), *sections, judged])
    Path(arguments.output or ROOT / "docs" / "extraction-quality.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
