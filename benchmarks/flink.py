"""Compares a standalone Flink cluster with two local processes.

    python -m benchmarks.flink DUMP [--rounds 5] [--scratch DIR]

`extract` and `examples` run on both in turn, with the same input and two workers each, and must write the same bytes.
The start-up of a command is the time that it takes for one document, or for the first lines of each shard; it is
subtracted. Its shortest time is printed, too, which tells more on a machine that does other work.

Give a folder on a RAM disk as --scratch, else the time in which the disk stores the records (fsync) is measured, too.
"""

import contextlib
import functools
import hashlib
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import (
    LENGTHS,
    ROOT,
    in_turn,
    maskmill,
    parser_of,
    print_machine,
    ratio,
    resolved,
    shorten,
)

sys.path.insert(0, str(ROOT / "deploy" / "flink"))
import cluster as flink

MASKMILL = (sys.executable, "-m", "maskmill")
LOCAL = ("--workers=2",)


def digest(output: Path) -> str:
    """Return a checksum of the names and contents of all files of a data set, the manifest left out."""
    checksum = hashlib.sha256()
    for path in sorted(p for p in output.iterdir() if p.is_file() and p.name != "manifest.json"):
        checksum.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return checksum.hexdigest()


@contextlib.contextmanager
def started(directory: Path, *, slots: int) -> Iterator[flink.Cluster]:
    """Start a cluster of two TaskManagers and stop it at the end."""
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
    stage: str, short: Sequence[str], whole: Sequence[str], cluster: flink.Cluster, scratch: Path, rounds: int
) -> None:
    """Print the median times of a stage on both runners, and of its start-up.

    Args:
      stage: name of the stage's command.
      short: flags of a run that does little but start up.
      whole: flags of the run that is measured.
      cluster: where Flink runs the stage.
      scratch: folder for the outputs.
      rounds: how often each command runs.
    """
    runners = {"local": LOCAL, "flink": (*cluster.flags(), "--parallelism=2")}

    def once(name: str, flags: Sequence[str]) -> tuple[float, str]:
        output = scratch / name / stage
        shutil.rmtree(output, ignore_errors=True)
        usage = maskmill(stage, f"--output={output}", *flags, *runners[name])
        return usage.wall, digest(output)

    cases = {(name, kind): functools.partial(once, name, flags)
             for kind, flags in (("short", short), ("whole", whole)) for name in runners}  # fmt: skip
    runs = in_turn(rounds, cases)
    for kind in ("short", "whole"):
        if len({digest for name in runners for _, digest in runs[name, kind]}) != 1:
            sys.exit(f"{stage}: Flink and the local runner give different bytes")
    times = {key: [seconds for seconds, _ in found] for key, found in runs.items()}
    wall = {key: statistics.median(seconds) for key, seconds in times.items()}
    work = {name: wall[name, "whole"] - wall[name, "short"] for name in runners}
    for name in runners:
        whole, short, least = wall[name, "whole"], wall[name, "short"], min(times[name, "short"])
        print(f"{stage}, {name}: {whole:.2f} s, of which {short:.2f} s are start-up (at least {least:.2f} s)")
    print(
        f"{stage}, without start-up: local {work['local']:.2f} s, Flink {work['flink']:.2f} s, "
        f"Flink / local {ratio(work['flink'], work['local'], digits=2)}; the same bytes; medians of {rounds}",
        flush=True,
    )


def main() -> None:
    """Print the machine, the times of both stages."""
    parser = parser_of(__doc__, rounds=5, scratch="the cluster and the outputs, best on a RAM disk")
    parser.add_argument("dump", type=resolved)
    arguments = parser.parse_args()
    print_machine()
    examples = (f"--vocab_file={arguments.vocab}", *LENGTHS)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as directory:
        scratch = Path(directory)
        with started(scratch / "two-slots", slots=1) as cluster:
            dump = (f"--input={arguments.dump}", "--shard_size_mb=3.5")
            compare(
                "extract", (*dump, "--max_documents=1", "--eval_fraction=0"), dump, cluster, scratch, arguments.rounds
            )
            text = scratch / "text"
            (scratch / "local" / "extract").rename(text)
            shards = sorted(text.glob("part-*"))
            print(f"{len(shards)} shards")
            short = scratch / "short"
            shorten(shards, short)
            inputs = [(f"--input={folder}/part-*", *examples) for folder in (short, text)]
            compare("examples", *inputs, cluster, scratch, arguments.rounds)


if __name__ == "__main__":
    main()
