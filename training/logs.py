"""The reports of a run: lines on the terminal, a JSON-lines log, TensorBoard's files and MLPerf's log lines."""

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.records.tfrecord import frame
from maskmill.records.varints import varint
from maskmill.storage import files
from training import storage

# An object store rewrites a file to append to it, so a remote log is flushed seldom.
_REMOTE_FLUSH_SECONDS = 60.0
_MLPERF_MARK = ":::MLLOG "


class RunLog:
    """The log of a run: `NAME.jsonl`, with one JSON object a line, and TensorBoard's files in `tensorboard/NAME`.

    A line is `{"event": …, "step": …, "time": …, …}`. Only the first of several processes writes (`writes`). `clock`
    returns seconds since the epoch.
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
        # It is created at the first event, because a run that is already finished adds no file.
        self._board_directory = files.join(directory, f"tensorboard/{name}") if tensorboard else None
        self._board: _Board | None = None

    def resume(self, step: int) -> None:
        """Delete the lines of later steps, which a run repeats after its last checkpoint.

        Raises:
          UnusableInputError: a line is damaged.
        """
        if not self._writes or not files.exists(self.path):
            return
        kept = [line for line, fields in _whole_lines(self.path) if fields["step"] <= step]
        files.write_bytes(self.path, "".join(kept).encode())

    def event(self, event: str, step: int, values: Mapping[str, Any]) -> None:
        """Add a line to the log, and its numbers to TensorBoard as `event/name`."""
        if not self._writes:
            return
        line = {"event": event, "step": step, "time": round(self._clock(), 3), **values}
        self._lines.append(json.dumps(line) + "\n")
        if self._board_directory is not None:
            self._board = self._board or _Board(self._board_directory, self._clock)
            numbers = {n: v for n, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)}
            self._board.add(step, {f"{event}/{name}": value for name, value in numbers.items()})
        if files.is_local(self.path) or self._clock() - self._flushed > _REMOTE_FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the lines that are still buffered."""
        if not self._lines:
            return
        storage.append(self.path, "".join(self._lines).encode())
        self._lines.clear()
        self._flushed = self._clock()
        if self._board is not None:
            self._board.flush()


