"""Measures the search for duplicate paragraphs on made-up signatures: time, memory, and whether time is linear.

    python -m benchmarks.near_duplicates [--paragraphs 35000000] [--workers 2]

The English Wikipedia has about 35 million paragraphs of ten words or more. The signatures of so many are made up as
extraction leaves them: 19 GB, on the disk of TMPDIR, and 10 GB more while the search runs. Three in four paragraphs are
alone, the others are of families, whose members have the same words, or other words and a share of their MinHashes. The
steps of the graph search a quarter, half, and all of them, on so many processes of the local runner.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.measure import measure, print_machine, ratio
from maskmill.storage import completions, files
from transforms.collection import Graph
from transforms.inputs.units import UnitBatch
from transforms.shards.fragments import Fragment
from transforms.shards.options import ExtractionOptions, QualityOptions
from transforms.shards.signatures import PERMUTATIONS, paragraphs_type

ROOT = Path(__file__).parent.parent
QUALITY = QualityOptions(drop_duplicates=True, near_duplicate_threshold=0.8)
IN_A_FRAGMENT = 26_700
_PARTS = 4  # families keep to a quarter, so that a part of all paragraphs is made up like the whole
_ALONE = 0.75  # of the paragraphs
_MEMBERS = 6  # of a family, about
_VARIANTS = 8  # of its words
_TEXT_BYTES = 400  # of a paragraph

Words = npt.NDArray[np.uint64]


def spread(values: Words) -> Words:
    """Random numbers, one for each number (splitmix64's finalizer)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def signatures(number: int, fragments: int) -> npt.NDArray[np.void]:
    """The rows of the paragraphs of one of some fragments."""
    random = np.random.default_rng(number)
    rows = np.zeros(IN_A_FRAGMENT, paragraphs_type(QUALITY))
    families = random.integers(0, 2**63, len(rows), np.uint64)
    in_family = random.random(len(rows)) >= _ALONE
    part = number * _PARTS // fragments
    count = int(IN_A_FRAGMENT * (1 - _ALONE) / _MEMBERS) * fragments // _PARTS
    families[in_family] = (part * count + random.integers(0, count, int(in_family.sum()))).astype(np.uint64)
    variants = random.integers(0, _VARIANTS, len(rows)).astype(np.uint64)
    words = spread(families * np.uint64(_VARIANTS) + variants + np.uint64(1))
    rows["exact"] = words
    columns = np.arange(PERMUTATIONS, dtype=np.uint64) << np.uint64(40)
    own = spread(words[:, None] ^ columns)
    # Of the MinHashes of a family up to a third are each variant's own.
    is_own = (own >> np.uint64(48)) < (words % np.uint64(21_845))[:, None]
    rows["near"] = np.where(is_own, own, spread(spread(families)[:, None] ^ columns)) & np.uint64(0xFFFFFFFF)
    rows["offset"] = np.arange(len(rows)) * _TEXT_BYTES
    rows["size"], rows["sentences"], rows["body"] = _TEXT_BYTES, 3, 5
    return rows


def fragment_of(number: int) -> Fragment:
    """The description of a fragment."""
    batch = UnitBatch(number=number, files=(), units=())
    return Fragment(
        key=f"{number:032d}", batch=batch, documents=0, size=IN_A_FRAGMENT * _TEXT_BYTES, counts={}, ends=()
    )


def search(output: str, fragments: int, workers: int) -> None:
    """Runs the steps of the graph over the first fragments, and prints what they found."""
    from pipelines.running import runner
    from transforms.shards.duplicates import DecideOnDuplicates, duplicate_counts

    extraction = ExtractionOptions(quality=QUALITY)
    described = [fragment_of(number) for number in range(fragments)]

    def build_graph(graph: Graph) -> None:
        graph.create("Fragments", described).step(DecideOnDuplicates, extraction=extraction, output=output)

    runner.run(build_graph, runner.LocalRunner(workers if workers > 1 else 0))
    print(duplicate_counts(described, extraction, output))


def main() -> None:
    """Prints the machine, and a row for each number of paragraphs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paragraphs", type=int, default=35_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--search", nargs=2, metavar=("FOLDER", "FRAGMENTS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.search is not None:
        search(arguments.search[0], int(arguments.search[1]), arguments.workers)
        return
    print_machine()
    fragments = max(_PARTS, arguments.paragraphs // IN_A_FRAGMENT // _PARTS * _PARTS)
    with tempfile.TemporaryDirectory() as output:
        for number in range(fragments):
            path = completions.work_path(output, "extract", f"{fragment_of(number).key}.paragraphs")
            files.write_bytes(path, signatures(number, fragments).tobytes())
        before = 0.0
        for part in (1, 2, 4):
            count = fragments * part // _PARTS
            command = [sys.executable, "-m", "benchmarks.near_duplicates", "--search", output, str(count)]
            usage = measure([*command, f"--workers={arguments.workers}"], cwd=str(ROOT), env=dict(os.environ))
            if usage.exit_code:
                sys.exit(f"the search ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
            print(usage.row(f"{count * IN_A_FRAGMENT:,} paragraphs"))
            found = usage.output.strip().splitlines()[-1]
            print(f"  {found}; CPU {ratio(usage.cpu, before, 2)} times that of half", flush=True)
            before = usage.cpu
            shutil.rmtree(Path(output) / completions.WORK_DIRECTORY / "duplicates")


if __name__ == "__main__":
    main()
