"""The reports of a run: lines on the terminal, a JSON-lines log, TensorBoard's files and MLPerf's log lines."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from training import storage
from transforms.storage import files

# An object store writes a file anew to append to it, so a remote log is flushed seldom.
_REMOTE_FLUSH_SECONDS = 60.0


class RunLog:
    """The log of a run: `NAME.jsonl`, with one JSON object a line, and TensorBoard's files in `tensorboard/NAME`.

    A line is `{"event": …, "step": …, "time": …, …}`. Of several processes only the first writes (`writes`). `clock`
    gives the time in seconds since the epoch.
    """

    def __init__(
        self,
        directory: str,
        name: str,
        *,
        writes: bool = True,
        tensorboard: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = files.join(directory, f"{name}.jsonl")
        self._writes = writes
        self._clock = clock
        self._lines: list[str] = []
        self._flushed = clock()
        self._board = _Board(files.join(directory, f"tensorboard/{name}"), clock) if writes and tensorboard else None

    def resume(self, step: int) -> None:
        """Deletes the lines of later steps, which a run does again after its last checkpoint."""
        if not self._writes or not storage.exists(self.path):
            return
        kept = []
        for line in storage.read_bytes(self.path).decode().splitlines(keepends=True):
            # A line without a newline at its end was cut off when the process was killed.
            if line.endswith("\n") and json.loads(line)["step"] <= step:
                kept.append(line)
        storage.write_bytes(self.path, "".join(kept).encode())

    def event(self, event: str, step: int, values: Mapping[str, Any]) -> None:
        """Adds a line to the log, and its numbers to TensorBoard as `event/name`."""
        if not self._writes:
            return
        line = {"event": event, "step": step, "time": round(self._clock(), 3), **values}
        self._lines.append(json.dumps(line) + "\n")
        if self._board is not None:
            numbers = {n: v for n, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
            self._board.add(step, {f"{event}/{name}": value for name, value in numbers.items()})
        if files.is_local(self.path) or self._clock() - self._flushed > _REMOTE_FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Writes the lines that are not written yet."""
        if not self._lines:
            return
        if files.is_local(self.path):
            files.make_directory(files.parent(self.path))
        with tf.io.gfile.GFile(self.path, "a") as file:
            file.write("".join(self._lines))
        self._lines.clear()
        self._flushed = self._clock()
        if self._board is not None:
            self._board.flush()


class _Board:
    """TensorBoard's event file: a TFRecord of Event messages. tf.summary would need TensorBoard to be installed."""

    def __init__(self, directory: str, clock: Callable[[], float]) -> None:
        self._clock = clock
        tf.io.gfile.makedirs(directory)
        # TensorBoard recognises event files by `tfevents` in their names, and reads them in the order of the names.
        name = f"events.out.tfevents.{int(clock() * 1e6):017d}.maskmill"
        self._file = tf.io.TFRecordWriter(files.join(directory, name))
        self._file.write(tf.compat.v1.Event(wall_time=clock(), file_version="brain.Event:2").SerializeToString())

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Adds the values of a step by their tags."""
        summary = tf.compat.v1.Summary()
        for tag, value in values.items():
            summary.value.add(tag=tag, simple_value=value)
        event = tf.compat.v1.Event(wall_time=self._clock(), step=step, summary=summary)
        self._file.write(event.SerializeToString())

    def flush(self) -> None:
        """Writes what is buffered."""
        self._file.flush()


def say(text: str) -> None:
    """Prints a line on the terminal (standard error)."""
    print(text, file=sys.stderr, flush=True)


class MlperfLog:
    """MLPerf's log lines, `:::MLLOG {…}` (mlcommons/logging), on standard output and in a file, if `enabled`."""

    def __init__(self, path: str, *, enabled: bool, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._enabled = enabled
        self._clock = clock

    def start(self, key: str, value: Any = None, **metadata: Any) -> None:
        """The start of an interval."""
        self._write("INTERVAL_START", key, value, metadata)

    def end(self, key: str, value: Any = None, **metadata: Any) -> None:
        """The end of an interval."""
        self._write("INTERVAL_END", key, value, metadata)

    def event(self, key: str, value: Any = None, **metadata: Any) -> None:
        """A point in time, or the value of a setting."""
        self._write("POINT_IN_TIME", key, value, metadata)

    def _write(self, kind: str, key: str, value: Any, metadata: dict[str, Any]) -> None:
        if not self._enabled:
            return
        caller = sys._getframe(2)
        line = {
            "namespace": "",
            "time_ms": int(self._clock() * 1000),
            "event_type": kind,
            "key": key,
            "value": value,
            "metadata": {"file": os.path.basename(caller.f_code.co_filename), "lineno": caller.f_lineno, **metadata},
        }
        text = f":::MLLOG {json.dumps(line)}\n"
        sys.stdout.write(text)
        sys.stdout.flush()
        if files.is_local(self._path):
            files.make_directory(files.parent(self._path))
        with tf.io.gfile.GFile(self._path, "a") as file:
            file.write(text)
