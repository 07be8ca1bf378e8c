"""Worker processes of the local runner: what they share with the command, what they do, and how they end."""

import functools
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, ROOT, TWO_PROCESSES, VOCAB, digests

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from pipelines.commands import cli
from pipelines.running import local_worker
from pipelines.running.local_worker import StepError, Workers

pytestmark = pytest.mark.long

# A module that fails when it is imported.
UNUSABLE = 'raise ImportError("somebody else\'s package")\n'


@pytest.fixture
def foreign_folder(tmp_path: Path) -> Path:
    """A folder with packages of somebody else that have the names of ours."""
    for package in ("pipelines", "transforms", "training"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(UNUSABLE)
    return tmp_path


def build_file(folder: Path) -> Path:
    """Writes the file of a small build whose output is `folder`/out."""
    path = folder / "build.yaml"
    extract = {"input": str(DUMP), "num_eval_articles": 7, "shard_size_mb": 0.5}
    examples = {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
    path.write_text(
        yaml.safe_dump({"output": str(folder / "out"), "report": "off", "extract": extract, "examples": examples})
    )
    return path


@pytest.mark.builds
def test_a_build_runs_in_a_folder_with_packages_of_the_same_names(
    foreign_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert cli.main(["build", str(build_file(elsewhere)), *IN_MEMORY]) == 0
    # The console script, too, starts without the working directory on the module path.
    command = [sys.executable, "-P", "-m", "maskmill", "build", str(build_file(foreign_folder)), *TWO_PROCESSES]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=foreign_folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = digests(elsewhere / "out", manifests=False)
    assert len(expected) > 5
    assert digests(foreign_folder / "out", manifests=False) == expected


# ---- Workers


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    with Workers(2, str(tmp_path / "log")) as made:
        yield made


def call(work: Callable[[Any], Any], piece: tuple[int, Any]) -> Any:
    return work(piece[1])


def answers(workers: Workers, work: Callable[[Any], Any], descriptions: Iterable[Any]) -> list[Any]:
    """What work gives for each description, in their order."""
    made: dict[int, Any] = {}

    def follow(piece: tuple[int, Any], result: Any) -> tuple[()]:
        made[piece[0]] = result
        return ()

    workers.spread(functools.partial(call, work), enumerate(descriptions), follow)
    return [made[number] for number in range(len(made))]


def look_around(_: object) -> tuple[int, int, set[str]]:
    return os.getpid(), id(UNUSABLE), set(sys.modules)


def test_workers_are_forks_that_import_nothing_again(workers: Workers) -> None:
    known = set(sys.modules)
    for pid, place, modules in answers(workers, look_around, range(4)):
        assert pid != os.getpid()
        assert place == id(UNUSABLE)
        assert modules <= known


def wait_first(number: int) -> int:
    time.sleep(0 if number else 1)
    return os.getpid()


def test_the_next_piece_goes_to_the_first_worker_that_is_idle(workers: Workers) -> None:
    first, *others = answers(workers, wait_first, range(9))
    assert set(others) == {process.pid for process in multiprocessing.active_children()} - {first}


def meet(threads: set[int], number: int) -> int:
    """Waits until another thread of this process is at work, too; threads: those that are. Gives the process."""
    threads.add(threading.get_ident())
    for _ in range(6000):
        if len(threads) > 1:
            return os.getpid()
        time.sleep(0.05)
    raise TimeoutError("this piece was alone")


def test_a_worker_has_several_pieces_at_a_time(tmp_path: Path) -> None:
    with Workers(2, str(tmp_path / "log"), work_items=2) as workers:
        pids = answers(workers, functools.partial(meet, set()), range(4))
    assert len(set(pids)) == 2


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_what_pieces_give_is_in_their_order(count: int, workers: Workers) -> None:
    assert answers(workers, double, range(count)) == [2 * number for number in range(count)]
    assert answers(workers, functools.partial(pow, 3), range(count)) == [3**number for number in range(count)]


def complain(number: int) -> int:
    logging.getLogger("transforms").warning("piece %s is odd", number)
    print("for nobody", file=sys.stderr)
    return number


def test_the_command_logs_what_a_worker_logs_and_keeps_what_it_prints(
    workers: Workers, caplog: pytest.LogCaptureFixture, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert answers(workers, complain, [7]) == [7]
    assert caplog.record_tuples == [("transforms", logging.WARNING, "piece 7 is odd")]
    assert (tmp_path / "log").read_text() == "for nobody\n"
    assert capfd.readouterr() == ("", "")


def end_badly(how: str) -> object:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "ended":
        os._exit(3)
    if how == "refused":
        raise MissingFileError("x: there is no such file.")
    return (lambda: None) if how == "no message" else {}[how]


def test_a_worker_whose_end_another_thread_has_seen(workers: Workers) -> None:
    # As whoever stops an interrupted command does: then the system tells the code to nobody else.
    for worker in multiprocessing.active_children():
        os.kill(worker.pid or 0, signal.SIGKILL)
        os.waitpid(worker.pid or 0, 0)
    with pytest.raises(RunFailedError, match="A worker process has ended; run the same command again"):
        answers(workers, str, [1, 2])


@pytest.mark.parametrize(
    ("how", "kind", "sentence"),
    [
        ("killed", RunFailedError, "A worker process was killed by signal 9, often for want of memory; run the same"),
        ("ended", RunFailedError, "A worker process ended with code 3; run the same command again"),
        ("refused", UnusableInputError, "x: there is no such file."),
        ("stumbled", StepError, "KeyError: 'stumbled'"),
        ("no message", StepError, "Error: Can't (get|pickle) local object"),
    ],
)
def test_a_piece_that_fails(how: str, kind: type[Exception], sentence: str, workers: Workers) -> None:
    with pytest.raises(kind, match=sentence):
        answers(workers, end_badly, [how])


def fail_beside_a_long_piece(number: int) -> None:
    if number:
        time.sleep(3600)
    raise RunFailedError("shard 0: the disk is full; make room.")


def test_a_long_piece_is_given_up_once_another_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_worker, "_GRACE_SECONDS", 0.1)
    of_others = psutil.Process().children()  # servers that other tests share
    with pytest.raises(RunFailedError, match="disk is full"), Workers(2, str(tmp_path / "log")) as workers:
        answers(workers, fail_beside_a_long_piece, [1, 0])
    assert not set(psutil.Process().children()) - set(of_others)
