"""How far a command is: a bar for each step on a terminal, and plain lines elsewhere.

A thread looks at the steps from outside, so that it works alike on every runner. rich is imported only if bars are
shown.
"""

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import psutil

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import timings
from maskmill.storage.timings import Timing
from pipelines.terminal.console import OF_RICH, Coloured, Stream, bytes_text
from pipelines.terminal.progress_steps import ProgressLine, State, Step

if TYPE_CHECKING:
    from rich.progress import Progress as Progress_of_rich
    from rich.progress import TaskID

_LOOK_EVERY_SECONDS = 0.5
_LINE_EVERY_SECONDS = 15.0
# Looking takes this share of one core at most, however many records there are.
_MOST_LOOKING = 0.05

_WIDEST_BAR = 40
_WIDE = 70  # columns of a terminal that has room for all that is known of a step


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
    return _Lines(stream)


class _Lines:
    """A line now and then for each step that has got on, for a file or a log."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._next = time.monotonic() + _LINE_EVERY_SECONDS
        self._shown: dict[str, tuple[int, int]] = {}

    @property
    def has_shown(self) -> bool:
        """Whether anything was shown yet."""
        return bool(self._shown)

    def show(self, steps: Sequence[Shown], *, is_last: bool) -> None:
        """Shows how far the steps are."""
        if not is_last and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE_EVERY_SECONDS
        for step in steps:
            state = step.state
            if self._shown.get(step.label) == (state.done, state.pieces):
                continue
            self._shown[step.label] = state.done, state.pieces
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

    def end(self) -> None:
        """Leaves what was shown."""


class _Bars:
    """A bar for each step at the bottom of a terminal, as rich draws it; what is written meanwhile stands above."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._bars: Progress_of_rich | None = None
        self._tasks: dict[str, TaskID] = {}

    @property
    def has_shown(self) -> bool:
        return self._bars is not None

    def show(self, steps: Sequence[Shown], *, is_last: bool) -> None:
        if not steps or not (is_last or self._is_in_foreground()):
            return
        if self._bars is None:
            self._bars = _bars_of_rich(self._stream)
            self._bars.start()
            console = self._bars.console
            self._stream.print_above = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        for step in steps:
            state = step.state
            fields: dict[str, Any] = {
                "completed": state.done,
                "total": state.pieces,
                "count": f"{state.done:,}/{state.pieces:,}",
                "time": _time_text(state),
                "rate": _rate_text(state.rate),
                "memory": "" if step.memory is None else bytes_text(step.memory),
            }
            if step.label in self._tasks:
                self._bars.update(self._tasks[step.label], **fields)
            else:
                self._tasks[step.label] = self._bars.add_task(step.label, **fields)
        self._bars.refresh()

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._stream.stop_printing_above()

    def _is_in_foreground(self) -> bool:
        """Whether the shell has not put the command into the background, where it would write over other things."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True


def _bars_of_rich(stream: Stream) -> "Progress_of_rich":
    """A bar for each step: its label, a bar, pieces, time, and where there is room rate and memory."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TextColumn

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Leaves the cursor as it is: whenever the process ends, the terminal is as a shell wants it."""
            return False

    class Bars(Progress):
        is_at_work = True

        def get_renderables(self) -> Iterable[RenderableType]:
            """The bars and, as long as they may change, an empty line for the cursor and what a shell writes."""
            yield from super().get_renderables()
            if self.is_at_work:
                yield ""

        def stop(self) -> None:
            self.is_at_work = False
            super().stop()

    console = Terminal(file=Coloured(stream, OF_RICH), legacy_windows=False)  # type: ignore[arg-type]
    texts = {"count": "bold", "time": "cyan", "rate": "none", "memory": "dim"}
    columns = [
        TextColumn(f"{{task.fields[{name}]}}", style=style, justify="right", markup=False)
        for name, style in texts.items()
        if name not in ("rate", "memory") or console.width >= _WIDE
    ]
    # Colours that every terminal has: in rich's own a finished bar looks empty where there are only 16.
    width = _WIDEST_BAR if console.width > 2 * _WIDEST_BAR else None
    bar = BarColumn(width, style="bright_black", complete_style="cyan", finished_style="green")
    shown = (TextColumn("{task.description}", markup=False), bar, *columns)
    return Bars(*shown, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)


def step_text(step: Shown) -> str:
    """How far a step is: `extract 3/12, 4.0 MB/s, 10 s left, 412 MB of memory`."""
    state = step.state
    parts = [f"{step.label} {state.done:,}/{state.pieces:,}"]
    if state.seconds_left is not None:
        parts += [_rate_text(state.rate), _time_text(state)]
        parts += [] if step.memory is None else [f"{bytes_text(step.memory)} of memory"]
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


def duration(seconds: float) -> str:
    """A duration in whole seconds: `2 h 2 min`, `1 min 1 s`, `4 s`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
