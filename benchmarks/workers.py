"""Measures what a second worker gains: the whole build of copies of a dump with 1 and with 2 local workers, in turn.

    python -m benchmarks.workers DUMP [--copies 8] [--rounds 3] [--scratch DIR]

Start-up is included. Beside the figures stand two builds of half the copies, with 1 worker each and at the same time:
what two processes that share nothing gain on this machine, whose cores share caches and memory. On a RAM disk
(/dev/shm) only the processor counts.
"""

import bz2
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.build import write_config
from benchmarks.measure import VOCABULARY, in_turn, maskmill, parser_of, print_machine, ratio, resolved


def build(dumps: list[Path], workers: int, scratch: str) -> float:
    """Build once, prints what it took, and delete what it wrote. Returns the wall time in seconds."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        inputs = ",".join(map(str, dumps))
        config = write_config(
            Path(folder), vocab_file=VOCABULARY, input=inputs, shard_size_mb=27, num_eval_articles=100
        )
        usage = maskmill("build", config, f"--workers={workers}")
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.tfrecord"))
    print(
        usage.row(f"{len(dumps)} dumps, {workers} workers"),
        f"{size / 1e6 / usage.wall:7.0f} MB/s of records",
        flush=True,
    )
    return usage.wall


def beside_each_other(dumps: list[Path], scratch: str) -> float:
    """Return the seconds of two builds of half the dumps, with 1 worker each, at the same time."""
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda half: build(half, 1, scratch), (dumps[::2], dumps[1::2])))
    return time.monotonic() - began


def main() -> None:
    """Print the machine, a row for each build, and the ratio of the medians."""
    parser = parser_of(__doc__, rounds=3, scratch="the copies and the builds")
    parser.add_argument("dump", type=resolved)
    parser.add_argument("--copies", type=int, default=8)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        content = arguments.dump.read_bytes()
        dumps = [Path(scratch) / f"{copy}-{arguments.dump.name}" for copy in range(arguments.copies)]
        for copy, dump in enumerate(dumps):
            # Of equal files one would be extracted for all: each has other empty streams of bzip2 at its end.
            dump.write_bytes(content + copy * bz2.compress(b""))
        cases = {
            "1 worker": lambda: build(dumps, 1, scratch),
            "2 workers": lambda: build(dumps, 2, scratch),
            "2 builds of half the dumps at one time": lambda: beside_each_other(dumps, scratch),
        }
        medians = {name: statistics.median(walls) for name, walls in in_turn(arguments.rounds, cases).items()}
    for name, wall in medians.items():
        print(
            f"median of {arguments.rounds}, {name}: {wall:.2f} s, {ratio(medians['1 worker'], wall, 2)} times as fast"
        )


if __name__ == "__main__":
    main()
