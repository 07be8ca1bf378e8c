"""Counts what a build asks of an object store, and compares its time with that of a local disk.

    python -m benchmarks.object_store [DUMP] [--in_store] [--delay 0.05] [--shard_size_mb 4] [--workers 2]
        [--compat mlperf]

DUMP (default: the sample) is built on a local disk, then into a Cloud Storage emulator on this machine, after a
server that answers each request after a delay, any number at a time; then the finished build is run again. Each of the
first two is built twice and the second one counts: meanwhile the system has found the memory that files and objects
take, which costs a virtual machine more than to copy them. So is the dump's first megabyte, for the start-up. For each
folder of the build the rows give the requests by kind, the bytes of both directions, and the chain: the most requests
that followed one upon another, which times the delay is what the store costs at least, however many workers there are;
and how many asked again for what was asked before, with no write in between. The emulator and the server before it
share the cores with the build, so their CPU seconds are printed, too, and the wall time without them: their CPU seconds
divided by the cores are taken from it. The dump is local without --in_store.
The reports verify nothing, because by default what is on this machine is verified and what is in a store is not.
"""

import argparse
import bz2
import collections
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.measure import ROOT, SAMPLE, VOCABULARY, Usage, maskmill, print_machine, ratio
from maskmill.storage import files

if TYPE_CHECKING:
    from servers.slow_store import Asked

BUCKET, BUILD = "maskmill-benchmark", "build"
LENGTHS = ["--examples.max_seq_length=512", "--examples.max_predictions_per_seq=76"]
_PAGE_END = b"</page>\n"
KINDS = ("list", "look", "read", "write", "copy", "delete", "bucket")


def build(arguments: argparse.Namespace, dump: str, output: str, environment: dict[str, str], config: Path) -> Usage:
    """Run a build and give what it took; end the benchmark if it fails."""
    config.write_text(
        f"output: {output}\ncompat: {arguments.compat}\n"
        f"extract:\n  input: {dump}\n  shard_size_mb: {arguments.shard_size_mb}\n"
        f"examples:\n  vocab_file: {VOCABULARY}\neval:\n  num_examples_to_pick: 100\nreport: none\n"
    )
    return maskmill("build", config, *LENGTHS, f"--workers={arguments.workers}", **environment)


def head_of(dump: Path, folder: Path) -> Path:
    """Return a dump of the first megabyte of pages: to build it takes little but the start-up."""
    with bz2.open(dump) as file:
        text = file.read(1 << 20)
    head = folder / f"head-of-{dump.name}"
    head.write_bytes(bz2.compress(text[: text.rindex(_PAGE_END) + len(_PAGE_END)] + b"</mediawiki>\n"))
    return head


def servers_cpu() -> float:
    """Return the CPU seconds so far of this process, which has the server that delays, and of the emulator."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children())]
    return sum(taken.user + taken.system for taken in times)


def print_requests(asked: "list[Asked]") -> None:
    """Print a row for each folder of the build, and one for all."""
    from servers.slow_store import chain, repeated

    folders, again = collections.defaultdict(list), set(map(id, repeated(asked)))
    for request in asked:
        folders[request.name.removeprefix(f"{BUILD}/").partition("/")[0] or "(build)"].append(request)
    titles = (*KINDS, "all", "chain", "MB up", "MB down", "again")
    print(f"  {'':16}{''.join(f'{title:>9}' for title in titles)}")
    for name, requests in [*sorted(folders.items()), ("all", asked)]:
        counts = collections.Counter(request.kind for request in requests)
        sent, received = (sum(getattr(r, way) for r in requests) / 1e6 for way in ("sent", "received"))
        row = [*(counts[kind] for kind in KINDS), len(requests), chain(requests)]
        asked_again = sum(id(request) in again for request in requests)
        print(f"  {name:16}{''.join(f'{number:9}' for number in row)}{sent:9.1f}{received:9.1f}{asked_again:9}")


def main() -> None:
    """Print the machine, the wall time of the builds, and the requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", nargs="?", default=str(SAMPLE))
    parser.add_argument("--in_store", action="store_true", help="puts the dump into the store, too")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds before each answer")
    parser.add_argument("--shard_size_mb", type=float, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--compat", default="none", choices=("none", "mlperf"))
    arguments = parser.parse_args()
    arguments.dump = os.path.abspath(arguments.dump)
    sys.path.insert(0, str(ROOT / "tests"))
    from servers import cloud
    from servers.serving import keep_freed_memory
    from servers.slow_store import slow_store

    print_machine()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        config = folder / "build.yaml"
        dumps = {"start-up": head_of(Path(arguments.dump), folder), "local disk": Path(arguments.dump)}
        on_disk: list[float] = []
        for label, path in dumps.items():
            for _ in range(2):
                local = build(arguments, str(path), str(folder / "local"), {}, config)
                shutil.rmtree(folder / "local")
            print(local.row(label))
            on_disk.append(local.wall)
        with (
            cloud.storage(folder, BUCKET) as environment,
            slow_store(environment, delay=arguments.delay) as (slow, store),
        ):
            in_store: list[float] = []

            def clear() -> None:
                with cloud.set_environment(environment):
                    files.delete(files.list_below(f"gs://{BUCKET}/{BUILD}"))

            def build_in_store(label: str, dump: str) -> None:
                """Print what a build took, without the servers, too, and what it asked."""
                store.asked.clear()
                before = servers_cpu()
                usage = build(arguments, dump, f"gs://{BUCKET}/{BUILD}", slow, config)
                servers = servers_cpu() - before
                in_store.append(usage.wall - servers / (os.cpu_count() or 1))
                print(usage.row(label))
                print(f"  the servers took {servers:.2f} s CPU beside it; {in_store[-1]:.2f} s wall without them")
                if label != "start-up":
                    print_requests(store.asked)

            for label, path in zip(("start-up", "object store"), dumps.values(), strict=True):
                dump = str(path)
                if arguments.in_store:
                    cloud.upload(environment, BUCKET, path.name, path.read_bytes())
                    dump = f"gs://{BUCKET}/{path.name}"
                clear()
                build(arguments, dump, f"gs://{BUCKET}/{BUILD}", slow, config)
                clear()
                build_in_store(label, dump)
            build_in_store("again", dump)
            print(
                f"without the servers: {ratio(in_store[1], on_disk[1], 2)} times the local disk's wall time; after "
                f"start-up {ratio(in_store[1] - in_store[0], on_disk[1] - on_disk[0], 2)} times"
            )


if __name__ == "__main__":
    main()
