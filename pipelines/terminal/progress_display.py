"""How far a command is: a bar for each step on a terminal, and plain lines elsewhere.

A thread looks at the steps from outside, so that it works alike on every runner. rich is imported only if bars are
shown.
"""

import contextlib
import dataclasses
import io
import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

import psutil

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import timings
from maskmill.storage.timings import Timing
from pipelines.terminal.console import Stream, bytes_text
from pipelines.terminal.progress_steps import ProgressLine, State, Step

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress_bar import ProgressBar
    from rich.table import Table

# Where the width of the terminal is not known.
_COLUMNS = 80
_LOOK_EVERY_SECONDS = 0.5
_LINE_EVERY_SECONDS = 15.0
# Looking takes this share of one core at most, however many records there are.
_MOST_LOOKING = 0.05

_NARROWEST_BAR, _WIDEST_BAR = 8, 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class Memory:
    """Resident memory in bytes of the command and its workers: of all, and of the largest process."""

    all: int
    largest: int


def memory_of_command() -> Memory:
    """What this process and those that it has started take now."""
    this, sizes = psutil.Process(), []
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it may have ended
            sizes.append(process.memory_info().rss)
    return Memory(all=sum(sizes), largest=max(sizes, default=0))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """A step as the display shows it; memory: of all processes now, or of a step that is done at its peak."""

    label: str
    state: State
    memory: int | None


class Progress:
    """Shows how far the steps are while the block runs, and keeps the timings of those of stages.

    Args:
      steps: what is followed.
      stream: where to; None: standard error.
      is_local: whether the work is done by this process and those that it starts, so that their memory says something.
      only_long: whether nothing is shown of a run that ends before there was anything to show.
    """

    def __init__(
        self, steps: Sequence[Step], stream: TextIO | None = None, *, is_local: bool = True, only_long: bool = False
    ) -> None:
        stream = stream or sys.stderr
        self._stream = stream if isinstance(stream, Stream) else Stream(stream)
        self._steps = steps
        self._is_local = is_local
        self._only_long = only_long
        self._display = _display(self._stream)
        self._began = time.time()
        self._states: dict[int, State] = {}
        # The most memory that was seen while a step was at work: of all processes, and of one.
        self._peaks: dict[int, Memory] = {}
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
        self._keep_timings(only_done=False)
        self._display.end()

    def _watch(self) -> None:
        pause = _LOOK_EVERY_SECONDS
        while not self._stop.wait(pause):
            began = time.perf_counter()
            self._display.show(self._look(), is_last=False)
            pause = max(_LOOK_EVERY_SECONDS, (time.perf_counter() - began) / _MOST_LOOKING)

    def _look(self) -> list[Shown]:
        """How far each step is that has work."""
        memory = memory_of_command() if self._is_local else None
        shown, newly_done = [], False
        for place, step in enumerate(self._steps):
            before, state = self._states.get(place), step.look(self._began)
            if state is None:
                continue
            self._states[place] = state
            was_done = before is not None and before.is_done
            if memory is not None and not was_done:
                peak = self._peaks.get(place, memory)
                self._peaks[place] = Memory(all=max(peak.all, memory.all), largest=max(peak.largest, memory.largest))
            newly_done |= state.is_done and not was_done
            seen = self._peaks.get(place) if state.is_done else memory
            shown.append(Shown(label=step.label, state=state, memory=None if seen is None else seen.all))
        if newly_done:
            # At once, not only in the end: the run may be interrupted, and the next one finds the pieces.
            self._keep_timings(only_done=True)
        return shown

    def _keep_timings(self, *, only_done: bool) -> None:
        by_output: dict[str, list[Timing]] = {}
        for place, step in enumerate(self._steps):
            if isinstance(step, ProgressLine):
                by_output.setdefault(step.output, []).append(self._timing(place, step.label, only_done=only_done))
        for output, found in by_output.items():
            # A build without timings is as good. Where the disk is full, the run itself says so.
            with contextlib.suppress(OSError, RunFailedError, UnusableInputError):
                if any(timing.pieces for timing in found):
                    timings.write(output, found)

    def _timing(self, place: int, label: str, *, only_done: bool) -> Timing:
        state = self._states.get(place)
        if state is None or (only_done and not state.is_done):
            return Timing(label=label, pieces=0, found=0, bytes=0, seconds=0.0)
        peak = self._peaks.get(place)
        return Timing(
            label=label,
            pieces=state.made,
            found=state.found,
            bytes=state.bytes,
            seconds=round(state.seconds, 3),
            memory=None if peak is None else peak.largest,
        )


