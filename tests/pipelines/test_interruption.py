"""Commands on a terminal that are told to stop: one sentence, nothing left behind, and the next run goes on."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, ROOT, TWO_PROCESSES, VOCAB, digests, leftovers
from command_runs.terminal_screen import Screen

from pipelines.commands import cli
from pipelines.running import interruption

pytestmark = pytest.mark.long

CTRL_C = b"\x03"
PATIENCE_S = 60
SENTENCE = "run the same command again, it goes on from what is finished."


class Terminal:
    """A command in a process of its own, on a terminal of its own; `scratch` is its directory for temporary files.

    hangup: what its SIGHUP does from the start. The tests themselves may run under nohup, or in
      the background of a script, where SIGINT is ignored. columns: of the terminal.
    """

    def __init__(
        self, arguments: list[str], scratch: Path, hangup: signal.Handlers = signal.SIG_DFL, columns: int = 80
    ) -> None:
        scratch.mkdir()
        self._columns = columns
        size = {"COLUMNS": str(columns), "LINES": "24"}  # the tests' own environment may have others
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)} | size
        program = "import sys; from maskmill.command import main; sys.exit(main())"
        pid, self._terminal = pty.fork()
        if pid == 0:
            termios.tcsetwinsize(0, (24, columns))
            signal.signal(signal.SIGHUP, hangup)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(sys.executable, [sys.executable, "-c", program, *arguments], environment)
        self.process = psutil.Process(pid)
        self._shown = b""

    def wait_for(self, moment: Callable[[], object]) -> None:
        """Returns when `moment` is true; fails when the command ends before that."""
        while not moment():
            assert self.process.status() != psutil.STATUS_ZOMBIE, self.screen()
            time.sleep(0.005)

    def shows(self, text: str) -> bool:
        """Whether the command has written this text by now."""
        while select.select([self._terminal], [], [], 0)[0]:
            self._shown += os.read(self._terminal, 1 << 16)
        return text.encode() in self._shown

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def end(self) -> int:
        """Waits for the end of the command; returns its exit code."""
        with contextlib.suppress(OSError):  # Linux reports a terminal without processes as an error
            while block := os.read(self._terminal, 1 << 16):
                self._shown += block
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.process.pid, 0)[1])

    def screen(self) -> list[str]:
        """The lines that the terminal shows in the end. The cursor stands in a line of its own."""
        screen = Screen(columns=self._columns)
        screen.feed(self._shown.decode().replace("\r\n", "\n\r"))
        *lines, last = screen.text
        assert last == ""
        return [line for line in lines if line]


def build_file(folder: Path) -> Path:
    """Writes the file of a build whose output is `folder`/out."""
    extract = {"input": str(DUMP), "num_eval_articles": 7, "shard_size_mb": 0.1}
    examples = {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 4}
    path = folder / "build.yaml"
    path.write_text(
        yaml.safe_dump({"output": str(folder / "out"), "report": "off", "extract": extract, "examples": examples})
    )
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The checksums of the build that nobody interrupts."""
    folder = tmp_path_factory.mktemp("expected")
    assert cli.main(["build", str(build_file(folder)), *IN_MEMORY]) == 0
    return digests(folder / "out", manifests=False)


def imports_numba(terminal: Terminal, folder: Path) -> object:
    # Until it becomes the command, the child is a copy of this process, which has imported numba.
    return "maskmill.command" in " ".join(terminal.process.cmdline()) and any(
        "llvmlite" in part.path for part in terminal.process.memory_maps()
    )


def has_claimed_its_output(terminal: Terminal, folder: Path) -> object:
    return (folder / "out").exists()


def has_workers(terminal: Terminal, folder: Path) -> object:
    return len(terminal.process.children()) == 2


def extracts(terminal: Terminal, folder: Path) -> object:
    return list((folder / "out").rglob("extract/*"))


def writes_examples(terminal: Terminal, folder: Path) -> object:
    return list((folder / "out" / "examples").glob("part*"))


# Before there are workers, it makes no difference that there will be some.
MOMENTS = {
    IN_MEMORY: ("in-memory", [imports_numba, has_claimed_its_output, extracts, writes_examples]),
    TWO_PROCESSES: ("two-processes", [has_workers, extracts, writes_examples]),
}


