"""The streams of a command: results on standard output, one sentence for a failure on standard error."""

import contextlib
import dataclasses
import datetime
import io
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from maskmill.errors import RunFailedError
from maskmill.inspection.shown_text import shown

# The logger's name in lines that are printed rather than logged.
_LOGGER = "maskmill"
# `tell` logs here: a program sees warnings, as of any library, and the rest if it asks.
_NOTICES = logging.getLogger("maskmill.notices")
# Characters that may appear unescaped besides printable ones: ends of lines; colours, too; all that rich writes.
_PLAIN = re.compile(r"([\t\n\r\b])")
IN_COLOURS = re.compile(r"(\x1b\[[0-9;]*m|[\t\n\r\b])")
OF_RICH = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|[\t\n\r\b])")

# What takes a line of a summary.
Say = Callable[[str], None]


def json_line(message: str, *, level: str, logger: str = _LOGGER, **fields: Any) -> str:
    """Return a line of `--log_format json`; `fields` are further keys."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    record = {"time": now, "level": level, "logger": logger, "message": message, **fields}
    # In ASCII: independent of the stream's encoding, and without characters that readers take for line ends.
    return json.dumps(record, default=str) + "\n"


class Stream:
    """A text stream whose failures do not end the work of the command that prints to it.

    Attributes:
      failure: the error after which nothing more is written; None before.
      as_json: whether each line is written as a JSON object.
      print_above: prints lines above the bars at the bottom of the terminal; None without bars.
    """

    def __init__(self, stream: TextIO | None, *, as_json: bool = False) -> None:
        self._stream = stream
        self.failure: OSError | None = None
        self.as_json = as_json
        self.print_above: Callable[[str], None] | None = None
        self._lock = threading.Lock()
        self._unfinished = ""  # the beginning of a line, which is written once it is complete
        if isinstance(stream, io.TextIOWrapper):
            # A file's name may have characters that the terminal's encoding lacks, or bytes that are not characters.
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str, *, unescaped: re.Pattern[str] = _PLAIN) -> int:
        """Write a text, unless an earlier write has failed; escape control characters.

        unescaped: characters that stay as they are besides printable ones. All others may come from a file's name.
        """
        if not self.as_json:
            text = _visible(text, unescaped)
        if unescaped is OF_RICH or (not self.as_json and self.print_above is None):
            self._put(text)
            return len(text)
        with self._lock:
            whole, newline, self._unfinished = (self._unfinished + text).rpartition("\n")
        if newline and self.as_json:
            self._put("".join(json_line(line, level="INFO") for line in whole.split("\n") if line))
        elif newline and self.print_above is not None:
            self.print_above(whole)
        return len(text)

    def tell(self, message: str, *, level: str = "INFO", **fields: Any) -> None:
        """Write a line; as JSON it has the level and the fields, too."""
        # One write, so that a line that another thread logs meanwhile does not end up inside it.
        if self.as_json:
            self._put(json_line(message, level=level, **fields))
        else:
            self.write(message + "\n")
        self.flush()

    def stop_printing_above(self) -> None:
        """Stop printing above bars; first write the rest of a line."""
        self.print_above = None
        with self._lock:
            rest, self._unfinished = self._unfinished, ""
        if rest:
            self.write(rest)

    def _put(self, text: str) -> None:
        if self._stream is not None and self.failure is None:
            with self._noting():
                self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        if self._stream is not None and self.failure is None:
            with self._noting():
                self._stream.flush()

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = error
            # Discard the rest of the buffer; Python would complain about it at its exit.
            with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.fileno())

    def close(self) -> None:
        """Flush only: a library's log handler closes its stream, but others still write to it."""
        self.flush()

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def fileno(self) -> int:
        """Return the file descriptor. Raises OSError if there is none."""
        if self._stream is None:
            raise OSError("the stream is closed")
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _visible(text: str, unescaped: re.Pattern[str]) -> str:
    """Return a text with all characters escaped that are neither printable nor `unescaped`."""
    if text.isprintable():
        return text
    return "".join(part if unescaped.fullmatch(part) else shown(part) for part in unescaped.split(text))


