"""The display of progress: bars on a terminal, lines elsewhere, JSON for machines; and the timings that it keeps."""

import io
import json
import os
import pty
import re
import termios
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_runs.terminal_screen import Screen

from maskmill.storage import completions, progress, timings
from maskmill.storage.timings import Timing
from pipelines.terminal import console
from pipelines.terminal import progress_display as display
from pipelines.terminal.console import Stream
from pipelines.terminal.progress_display import Progress, Shown
from pipelines.terminal.progress_steps import Counter, ProgressLine, State, state_of

MEMORY = 1_234_000_000


def finish(output: Path, *keys: str) -> None:
    """Marks pieces of work as finished."""
    for key in keys:
        completions.store(str(output), "text", key, {})


def announce(output: Path, kind: str = "text", *, pieces: int = 4, seconds_ago: float = 10.0) -> None:
    """Announces pieces of 2 MB each."""
    progress.announce(str(output), kind, pieces=pieces, size=pieces * 2_000_000)
    then = time.time() - seconds_ago
    os.utime(completions.work_path(str(output), "plan", f"{kind}.json"), (then, then))


def follow(output: Path, stream: Any, *labels: str) -> None:
    """Shows how far a run is that began a minute ago and ends now; the kind is the first word of a label."""
    lines = [
        ProgressLine(label=label, output=str(output), kind=label.split()[0]) for label in labels or ["text shards"]
    ]
    followed = Progress(lines, stream, is_local=False)
    followed._began -= 60
    with followed:
        pass


def shown(output: Path, *labels: str) -> str:
    """What is shown of such a run where there is no terminal."""
    stream = io.StringIO()
    follow(output, stream, *labels)
    return stream.getvalue()


def test_a_step_that_has_announced_no_work_shows_nothing(tmp_path: Path) -> None:
    assert shown(tmp_path) == ""
    announce(tmp_path, pieces=0)
    assert shown(tmp_path) == ""


def test_a_step_is_shown_before_its_first_piece_is_finished(tmp_path: Path) -> None:
    announce(tmp_path)
    assert shown(tmp_path) == "text shards 0/4\n"


def test_rate_and_time_left_count_from_the_announcement(tmp_path: Path) -> None:
    announce(tmp_path)
    finish(tmp_path, "a")
    # 2 MB of 8 in a bit more than 10 s, although the display looks for the first time when the piece is finished.
    found = re.fullmatch(r"text shards 1/4, 0\.(\d) MB/s, (\d+) s left\n", shown(tmp_path))
    assert found is not None
    assert int(found[1]) <= 2
    assert int(found[2]) >= 29


def as_shown(
    label: str,
    *,
    made: int = 0,
    found: int = 0,
    pieces: int = 100,
    seconds: float = 50,
    memory: int | None = None,
    piece: int = 20_000_000,
) -> Shown:
    """A step of pieces of so many bytes, made in so many seconds."""
    announced = progress.Announced(pieces=pieces, bytes=pieces * piece, time=1000.0)
    finished = progress.Finished(made=made, found=found, last=1000.0 + seconds)
    return Shown(label=label, state=state_of(announced, finished, 1000.0 + seconds), memory=memory)


@pytest.mark.parametrize(
    ("made", "found", "seconds", "text"),
    [
        (0, 0, 50, "text 0/100"),
        (0, 60, 50, "text 60/100"),
        (10, 0, 50, "text 10/100, 4.0 MB/s, 7 min 30 s left"),
        (10, 60, 50, "text 70/100, 4.0 MB/s, 2 min 30 s left"),
        (100, 0, 50, "text 100/100"),
        (40, 60, 50, "text 100/100"),
        (100, 60, 50, "text 100/100"),
        (50, 0, 0, "text 50/100"),
    ],
)
def test_pieces_that_were_found_take_no_time(made: int, found: int, seconds: float, text: str) -> None:
    assert display.step_text(as_shown("text", made=made, found=found, seconds=seconds)) == text


def test_large_numbers_are_grouped() -> None:
    step = as_shown("text", made=10_000, pieces=20_000, seconds=1, piece=1000)
    assert display.step_text(step) == "text 10,000/20,000, 10.0 MB/s, 1 s left"


