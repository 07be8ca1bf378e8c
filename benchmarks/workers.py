"""Measures what a second worker gains: the whole build of copies of a dump with 1 and with 2 local workers, in turn.

    python -m benchmarks.workers DUMP [--copies 8] [--runs 3] [--scratch DIR]

Start-up is included. Two bounds stand beside the figures. Two builds of half the copies, with 1 worker each and at the
same time, show what two processes that share nothing gain on this machine: cores share caches and memory. And a plain
loop that writes a gigabyte and has it stored (fsync) shows the rate of the folder's disk; on a RAM disk (/dev/shm) only
the processor counts.
"""

import argparse
import bz2
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.build import write_config
from benchmarks.measure import Usage, measure, print_machine, ratio
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
_BLOCK, _BLOCKS = bytes(4 << 20), 256


def build(dumps: list[Path], workers: int, scratch: str) -> tuple[Usage, int]:
    """Builds once and deletes what it wrote. Returns what it took, and the bytes of the records."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        inputs = ",".join(map(str, dumps))
        config = write_config(
            Path(folder), vocab_file=str(VOCABULARY), input=inputs, shard_size_mb=27, num_eval_articles=100
        )
        command = [sys.executable, "-m", "maskmill", "build", str(config), f"--workers={workers}"]
        usage = measure(command, cwd=str(ROOT))
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.tfrecord"))
    if usage.exit_code:
        sys.exit(usage.output[-2000:])
    return usage, size


def beside_each_other(dumps: list[Path], scratch: str) -> float:
    """The seconds of two builds of half the dumps, with 1 worker each, at the same time."""
    began = time.monotonic()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda half: build(half, 1, scratch), (dumps[::2], dumps[1::2])))
    return time.monotonic() - began


def disk_rate(scratch: str) -> float:
    """Megabytes a second that a plain loop writes into a file, until they are stored."""
    with tempfile.TemporaryFile(dir=scratch) as file:
        began = time.monotonic()
        for _ in range(_BLOCKS):
            file.write(_BLOCK)
        file.flush()
        os.fsync(file.fileno())
        return len(_BLOCK) * _BLOCKS / 1e6 / (time.monotonic() - began)


def main() -> None:
    """Prints the machine, a row for each build, and the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=lambda path: Path(path).resolve())
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scratch", default=None)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        content = arguments.dump.read_bytes()
        dumps = [Path(scratch) / f"{copy}-{arguments.dump.name}" for copy in range(arguments.copies)]
        for copy, dump in enumerate(dumps):
            # Of equal files one would be extracted for all: each has other empty streams of bzip2 at its end.
            dump.write_bytes(content + copy * bz2.compress(b""))
        print(f"the disk: {disk_rate(scratch):.0f} MB/s", flush=True)
        walls: dict[str, list[float]] = {}
        for _ in range(arguments.runs):
            for workers in (1, 2):
                label = f"{workers} worker{'s' if workers > 1 else ''}"
                usage, size = build(dumps, workers, scratch)
                print(usage.row(label), f"{size / 1e6 / usage.wall:7.0f} MB/s of records", flush=True)
                walls.setdefault(label, []).append(usage.wall)
            walls.setdefault("2 builds", []).append(beside_each_other(dumps, scratch))
            print(f"{'2 builds at one time, of half each':<34} {walls['2 builds'][-1]:25.2f} s wall", flush=True)
    medians = {label: statistics.median(seconds) for label, seconds in walls.items()}
    for label in ("2 workers", "2 builds"):
        times = ratio(medians["1 worker"], medians[label], digits=2)
        print(f"medians of {arguments.runs}: {label} are {times} times as fast as 1 worker")


if __name__ == "__main__":
    main()