class _Board:
    """TensorBoard's event file: a TFRecord of Event messages (tensorflow/core/util/event.proto, summary.proto)."""

    def __init__(self, directory: str, clock: Callable[[], float]) -> None:
        self._clock = clock
        # TensorBoard recognises event files by `tfevents` in their names, and reads them in the order of the names.
        self._path = files.join(directory, f"events.out.tfevents.{int(clock() * 1e6):017d}.maskmill")
        self._records: list[bytes] = []
        self._add(_text(3, b"brain.Event:2"))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the values of a step by their tags."""
        # Event.step = 2 and .summary = 5; Summary.value = 1; Value.tag = 1 and .simple_value = 2, a float.
        tagged = (_text(1, tag.encode()) + struct.pack("<Bf", 2 << 3 | 5, value) for tag, value in values.items())
        self._add(bytes([2 << 3]) + varint(step) + _text(5, b"".join(_text(1, value) for value in tagged)))

    def flush(self) -> None:
        """Write the buffered events."""
        storage.append(self._path, b"".join(self._records))
        self._records.clear()

    def _add(self, fields: bytes) -> None:
        # Event.wall_time = 1, a double.
        self._records.append(frame(struct.pack("<Bd", 1 << 3 | 1, self._clock()) + fields))


def _text(field: int, content: bytes) -> bytes:
    """Return a field of a protocol buffer that holds text or a message."""
    return bytes([field << 3 | 2]) + varint(len(content)) + content


def say(text: str) -> None:
    """Print a line on the terminal (standard error)."""
    print(text, file=sys.stderr, flush=True)


class MlperfLog:
    """MLPerf's log lines, `:::MLLOG {…}` (mlcommons/logging), on standard output and in a file, if `enabled`.

    The file is the log of one run, also of one that was stopped and resumed: MLPerf's rules allow most lines only once.
    So lines are held back until `begin` knows whether the run wrote them when it was first started.
    """

    def __init__(self, path: str, *, enabled: bool, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._enabled = enabled
        self._clock = clock
        self._held_back: list[str] = []
        self._has_begun = False
        self._in_block = False

    def begin(self, progress: Mapping[str, int], *, resumed: bool) -> None:
        """Start the log of a run, or continue that of a run that is `resumed`.

        Lines that a resumed run logged after its checkpoint are deleted, because the run repeats them. `progress` is
        that of the checkpoint (metadata of every line from `run_start` on, with `samples_count`).

        Raises:
          UnusableInputError: a line is damaged.
        """
        if not self._enabled:
            return
        self._has_begun = True
        held_back, self._held_back = self._held_back, []
        earlier = self._lines_up_to(progress["samples_count"]) if resumed else []
        keys = [fields["key"] for _, fields in earlier]
        continues = "run_start" in keys
        kept = [line for line, _ in earlier] if continues else held_back
        files.write_bytes(self._path, "".join(kept).encode())
        if continues:
            self._in_block = keys.count("block_start") > keys.count("block_stop")
            return
        _print("".join(held_back))
        self.start("run_start", **progress)

    def block_start(self, progress: Mapping[str, int], *, samples: int) -> None:
        """Log the start of training of `samples` examples up to an evaluation, unless such a block is open.

        An epoch is an example, as in all of BERT's log.
        """
        if not self._in_block:
            self._in_block = True
            self.start("block_start", first_epoch_num=progress["samples_count"], epoch_count=samples, **progress)
            self.start("epoch_start", **progress)

    def block_stop(self, progress: Mapping[str, int]) -> None:
        """Log the end of the block, if one is open."""
        if self._in_block:
            self._in_block = False
            self.end("epoch_stop", **progress)
            self.end("block_stop", first_epoch_num=progress["samples_count"], **progress)

    def start(self, key: str, value: Any = None, **metadata: Any) -> None:
        """Log the start of an interval."""
        self._write("INTERVAL_START", key, value, metadata)

    def end(self, key: str, value: Any = None, **metadata: Any) -> None:
        """Log the end of an interval."""
        self._write("INTERVAL_END", key, value, metadata)

    def event(self, key: str, value: Any = None, **metadata: Any) -> None:
        """Log a point in time, or the value of a setting."""
        self._write("POINT_IN_TIME", key, value, metadata)

    def _write(self, kind: str, key: str, value: Any, metadata: dict[str, Any]) -> None:
        if not self._enabled:
            return
        caller = sys._getframe(2)
        fields = {
            "namespace": "",
            "time_ms": int(self._clock() * 1000),
            "event_type": kind,
            "key": key,
            "value": value,
            "metadata": {"file": os.path.basename(caller.f_code.co_filename), "lineno": caller.f_lineno, **metadata},
        }
        line = f"{_MLPERF_MARK}{json.dumps(fields)}\n"
        if not self._has_begun:
            self._held_back.append(line)
            return
        _print(line)
        storage.append(self._path, line.encode())

    def _lines_up_to(self, samples: int) -> list[tuple[str, dict[str, Any]]]:
        """Return the lines of the file up to a number of examples, without the end of the run, with their fields."""
        if not files.exists(self._path):
            return []
        lines = _whole_lines(self._path, names=("key", "metadata"))
        # Lines from before the run's start have no number of examples.
        earlier = [(x, f) for x, f in lines if f["metadata"].get("samples_count", 0) <= samples]
        return [(line, fields) for line, fields in earlier if fields["key"] != "run_stop"]


def _whole_lines(path: str, names: tuple[str, ...] = ("step",)) -> list[tuple[str, dict[str, Any]]]:
    """Return the lines of a log with their fields; each line has fields of these names.

    A line without a newline at its end was truncated when the process was killed; it is dropped.
    """
    lines = []
    for number, line in enumerate(files.read_bytes(path).splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            continue
        try:
            text = line.decode()
            fields = json.loads(text.removeprefix(_MLPERF_MARK))
            damaged = not all(name in fields for name in names)
        except (ValueError, TypeError):
            damaged = True
        if damaged:
            raise UnusableInputError(f"{path}: line {number} of this log is damaged; move the file away to go on.")
        lines.append((text, fields))
    return lines


def _print(text: str) -> None:
    """Print lines of MLPerf's log on standard output."""
    sys.stdout.write(text)
    sys.stdout.flush()