def test_the_line_fits_into_80_columns(tmp_path: Path) -> None:
    labels = [f"{name} of a step with a long name" for name in ("first", "second", "third")]
    for label in labels:
        announce(tmp_path, label.split()[0])
    line = shown(tmp_path, *labels).rstrip("\n")
    assert line == "second of a step with a long name 0/4 · third of a step with a long name 0/4"
    assert len(line) < 80


def test_a_stream_without_the_dot_gets_a_bar_in_its_place(tmp_path: Path) -> None:
    announce(tmp_path, "first")
    announce(tmp_path, "second")
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    follow(tmp_path, stream, "first", "second")
    assert raw.getvalue() == b"first 0/4 | second 0/4\n"


def test_pieces_and_work_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    announce(tmp_path, pieces=2)
    finish(tmp_path, "old")
    os.utime(completions.work_path(str(tmp_path), "text", "old.json"), (1, 1))
    assert shown(tmp_path) == "text shards 0/2\n"
    announce(tmp_path, pieces=2, seconds_ago=100)
    assert shown(tmp_path) == ""


def test_a_step_that_is_done_has_no_time_left(tmp_path: Path) -> None:
    announce(tmp_path, pieces=1)
    finish(tmp_path, "a")
    assert shown(tmp_path) == "text shards 1/1\n"


def test_a_line_tells_the_memory_of_what_is_at_work() -> None:
    stream = io.StringIO()
    lines = display._Lines(Stream(stream))
    lines.show([as_shown("extract", made=100, memory=999), as_shown("text", made=9, memory=MEMORY)], is_last=True)
    assert stream.getvalue() == "extract 100/100 · text 9/100, 3.6 MB/s, 8 min 25 s left · 1.23 GB of memory\n"


def test_a_line_is_written_only_when_a_step_has_got_on() -> None:
    stream = io.StringIO()
    lines = display._Lines(Stream(stream))
    for made in (1, 1, 2):
        lines.show([as_shown("text", made=made)], is_last=True)
        lines.show([as_shown("text", made=made + 1)], is_last=False)  # too early
    assert [line.partition(",")[0] for line in stream.getvalue().splitlines()] == ["text 1/100", "text 2/100"]


