"""A process of its own that reads Parquet, because pyarrow may abort its process on a damaged file.

The process opens no file. It asks its parent for ranges of bytes, which the parent reads wherever the file lies, and
sends answers back. It serves one task after another and stays for the next file, because it takes 0.2 s to start; a
process whose task is given up is killed.

A message is a byte that says what it is, the number of its fields (1 byte), the sizes of the fields (8 bytes each,
little endian), and the fields.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import open_bytes
from maskmill.storage import files

# To the process: a task's name, the file's path and size, the task's arguments; bytes of the file.
_TASK, _BYTES = b"t", b"b"
# From the process: a request for bytes of the file (offset, count); an answer; a sentence for the user; the end.
_REQUEST, _ANSWER, _UNUSABLE, _DONE = b"r", b"a", b"u", b"d"

_LARGEST_REQUEST = 1 << 20
_BUFFER_BYTES = 256 << 10
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from maskmill.reading import parquet_process; "
    "parquet_process.serve()"
)
# Signals by which a process ends because of what it does, not because somebody sends them.
_CRASHES = {signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP}

# Processes that wait for a task.
_idle: list["_Process"] = []


def answers(task: str, path: str, *arguments: object, file: BinaryIO | None = None) -> Iterator[tuple[bytes, ...]]:
    """Lets a process do a task on a file, and yields its answers.

    Args:
      task: MODULE:FUNCTION, whose function gives the answers, see parquet_reader.py.
      path: the file.
      arguments: passed to the function as text.
      file: reads the file; None: it is opened by its path.

    Raises:
      UnusableInputError: the function raised it, or the process crashed: the file is damaged.
      RunFailedError: the file cannot be read on, or something killed the process.
    """
    with files.open_input(path) if file is None else file as file:
        process = _idle_process()
        is_idle = False
        try:
            yield from process.answers(task, file, path, [str(argument) for argument in arguments])
            is_idle = True
        except UnusableInputError:
            # A damaged file is not a reason to start another process, unless it crashed this one.
            is_idle = process.lives()
            raise
        finally:
            if is_idle:
                _idle.append(process)
            else:
                process.kill()


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
    """A process that reads Parquet, seen from its parent."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `kill` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=_BUFFER_BYTES,
            # Ctrl-C is for the parent; this process ends when its parent's end of the pipes is closed.
            start_new_session=True,
        )

    def lives(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(BrokenPipeError):
                cast(BinaryIO, stream).close()

    def answers(self, task: str, file: BinaryIO, path: str, arguments: list[str]) -> Iterator[tuple[bytes, ...]]:
        """Yields the answers of a task on a file; errors as in the function `answers`."""
        size = file.seek(0, os.SEEK_END)
        self._send(path, _TASK, *map(_encode, (task, path, str(size), *arguments)))
        while True:
            kind, fields = self._receive(path)
            if kind == _ANSWER:
                yield tuple(fields)
            elif kind == _REQUEST:
                offset, count = (int(field) for field in fields)
                file.seek(offset)
                self._send(path, _BYTES, file.read(count))
            elif kind == _UNUSABLE:
                raise UnusableInputError(_decode(fields[0]))
            else:
                return

    def _send(self, path: str, kind: bytes, *fields: bytes) -> None:
        stream = cast(BinaryIO, self._process.stdin)
        try:
            _write(stream, kind, *fields)
            stream.flush()
        except BrokenPipeError:
            raise self._ended(path) from None

    def _receive(self, path: str) -> tuple[bytes, list[bytes]]:
        try:
            return _read(cast(BinaryIO, self._process.stdout))
        except EOFError:
            raise self._ended(path) from None

    def _ended(self, path: str) -> Exception:
        """The error for a process that ended in the middle of a task."""
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


def _encode(text: str) -> bytes:
    # A path may hold bytes that are not UTF-8.
    return text.encode("utf-8", "surrogateescape")


def _decode(field: bytes) -> str:
    return field.decode("utf-8", "surrogateescape")


def _write(stream: BinaryIO, kind: bytes, *fields: bytes) -> None:
    stream.write(struct.pack(f"<cB{len(fields)}Q", kind, len(fields), *map(len, fields)))
    for field in fields:
        stream.write(field)


def _read(stream: BinaryIO) -> tuple[bytes, list[bytes]]:
    """The next message; raises EOFError where the stream ends."""
    kind, count = struct.unpack("<cB", _exactly(stream, 2))
    sizes = struct.unpack(f"<{count}Q", _exactly(stream, 8 * count))
    return kind, [_exactly(stream, size) for size in sizes]


def _exactly(stream: BinaryIO, count: int) -> bytes:
    block = stream.read(count)
    if len(block) < count:
        raise EOFError
    return block


def _ask(source: BinaryIO, requests: BinaryIO, start: int, end: int) -> bytes:
    """Bytes of the file, which the parent reads."""
    _write(requests, _REQUEST, str(start).encode(), str(end - start).encode())
    requests.flush()
    _, (block,) = _read(source)
    return block


def serve() -> None:
    """Does one task after another, until the parent closes its end of the pipe."""
    # Whatever a library prints goes where errors go, not among the messages.
    source = os.fdopen(os.dup(0), "rb", _BUFFER_BYTES)
    sink = os.fdopen(os.dup(1), "wb", _BUFFER_BYTES)
    os.dup2(2, 1)
    try:
        while True:
            _, (task, path, size, *arguments) = _read(source)
            file = open_bytes(int(size), functools.partial(_ask, source, sink), _BUFFER_BYTES, _LARGEST_REQUEST)
            try:
                module, _, function = task.decode().partition(":")
                do = getattr(importlib.import_module(module), function)
                for answer in do(file, _decode(path), *map(_decode, arguments)):
                    _write(sink, _ANSWER, *answer)
                _write(sink, _DONE)
            except UnusableInputError as error:
                _write(sink, _UNUSABLE, _encode(str(error)))
            sink.flush()
    except (EOFError, BrokenPipeError):
        os._exit(0)  # the parent has closed its end, or has ended
