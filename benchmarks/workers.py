"""Measures what a second worker gains: `maskmill examples` on text shards with 1 and with 2 local workers.

    python -m benchmarks.workers TEXT [--runs 5] [--scratch DIR]

TEXT is a folder that `maskmill extract` made, with 16 shards or more. Every worker is a process, the single one, too
(multi_processing). The start-up of a command is the time that it takes for the first lines of each shard; it is
subtracted. Give a folder on a RAM disk as --scratch, else the time in which the disk stores the records (fsync) is
measured, too.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Usage, measure, print_machine, ratio, shorten
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
LENGTHS = ["--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=10"]


def examples(text: Path, vocabulary: str, workers: int, scratch: str) -> Usage:
    """Runs the stage once and deletes what it wrote. Returns what it took."""
    with tempfile.TemporaryDirectory(dir=scratch) as output:
        command = [sys.executable, "-m", "maskmill", "examples"]
        paths = [f"--input={text}/part-*", f"--output={output}/examples"]
        local = ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
        usage = measure([*command, *paths, f"--vocab_file={vocabulary}", *LENGTHS, *local], cwd=str(ROOT))
    if usage.exit_code:
        sys.exit(usage.output[-2000:])
    return usage


def main() -> None:
    """Prints the machine, the medians, and the ratio of the times without start-up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=lambda path: Path(path).resolve())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--vocab", default=str(VOCABULARY))
    parser.add_argument("--scratch", default=None)
    arguments = parser.parse_args()
    shards = sorted(arguments.text.glob("part-*"))
    if not shards:
        parser.error(f"{arguments.text} is no folder of text shards; give the --output of `maskmill extract`.")
    print_machine()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        short = Path(folder) / "short"
        shorten(shards, short)
        runs: dict[tuple[Path, int], list[Usage]] = {}
        for _ in range(arguments.runs):
            for text in (short, arguments.text):
                for workers in (1, 2):
                    usage = examples(text, arguments.vocab, workers, folder)
                    runs.setdefault((text, workers), []).append(usage)
        wall = {key: statistics.median(u.wall for u in usages) for key, usages in runs.items()}
        for workers in (1, 2):
            usages = runs[arguments.text, workers]
            cpu = statistics.median(u.cpu for u in usages)
            largest = max(u.largest for u in usages) / 1e6
            print(
                f"{workers} worker{'s' if workers > 1 else ''}: {wall[arguments.text, workers]:.2f} s, of which "
                f"{wall[short, workers]:.2f} s are start-up; {cpu:.2f} s CPU, largest process {largest:.0f} MB"
            )
        work = {workers: wall[arguments.text, workers] - wall[short, workers] for workers in (1, 2)}
        times = ratio(work[1], work[2], digits=2)
        print(f"{len(shards)} shards, medians of {arguments.runs}: 1 worker / 2 workers {times}, without start-up")


if __name__ == "__main__":
    main()
