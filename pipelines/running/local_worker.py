"""Worker processes of the local runner: forks of the command, each of which runs one work item after the other.

If work items wait for a store, a worker has several, each in a thread: one computes while the others wait
(maskmill/storage/turns.py).

A fork has all that the command has imported and loaded, so a worker costs little. It must be made before the run starts
threads: a lock that another thread holds at that moment stays locked in the fork for ever (`files.free_after_fork`).
"""

import collections
import contextlib
import ctypes
import gc
import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import connection
from typing import Any, NamedTuple, cast

from maskmill.errors import RunFailedError, UnusableInputError

_PR_SET_PDEATHSIG = 1  # prctl(2), Linux
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Seconds for which workers may finish their work items after another one has failed.
_GRACE_SECONDS = 5.0

_fork: Any = multiprocessing.get_context("fork")


class StepError(Exception):
    """A step's error in a worker. Its text is `last_line` of that error; its cause has the traceback."""


class _Failure(NamedTuple):
    """A failed work item. kind: the exception to raise in the user's process. story: the traceback."""

    kind: type[Exception]
    sentence: str
    story: str


def last_line(error: BaseException) -> str:
    """Return the type of an error and the last line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].rstrip('.') if lines else 'no message'}"


@contextlib.contextmanager
def _signals_after() -> Iterator[None]:
    """Let signals to stop arrive after the block, which forks: they are for the command, not for a new worker.

    Another thread may take a signal that this one blocks; Python drops what a handler raises in the middle of a fork.
    Handlers belong to the main thread: they raise in none but that.
    """
    came: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    in_main = threading.current_thread() is threading.main_thread()
    handlers = {one: signal.signal(one, lambda number, _: came.append(number)) for one in _STOPPING if in_main}
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
        for number in came:
            signal.raise_signal(number)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class Workers:
    """Worker processes, as a context manager in the main thread.

    Args:
      count: the number of workers.
      log: the file for their output.
      work_items: the number of work items that each runs at a time, in threads if more than one.
    """

    def __init__(self, count: int, log: str, work_items: int = 1) -> None:
        gc.freeze()  # a garbage collection would copy the memory of present objects into each worker
        self._processes: dict[connection.Connection, Any] = {}
        self._work_items = work_items
        try:
            with _signals_after():
                for _ in range(count):
                    ours, theirs = multiprocessing.Pipe()
                    arguments = (theirs, [*self._processes, ours], log, os.getpid(), work_items)
                    process = _fork.Process(target=_work, args=arguments, daemon=True)
                    process.start()
                    theirs.close()
                    self._processes[ours] = process
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for ours in self._processes:
            ours.close()
        until = time.monotonic() + _GRACE_SECONDS
        for process in self._processes.values():
            process.join(max(0.0, until - time.monotonic()))
            process.kill()
            process.join()
        gc.unfreeze()

    def spread(
        self,
        work: Callable[[Any], Any],
        descriptions: Iterable[Any],
        follow: Callable[[Any, Any], Iterable[Any]],
    ) -> None:
        """Do `work` for each description and for those that follow; each goes to the worker with the fewest work items.

        follow: takes a description and the result of `work` for it, and returns further descriptions.

        Raises:
          UnusableInputError, RunFailedError: raised by a work item, or a worker ended before it answered.
          StepError: a work item raised anything else.
        """
        left = collections.deque(descriptions)
        running: dict[int, Any] = {}
        numbers = itertools.count()
        room = dict.fromkeys(self._processes, self._work_items)
        without_work = set(self._processes)

        def give() -> None:
            while left and any(room.values()):
                worker = max(room, key=lambda one: room[one])
                number = next(numbers)
                running[number] = left.popleft()
                room[worker] -= 1
                with self._explained(worker):
                    worker.send((work if worker in without_work else None, number, running[number]))
                without_work.discard(worker)

        give()
        while running:
            for worker in cast(list[connection.Connection], connection.wait(list(self._processes))):
                with self._explained(worker):
                    answer = worker.recv()
                match answer:
                    case logging.LogRecord():
                        logging.getLogger(answer.name).handle(answer)
                    case _Failure():
                        raise answer.kind(answer.sentence) from StepError(answer.story)
                    case (number, result):
                        room[worker] += 1
                        left.extendleft(follow(running.pop(number), result))
                        give()

    @contextlib.contextmanager
    def _explained(self, worker: connection.Connection) -> Any:
        """Turn errors that are raised because a worker has ended into one sentence."""
        try:
            yield
        except (EOFError, ConnectionError) as error:
            process = self._processes[worker]
            process.join()
            code = process.exitcode
            cause = ", often for want of memory" if code == -signal.SIGKILL else ""
            if code is None:
                how = "has ended"  # its code is unknown: another thread, which stops the command, has read it
            else:
                how = f"was killed by signal {-code}{cause}" if code < 0 else f"ended with code {code}"
            raise RunFailedError(
                f"A worker process {how}; run the same command again, it goes on where this one stopped."
            ) from error


class _ToCommand(logging.Handler):
    """Sends a worker's log records to the command, which shows them, and under the same lock its results."""

    def __init__(self, command: connection.Connection) -> None:
        super().__init__()
        self._command = command

    def answer(self, pickled: bytes) -> None:
        """Send an answer, even if a thread logs meanwhile."""
        with self.lock or contextlib.nullcontext():
            self._command.send_bytes(pickled)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record with its text, because its arguments may be of any type."""
        record.msg, record.args, record.exc_info = self.format(record), None, None
        self._command.send(record)


def _work(
    command: connection.Connection, of_command: Sequence[connection.Connection], log: str, parent: int, work_items: int
) -> None:
    """Run work items in a worker until the command closes its end of the connection.

    of_command: the command's ends of the connections of all workers so far.
    """
    _become_worker(log, parent)
    for ours in of_command:
        ours.close()
    to_command = _ToCommand(command)
    logging.getLogger().handlers[:] = [to_command]
    work: Callable[[Any], Any] = _nothing

    def make(work: Callable[[Any], Any], number: int, description: Any) -> None:
        try:
            answer = pickle.dumps((number, work(description)))
        except BaseException as error:  # noqa: BLE001 - the command raises it
            answer = pickle.dumps(_failure(error))
        to_command.answer(answer)

    with contextlib.suppress(EOFError, ConnectionError), contextlib.ExitStack() as ending:
        threads = ending.enter_context(ThreadPoolExecutor(work_items)) if work_items > 1 else None
        while True:
            new_work, number, description = command.recv()
            work = new_work or work
            if threads is None:
                make(work, number, description)
            else:
                threads.submit(make, work, number, description)


def _nothing(description: Any) -> None:
    raise RuntimeError("a worker was given a description, but no work")


def _failure(error: BaseException) -> _Failure:
    for kind in (UnusableInputError, RunFailedError):
        if isinstance(error, kind):
            return _Failure(kind, str(error), traceback.format_exc())
    return _Failure(StepError, last_line(error), traceback.format_exc())


def _become_worker(log: str, parent: int) -> None:
    """Leave signals and messages for the user to the command, and end with it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the command ended before the call above
    signal.set_wakeup_fd(-1)
    # Ctrl-C on a terminal reaches every process of the command. The command decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 2)
    os.close(file)
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
