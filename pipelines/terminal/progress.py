"""The progress of a command: on a terminal a bar for each step, drawn by rich; elsewhere plain lines.

A thread polls the steps' files, so that it works alike on every runner. rich is imported only if bars are shown.
"""

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files, progress, timings
from pipelines.terminal import console
from pipelines.terminal.console import OF_RICH, Coloured, Stream

if TYPE_CHECKING:
    from rich.progress import Progress as Progress_of_rich
    from rich.progress import TaskID

    from maskmill.mirrors.dumps import Dump

_POLL_EVERY_SECONDS = 0.5
_LINE_EVERY_SECONDS = 15.0
_MOST_POLLING = 0.05  # polling takes this share of one core at most, however many records there are
_CLOCK_SLACK_SECONDS = 1.0  # a file system may round the times of files down
_WIDEST_BAR = 40
_WIDE = 70  # columns of a terminal with room for the rate, too
_MEGABYTE = 10**6


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """The progress of a step.

    Attributes:
      label: of the step.
      pieces: the number of work items. made: those that this run has finished. found: those that were finished before.
      bytes: of input of the work items made.
      seconds: since the start of the step; if all work items are finished, until the end of the last one.
    """

    label: str
    pieces: int
    made: int
    found: int
    bytes: int
    seconds: float

    @property
    def done(self) -> int:
        """The number of finished work items."""
        return min(self.made + self.found, self.pieces)

    @property
    def is_done(self) -> bool:
        """True if all work items are finished."""
        return self.done == self.pieces

    @property
    def rate(self) -> float | None:
        """Bytes a second of the work items that this run has made; those found finished took no time."""
        return self.bytes / self.seconds if self.made and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """The time left; None if it cannot be estimated yet, or nothing is left."""
        if self.is_done or not self.made or self.seconds <= 0:
            return None
        return self.seconds / self.made * (self.pieces - self.done)

    @property
    def columns(self) -> tuple[str, str, str]:
        """The work items, the time (left, or in all once the step is done) and the rate; empty if unknown."""
        time_text = "" if self.seconds_left is None else f"{duration(self.seconds_left)} left"
        if self.is_done and self.made:
            time_text = f"{self.seconds:.1f} s" if self.seconds < 10 else duration(self.seconds)
        rate_text = "" if self.rate is None else f"{self.rate / 1e6:.1f} MB/s"
        return f"{self.done:,}/{self.pieces:,}", time_text, rate_text

    @property
    def line(self) -> str:
        """The progress as a line, such as `extract 3/12, 4.0 MB/s, 10 s left`."""
        count, time_text, rate_text = self.columns
        more = "" if self.seconds_left is None else f", {rate_text}, {time_text}"
        return f"{self.label} {count}{more}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgressLine:
    """A step of a stage, followed by the completion records of its work items below an output directory."""

    label: str
    output: str
    kind: str

    def look(self, began: float) -> State | None:
        """Return the step's progress from its announcement and its completion records; None before it has work.

        began: the start of the run, in seconds since the epoch.
        """
        announced = progress.announced(self.output, self.kind)
        if announced is None or not announced.pieces or announced.time < began - _CLOCK_SLACK_SECONDS:
            return None  # no work, or an earlier run's
        return state_of(self.label, announced, progress.finished_since(self.output, self.kind, began), time.time())


def state_of(label: str, announced: progress.Announced, finished: progress.Finished, now: float) -> State:
    """Return the progress of a step at a time in seconds since the epoch."""
    is_done = finished.made + finished.found >= announced.pieces
    return State(
        label=label,
        pieces=announced.pieces,
        made=finished.made,
        found=finished.found,
        bytes=announced.bytes * min(finished.made, announced.pieces) // announced.pieces,
        seconds=max(0.0, (finished.last if is_done and finished.made else now) - announced.time),
    )


