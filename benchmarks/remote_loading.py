"""Measures how fast a data set is read from Google Cloud Storage when each request takes some time.

    python -m benchmarks.remote_loading TEXT [--vocab FILE] [--delay 0.05] [--pace 2400000] [--scratch DIR]

TEXT is a directory that `maskmill extract` wrote. Its examples (512 pieces, 76 masks, written to many small shards) are
put into a storage emulator on this machine; a server before it adds the delay to each request, any number at a time.
The emulator is a program in Python that closes each connection, so its speed without the delay is measured, too, and
that of a web server that only sends the bytes after the same delay, over connections that are kept.

Each case reads an epoch in a process of its own: first as fast as it goes, then by a consumer that takes as many tokens
a second as --pace says (8 H200 at ModernBERT's published rate take 2,400,000) and does nothing else.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
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
START_UP = 60.0  # seconds that the emulator may take to answer


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


def free_port() -> int:
    """A port on loopback that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def emulator(examples: Path) -> Iterator[int]:
    """Runs a storage emulator that has the files of a directory in BUCKET/examples; gives its port."""
    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--host=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen([*command, "--in-memory"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_UP
        while time.monotonic() < deadline:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(url).close()
                break
            time.sleep(0.1)
        _post(f"{url}/storage/v1/b?project=none", json.dumps({"name": BUCKET}).encode(), "json")
        for path in examples.iterdir():
            if path.is_file():
                name = f"examples/{path.name}"
                _post(
                    f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}",
                    path.read_bytes(),
                    "octet-stream",
                )
        yield port
    finally:
        process.terminate()
        process.wait()


def _post(url: str, data: bytes, kind: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": f"application/{kind}"})).close()


@contextlib.contextmanager
def serving(serve: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> Iterator[int]:
    """Runs a server in a process of its own, where `serve(port, *arguments)` is its coroutine; gives its port."""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(serve, port, *arguments))
    process.start()
    try:
        deadline = time.monotonic() + START_UP
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.join()


def _run(serve: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
    asyncio.run(serve(*arguments))


async def pass_on(port: int, target: int, delay: float) -> None:
    """Passes each request on to another port on loopback after a delay."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")  # requests here have no body
            await asyncio.sleep(delay)
            answers, requests = await asyncio.open_connection("127.0.0.1", target, limit=1 << 20)
            requests.write(head)
            # The emulator closes the connection after an answer.
            while block := await answers.read(1 << 20):
                writer.write(block)
                await writer.drain()
            requests.close()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


async def send_files(port: int, folder: str, delay: float) -> None:
    """Answers requests for files, or for parts of them, each after a delay."""
    files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await asyncio.sleep(delay)
                method, address, _ = head.split(" ", 2)
                content = files.get(address.rpartition("/")[2])
                part = re.search(r"bytes=(\d+)-(\d+)", head)
                status, more, body = "200 OK", "", memoryview(content or b"")
                if content is None:
                    status = "404 Not Found"
                elif part:
                    status, more = "206 Partial Content", f"Content-Range: bytes {part[1]}-{part[2]}/{len(content)}\r\n"
                    body = body[int(part[1]) : int(part[2]) + 1]
                head = f'HTTP/1.1 {status}\r\nETag: "1"\r\n{more}Content-Length: {len(body)}\r\n\r\n'
                writer.write(head.encode())
                if method != "HEAD":
                    writer.write(body)
                await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


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


def run_case(path: str, cache: Path, pace: float, port: int) -> dict[str, float]:
    """What an epoch took."""
    os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{port}"
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
        with (
            emulator(examples) as direct,
            serving(pass_on, direct, arguments.delay) as delayed,
            serving(send_files, str(examples), arguments.delay) as web,
        ):
            for pace in (0.0, arguments.pace):
                print(f"at {pace:,.0f} tokens/s" if pace else "as fast as it goes")
                bucket = f"gs://{BUCKET}/examples"
                cases = {
                    "local files": (str(examples), "none", direct),
                    "bucket, no delay, empty cache": (bucket, f"direct{pace}", direct),
                    "bucket, delay, empty cache": (bucket, f"delayed{pace}", delayed),
                    "bucket, delay, from the cache": (bucket, f"delayed{pace}", delayed),
                    "web server, delay, empty cache": (f"http://127.0.0.1:{web}/examples", f"web{pace}", direct),
                }
                local = 0.0
                for name, (path, cache, port) in cases.items():
                    took = run_case(path, Path(scratch) / cache, pace, port)
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