def _display(stream: Stream) -> "_Bars | _Lines":
    """The display that fits a stream."""
    if stream.isatty() and not stream.as_json and os.environ.get("TERM") != "dumb":
        return _Bars(stream)
    return _JsonLines(stream) if stream.as_json else _Lines(stream)


class _Lines:
    """A line now and then, for a file or a log."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._between = " · " if _can_write("·", stream) else " | "
        self._next = time.monotonic() + _LINE_EVERY_SECONDS
        self._shown: list[State] = []

    @property
    def has_shown(self) -> bool:
        """Whether anything was shown yet."""
        return bool(self._shown)

    def show(self, steps: Sequence[Shown], *, is_last: bool) -> None:
        """Shows how far the steps are."""
        now, states = time.monotonic(), [step.state for step in steps]
        if not (is_last or now >= self._next) or not steps or _same(states, self._shown):
            return
        self._next, self._shown = now + _LINE_EVERY_SECONDS, states
        self._write(steps)

    def end(self) -> None:
        """Leaves what was shown."""

    def _write(self, steps: Sequence[Shown]) -> None:
        texts = [step_text(step) for step in steps]
        at_work = [step.memory for step in steps if not step.state.is_done and step.memory is not None]
        self._stream.tell(self._fit([*texts, *(f"{bytes_text(size)} of memory" for size in at_work[-1:])]))

    def _fit(self, texts: list[str]) -> str:
        """One line; if it would be too long the first steps, which are done soonest, are left out."""
        while len(texts) > 1 and len(self._between.join(texts)) >= _COLUMNS:
            texts = texts[1:]
        return self._between.join(texts)[: _COLUMNS - 1]


class _JsonLines(_Lines):
    """An object for each step that has got on, now and then."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._written: dict[str, tuple[int, int]] = {}

    def _write(self, steps: Sequence[Shown]) -> None:
        for step in steps:
            state = step.state
            if self._written.get(step.label) == (state.done, state.pieces):
                continue
            self._written[step.label] = state.done, state.pieces
            self._stream.tell(
                step_text(step),
                step=step.label,
                done=state.done,
                pieces=state.pieces,
                bytes_per_second=_rounded(state.rate),
                seconds=round(state.seconds, 1),
                seconds_left=_rounded(state.seconds_left),
                memory_bytes=step.memory,
            )


class _Bars:
    """A bar for each step, at the bottom of a terminal."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._room = 0

    @property
    def has_shown(self) -> bool:
        return self._room > 0

    def show(self, steps: Sequence[Shown], *, is_last: bool) -> None:
        if not steps or not (is_last or self._is_in_foreground()):
            return
        columns, rows = _COLUMNS, len(steps) + 1
        with contextlib.suppress(OSError, ValueError):  # a stream without a terminal of its own
            size = os.get_terminal_size(self._stream.fileno())
            columns, rows = size.columns or columns, size.lines or rows
        room = max(columns - 1, 1)  # in the last column the cursor would go to the next line
        if room < self._room:
            self._stream.unpin()  # the terminal has broken the lines: begin anew below them
        self._room = room
        # The first steps are done soonest.
        self._stream.pin(bar_lines(steps[-max(rows - 1, 1) :], room, self._stream.encoding or "utf-8"))

    def end(self) -> None:
        self._stream.unpin()

    def _is_in_foreground(self) -> bool:
        """Whether the shell has not put the command into the background, where it would write over other things."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True


