"""Ends a command after a signal to stop: by Ctrl-C, by SIGTERM, or because its terminal was closed.

A Python exception would come too late, and in the wrong place: Python does not react while a kernel runs, a compilation
may print the exception and continue, and Beam waits for its workers before it passes an exception on. All files appear
whole, so nothing needs to be finished first. Therefore a thread of its own receives the signal at once
(`signal.set_wakeup_fd`), prints one sentence, stops the worker processes, removes temporary files and ends the process.
"""

import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from maskmill.errors import SIGNAL_EXIT
from pipelines.terminal import console

HOW_TO_GO_ON = "run the same command again, it goes on from what is finished."
START_ANEW = "nothing unfinished is left behind; run the same command again."

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDOUT, _STDERR = 1, 2
_PATIENCE_S = 10  # for a worker that waits for a disk, or a directory to which files are still added


@dataclasses.dataclass(frozen=True)
class _SignalHandler:
    """The handler of a signal that `Watch` receives, with the advice for the user."""

    how_to_go_on: str

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Do nothing: the thread has received the signal already."""


@contextlib.contextmanager
def going_on(how: str) -> Iterator[None]:
    """Have `Watch` print this advice if the block is interrupted; for the main thread."""
    heard = [number for number in _SIGNALS if isinstance(signal.getsignal(number), _SignalHandler)]
    before = [signal.signal(number, _SignalHandler(how)) for number in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)


class Watch:
    """A context manager around a whole command, in its main thread: a signal to stop ends the process.

    The command may set handlers of its own for these signals, which then count: `train` writes a checkpoint first. A
    signal that is ignored from the start (under nohup, in a shell's background job) stays ignored. The process should
    end after the block, which no longer handles the signals.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        # Held while a signal ends the process, and after the command has ended by itself: only one of the two happens.
        self._ending = threading.Lock()

    def __enter__(self) -> "Watch":
        # TensorFlow is imported with standard error on /dev/null, so keep the terminal.
        self._errors = -1
        with contextlib.suppress(OSError):  # it may be closed
            self._errors = os.dup(_STDERR)
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _SignalHandler(HOW_TO_GO_ON))
        threading.Thread(target=self._listen, name="interruption", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.acquire()

    def _listen(self) -> None:
        while True:
            number = os.read(self._read, 1)[0]
            handler = signal.getsignal(number)
            if isinstance(handler, _SignalHandler):
                with self._ending:
                    self._end(signal.Signals(number), handler.how_to_go_on)

    def _end(self, number: signal.Signals, how_to_go_on: str) -> None:
        cause = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
        sentence = f"maskmill {self._command}: {cause}; {how_to_go_on}"
        as_json = getattr(sys.stderr, "as_json", False)
        line = (console.json_line(sentence, level="ERROR") if as_json else f"{sentence}\n").encode(
            errors="backslashreplace"
        )
        try:
            # Other threads would complain that the workers are gone, or show the progress once more.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, _STDOUT)
            os.dup2(nowhere, _STDERR)
            with contextlib.suppress(OSError):  # the terminal may be gone
                # On a terminal the line already shows the ^C that was typed.
                os.write(self._errors, (b"\r\x1b[K" if os.isatty(self._errors) else b"") + line)
            _stop_children()
        finally:
            os._exit(SIGNAL_EXIT + number)


def _stop_children() -> None:
    """Stop the child processes, and remove the temporary files of this process and of theirs."""
    import glob
    import multiprocessing
    import shutil
    import tempfile

    import psutil

    from maskmill.storage.files import TEMPORARY_SUFFIX, no_more_temporary_files, scratch_prefix

    # Other threads of this process and of its workers still write: files created after the listing would stay.
    no_more_temporary_files()
    this = psutil.Process()
    children = this.children(recursive=True)
    pids = {worker.pid for worker in multiprocessing.active_children()}
    workers = _suspended([child for child in children if child.pid in pids])
    unfinished, scratch = [], []
    for process in (this, *children):
        scratch.append(os.path.join(glob.escape(tempfile.gettempdir()), f"{scratch_prefix(process.pid)}*"))
        with contextlib.suppress(psutil.Error):
            unfinished += [file.path for file in process.open_files() if file.path.endswith(TEMPORARY_SUFFIX)]
        with contextlib.suppress(psutil.Error):
            if process in workers:
                process.kill()
            elif process != this:
                process.terminate()
    psutil.wait_procs(workers, timeout=_PATIENCE_S)
    for path in unfinished:
        with contextlib.suppress(OSError):
            os.unlink(path)
    until = time.monotonic() + _PATIENCE_S
    # A thread may put a file into a directory while it is being removed.
    while (left := [found for pattern in scratch for found in glob.glob(pattern)]) and time.monotonic() < until:
        for directory in left:
            shutil.rmtree(directory, ignore_errors=True)


def _suspended(workers: list[Any]) -> list[Any]:
    """Suspend worker processes; return them once they are suspended, which waits for the disk may delay."""
    import psutil

    for worker in workers:
        with contextlib.suppress(psutil.Error):
            worker.suspend()
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until and any(_runs(worker) for worker in workers):
        time.sleep(0.001)
    return workers


def _runs(worker: Any) -> bool:
    import psutil

    try:
        return worker.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False
