"""Measures what the next dump costs: extracted as a whole, and with the pages of the release before taken over.

    python -m benchmarks.incremental DUMP [--changed 0.02] [--added 0.01] [--deleted 0.01] [--runs 3] [FLAGS OF EXTRACT]

The next dump is made of DUMP (XML, plain or packed with bz2): of all pages some are edited and get a new revision, some
are deleted, and new ones follow at the end; which ones is drawn with a fixed seed. Every figure is of a whole command
with all processes that it starts, the median of `--runs` runs that take turns. The kernels are compiled before. The
files of both builds of the next dump, manifests included, are compared byte by byte: a difference ends the benchmark.
"""

import argparse
import bz2
import hashlib
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Usage, measure, print_machine
from maskmill.storage import reuse

ROOT = Path(__file__).parent.parent

_PAGES_A_STREAM = 100
_TEXT = re.compile(rb"(<text[^>]*[^>/]>)(.*?)(</text>)", re.DOTALL)
_REVISION_ID = re.compile(rb"(<revision>\s*<id>)(\d+)(</id>)")
_PAGE_ID = re.compile(rb"(<id>)(\d+)(</id>)")
_TITLE = re.compile(rb"(<title>)(.*?)(</title>)")
_NEW_REVISIONS = 10**9  # more than any revision's id in a dump that is measured here


def next_dump(dump: Path, target: Path, shares: Sequence[float], seed: int = 1) -> dict[str, int]:
    """Writes the dump that might follow a dump, packed with bz2 in streams of 100 pages.

    Args:
      dump: MediaWiki XML, plain or packed with bz2.
      target: the file to write.
      shares: which shares of the pages are edited, added and deleted.
      seed: of the draws.

    Returns:
      How many pages the dump had, and how many were edited, added and deleted.
    """
    content = dump.read_bytes()
    if dump.suffix == ".bz2":
        content = bz2.decompress(content)
    first, last = content.index(b"<page>"), content.rindex(b"</page>") + len(b"</page>")
    pages = [page + b"</page>" for page in content[first:last].split(b"</page>")[:-1]]
    draws = random.Random(seed)
    edited, added, deleted = (round(share * len(pages)) for share in shares)
    drawn = draws.sample(range(len(pages)), edited + deleted)
    to_edit, to_delete = set(drawn[:edited]), set(drawn[edited:])
    kept = [
        _edited(page, number) if number in to_edit else page
        for number, page in enumerate(pages)
        if number not in to_delete
    ]
    highest = max(int(match[2]) for page in pages if (match := _PAGE_ID.search(page)))
    kept += [_added(pages[draws.randrange(len(pages))], highest + 1 + number) for number in range(added)]
    with target.open("wb") as file:
        file.write(bz2.compress(content[:first]))
        for start in range(0, len(kept), _PAGES_A_STREAM):
            file.write(bz2.compress(b"".join(kept[start : start + _PAGES_A_STREAM])))
        file.write(bz2.compress(b"\n" + content[last:].lstrip()))
    return {"pages": len(pages), "edited": edited, "added": added, "deleted": deleted}


def _edited(page: bytes, number: int) -> bytes:
    """A page with another sentence behind its first paragraph, and a new revision."""
    page = _REVISION_ID.sub(rb"\g<1>%d\3" % (_NEW_REVISIONS + number), page, count=1)
    return _TEXT.sub(lambda text: text[1] + _with_sentence(text[2]) + text[3], page, count=1)


def _with_sentence(text: bytes) -> bytes:
    first, blank, rest = text.partition(b"\n\n")
    return first + b" This sentence was added to the page later." + blank + rest


def _added(page: bytes, page_id: int) -> bytes:
    """A page with another's text, a new id and a new title."""
    page = _TITLE.sub(rb"\1\2 (%d)\3" % page_id, page, count=1)
    page = _PAGE_ID.sub(rb"\g<1>%d\3" % page_id, page, count=1)
    return _REVISION_ID.sub(rb"\g<1>%d\3" % (_NEW_REVISIONS + page_id), page, count=1)


