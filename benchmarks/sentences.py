"""Draws lines from the sentences of many languages' dumps, to be judged, and reports what was judged.

    python -m benchmarks.sentences DIR [--output FILE]  # lengths, and the share of each verdict
    python -m benchmarks.sentences DIR --print hy       # the lines of a language that wait for a verdict

DIR holds dumps (`*.xml`, packed or not) of any languages. `maskmill extract` writes the sentences of each language's
dumps, with its default options; 100 lines of each language are drawn by a hash with a fixed seed.

A verdict is one of `ok`, `several` (the line holds two sentences or more) and `cut` (the line starts or ends inside a
sentence). It stands in benchmarks/sentence_verdicts/LANGUAGE.tsv after a checksum of the line with its neighbours: a
change that changes none of the three keeps it. Exits with 1 if a drawn line of a language that has such a file has
none, or if a language has more than 5 % of `several` or 3 % of `cut`.
"""

import argparse
import dataclasses
import hashlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.wikipedias import Dump, dumps_by_language, read_verdicts

VERDICTS = ("ok", "several", "cut")
MOST = {"several": 0.05, "cut": 0.03}
DRAWN_LINES = 100
SEED = 13
_FOLDER = Path(__file__).with_name("sentence_verdicts")
_ROOT = Path(__file__).parent.parent
_UNUSABLE = 2  # the exit code of a command whose input cannot be used

INTRODUCTION = """\
# Sentences of other languages

Written by `python -m benchmarks.sentences DIR`. For each language `maskmill extract` wrote the sentences of its dumps.
100 lines were drawn with a fixed seed; a reader judged how many hold two sentences or more (several), and how many
start or end inside a sentence (cut). Lengths are in characters. The verdicts are in `benchmarks/sentence_verdicts/`,
each by the checksum of its line, because the dumps are other people's.

"""


@dataclasses.dataclass(frozen=True)
class Line:
    """A line that was drawn, between its neighbours; "" where it is the first or the last of its article."""

    before: str
    text: str
    after: str

    @property
    def checksum(self) -> str:
        """Return the checksum that names the line in the file of verdicts."""
        return hashlib.sha256("\n".join((self.before, self.text, self.after)).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Report:
    """The lines of one language: their number, lengths in characters, and those that were drawn.

    how: what the command says of how it split them.
    """

    lines: int
    median: float
    longest: int
    drawn: list[Line]
    how: str


def extract(dumps: list[Dump], output: Path) -> str:
    """Write the sentences of some dumps of one wiki to a directory; return the summary of the command.

    A wiki whose dumps hold no article has no summary.
    """
    command = [sys.executable, "-m", "maskmill", "extract", "--workers=1", "--num_eval_articles=0"]
    command += [f"--input={','.join(dump.path for dump in dumps)}", f"--output={output}"]
    command += [f"--dump_date={max(dump.date for dump in dumps)}"]
    run = subprocess.run(command, cwd=_ROOT, check=False, capture_output=True, text=True)
    if run.returncode == _UNUSABLE and "No article is left" in run.stderr:
        return ""
    run.check_returncode()
    return run.stdout


def lines_of(output: Path) -> Iterator[Line]:
    """Yield the sentences of all articles in a directory's text shards, each between its neighbours."""
    for shard in sorted(output.glob("part-*")):
        around = ["", *shard.read_text(encoding="utf-8").split("\n"), ""]
        for before, line, after in zip(around, around[1:], around[2:], strict=False):
            if line:
                yield Line(before, line, after)


def report(dumps: list[Dump]) -> Report:
    """Extract a language's dumps and draw lines of them."""
    with tempfile.TemporaryDirectory() as folder:
        summary = extract(dumps, Path(folder))
        lines = list(lines_of(Path(folder)))
    how = re.search(r"^  sentences +(.*(?:\n {11}.*)*)", summary, re.MULTILINE)
    lengths = [len(line.text) for line in lines]
    # Drawn by a hash, not by position: when a rule changes one line, the other drawn ones stay.
    drawn = sorted(lines, key=lambda line: hashlib.sha256(f"{SEED}\n{line.text}".encode()).digest())[:DRAWN_LINES]
    median = statistics.median(lengths) if lengths else 0
    return Report(len(lines), median, max(lengths, default=0), drawn, " ".join(how[1].split()) if how else "")


def is_good(counts: Counter[str | None]) -> bool:
    """Return whether each line has a verdict, and few enough of them are bad."""
    return None not in counts and all(counts[bad] <= most * counts.total() for bad, most in MOST.items())


def row(language: str, found: Report, counts: Counter[str | None]) -> str:
    """Return a language's row of the table; counts: of its verdicts."""
    judged = [str(counts.total() - counts[None]), str(counts["several"]), str(counts["cut"])]
    cells = [language, f"{found.lines:,}", f"{found.median:.0f}", f"{found.longest:,}", *judged, found.how]
    return "| " + " | ".join(cells) + " |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or the lines of one language that wait for a verdict."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="a folder of dumps")
    parser.add_argument("--print", dest="language", help="print the drawn lines of a language that have no verdict")
    parser.add_argument("--output", type=Path, help="write the table to this document")
    options = parser.parse_args(arguments)
    if options.language:
        known = read_verdicts(_FOLDER / f"{options.language}.tsv", VERDICTS)
        for line in report(dumps_by_language(options.folder).get(options.language, [])).drawn:
            if line.checksum not in known:
                print(f"{line.checksum}\t{line.before[-60:]} ⏎ {line.text} ⏎ {line.after[:60]}")
        return 0
    table = [
        "| language | lines | median | longest | judged | several | cut | split by |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    good = True
    for language, dumps in dumps_by_language(options.folder).items():
        if known := read_verdicts(_FOLDER / f"{language}.tsv", VERDICTS):
            found = report(dumps)
            counts = Counter(known.get(line.checksum, (None,))[0] for line in found.drawn)
            good &= is_good(counts)
            table.append(row(language, found, counts))
    print("\n".join(table))
    if options.output:
        options.output.write_text(INTRODUCTION + "\n".join(table) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