@pytest.mark.parametrize(("seconds", "text"), [(4.9, "4 s"), (61, "1 min 1 s"), (7325, "2 h 2 min")])
def test_durations(seconds: float, text: str) -> None:
    assert display.duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (999_600, "1 MB"),
        (412_345_678, "412 MB"),
        (MEMORY, "1.23 GB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert console.bytes_text(size) == text


# ---- bars


def without_escapes(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


STEPS = [
    as_shown("templates", made=100, memory=512_000_000),
    as_shown("extract", made=7, found=30, memory=MEMORY),
    as_shown("text shards", pieces=20_000, memory=MEMORY),
]


@pytest.mark.parametrize("room", [1, 5, 10, 20, 30, 40, 50, 60, 79, 100, 200])
def test_bars_fit_into_any_width(room: int) -> None:
    lines = [without_escapes(line) for line in display.bar_lines(STEPS, room, "utf-8")]
    assert len(lines) == 3
    assert max(map(len, lines)) <= room
    assert all(line.startswith(step.label[0]) for line, step in zip(lines, STEPS, strict=True)) or room < 10


def test_bars_show_what_there_is_room_for() -> None:
    at_79, at_49, at_39, at_24 = (
        [re.sub("[━╸╺]+", "━", without_escapes(line)) for line in display.bar_lines(STEPS, room, "utf-8")]
        for room in (79, 49, 39, 24)
    )
    assert [re.sub(" +", " ", line) for line in at_79] == [
        "templates ━ 100/100 50 s 40.0 MB/s 512 MB",
        "extract ━ 37/100 7 min 30 s left 2.8 MB/s 1.23 GB",
        "text shards ━ 0/20,000 1.23 GB",
    ]
    assert [re.sub(" +", " ", line) for line in at_49][1] == "extract ━ 37/100 7 min 30 s left"
    assert [re.sub(" +", " ", line) for line in at_39][1] == "extract ━ 37/100"
    assert [re.sub(" +", " ", line) for line in at_24][1] == "extract 37/100"


def test_a_finished_bar_looks_so_on_a_terminal_of_16_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    finished, at_work, waiting = display.bar_lines(STEPS, 79, "utf-8")
    assert "\x1b[32m━" in finished
    assert "\x1b[36m━" in at_work
    assert "\x1b[90m━" in at_work
    assert "\x1b[90m━" in waiting
    assert "\x1b[36m━" not in waiting


def test_bars_in_ascii() -> None:
    assert "\n".join(display.bar_lines(STEPS, 79, "ascii")).isascii()


def test_a_bar_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    (line,) = display.bar_lines(STEPS[1:2], 79, "utf-8")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", line)
    assert 0.3 < line.count("━") / 30 < 0.45


# ---- on a terminal


class Terminal:
    """A pseudo-terminal of some size, and the stream that writes to it."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self._parent, child = pty.openpty()
        termios.tcsetwinsize(child, (rows, columns))
        self.child = child
        self.stream = Stream(os.fdopen(child, "w", encoding="utf-8"))
        self.screen = Screen(rows, columns)

    def read(self) -> list[str]:
        """What is on the screen now."""
        self.stream.flush()
        os.set_blocking(self._parent, False)
        while True:
            try:
                block = os.read(self._parent, 1 << 16)
            except BlockingIOError:
                return self.screen.text
            self.screen.feed(block.decode().replace("\r\n", "\n\r"))

    def close(self) -> None:
        self.stream.close()
        os.close(self._parent)


@pytest.fixture
def terminal(request: pytest.FixtureRequest) -> Any:
    made = Terminal(**getattr(request, "param", {}))
    yield made
    made.close()


def test_a_terminal_gets_a_bar_for_each_step(tmp_path: Path, terminal: Terminal) -> None:
    announce(tmp_path, "extract")
    announce(tmp_path)
    finish(tmp_path, "a", "b", "c", "d")
    follow(tmp_path, terminal.stream, "extract", "text shards")
    extract, text, after = terminal.read()
    assert re.fullmatch(r"extract +━+ +0/4", extract)
    assert re.fullmatch(r"text shards ━+ +4/4 +\d+(\.\d)? s +0\.\d MB/s", text)
    assert after == ""


def test_bars_are_overwritten(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    for made in range(0, 101, 10):
        bars.show([as_shown("extract", made=made), as_shown("text", made=made // 2)], is_last=made == 100)
        first, second, _ = terminal.read()
        assert f" {made}/100" in first
        assert f" {made // 2}/100" in second
    bars.end()
    terminal.stream.write("done\n")
    assert [line.split()[0] for line in terminal.read() if line] == ["extract", "text", "done"]


def test_what_is_written_meanwhile_stands_above_the_bars(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    bars.show([as_shown("extract", made=1)], is_last=True)
    terminal.stream.write("a warning")
    terminal.stream.write(" of two writes\nand a line\n")
    bars.show([as_shown("extract", made=2)], is_last=True)
    terminal.stream.write("the last one")
    bars.end()
    assert [line[:25] for line in terminal.read()] == [
        "a warning of two writes",
        "and a line",
        terminal.read()[2][:25],
        "the last one",
    ]
    assert terminal.read()[2].startswith("extract ╸")


@pytest.mark.parametrize("terminal", [{"columns": 20}, {"columns": 40}, {"columns": 132}, {"rows": 2}], indirect=True)
def test_bars_fit_into_any_terminal(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    for made in (0, 50, 100):
        bars.show([as_shown(f"step {n}", made=made, memory=MEMORY) for n in range(5)], is_last=True)
    lines = [line for line in terminal.read() if line]
    assert len(lines) == min(5, terminal.screen.rows - 1)
    assert lines[-1].startswith("step 4")
    assert all(len(line) < terminal.screen.columns for line in lines)


def test_a_terminal_that_is_made_narrower_gets_new_bars_below(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    bars.show([as_shown("extract", made=1)], is_last=True)
    termios.tcsetwinsize(terminal.child, (24, 40))
    for made in (2, 3):
        bars.show([as_shown("extract", made=made)], is_last=True)
    assert [line.split()[2] for line in terminal.read() if line] == ["1/100", "3/100"]


def test_the_cursor_is_never_hidden(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    bars.show(STEPS, is_last=True)
    terminal.read()
    assert {escape[-1] for escape in terminal.screen.escapes} <= set("mAKJ")


def test_a_dumb_terminal_gets_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(display._display(terminal.stream), display._Lines)


# ---- JSON


def test_each_step_is_an_object(tmp_path: Path) -> None:
    announce(tmp_path, "extract", pieces=3)
    announce(tmp_path)
    finish(tmp_path, "a")
    raw = io.StringIO()
    follow(tmp_path, Stream(raw, as_json=True), "extract", "text shards")
    extract, text = map(json.loads, raw.getvalue().splitlines())
    assert (extract["step"], extract["done"], extract["pieces"]) == ("extract", 0, 3)
    assert extract["message"] == "extract 0/3"
    assert extract["seconds_left"] is None
    assert (text["step"], text["done"], text["level"], text["logger"]) == ("text shards", 1, "INFO", "maskmill")
    assert text["bytes_per_second"] == pytest.approx(200_000, rel=0.5)
    assert text["seconds_left"] >= 29


def test_an_object_is_written_only_of_a_step_that_has_got_on() -> None:
    raw = io.StringIO()
    lines = display._JsonLines(Stream(raw, as_json=True))
    for made in (1, 2):
        lines.show([as_shown("extract", made=100), as_shown("text", made=made)], is_last=True)
    assert [json.loads(line)["step"] for line in raw.getvalue().splitlines()] == ["extract", "text", "text"]


# ---- memory, counters and timings


def test_the_memory_is_that_of_the_command_and_its_workers() -> None:
    memory = display.memory_of_command()
    own = psutil.Process().memory_info().rss
    assert own * 0.8 < memory.largest <= memory.all


def test_a_counter_is_a_step() -> None:
    counter = Counter("verify", pieces=3)
    assert counter.look(0.0) == State(pieces=3, made=0, found=0, bytes=0, seconds=pytest.approx(0, abs=5))
    for _ in range(3):
        counter.count(2_000_000)
    state = counter.look(0.0)
    assert state is not None
    assert (state.made, state.bytes, state.is_done) == (3, 6_000_000, True)
    stream = io.StringIO()
    with Progress([counter], stream):
        pass
    assert stream.getvalue() == "verify 3/3\n"


def test_timings_are_kept_of_what_was_made(tmp_path: Path) -> None:
    announce(tmp_path, pieces=3, seconds_ago=20)
    finish(tmp_path, "found", "a", "b")
    completions.renew(str(tmp_path), "text", "found")
    then = time.time() - 5
    for key in "ab":
        os.utime(completions.work_path(str(tmp_path), "text", f"{key}.json"), (then, then))
    shown(tmp_path, "extract", "text shards")
    (timing,) = timings.read(str(tmp_path))
    assert timing.seconds == pytest.approx(15, abs=0.1)
    assert timing == Timing(label="text shards", pieces=2, found=1, bytes=4_000_000, seconds=timing.seconds)


def test_timings_of_a_step_that_is_done_are_kept_before_the_run_ends(tmp_path: Path) -> None:
    announce(tmp_path, "extract")
    announce(tmp_path, pieces=2)
    finish(tmp_path, "a", "b")
    lines = [ProgressLine(label=kind, output=str(tmp_path), kind=kind) for kind in ("extract", "text")]
    followed = Progress(lines, io.StringIO())
    followed._began -= 60
    followed._look()
    (timing,) = timings.read(str(tmp_path))
    assert (timing.label, timing.pieces) == ("text", 2)
    assert timing.memory is not None
    assert timing.memory > 1_000_000


def test_a_run_that_makes_nothing_keeps_no_timings(tmp_path: Path) -> None:
    announce(tmp_path, pieces=1)
    finish(tmp_path, "a")
    completions.renew(str(tmp_path), "text", "a")
    shown(tmp_path)
    assert timings.read(str(tmp_path)) == ()


def test_without_room_for_timings_the_run_goes_on(tmp_path: Path) -> None:
    announce(tmp_path, pieces=1)
    finish(tmp_path, "a")
    Path(completions.work_path(str(tmp_path), "", "run")).write_text("a file where the directory would be")
    assert shown(tmp_path) == "text shards 1/1\n"