class Coloured:
    """A stream for printers in colours: it escapes characters that are neither printable nor `unescaped`."""

    def __init__(self, stream: TextIO | Stream | None = None, unescaped: re.Pattern[str] = IN_COLOURS) -> None:
        """Wrap a stream; None: standard output."""
        self._stream = stream or sys.stdout
        self._unescaped = unescaped

    def write(self, text: str) -> int:
        """Write a text."""
        stream = self._stream
        return stream.write(text, unescaped=self._unescaped) if isinstance(stream, Stream) else stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Handler(logging.Handler):
    """Logs to a stream."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._to = stream
        self.formatter: logging.Formatter = logging.Formatter("%(levelname)s %(name)s: %(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            if self._to.as_json:
                trace = {"traceback": self.formatter.formatException(record.exc_info)} if record.exc_info else {}
                self._to.tell(record.getMessage(), level=record.levelname, logger=record.name, **trace)
            else:
                self._to.tell(self.format(record))
        except Exception:  # noqa: BLE001 - as in all handlers of logging: a bad message does not end the work
            self.handleError(record)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Console:
    """The streams of a command."""

    output: Stream
    errors: Stream

    def say(self, sentence: str) -> None:
        """Print the sentence of a failure to standard error."""
        self.errors.tell(shown(sentence), level="ERROR")

    def finish(self) -> None:
        """Flush the output. A reader that has gone away, such as `head`, has read all it needs.

        Raises:
          RunFailedError: the output cannot be written.
        """
        self.output.flush()
        failure = self.output.failure
        if failure is not None and not isinstance(failure, BrokenPipeError):
            raise RunFailedError(f"What this command prints cannot be written ({failure.strerror}).")

    @contextlib.contextmanager
    def listening(self, *, quiet: bool, level: str | None, keeps_output: bool = False) -> Iterator[None]:
        """Let the code in the block print and log.

        Args:
          quiet: print nothing, and log only errors.
          level: the lowest level that is logged, for all loggers; None: warnings, and nothing of Beam's.
          keeps_output: print standard output nonetheless.
        """
        # Beam logs every attempt at a step that fails; the user gets one sentence instead. These levels stay, because
        # Beam's threads complain about each other after the run.
        for name, usual in (("apache_beam", logging.CRITICAL), ("urllib3.connectionpool", logging.ERROR)):
            logging.getLogger(name).setLevel(level or usual)
        root = logging.getLogger()
        handlers, before = list(root.handlers), root.level
        if level is not None or quiet or self.errors.as_json:
            root.addHandler(_Handler(self.errors))
            root.setLevel(level or (logging.ERROR if quiet else logging.WARNING))
        logging.captureWarnings(self.errors.as_json)
        try:
            if quiet:
                nowhere = Stream(None, as_json=self.errors.as_json)
                output = self.output if keeps_output else nowhere
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(nowhere):
                    yield
            else:
                yield
        finally:
            logging.captureWarnings(False)
            root.handlers[:] = handlers
            root.setLevel(before)


@contextlib.contextmanager
def opened(*, as_json: bool = False) -> Iterator[Console]:
    """Replace this process's streams by streams that do not fail.

    as_json: whether each line on standard error is a JSON object.
    """
    console = Console(output=Stream(sys.stdout), errors=Stream(sys.stderr, as_json=as_json))
    with contextlib.redirect_stdout(console.output), contextlib.redirect_stderr(console.errors), showing():
        yield console


class _Notices(logging.Handler):
    """Print what `tell` logs to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        stream = sys.stderr if isinstance(sys.stderr, Stream) else Stream(sys.stderr)
        stream.tell(record.getMessage(), level=record.levelname, **record.fields)  # type: ignore[attr-defined]


@contextlib.contextmanager
def showing() -> Iterator[None]:
    """Print what `tell` logs, and the progress, while the block runs: for a command, or if a program asks."""
    if is_showing():
        yield
        return
    handler, before = _Notices(), _NOTICES.level
    _NOTICES.addHandler(handler)
    _NOTICES.setLevel(logging.INFO)
    _NOTICES.propagate = False
    try:
        yield
    finally:
        _NOTICES.removeHandler(handler)
        _NOTICES.setLevel(before)
        _NOTICES.propagate = True


def is_showing() -> bool:
    """Return whether notices and progress are printed."""
    return any(isinstance(handler, _Notices) for handler in _NOTICES.handlers)


def say(line: str) -> None:
    """Print a line of a summary, on a terminal in colours."""
    if sys.stdout.isatty():
        from rich.console import Console as Rich

        Rich(file=Coloured(), markup=False, emoji=False).print(shown(line), soft_wrap=True)  # type: ignore[arg-type]
    else:
        print(line, flush=True)


def reader_is_gone() -> bool:
    """Flush standard output; return whether its reader has gone away, such as `head` after its last line."""
    sys.stdout.flush()
    return isinstance(sys.stdout, Stream) and sys.stdout.failure is not None


def tell(message: str, *, level: str = "INFO", **fields: Any) -> None:
    """Log a line, which a command prints; with `--log_format json` it has the level and the fields, too."""
    _NOTICES.log(logging.getLevelNamesMapping()[level], message, extra={"fields": fields})


def bytes_text(size: float) -> str:
    """Return a number of bytes with three digits: `412 MB`."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= 0.9995 * factor:
            return f"{size / factor:.3g} {unit}" if size < 999.5 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size:.0f} bytes"
