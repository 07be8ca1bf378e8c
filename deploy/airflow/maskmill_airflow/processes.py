"""Runs maskmill as a process of its own, passes its log on line by line, and ends it with all that it started."""

import collections
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import IO

from maskmill_airflow.commands import Installation

# A training that is told to end writes a checkpoint first. Airflow kills the task itself 60 seconds after it was told
# to end (core.killed_task_cleanup_time); what the task has started must be gone by then.
_SECONDS_TO_END = 45.0
_KEPT_LINES = 2_000

Log = Callable[[int, str], None]


class CommandFailedError(Exception):
    """maskmill ended with another exit code than 0.

    Attributes:
      code: the exit code; negative: the signal that killed it.
    """

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Command:
    """A run of maskmill.

    Args:
      installation: where maskmill is.
      arguments: of the command.
    """

    def __init__(self, installation: Installation, arguments: Sequence[str]) -> None:
        self._installation = installation
        self._arguments = list(arguments)
        self._process: subprocess.Popen[str] | None = None
        self._last_error = ""

    def run(self, log: Log) -> str:
        """Runs the command to its end; returns the end of what it printed on standard output.

        Args:
          log: gets the level and the text of each line, of standard output and of the log.

        Raises:
          CommandFailedError: the command failed or could not be started; its text is the command's own sentence.
        """
        line = [*self._installation.command, *self._arguments]
        try:
            self._process = subprocess.Popen(
                line,
                cwd=self._installation.directory,
                env=os.environ | dict(self._installation.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                # So that a kill reaches the processes that it started, too.
                start_new_session=True,
            )
        except OSError as error:
            raise CommandFailedError(127, f"{line[0]} cannot be started ({error.strerror or error}).") from error
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        logs = threading.Thread(target=self._pass_on, args=(process.stderr, log), daemon=True)
        logs.start()
        printed: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        for text in process.stdout:
            printed.append(text)
            log(logging.INFO, text.rstrip("\n"))
        code = process.wait()
        logs.join()
        if code:
            raise CommandFailedError(code, self._sentence(code))
        return "".join(printed)

    def end(self) -> None:
        """Ends the command and what it started: asks first, and kills what is still there 45 seconds later."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        self._signal(signal.SIGTERM)
        try:
            process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            process.wait()

    def _signal(self, number: int) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            # It ended by itself meanwhile.
            return

    def _pass_on(self, stream: IO[str], log: Log) -> None:
        for text in stream:
            level, message = parse_line(text)
            if level >= logging.ERROR:
                self._last_error = message
            log(level, message)

    def _sentence(self, code: int) -> str:
        if self._last_error:
            return self._last_error
        name = " ".join([*self._installation.command, *self._arguments[:1]])
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{name} {how} without a sentence; see the lines above."


def parse_line(text: str) -> tuple[int, str]:
    """The level and the message of a line of maskmill's log, which is an object with `--log_format json`."""
    stripped = text.rstrip("\n")
    try:
        record = json.loads(stripped)
        level, message = record["level"], record["message"]
    except (ValueError, KeyError, TypeError):
        return logging.INFO, stripped
    number = logging.getLevelNamesMapping().get(str(level), logging.INFO)
    story = f"\n{record['traceback']}" if record.get("traceback") else ""
    return number, f"{message}{story}"