class Counter:
    """A step whose progress this process reports. It has no work until the number of its work items is known."""

    def __init__(self, label: str, *, pieces: int = 0) -> None:
        self.label = label
        self._pieces, self._made, self._bytes = pieces, 0, 0
        self._began, self._last = time.time(), 0.0

    def count(self, size: int) -> None:
        """Report one more finished work item, which has read `size` bytes."""
        self.tell(self._made + 1, self._pieces, self._bytes + size)

    def tell(self, made: int, pieces: int, size: int) -> None:
        """Report the finished work items, the number of all, and the bytes that the finished ones have read."""
        self._made, self._pieces, self._bytes, self._last = made, pieces, size, time.time()

    def look(self, began: float) -> State | None:
        """Return the step's progress."""
        if not self._pieces:
            return None
        seconds = (self._last if self._made == self._pieces else time.time()) - self._began
        return State(
            label=self.label, pieces=self._pieces, made=self._made, found=0, bytes=self._bytes, seconds=seconds
        )


Step = ProgressLine | Counter


class Progress:
    """Shows the progress of steps while the block runs, and saves the timings of stages' steps.

    Args:
      steps: the steps to follow.
      stream: for the output; None: standard error, if anything is shown at all.
      only_long: whether a run is not shown at all if it ends before the first output.
    """

    def __init__(self, steps: Sequence[Step], stream: TextIO | None = None, *, only_long: bool = False) -> None:
        shown = stream or (sys.stderr if console.is_showing() else None)
        self._display = _display(shown if isinstance(shown, Stream) else Stream(shown))
        self._steps = steps
        self._only_long = only_long
        self._began = time.time()
        self._kept = 0  # the number of steps whose timings are saved
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> "Progress":
        self._thread.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if error is None and (self._display.has_shown or not self._only_long):
            self._display.show(self._look(), is_last=True)
        self._display.end()

    def _watch(self) -> None:
        pause = _POLL_EVERY_SECONDS
        while not self._stop.wait(pause):
            began = time.perf_counter()
            self._display.show(self._look(), is_last=False)
            pause = max(_POLL_EVERY_SECONDS, (time.perf_counter() - began) / _MOST_POLLING)

    def _look(self) -> list[State]:
        """Return the progress of each step that has work; save the timings of steps as soon as they are done."""
        seen = [(step, state) for step in self._steps if (state := step.look(self._began)) is not None]
        done: dict[str, list[timings.Timing]] = {}
        for step, state in seen:
            if isinstance(step, ProgressLine) and state.is_done:
                timing = timings.Timing(
                    label=state.label, pieces=state.made, bytes=state.bytes, seconds=round(state.seconds, 3)
                )
                done.setdefault(step.output, []).append(timing)
        if (number := sum(map(len, done.values()))) > self._kept:
            self._kept = number
            for output, found in done.items():
                # A build does not need its timings. If the disk is full, the run itself says so.
                with contextlib.suppress(OSError, RunFailedError, UnusableInputError):
                    timings.write(output, found)
        return [state for _, state in seen]


def _display(stream: Stream) -> "_Bars | _Lines":
    """Return the display for a stream."""
    if stream.isatty() and not stream.as_json and os.environ.get("TERM") != "dumb":
        return _Bars(stream)
    return _Lines(stream)