def bar_lines(steps: Sequence[Shown], room: int, encoding: str) -> list[str]:
    """A line for each step: its label, a bar, pieces, rate, time left, memory.

    Args:
      steps: those with work.
      room: the most columns of a line. Where it is too narrow for all, memory, rate and bar are left out in this order.
      encoding: of the terminal.
    """
    from rich.console import Console

    # rich asks the stream for its encoding; nothing is written to it.
    nowhere = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=nowhere, force_terminal=True, width=room, height=len(steps) + 1, legacy_windows=False)
    with console.capture() as captured:
        console.print(_table(steps, room), no_wrap=True, overflow="crop", crop=True)
    return [line.rstrip() for line in captured.get().splitlines()]


def _table(steps: Sequence[Shown], room: int) -> "Table":
    """The bars of `bar_lines`."""
    from rich.table import Table
    from rich.text import Text

    columns: Mapping[str, Sequence[str]] = {
        "": [step.label for step in steps],
        "bold": [f"{step.state.done:,}/{step.state.pieces:,}" for step in steps],
        "cyan": [_time_text(step.state) for step in steps],
        "none": [_rate_text(step.state.rate) for step in steps],
        "dim": ["" if step.memory is None else bytes_text(step.memory) for step in steps],
    }
    kept = {style: texts for style, texts in columns.items() if any(texts)}
    while len(kept) > 2 and _width(kept.values()) + _NARROWEST_BAR + 1 > room:
        del kept[list(kept)[-1]]
    bar = min(room - _width(kept.values()) - 1, _WIDEST_BAR)
    table = Table.grid(padding=(0, 1, 0, 0))
    for style in kept:
        table.add_column(style=style, justify="left" if not style else "right", no_wrap=True)
        if not style and bar >= _NARROWEST_BAR:
            table.add_column(width=bar)
    for place, step in enumerate(steps):
        row: list[RenderableType] = [Text(texts[place]) for texts in kept.values()]
        if bar >= _NARROWEST_BAR:
            row.insert(1, _bar(step.state, bar))
        table.add_row(*row)
    return table


def _bar(state: State, width: int) -> "ProgressBar":
    """A bar in colours that every terminal has; in rich's own a finished one looks empty where there are only 16."""
    from rich.progress_bar import ProgressBar

    return ProgressBar(
        total=state.pieces,
        completed=state.done,
        width=width,
        style="bright_black",
        complete_style="cyan",
        finished_style="green",
    )


def _width(columns: Iterable[Sequence[str]]) -> int:
    """The width of columns of text, with a space behind each."""
    return sum(max(map(len, texts)) + 1 for texts in columns)


def step_text(step: Shown) -> str:
    """How far a step is: `extract 3/12, 4.0 MB/s, 10 s left`."""
    state = step.state
    parts = [f"{step.label} {state.done:,}/{state.pieces:,}"]
    if state.seconds_left is not None:
        parts += [_rate_text(state.rate), _time_text(state)]
    return ", ".join(parts)


def _time_text(state: State) -> str:
    if state.is_done:
        brief = f"{state.seconds:.1f} s" if state.seconds < 10 else duration(state.seconds)
        return brief if state.made else ""
    return "" if state.seconds_left is None else f"{duration(state.seconds_left)} left"


def _rate_text(rate: float | None) -> str:
    return "" if rate is None else f"{rate / 1e6:.1f} MB/s"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _same(states: Sequence[State], others: Sequence[State]) -> bool:
    """Whether no step has got on."""
    return [(s.done, s.pieces) for s in states] == [(s.done, s.pieces) for s in others]


def _can_write(text: str, stream: TextIO | Stream) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def duration(seconds: float) -> str:
    """A duration in whole seconds: `2 h 2 min`, `1 min 1 s`, `4 s`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
