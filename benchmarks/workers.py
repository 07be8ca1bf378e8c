"""What a second worker brings: `maskmill examples` on a folder of text shards with 1 and with 2 local workers.

    python -m benchmarks.workers TEXT [--runs 5] [--scratch DIR]

TEXT is a folder that `maskmill extract` made, of 16 shards or more. Both run as processes of their own
(multi_processing). Start-up is what the same command takes for the first lines of each shard; it is taken off. Name a
RAM disk as scratch, or the disk's fsync of the records is measured too.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Usage, measure, shorten
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
LENGTHS = ["--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=10"]


def examples(text: Path, vocabulary: str, workers: int, scratch: str) -> Usage:
    """Runs the stage once, into a folder that is deleted."""
    with tempfile.TemporaryDirectory(dir=scratch) as output:
        command = [sys.executable, "-m", "maskmill", "examples"]
        paths = [f"--input={text}/part-*", f"--output={output}/examples"]
        local = ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
        usage = measure([*command, *paths, f"--vocab_file={vocabulary}", *LENGTHS, *local], cwd=str(ROOT))
    if usage.exit_code:
        sys.exit(usage.output[-2000:])
    return usage


def main() -> None:
    """Prints medians, and the ratio of what is left after start-up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=lambda path: Path(path).resolve())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--vocab", default=str(VOCABULARY))
    parser.add_argument("--scratch", default=None)
    arguments = parser.parse_args()
    shards = sorted(arguments.text.glob("part-*"))
    if not shards:
        parser.error(f"{arguments.text} is no folder of text shards; give the --output of `maskmill extract`.")
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
            print(
                f"{workers} worker{'s' if workers > 1 else ''}: {wall[arguments.text, workers]:.2f} s, of it start-up "
                f"{wall[short, workers]:.2f} s; {statistics.median(u.cpu for u in usages):.2f} s CPU, largest process "
                f"{max(u.largest for u in usages) / 1e6:.0f} MB"
            )
        after = {workers: wall[arguments.text, workers] - wall[short, workers] for workers in (1, 2)}
        print(f"{len(shards)} shards, medians of {arguments.runs}: {after[1] / after[2]:.2f} times, after start-up")


if __name__ == "__main__":
    main()
