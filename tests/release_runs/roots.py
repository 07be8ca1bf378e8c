"""Makes releases, real processes that hold them, and processes that are killed in the middle of their work."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence

from conftest import ROOT

from maskmill.releases.names import ReleaseName, release_path
from maskmill.releases.records import ReleaseRecord, write_record
from maskmill.storage import conditional, files

FILES = {"text/part-0.txt": b"text", "train/part-0.tfrecord": b"examples", "report.html": b"report"}
_NOT_KILLED = 0
_RAISED = 3


def name_of(date: str, digest: str = "0" * 8) -> ReleaseName:
    """The name of a release of a dump of this date."""
    return ReleaseName(wiki="enwiki", date=date, digest=digest)


def record_of(name: ReleaseName, content: str = "") -> ReleaseRecord:
    """The record of a release that is made up."""
    stages = {"extract": {"directory": "text", "manifest_sha256": f"{name}{content}"}}
    return ReleaseRecord(name=name, config={"extract": {"seed": 1}}, inputs=[{"path": "dump.bz2"}], stages=stages)


def make_files(root: str, name: ReleaseName) -> None:
    """Writes the data of a release, without its record."""
    for file, content in FILES.items():
        files.write_bytes(files.join(release_path(root, name), file), content)


def make_release(root: str, date: str, digest: str = "0" * 8) -> ReleaseName:
    """Makes a complete release."""
    name = name_of(date, digest)
    make_files(root, name)
    write_record(root, record_of(name))
    return name


def below(root: str) -> list[str]:
    """All files below a root, relative; the guards of conditional writes are left out."""
    return sorted(
        path.removeprefix(root + "/") for path in files.list_below(root) if not path.endswith(conditional.GUARD)
    )


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts a Python program in a process of its own, with pipes to talk to it."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints; empty if it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGKILL) -> None:
    """Kills a process and waits for its end."""
    process.send_signal(number)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def race(programs: Sequence[Sequence[str]], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Starts programs that print "ready" and wait for a line, lets all go at once, and sees that all end well."""
    processes = [start(*program) for program in programs]
    for process in processes:
        assert line_of(process) == "ready"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    meanwhile()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * len(processes)


# What reaches a store, all in all, while releases are made, read and removed: first what is one step for all others.
_STEPS = [
    (conditional, "read"), (conditional, "exists"), (conditional, "write"), (conditional, "delete"),
    (files, "list_below"), (files, "delete"),
]  # fmt: skip
_PARTS = [(os, "replace"), (os, "symlink"), (os, "unlink"), (os, "rmdir"), (os, "fsync")]


@contextlib.contextmanager
def before_operations(act: Callable[[int], None], *, parts: bool = False) -> Iterator[list[int]]:
    """Calls `act` with the number of the operation before each that this thread does on a store.

    What `act` itself does is neither counted nor interrupted. Gives a list with the count so far.

    parts: whether the parts of an operation count, too, during which the guard of conditional.py may be held.
    """
    count, busy, thread = [0], [False], threading.get_ident()
    operations = _STEPS + _PARTS if parts else _STEPS
    originals = [(module, name, getattr(module, name)) for module, name in operations]

    def wrapped(original: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **named: object) -> object:
            is_outermost = not busy[0] and threading.get_ident() == thread
            if is_outermost:
                busy[0] = True
                try:
                    act(count[0])
                finally:
                    busy[0] = False
                count[0] += 1
            busy[0] = busy[0] or (is_outermost and not parts)
            try:
                return original(*arguments, **named)
            finally:
                if is_outermost:
                    busy[0] = False

        return call

    guarded = conditional.guarded

    @contextlib.contextmanager
    def guard(path: str) -> Iterator[None]:
        was_busy = busy[0]
        with guarded(path):
            busy[0] = busy[0] or (not parts and threading.get_ident() == thread)  # `act` would wait for this guard
            yield
        busy[0] = was_busy

    for module, name, original in originals:
        setattr(module, name, wrapped(original))
    conditional.guarded = guard
    try:
        yield count
    finally:
        conditional.guarded = guarded
        for module, name, original in originals:
            setattr(module, name, original)


def killed_before(operation: int, work: Callable[[], object]) -> bool:
    """Does work in a process that kills itself, with SIGKILL, before its operation of this number on a store.

    Returns:
      whether it came so far.

    Raises:
      AssertionError: the work has raised.
    """

    def act(number: int) -> None:
        if number == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        status = _RAISED
        try:
            with before_operations(act, parts=True):
                work()
            status = _NOT_KILLED
        except BaseException:  # noqa: BLE001  the process ends
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == _NOT_KILLED, "the work failed"
    return os.WIFSIGNALED(status)
