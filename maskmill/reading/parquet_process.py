"""Read other programs' Parquet in a separate process, because pyarrow may abort its process on a damaged file.

The process opens no file. It requests ranges of bytes from its parent, which reads local and remote files alike, and
sends answers back. It serves one task after another and waits for the next file, because it takes 0.2 s to start; a
process whose task is cancelled is killed.
"""

import atexit
import contextlib
import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from multiprocessing.connection import Connection
from typing import Any, BinaryIO

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import open_bytes
from maskmill.storage import files

_READ, _ANSWER, _END = range(3)  # messages of the process: the request of a range, an answer, the end of a task

_LARGEST_REQUEST = 1 << 20
_BUFFER_BYTES = 256 << 10
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from maskmill.reading import parquet_process; "
    "parquet_process.serve(int(sys.argv[2]))"
)
# Signals of crashes, which a process causes itself.
_CRASHES = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}

# Processes that wait for a task.
_idle: list["_Process"] = []


def answers(task: str, path: str, *arguments: object, file: BinaryIO | None = None) -> Iterator[Any]:
    """Run a task on a file in a process, and yield its answers.

    Args:
      task: MODULE:FUNCTION. The function takes the file, its path for messages, and the arguments; it yields answers.
      path: the file.
      arguments: picklable.
      file: reads the file; None: open its path.

    Raises:
      UnusableInputError: the function raised it, or the process crashed: the file is damaged.
      RunFailedError: reading the file fails, or something killed the process.
    """
    with files.open_input(path) if file is None else file as file:
        process = _idle_process()
        try:
            error = yield from process.answers(task, file, path, arguments)
        except BaseException:
            process.kill()
            raise
        _idle.append(process)
        if error is not None:
            raise error


def _idle_process() -> "_Process":
    with contextlib.suppress(IndexError):
        while True:
            process = _idle.pop()
            if process.lives():
                return process
            process.kill()
    return _Process()


@atexit.register
def _kill_idle_processes() -> None:
    while _idle:
        _idle.pop().kill()


class _Process:
    """The parent's handle of a process that reads Parquet."""

    def __init__(self) -> None:
        self._connection, child_end = multiprocessing.Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `kill` closes it
        with child_end:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, json.dumps(sys.path), str(child_end.fileno())],
                pass_fds=[child_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                # Ctrl-C must reach the parent only; this process ends when its parent closes the pipe.
                start_new_session=True,
            )

    def lives(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process, also in the middle of a task."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._errors.close()

    def answers(
        self, task: str, file: BinaryIO, path: str, arguments: tuple[object, ...]
    ) -> Generator[Any, None, UnusableInputError | None]:
        """Yield the answers of a task on a file; return the error with which it ended."""
        try:
            self._connection.send((task, path, file.seek(0, os.SEEK_END), arguments))
            error: UnusableInputError | None
            while True:
                kind, content = self._connection.recv()
                if kind == _END:
                    error = content
                    return error
                if kind == _ANSWER:
                    yield content
                else:
                    start, end = content
                    file.seek(start)
                    self._connection.send_bytes(file.read(end - start))
        except (EOFError, ConnectionError):
            raise self._ended(path) from None

    def _ended(self, path: str) -> Exception:
        """Return the error for a process that ended in the middle of a task."""
        code = self._process.wait()
        self._errors.seek(0)
        printed = self._errors.read().decode("utf-8", "replace").strip()
        if code >= 0:
            return RuntimeError(f"{path}: the process that reads Parquet ended with code {code}: {printed}")
        name = signal.Signals(-code).name
        if -code in _CRASHES:
            last_line = f": {printed.splitlines()[-1]}" if printed else ""
            return UnusableInputError(
                f"{path}: the Parquet data is damaged: reading it crashed a process ({name}{last_line}); "
                "make or fetch the file again."
            )
        return RunFailedError(
            f"{path}: something killed the process that reads this file ({name}), often for want of memory; "
            "run the same command again."
        )


def serve(descriptor: int) -> None:
    """Do one task after another, until the parent closes its end of the pipe."""
    connection = Connection(descriptor)

    def read(start: int, end: int) -> bytes:
        connection.send((_READ, (start, end)))
        return connection.recv_bytes()

    try:
        while True:
            task, path, size, arguments = connection.recv()
            module, _, function = task.partition(":")
            file, error = open_bytes(size, read, _BUFFER_BYTES, _LARGEST_REQUEST), None
            try:
                for answer in getattr(importlib.import_module(module), function)(file, path, *arguments):
                    connection.send((_ANSWER, answer))
            except UnusableInputError as unusable:
                error = unusable
            connection.send((_END, error))
    except (EOFError, ConnectionError):
        os._exit(0)  # the parent has closed its end, or has ended
