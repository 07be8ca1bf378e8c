"""How far a command is: bars on a terminal, lines elsewhere, JSON for machines; and the timings that are kept."""

import contextlib
import io
import json
import os
import pty
import re
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from command_runs.terminal_screen import Screen

from maskmill.mirrors.dumps import Dump, DumpFile
from maskmill.storage import completions, progress, timings
from maskmill.storage.timings import Timing
from pipelines.terminal import console
from pipelines.terminal import progress as display
from pipelines.terminal.console import Stream
from pipelines.terminal.progress import Counter, Progress, ProgressLine, State, following_download, state_of


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
    followed = Progress(lines, stream)
    followed._began -= 60
    with followed:
        pass


def shown(output: Path, *labels: str) -> str:
    """What is shown of such a run where there is no terminal."""
    stream = io.StringIO()
    follow(output, stream, *labels)
    return stream.getvalue()


def announce_of_before(output: Path) -> None:
    """Announces work of an earlier run."""
    announce(output, seconds_ago=100)


def made_before(output: Path) -> None:
    """Announces work of which an earlier run has made a piece."""
    announce(output)
    finish(output, "old")
    os.utime(completions.work_path(str(output), "text", "old.json"), (1, 1))


@pytest.mark.parametrize(
    ("work", "keys", "text"),
    [
        (lambda output: None, "", ""),
        (lambda output: announce(output, pieces=0), "", ""),
        (announce_of_before, "", ""),
        (announce, "", "text shards 0/4\n"),
        (made_before, "", "text shards 0/4\n"),
        (lambda output: announce(output, pieces=1), "a", "text shards 1/1\n"),
    ],
)
def test_a_step_is_shown_once_this_run_has_announced_work(work: Any, keys: str, text: str, tmp_path: Path) -> None:
    work(tmp_path)
    finish(tmp_path, *keys)
    assert shown(tmp_path) == text


def test_rate_and_time_left_count_from_the_announcement(tmp_path: Path) -> None:
    announce(tmp_path)
    finish(tmp_path, "a")
    # 2 MB of 8 in a bit more than 10 s, although the display looks for the first time when the piece is finished.
    found = re.fullmatch(r"text shards 1/4, 0\.(\d) MB/s, (\d+) s left\n", shown(tmp_path))
    assert found is not None
    assert int(found[1]) <= 2
    assert int(found[2]) >= 29


def as_shown(
    label: str, *, made: int = 0, found: int = 0, pieces: int = 100, seconds: float = 50, piece: int = 20_000_000
) -> State:
    """A step of pieces of so many bytes, made in so many seconds."""
    announced = progress.Announced(pieces=pieces, bytes=pieces * piece, time=1000.0)
    finished = progress.Finished(made=made, found=found, last=1000.0 + seconds)
    return state_of(label, announced, finished, 1000.0 + seconds)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (as_shown("text"), "text 0/100"),
        (as_shown("text", found=60), "text 60/100"),
        (as_shown("text", made=10), "text 10/100, 4.0 MB/s, 7 min 30 s left"),
        (as_shown("text", made=10, found=60), "text 70/100, 4.0 MB/s, 2 min 30 s left"),  # those found took no time
        (as_shown("text", made=40, found=60), "text 100/100"),
        (as_shown("text", made=100, found=60), "text 100/100"),
        (as_shown("text", made=50, seconds=0), "text 50/100"),
        (
            as_shown("text", made=10_000, pieces=20_000, seconds=1, piece=1000),
            "text 10,000/20,000, 10.0 MB/s, 1 s left",
        ),
    ],
)
def test_lines(state: State, line: str) -> None:
    assert state.line == line


def test_a_line_is_written_only_of_a_step_that_has_got_on() -> None:
    stream = io.StringIO()
    lines = display._Lines(Stream(stream))
    for made in (1, 1, 2):
        steps = [as_shown("extract", made=100), as_shown("text", made=made)]
        lines.show(steps, is_last=True)
        lines.show([as_shown("text", made=made + 1)], is_last=False)  # too early
    assert stream.getvalue().splitlines() == [
        "extract 100/100",
        "text 1/100, 0.4 MB/s, 1 h 22 min left",
        "text 2/100, 0.8 MB/s, 40 min 50 s left",
    ]


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
        (1_234_000_000, "1.23 GB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert console.bytes_text(size) == text


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
        blocks = b""
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self._parent, 1 << 16):
                blocks += block
        self.screen.feed(blocks.decode().replace("\r\n", "\n\r"))
        return self.screen.text

    def close(self) -> None:
        self.stream.close()
        os.close(self._parent)


@pytest.fixture
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Terminal(**getattr(request, "param", {}))
    monkeypatch.setenv("COLUMNS", str(made.screen.columns))  # rich asks the process's own streams, which are none
    yield made
    made.close()


STEPS = [as_shown("templates", made=100), as_shown("extract", made=7, found=30), as_shown("text shards", pieces=20_000)]