def files_below(output: Path) -> dict[str, str]:
    """The sha256 of every file of a build but its work directory, by path below it."""
    return {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*"))
        if path.is_file() and ".maskmill" not in path.parts
    }


def extract(dump: Path, output: Path, date: str, flags: Sequence[str], taking: reuse.Reuse | None) -> Usage:
    """Measures `maskmill extract` into a new directory; ends the benchmark if it fails."""
    shutil.rmtree(output, ignore_errors=True)
    if taking is not None:
        reuse.write_reuse(str(output), taking)
    command = [sys.executable, "-m", "maskmill", "extract", f"--input={dump}", f"--output={output}"]
    usage = measure(
        [*command, f"--dump_date={date}", *flags], cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    if usage.exit_code:
        sys.exit(f"extract ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    return usage


def store_bytes(output: Path) -> Iterator[int]:
    """The sizes of a build's page stores."""
    return (path.stat().st_size for path in output.rglob("*.pages"))


def compare(arguments: argparse.Namespace, flags: Sequence[str], scratch: Path) -> None:
    """Builds the dump, then the next one in each way, and prints what each took."""
    following = scratch / "next.xml.bz2"
    made = next_dump(arguments.dump, following, (arguments.changed, arguments.added, arguments.deleted))
    print(", ".join(f"{number:,} {name}" for name, number in made.items()))
    before, whole, taken = scratch / "before", scratch / "whole", scratch / "taken"
    extract(following, scratch / "warm-up", "2006-04-03", flags, None)
    keeping = reuse.Reuse(keeps_pages=True)
    ways = {
        "the dump, keeping no pages": (arguments.dump, scratch / "plain", "2006-03-03", None),
        "the dump, keeping its pages": (arguments.dump, before, "2006-03-03", keeping),
        "the next dump, as a whole": (following, whole, "2006-04-03", None),
        "the next dump, as a whole, keeping pages": (following, scratch / "keeping", "2006-04-03", keeping),
        "the next dump, taking pages": (
            following,
            taken,
            "2006-04-03",
            reuse.Reuse(previous=str(before), keeps_pages=True),
        ),
    }
    usages: dict[str, list[Usage]] = {label: [] for label in ways}
    for _ in range(arguments.runs):
        for label, (dump, output, date, taking) in ways.items():
            usages[label].append(extract(dump, output, date, flags, taking))
    for label, measured in usages.items():
        cpu = statistics.median(usage.cpu for usage in measured)
        wall = statistics.median(usage.wall for usage in measured)
        largest = max(usage.largest for usage in measured) / 1e6
        print(f"{label:<42} {cpu:7.2f} s CPU {wall:7.2f} s wall {largest:6.0f} MB largest process")
    if files_below(whole) != files_below(taken):
        sys.exit("The build that took pages differs from the one that took none.")
    account = reuse.read_reused(str(taken))
    if account is None:
        sys.exit("The build that took pages kept no account.")
    share = 100 * account.reused_pages / max(1, account.pages)
    print(f"pages taken: {account.reused_pages:,} of {account.pages:,} ({share:.2f} %); ", end="")
    print(f"shards taken: {account.reused_shards:,} of {account.shards:,}")
    print(f"page stores: {sum(store_bytes(taken)) / 1e6:.1f} MB; all files of both builds are the same bytes")


def main() -> None:
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=Path)
    parser.add_argument("--changed", type=float, default=0.02, help="share of the pages that are edited")
    parser.add_argument("--added", type=float, default=0.01)
    parser.add_argument("--deleted", type=float, default=0.01)
    parser.add_argument("--runs", type=int, default=3)
    arguments, flags = parser.parse_known_args()  # the rest are flags of extract
    print_machine()
    with tempfile.TemporaryDirectory(prefix="maskmill-incremental-") as scratch:
        compare(arguments, flags, Path(scratch))


if __name__ == "__main__":
    main()
