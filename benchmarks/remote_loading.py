"""Measures how fast a data set is read from Google Cloud Storage when each request takes some time.

    python -m benchmarks.remote_loading TEXT [--vocab FILE] [--delay 0.05] [--pace 2400000] [--scratch DIR]

TEXT is a directory that `maskmill extract` wrote. Its examples (512 pieces, 76 masks, written to many small shards) are
put into a storage emulator on this machine; a server before it adds the delay to each request, any number at a time.
Both are programs in Python, so the emulator's speed without the delay is measured, too, and that of a web server that
only sends the bytes after the same delay.

Each case reads an epoch in a process of its own: first as fast as it goes, then by a consumer that takes as many tokens
a second as --pace says (8 H200 at ModernBERT's published rate take 2,400,000) and does nothing else.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import measure, print_machine, ratio
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
BUCKET = "maskmill-benchmark"
SHARDS = 64
BATCH = 256
GOAL = 0.8  # of local throughput
ROWS = ["--max_seq_length=512", "--max_predictions_per_seq=76"]


def split_text(text: Path, folder: Path) -> None:
    """Writes the documents of text shards to SHARDS files, turn by turn."""
    documents = [
        document for shard in sorted(text.glob("part-*")) for document in shard.read_text().split("\n\n") if document
    ]
    for number in range(SHARDS):
        content = "".join(f"{document.strip()}\n\n" for document in documents[number::SHARDS])
        (folder / f"part-{number:05d}-of-{SHARDS:05d}").write_text(content)


def write_examples(text: Path, vocabulary: str, dupe_factor: int, scratch: Path) -> Path:
    """Makes the examples of text shards; returns their directory."""
    (scratch / "text").mkdir()
    split_text(text, scratch / "text")
    command = [sys.executable, "-m", "maskmill", "examples", *ROWS, f"--dupe_factor={dupe_factor}"]
    paths = [f"--input={scratch}/text/part-*", f"--output={scratch}/examples", f"--vocab_file={vocabulary}"]
    usage = measure([*command, *paths], cwd=str(ROOT))
    if usage.exit_code:
        sys.exit(usage.output[-2000:])
    return scratch / "examples"


@contextlib.contextmanager
def stores(examples: Path, scratch: Path, delay: float) -> Iterator[tuple[dict[str, str], dict[str, str], str]]:
    """Runs servers that have the files of a directory.

    Gives the environments in which BUCKET/examples is found without and with the delay, and a web server's address.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from servers import cloud, file_server
    from servers.slow_store import slow_store

    contents = {f"examples/{path.name}": path.read_bytes() for path in examples.iterdir() if path.is_file()}
    with (
        cloud.storage(scratch, BUCKET) as direct,
        slow_store(direct, delay=delay) as (delayed, _),
        file_server.serve() as web,
    ):
        for name, content in contents.items():
            cloud.upload(direct, BUCKET, name, content)
        web.files, web.delay = contents, delay
        yield direct, delayed, f"{web.url}/examples"


def read_epoch(path: str, cache: str, pace: float, answers: Any) -> None:
    """Reads an epoch in a process of its own: at most `pace` tokens a second, 0: any. Answers with what it took."""
    import maskmill

    with maskmill.open(path, batch_size=BATCH, cache_dir=cache) as loader:
        batches = iter(loader)
        next(batches)  # kernels are loaded
        before, start, cpu = loader.stats(), time.perf_counter(), time.process_time()
        for _ in batches:
            behind = loader.stats().since(before).tokens / pace - (time.perf_counter() - start) if pace else 0.0
            time.sleep(max(0.0, behind))
        seconds, stats = time.perf_counter() - start, loader.stats().since(before)
        answers.put(
            {
                "tokens": stats.tokens,
                "samples": stats.samples,
                "seconds": seconds,
                "cpu": time.process_time() - cpu,
                "waited": stats.waited / seconds,
                "fetched": stats.bytes_fetched,
                "memory": peak_memory() / 1e6,
            }
        )


def peak_memory() -> int:
    """The most bytes that this process has had in memory since it was started."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def run_case(path: str, cache: Path, pace: float, environment: Mapping[str, str]) -> dict[str, float]:
    """What an epoch took."""
    os.environ |= environment
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    process = processes.Process(target=read_epoch, args=(path, str(cache), pace, answers))
    process.start()
    answer: dict[str, float] = answers.get(timeout=600)
    process.join()
    return answer


def main() -> None:
    """Prints the machine and the cases, each with its share of the local throughput."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=lambda path: Path(path).resolve())
    parser.add_argument("--vocab", default=str(VOCABULARY))
    parser.add_argument("--dupe_factor", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds added to each request")
    parser.add_argument("--pace", type=float, default=2_400_000, help="tokens a second")
    parser.add_argument("--scratch", default=None)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        examples = write_examples(arguments.text, arguments.vocab, arguments.dupe_factor, Path(scratch))
        size = sum(path.stat().st_size for path in examples.glob("part-*"))
        print(f"{size / 1e6:.0f} MB in {SHARDS} shards, {arguments.delay * 1000:g} ms a request")
        print(f"{'':34}{'tokens/s':>12}{'samples/s':>11}{'MB/s':>7}{'CPU s':>7}{'wait':>7}{'MB':>6}{'of local':>10}")
        with stores(examples, Path(scratch), arguments.delay) as (direct, delayed, web):
            for pace in (0.0, arguments.pace):
                print(f"at {pace:,.0f} tokens/s" if pace else "as fast as it goes")
                bucket = f"gs://{BUCKET}/examples"
                cases = {
                    "local files": (str(examples), "none", direct),
                    "bucket, no delay, empty cache": (bucket, f"direct{pace}", direct),
                    "bucket, delay, empty cache": (bucket, f"delayed{pace}", delayed),
                    "bucket, delay, from the cache": (bucket, f"delayed{pace}", delayed),
                    "web server, delay, empty cache": (web, f"web{pace}", direct),
                }
                local = 0.0
                for name, (path, cache, environment) in cases.items():
                    took = run_case(path, Path(scratch) / cache, pace, environment)
                    speed = took["tokens"] / took["seconds"]
                    local = local or speed
                    print(
                        f"  {name:32}{speed:12,.0f}{took['samples'] / took['seconds']:11,.0f}"
                        f"{took['fetched'] / took['seconds'] / 1e6:7.0f}{took['cpu']:7.2f}{took['waited']:7.1%}"
                        f"{took['memory']:6.0f}"
                        f"{ratio(speed, local, 2):>10}"
                    )
        print(f"goal: {GOAL} of local")


if __name__ == "__main__":
    main()
