"""Runs a command as a whole and measures it with all the processes it starts."""

import dataclasses
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

_EVERY_SECONDS = 0.02


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a command took: CPU and wall seconds, and the memory of its largest process and of all at once, in bytes."""

    exit_code: int
    cpu: float
    wall: float
    largest: int
    total: int
    output: str

    def row(self, label: str) -> str:
        """One line of a table."""
        megabytes = f"{self.largest / 1e6:7.0f} MB largest process, {self.total / 1e6:7.0f} MB in all"
        return f"{label:<34} {self.cpu:9.2f} s CPU {self.wall:9.2f} s wall {megabytes}"


def measure(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Usage:
    """Runs a command to its end.

    CPU seconds are what the system accounts to the command and to the children it waited for, or what was last seen
    of each of its processes, whichever is more: a runner may leave its workers without waiting for them.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        list(command), env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watch = _Watch(process.pid)
    watch.start()
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    watch.finish()
    cpu = max(usage.ru_utime + usage.ru_stime, sum(watch.cpu.values()))
    largest = max([usage.ru_maxrss * 1024, *watch.largest.values()])
    return Usage(process.returncode, cpu, wall, largest, watch.total, output)


class _Watch(threading.Thread):
    """Looks at a process and its descendants again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._done = threading.Event()
        self.cpu: dict[int, float] = {}
        self.largest: dict[int, int] = {}
        self.total = 0

    def run(self) -> None:
        while not self._done.wait(_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            processes = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        total = 0
        for process in processes:
            try:
                times = process.cpu_times()
                resident = process.memory_info().rss
                highest = peak(process.pid)
            except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError, ProcessLookupError):
                continue  # it ended between two looks
            self.cpu[process.pid] = times.user + times.system
            self.largest[process.pid] = max(self.largest.get(process.pid, 0), resident, highest)
            total += resident
        self.total = max(self.total, total)

    def finish(self) -> None:
        self._done.set()
        self.join()


def peak(pid: int) -> int:
    """The peak resident memory that Linux notes for a process, in bytes; 0 elsewhere."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    for line in status.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def shorten(shards: Sequence[Path], folder: Path) -> None:
    """Writes the first lines of every text shard into a folder: what start-up takes, with every worker started."""
    folder.mkdir()
    for shard in shards:
        with shard.open("rb") as whole:
            (folder / shard.name).write_bytes(b"".join(itertools.islice(whole, 200)))
