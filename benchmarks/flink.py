"""Compares a standalone Flink cluster with two local processes, and measures the memory of Flink's workers.

    python -m benchmarks.flink DUMP [--runs 5] [--scratch DIR]

`extract` and `examples` run on both in turn, with the same input and two workers each, and must write the same bytes.
The start-up of a command is the time that it takes for one document, or for the first lines of each shard; it is
subtracted. Its shortest time is printed, too, which tells more on a machine that does other work.

Then `examples` masks shards of 27 MB at parallelism 4, first with a Python process for each slot, then with one process
for two slots. A process works on one shard at a time, however many slots it serves, so its memory must stay the same.

Give a folder on a RAM disk as --scratch, else the time in which the disk stores the records (fsync) is measured, too.
"""

import argparse
import contextlib
import hashlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from benchmarks.measure import peak, print_machine, ratio, shorten
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "deploy" / "flink"))
import cluster as flink  # noqa: E402 - a script, in no package

MASKMILL = (sys.executable, "-m", "maskmill")
LOCAL = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
LENGTHS = ("--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=10")
MEMORY_SHARDS = 8


def run(command: Sequence[str]) -> float:
    """Runs a command to its end. Returns its wall time in seconds."""
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return time.monotonic() - began


def digest(output: Path) -> str:
    """A checksum of the names and contents of all files of a data set, the manifest left out."""
    checksum = hashlib.sha256()
    for path in sorted(p for p in output.iterdir() if p.is_file() and p.name != "manifest.json"):
        checksum.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return checksum.hexdigest()


def python_workers(cluster: flink.Cluster) -> list[int]:
    """The process ids of a cluster's Python workers."""
    pids = []
    for name, manager in cluster.processes().items():
        if manager is None or not name.startswith("taskmanager"):
            continue
        for process in manager.children(recursive=True):
            try:
                if any(part.endswith("worker.py") for part in process.cmdline()):
                    pids.append(process.pid)
            except psutil.NoSuchProcess:
                continue  # the process has ended
    return pids


@contextlib.contextmanager
def started(directory: Path, *, slots: int) -> Iterator[flink.Cluster]:
    """Starts a cluster of two TaskManagers and stops it at the end."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    cluster = flink.Cluster(directory)
    cluster.start(flink.Settings(taskmanagers=2, slots=slots, rest_port=port))
    try:
        yield cluster
    finally:
        cluster.stop()


def compare(
    stage: str, short: Sequence[str], whole: Sequence[str], cluster: flink.Cluster, scratch: Path, runs: int
) -> None:
    """Prints the median times of a stage on both runners, and of its start-up.

    Args:
      stage: name of the stage's command.
      short: flags of a run that does little but start up.
      whole: flags of the run that is measured.
      cluster: where Flink runs the stage.
      scratch: folder for the outputs.
      runs: how often each command runs.
    """
    runners = {"local": LOCAL, "flink": (*cluster.flags(), "--parallelism=2")}
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(runs):
        for kind, flags in (("short", short), ("whole", whole)):
            digests = set()
            for name, runner in runners.items():
                output = scratch / name / stage
                shutil.rmtree(output, ignore_errors=True)
                seconds = run([*MASKMILL, stage, f"--output={output}", *flags, *runner])
                times.setdefault((name, kind), []).append(seconds)
                digests.add(digest(output))
            if len(digests) != 1:
                sys.exit(f"{stage}: Flink and the local runner give different bytes")
    wall = {key: statistics.median(seconds) for key, seconds in times.items()}
    work = {name: wall[name, "whole"] - wall[name, "short"] for name in runners}
    for name in runners:
        whole, short, least = wall[name, "whole"], wall[name, "short"], min(times[name, "short"])
        print(f"{stage}, {name}: {whole:.2f} s, of which {short:.2f} s are start-up (at least {least:.2f} s)")
    print(
        f"{stage}, without start-up: local {work['local']:.2f} s, Flink {work['flink']:.2f} s, "
        f"Flink / local {ratio(work['flink'], work['local'], digits=2)}; the same bytes; medians of {runs}",
        flush=True,
    )


def measure_memory(text: Path, processes: int, examples: Sequence[str], cluster: flink.Cluster, scratch: Path) -> None:
    """Prints the peak memory of each Python worker at parallelism 4, with `processes` workers for two slots."""
    source, output = scratch / "memory-input", scratch / "memory-output"
    for directory in (source, output):
        shutil.rmtree(directory, ignore_errors=True)
    source.mkdir()
    largest = max(text.glob("part-*"), key=lambda path: path.stat().st_size)
    for number in range(MEMORY_SHARDS):
        os.link(largest, source / f"part-{number:05d}-of-{MEMORY_SHARDS:05d}")
    flags = (*cluster.flags(), "--parallelism=4", f"--sdk_worker_parallelism={processes}")
    command = [*MASKMILL, "examples", f"--input={source}/part-*", f"--output={output}", *examples, *flags]
    before = set(python_workers(cluster))
    log = scratch / "log.txt"
    with open(log, "w") as file:
        running = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file)
    peaks: dict[int, int] = {}
    while running.poll() is None:
        for pid in set(python_workers(cluster)) - before:
            peaks[pid] = max(peaks.get(pid, 0), peak(pid))
        time.sleep(0.1)
    if running.returncode:
        sys.exit(log.read_text()[-2000:])
    shutil.rmtree(output)
    print(
        f"examples at parallelism 4, {MEMORY_SHARDS} shards of {largest.stat().st_size / 1e6:.1f} MB, "
        f"{processes} worker{'s' if processes > 1 else ''} for 2 slots: peak memory of each worker in MB "
        + ", ".join(f"{size / 1e6:.0f}" for size in sorted(peaks.values())),
        flush=True,
    )


def main() -> None:
    """Prints the machine, the times of both stages, then the memory of the workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=lambda path: Path(path).resolve())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--memory", action=argparse.BooleanOptionalAction, default=True, help="measure memory, too")
    parser.add_argument("--vocab", default=str(VOCABULARY))
    parser.add_argument("--scratch", default=None)
    arguments = parser.parse_args()
    print_machine()
    examples = (f"--vocab_file={arguments.vocab}", *LENGTHS)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as directory:
        scratch = Path(directory)
        with started(scratch / "two-slots", slots=1) as cluster:
            dump = (f"--input={arguments.dump}", "--shard_size_mb=3.5")
            compare(
                "extract", (*dump, "--max_documents=1", "--eval_fraction=0"), dump, cluster, scratch, arguments.runs
            )
            text = scratch / "text"
            (scratch / "local" / "extract").rename(text)
            shards = sorted(text.glob("part-*"))
            print(f"{len(shards)} shards")
            short = scratch / "short"
            shorten(shards, short)
            inputs = [(f"--input={folder}/part-*", *examples) for folder in (short, text)]
            compare("examples", *inputs, cluster, scratch, arguments.runs)
        shutil.rmtree(scratch / "local")
        shutil.rmtree(scratch / "flink")
        if not arguments.memory:
            return
        run([*MASKMILL, "extract", f"--input={arguments.dump}", f"--output={scratch / 'large'}"])
        for processes in (2, 1):
            with started(scratch / f"four-slots-{processes}", slots=2) as cluster:
                measure_memory(scratch / "large", processes, examples, cluster, scratch)


if __name__ == "__main__":
    main()