class _Lines:
    """Prints a line now and then for each step with progress, for a file or a log."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._next = time.monotonic() + _LINE_EVERY_SECONDS
        self._shown: dict[str, int] = {}

    @property
    def has_shown(self) -> bool:
        """True if anything has been shown."""
        return bool(self._shown)

    def show(self, states: Sequence[State], *, is_last: bool) -> None:
        """Show the progress of the steps."""
        if not is_last and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE_EVERY_SECONDS
        for state in states:
            if self._shown.get(state.label) == state.done:
                continue
            self._shown[state.label] = state.done
            rate, left = (None if value is None else round(value, 1) for value in (state.rate, state.seconds_left))
            self._stream.tell(
                state.line,
                step=state.label,
                done=state.done,
                pieces=state.pieces,
                bytes_per_second=rate,
                seconds=round(state.seconds, 1),
                seconds_left=left,
            )

    def end(self) -> None:
        """Leave the lines as they are."""


class _Bars:
    """A bar for each step at the bottom of a terminal, drawn by rich; other output appears above the bars."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._bars: Progress_of_rich | None = None
        self._tasks: dict[str, TaskID] = {}

    @property
    def has_shown(self) -> bool:
        return self._bars is not None

    def show(self, states: Sequence[State], *, is_last: bool) -> None:
        if not states or not (is_last or self._is_in_foreground()):
            return
        if self._bars is None:
            self._bars = _bars_of_rich(self._stream)
            self._bars.start()
            above = self._bars.console
            self._stream.print_above = lambda text: above.print(text, markup=False, highlight=False, soft_wrap=True)
        for state in states:
            if state.label not in self._tasks:
                self._tasks[state.label] = self._bars.add_task(state.label, columns=state.columns)
            self._bars.update(self._tasks[state.label], completed=state.done, total=state.pieces, columns=state.columns)
        self._bars.refresh()

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._stream.stop_printing_above()

    def _is_in_foreground(self) -> bool:
        """Return whether the command is in the foreground; in the background it would write over other output."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True


def _bars_of_rich(stream: Stream) -> "Progress_of_rich":
    """Return a bar for each step: its label, a bar, work items, time, and if there is room the rate."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TextColumn

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Never hide the cursor, so that a shell gets the terminal in order whenever the process ends."""
            return False

    class Bars(Progress):
        is_at_work = True

        def get_renderables(self) -> Iterable[RenderableType]:
            """Yield the bars, and while they may change an empty line for the cursor and a shell's output."""
            yield from super().get_renderables()
            if self.is_at_work:
                yield ""

        def stop(self) -> None:
            self.is_at_work = False
            super().stop()

    terminal = Terminal(file=Coloured(stream, OF_RICH), legacy_windows=False)  # type: ignore[arg-type]
    styles = ("bold", "cyan", "none") if terminal.width >= _WIDE else ("bold", "cyan")
    columns = [
        TextColumn(f"{{task.fields[columns][{place}]}}", style=style, justify="right", markup=False)
        for place, style in enumerate(styles)
    ]
    # Colours that every terminal has: with rich's own, a finished bar looks empty on a terminal of 16 colours.
    width = _WIDEST_BAR if terminal.width > 2 * _WIDEST_BAR else None
    bar = BarColumn(width, style="bright_black", complete_style="cyan", finished_style="green")
    shown = (TextColumn("{task.description}", markup=False), bar, *columns)
    return Bars(*shown, console=terminal, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)


@contextlib.contextmanager
def following_download(dump: "Dump", directory: str) -> Iterator[Callable[[str, int], None]]:
    """Show the progress of a dump's download into a directory; files that exist already do not count.

    Yields a function that takes a file's name and the number of its downloaded bytes; several threads may call it.
    """
    missing = [file for file in dump.files if not files.exists(files.join(directory, file.name))]
    size = dataclasses.replace(dump, files=missing).size
    count = "1 file" if len(missing) == 1 else f"{len(missing)} files"
    of_bytes = "" if size is None else f", {console.bytes_text(size)}"
    console.tell(f"download: {dump.wiki}-{dump.date}, {count}{of_bytes}, into {directory}")
    step, lock, downloaded = Counter("download, MB"), threading.Lock(), dict[str, int]()

    def show(name: str, done: int) -> None:
        with lock:
            downloaded[name] = done
            everything = sum(downloaded.values())
            if size:
                step.tell(everything // _MEGABYTE, -(-size // _MEGABYTE), everything)

    with Progress([step]):
        yield show


def duration(seconds: float) -> str:
    """Return a duration in whole seconds: `2 h 2 min`, `1 min 1 s`, `4 s`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