@pytest.mark.parametrize("terminal", [{"columns": n} for n in (10, 20, 60, 80, 200)], indirect=True)
def test_bars_show_what_there_is_room_for(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    bars.show(STEPS, is_last=True)
    bars.end()
    lines = [re.sub(" +", " ", re.sub("[━╸╺]+", "━", line)) for line in terminal.read() if line]
    assert len(lines) == 3
    rates = (" 40.0 MB/s", " 2.8 MB/s") if terminal.screen.columns >= 80 else ("", "")
    assert terminal.screen.columns < 60 or lines == [
        f"templates ━ 100/100 50 s{rates[0]}",
        f"extract ━ 37/100 7 min 30 s left{rates[1]}",
        "text shards ━ 0/20,000",
    ]
    assert not any("?25" in escape for escape in terminal.screen.escapes)  # the cursor is never hidden


@pytest.mark.parametrize(("variable", "coloured"), [("TERM", True), ("NO_COLOR", False)])
def test_bars_are_in_colours_that_every_terminal_has(
    variable: str, coloured: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, "xterm")
    bars = display._Bars(terminal.stream)
    bars.show(STEPS, is_last=True)
    bars.end()
    terminal.read()
    assert {escape for escape in terminal.screen.escapes if re.fullmatch(r"\x1b\[[39]\dm", escape)} == (
        {"\x1b[32m", "\x1b[36m", "\x1b[90m"} if coloured else set()
    )


def test_a_terminal_gets_a_bar_for_each_step(tmp_path: Path, terminal: Terminal) -> None:
    announce(tmp_path, "extract")
    announce(tmp_path)
    finish(tmp_path, "a", "b", "c", "d")
    follow(tmp_path, terminal.stream, "extract", "text shards")
    extract, text = (line for line in terminal.read() if line)
    assert re.fullmatch(r"extract +━+ +0/4", extract)
    assert re.fullmatch(r"text shards ━+ +4/4 +\d+(\.\d)? s +0\.\d MB/s", text)


def test_what_is_written_meanwhile_stands_above_the_bars(terminal: Terminal) -> None:
    bars = display._Bars(terminal.stream)
    bars.show([as_shown("extract", made=1), as_shown("text")], is_last=True)
    terminal.stream.write("a [warning]")
    terminal.stream.write(" of two\x1b[2J writes\nand a line\n")
    for made in (2, 3):
        bars.show([as_shown("extract", made=made), as_shown("text")], is_last=True)
    terminal.stream.write("the last one")
    bars.end()
    lines = [line for line in terminal.read() if line]
    assert [line.split(" ━")[0].split(" ╸")[0].strip() for line in lines] == [
        "a [warning] of two\\x1b[2J writes",
        "and a line",
        "extract",
        "text",
        "the last one",
    ]
    assert " 3/100" in lines[2]


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


# ---- counters and timings


def test_a_counter_is_a_step() -> None:
    counter = Counter("verify", pieces=3)
    assert counter.look(0.0) == State(
        label="verify", pieces=3, made=0, found=0, bytes=0, seconds=pytest.approx(0, abs=5)
    )
    for _ in range(3):
        counter.count(2_000_000)
    state = counter.look(0.0)
    assert state is not None
    assert (state.made, state.bytes, state.is_done) == (3, 6_000_000, True)
    stream = io.StringIO()
    with Progress([counter], stream):
        pass
    assert stream.getvalue() == "verify 3/3\n"


@pytest.mark.parametrize(
    ("sizes", "there", "lines"),
    [
        ((600_000_000, 400_000_000), (), ["2 files, 1 GB", "download, MB 210/1,000"]),
        ((600_000_000, 400_000_000), ("part0.xml.bz2",), ["1 file, 400 MB", "download, MB 210/400"]),
        ((None, 400_000_000), (), ["2 files"]),
    ],
)
def test_a_download_is_a_step(
    sizes: tuple[int | None, ...],
    there: tuple[str, ...],
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = [
        DumpFile(name=f"part{n}.xml.bz2", url=f"http://mirror/part{n}", size=size, sums={})
        for n, size in enumerate(sizes)
    ]
    for name in there:
        (tmp_path / name).write_bytes(b"")
    dump = Dump(wiki="enwiki", date="2026-03-01", layout="classic", files=files)
    with console.showing(), following_download(dump, str(tmp_path)) as show:
        for name, done in (("part1", 50_000_000), ("part2", 90_000_000), ("part1", 120_000_000)):
            show(name, done)
    heading, *rest = capsys.readouterr().err.splitlines()
    assert heading == f"download: enwiki-2026-03-01, {lines[0]}, into {tmp_path}"
    assert [line.split(", ", 2)[:2] for line in rest] == [line.split(", ") for line in lines[1:]]


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
    assert timing == Timing(label="text shards", pieces=2, bytes=4_000_000, seconds=timing.seconds)


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
