"""What a command prints: results on standard output, one sentence for a failure on standard error."""

import contextlib
import dataclasses
import io
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from transforms.errors import RunFailedError


class Stream:
    """A text stream whose failures do not end the work of the command that prints to it.

    Attributes:
      failure: why nothing more is written; None as long as all is well.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        if isinstance(stream, io.TextIOWrapper):
            # A file's name may have characters that the terminal's encoding lacks, or bytes that are no characters.
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Writes a text, unless an earlier one could not be written."""
        if self._stream is not None and self.failure is None:
            with self._noting():
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hands over what was written."""
        if self._stream is not None and self.failure is None:
            with self._noting():
                self._stream.flush()

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = error
            # What is still in the buffer goes nowhere; Python would complain about it when it exits.
            with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())

    def isatty(self) -> bool:
        """Whether a person is looking."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """The file descriptor. Raises OSError where there is none."""
        if self._stream is None:
            raise OSError("the stream is closed")
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Console:
    """The streams of a command."""

    output: Stream
    errors: Stream

    def say(self, sentence: str) -> None:
        """Prints a sentence to standard error."""
        # One write, so that a line that another thread logs meanwhile does not end up inside the sentence.
        self.errors.write(sentence + "\n")
        self.errors.flush()

    def finish(self) -> None:
        """Hands over what was printed. A reader that went away, as `head` does, has seen what it wanted.

        Raises:
          RunFailedError: it cannot be written.
        """
        self.output.flush()
        failure = self.output.failure
        if failure is not None and not isinstance(failure, BrokenPipeError):
            raise RunFailedError(f"What this command prints cannot be written ({failure.strerror}).")

    @contextlib.contextmanager
    def listening(self, *, quiet: bool, level: str | None) -> Iterator[None]:
        """Lets the code in the block print and log.

        Args:
          quiet: nothing is printed, and nothing but errors is logged.
          level: the least level of what is logged, of all loggers; None: warnings, and of Beam's nothing.
        """
        # Beam logs every attempt at a step that fails; the user gets one sentence instead. These levels stay, because
        # threads of Beam's complain about each other when all is done.
        for name, usual in (("apache_beam", logging.CRITICAL), ("urllib3.connectionpool", logging.ERROR)):
            logging.getLogger(name).setLevel(level or usual)
        root = logging.getLogger()
        handlers, before = list(root.handlers), root.level
        if level is not None or quiet:
            handler = logging.StreamHandler(self.errors)
            handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
            root.addHandler(handler)
            root.setLevel(level or logging.ERROR)
        try:
            if quiet:
                with contextlib.redirect_stdout(Stream(None)), contextlib.redirect_stderr(Stream(None)):
                    yield
            else:
                yield
        finally:
            root.handlers[:] = handlers
            root.setLevel(before)


@contextlib.contextmanager
def opened() -> Iterator[Console]:
    """Puts streams that do not fail in place of this process's."""
    console = Console(output=Stream(sys.stdout), errors=Stream(sys.stderr))
    with contextlib.redirect_stdout(console.output), contextlib.redirect_stderr(console.errors):
        yield console