@pytest.mark.builds
@pytest.mark.parametrize(
    ("flags", "moment"),
    [
        pytest.param(flags, moment, id=f"{name}-{moment.__name__}")
        for flags, (name, moments) in MOMENTS.items()
        for moment in moments
    ],
)
@pytest.mark.exhaustive_but("in-memory-imports_numba", "in-memory-writes_examples", "two-processes-extracts")
def test_ctrl_c_in_a_build(
    flags: tuple[str, ...],
    moment: Callable[[Terminal, Path], object],
    expected: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["build", str(build_file(tmp_path))]
    terminal = Terminal([*arguments, *flags], tmp_path / "scratch")
    terminal.wait_for(lambda: moment(terminal, tmp_path))
    workers = terminal.process.children(recursive=True)
    terminal.type(CTRL_C)
    assert terminal.end() == 130, terminal.screen()
    assert terminal.screen()[-1] == f"maskmill build: interrupted; {SENTENCE}"
    assert not [line for line in terminal.screen()[:-1] if "maskmill build:" in line or "Traceback" in line]
    assert not psutil.wait_procs(workers, timeout=PATIENCE_S)[1]
    assert list((tmp_path / "scratch").glob("maskmill-*")) == []
    assert list((tmp_path / "scratch").glob("beam-*")) == []

    assert cli.main([*arguments, *IN_MEMORY]) == 0, capsys.readouterr().err
    assert digests(tmp_path / "out", manifests=False) == expected
    assert leftovers(tmp_path) == []


@pytest.mark.builds
@pytest.mark.parametrize(
    ("number", "whole_group"), [(signal.SIGTERM, False), (signal.SIGHUP, True)], ids=["SIGTERM", "SIGHUP-to-all"]
)
def test_other_signals_to_stop_a_build(number: signal.Signals, whole_group: bool, tmp_path: Path) -> None:
    terminal = Terminal(["build", str(build_file(tmp_path)), *TWO_PROCESSES], tmp_path / "scratch")
    # On a busy machine the list of workers takes a while, and the build must not end meanwhile.
    terminal.wait_for(lambda: has_workers(terminal, tmp_path))
    workers = terminal.process.children(recursive=True)
    terminal.wait_for(lambda: extracts(terminal, tmp_path))
    if whole_group:
        os.killpg(terminal.process.pid, number)
    else:
        terminal.process.send_signal(number)
    assert terminal.end() == 128 + number
    assert terminal.screen()[-1] == f"maskmill build: stopped by {number.name}; {SENTENCE}"
    assert not psutil.wait_procs(workers, timeout=PATIENCE_S)[1]


@pytest.mark.builds
def test_a_second_ctrl_c_changes_nothing(tmp_path: Path) -> None:
    terminal = Terminal(["build", str(build_file(tmp_path)), *TWO_PROCESSES], tmp_path / "scratch")
    terminal.wait_for(lambda: extracts(terminal, tmp_path))
    terminal.type(CTRL_C * 3)
    assert terminal.end() == 130
    assert [line for line in terminal.screen() if line.startswith(("maskmill", "Traceback"))] == [
        f"maskmill build: interrupted; {SENTENCE}"
    ]


def shows_bars(terminal: Terminal) -> bool:
    return terminal.shows("/1") and terminal.shows("━")


@pytest.mark.builds
def test_ctrl_c_below_the_bars_leaves_them_and_a_sentence(tmp_path: Path) -> None:
    terminal = Terminal(["build", str(build_file(tmp_path)), *IN_MEMORY], tmp_path / "scratch", columns=30)
    terminal.wait_for(lambda: shows_bars(terminal))
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    first, *bars, sentence = terminal.screen()
    assert first.startswith("extract: 1 file, ")
    assert bars[0].startswith("extract ")
    assert len({bar.split()[0] for bar in bars}) == len(bars), bars
    assert all(len(bar) <= 30 for bar in bars), bars
    assert sentence == f"maskmill build: interrupted; {SENTENCE}"


@pytest.mark.builds
def test_a_failure_below_the_bars_leaves_them_and_a_sentence(tmp_path: Path) -> None:
    terminal = Terminal(["build", str(build_file(tmp_path)), *TWO_PROCESSES], tmp_path / "scratch", columns=60)
    terminal.wait_for(lambda: shows_bars(terminal))
    terminal.process.children()[0].kill()
    assert terminal.end() == 1
    _, *bars, sentence = terminal.screen()
    assert bars[0].startswith("extract ")
    assert len({bar.split()[0] for bar in bars}) == len(bars), bars
    assert sentence.startswith("maskmill build: A worker process was killed by signal 9")


@pytest.mark.builds
def test_an_interrupted_command_says_so_in_json(tmp_path: Path) -> None:
    terminal = Terminal(["build", str(build_file(tmp_path)), *IN_MEMORY, "--log_format=json"], tmp_path / "scratch")
    terminal.wait_for(lambda: imports_numba(terminal, tmp_path))
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert json.loads(terminal.screen()[-1])["message"] == f"maskmill build: interrupted; {SENTENCE}"


def create(folder: Path) -> list[str]:
    """The command line of create-pretraining-data on a text that takes some seconds."""
    (folder / "text").write_text("The first sentence of a document.\nThe second one is longer than it.\n\n" * 50_000)
    flags = [f"--input_file={folder}/text", f"--vocab_file={VOCAB}", f"--output_file={folder}/out/records"]
    return ["create-pretraining-data", *flags, "--dupe_factor=30"]


def test_ctrl_c_removes_the_records_that_are_being_written(tmp_path: Path) -> None:
    terminal = Terminal(create(tmp_path), tmp_path / "scratch")
    terminal.wait_for(lambda: list((tmp_path / "out").glob("*")))
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert terminal.screen()[-1] == f"maskmill create-pretraining-data: interrupted; {interruption.START_ANEW}"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.builds
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_a_data_set_is_verified(workers: int, tmp_path: Path) -> None:
    text = [f"Sentence {n} of a long text has some words.\n{'' if n % 7 else chr(10)}" for n in range(400_000)]
    for shard in range(4):
        (tmp_path / f"part-{shard:05d}-of-00004").write_text("".join(text[shard::4]))
    terminal = Terminal(["verify", str(tmp_path), f"--workers={workers}"], tmp_path / "scratch")
    terminal.wait_for(lambda: list((tmp_path / "scratch").rglob("maskmill-*")))
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert terminal.screen()[-1] == f"maskmill verify: interrupted; {interruption.START_ANEW}"
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.builds
def test_ctrl_c_while_kernels_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    terminal = Terminal(create(tmp_path), tmp_path / "scratch")
    terminal.wait_for(lambda: list(cache.rglob("*machine-code")))
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert not [line for line in terminal.screen() if "Traceback" in line or "Exception" in line]
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.builds
def test_a_signal_that_is_ignored_from_the_start_stays_ignored(tmp_path: Path) -> None:
    terminal = Terminal(["build", str(build_file(tmp_path)), *IN_MEMORY], tmp_path / "scratch", signal.SIG_IGN)
    terminal.wait_for(lambda: extracts(terminal, tmp_path))
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.end() == 0
    assert (tmp_path / "out" / "examples" / "manifest.json").exists()


# Begins and ends files as fast as it can: in two workers, and in a thread of the process that is told to stop.
WRITE = """
import itertools, sys, threading
from maskmill.storage import files
def write(name):
    for n in itertools.count():
        files.write_bytes(f"{sys.argv[1]}/{name}-{n % 9}", b"x" * 200_000)
"""
STOP = """
import glob, multiprocessing, os, time
from pipelines.running import interruption
for name in ("first", "second"):
    multiprocessing.get_context("fork").Process(target=write, args=(name,), daemon=True).start()
threading.Thread(target=write, args=("own",), daemon=True).start()
while len(glob.glob(f"{sys.argv[1]}/*-8")) < 3:
    time.sleep(0.001)
interruption._stop_children()
os._exit(0)
"""


def test_files_that_are_begun_while_processes_are_stopped_do_not_stay(tmp_path: Path) -> None:
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", WRITE + STOP, folder], env=environment, check=True)
        assert leftovers(folder) == []


def test_an_interrupt_of_a_program_that_calls_the_command_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.stages.graph.run_stages", interrupt)
    assert cli.main(["extract", f"--input={DUMP}", f"--output={tmp_path}/out"]) == 130
    assert capsys.readouterr().err.splitlines()[1:] == [f"maskmill extract: interrupted; {interruption.HOW_TO_GO_ON}"]
