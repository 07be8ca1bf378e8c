"""Tools of all benchmarks: the machine that a figure is taken on, the cost of a command, and cases that take turns.

A benchmark prints the machine first (`print_machine`). A command is measured with all processes that it starts
(`measure`; `maskmill` for a command of ours). What is compared runs in turn (`in_turn`), so that a machine whose speed
changes changes it for all alike.
"""

import argparse
import dataclasses
import itertools
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import psutil

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "data" / "dump" / "enwiki-sample-multistream.xml.bz2"
VOCABULARY = ROOT / "tests" / "data" / "vocab.txt"
LENGTHS = ("--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=10")

Key = TypeVar("Key")
Value = TypeVar("Value")

CPUINFO = Path("/proc/cpuinfo")
LIBRARIES = ("apache-beam", "numba", "numpy")
TRAINING_LIBRARIES = ("jax", "keras", "tensorflow", "numpy")
QUIET_LOAD = 0.5  # processes; above this load average others take time from a benchmark

_SECONDS_BETWEEN_LOOKS = 0.1  # a look takes 3 ms of a core
_START_UP_LINES = 200


def cpu_name(cpuinfo: str) -> str:
    """Return the CPU's name in the text of Linux's /proc/cpuinfo; empty where the text has none, as on ARM.

    Virtual machines often give a name without a model ("AMD EPYC"), so the numbers of family and model go with it.
    """
    first_cpu = cpuinfo.strip().partition("\n\n")[0]
    pairs = (line.partition(":") for line in first_cpu.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    name = " ".join(fields.get("model name", "").split())
    if not name or not {"cpu family", "model"} <= fields.keys():
        return name
    return f"{name} (family {fields['cpu family']}, model {fields['model']})"


def available_cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def library_versions(libraries: Sequence[str]) -> list[str]:
    """Name and version of each library that is installed."""
    versions = []
    for library in libraries:
        try:
            versions.append(f"{library} {metadata.version(library)}")
        except metadata.PackageNotFoundError:
            continue
    return versions


def describe_machine(libraries: Sequence[str] = LIBRARIES) -> str:
    """Return one line that belongs to every figure: CPU, cores, system, Python and the versions of the libraries."""
    cpu = cpu_name(CPUINFO.read_text()) if CPUINFO.exists() else ""
    cores = available_cores()
    parts = [
        cpu or platform.processor() or "unknown CPU",
        f"{cores} core{'s' if cores > 1 else ''}",
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join(parts + library_versions(libraries))


def describe_load(load: float) -> str:
    """Return the load average of the last minute in words, with a warning where the machine is not quiet."""
    text = f"Load average at the start: {load:.2f}."
    if load > QUIET_LOAD:
        text += f" Warning: the machine is not quiet (load above {QUIET_LOAD}), so measure again before using figures."
    return text


def print_machine(libraries: Sequence[str] = LIBRARIES) -> None:
    """Print the first lines of a benchmark's output: the machine, and its load where the system tells it."""
    print(f"Machine: {describe_machine(libraries)}")
    if hasattr(os, "getloadavg"):
        print(describe_load(os.getloadavg()[0]))
    print(flush=True)


def ratio(numerator: float, denominator: float, digits: int = 1) -> str:
    """Return `numerator` / `denominator` in digits; "not measurable" where a difference of times leaves nothing to
    divide.
    """
    if numerator <= 0 or denominator <= 0:
        return "not measurable"
    return f"{numerator / denominator:.{digits}f}"


@dataclasses.dataclass(frozen=True)
class Usage:
    """The time and memory that a command took, and its output.

    Attributes:
      exit_code: its exit code; negative where a signal ended it.
      cpu, wall: CPU seconds of all its processes, and seconds from start to end.
      largest, total: peak memory of its largest process, and of all its processes at one time, in bytes.
      output: what it printed, errors included.
    """

    exit_code: int
    cpu: float
    wall: float
    largest: int
    total: int
    output: str

    def row(self, label: str) -> str:
        """Return a line of a table, beginning with `label`."""
        megabytes = f"{self.largest / 1e6:7.0f} MB largest process, {self.total / 1e6:7.0f} MB in all"
        return f"{label:<34} {self.cpu:9.2f} s CPU {self.wall:9.2f} s wall {megabytes}"


def measure(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Usage:
    """Run a command to its end and return what it took.

    The system counts the CPU seconds of the command and of the children that it waited for. A runner may not wait for
    its workers, so the CPU seconds last seen of each process are summed up, too; the larger sum counts.
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
    # The system's own figure is at least the size of the process that starts the command.
    largest = max(watch.largest.values(), default=usage.ru_maxrss * 1024)
    return Usage(process.returncode, cpu, wall, largest, watch.total, output)


def run(command: Sequence[object], cwd: Path = ROOT, **environment: str) -> Usage:
    """Measure a command; end the benchmark if the command fails."""
    line = [str(part) for part in command]
    usage = measure(line, cwd=str(cwd), env=os.environ | environment)
    if usage.exit_code:
        sys.exit(f"{' '.join(line)} ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    return usage


def maskmill(*arguments: object, **environment: str) -> Usage:
    """Measure a command of maskmill; end the benchmark if the command fails."""
    return run([sys.executable, "-m", "maskmill", *arguments], PYTHONPATH=str(ROOT), **environment)


def peer(python: str, *arguments: object, **environment: str) -> dict[str, Any]:
    """Return the JSON that a command of benchmarks/peers.py prints last, under a Python that has what it needs."""
    output = run([python, "-m", "benchmarks.peers", *arguments], PYTHONPATH=str(ROOT), **environment).output
    found: dict[str, Any] = json.loads([line for line in output.splitlines() if line.startswith("{")][-1])
    return found


def in_turn(rounds: int, cases: Mapping[Key, Callable[[], Value]]) -> dict[Key, list[Value]]:
    """Run each case once in each round, one after the other; return what the runs of each gave."""
    found: dict[Key, list[Value]] = {key: [] for key in cases}
    for _ in range(rounds):
        for key, case in cases.items():
            found[key].append(case())
    return found


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds that some work takes in this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def resolved(path: str) -> Path:
    """Return the type of an argument that is a path: commands run in another folder."""
    return Path(path).resolve()


def parser_of(description: str | None, *, rounds: int, scratch: str) -> argparse.ArgumentParser:
    """Return a parser with the options that most benchmarks have; scratch: what its folder is for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", default=VOCABULARY, type=resolved)
    parser.add_argument("--rounds", type=int, default=rounds, help="how often each case runs, in turn with the others")
    parser.add_argument("--scratch", help=f"folder for {scratch}")
    return parser


class _Watch(threading.Thread):
    """A thread that notes CPU time and memory of a process and its descendants until `finish` is called."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._done = threading.Event()
        self.cpu: dict[int, float] = {}
        self.largest: dict[int, int] = {}
        self.total = 0

    def run(self) -> None:
        while not self._done.wait(_SECONDS_BETWEEN_LOOKS):
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
    """Return the peak resident memory of a process in bytes, as Linux notes it; 0 on other systems."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    for line in status.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def shorten(shards: Sequence[Path], folder: Path) -> None:
    """Write the first lines of each text shard into a new folder.

    A command on this folder starts as many workers as on the whole shards, and takes little but its start-up.
    """
    folder.mkdir()
    for shard in shards:
        with shard.open("rb") as whole:
            (folder / shard.name).write_bytes(b"".join(itertools.islice(whole, _START_UP_LINES)))
