"""How far the download of a dump is: a line at its end that changes on a terminal, and a line a tenth elsewhere."""

import dataclasses
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from maskmill.mirrors.dumps import Dump
from maskmill.storage import files
from pipelines.terminal import console

_GIGABYTE = 1e9
_PAUSE = 0.5  # seconds between two changes of the line on a terminal
_TENTHS = 10


class DownloadProgress:
    """Shows how far a download is; its method `show` is called from the threads that download."""

    def __init__(self, dump: Dump, directory: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Shows nothing yet. directory: where to; files that are there count no more. clock: gives seconds."""
        self._name = f"{dump.wiki}-{dump.date}"
        self._directory = directory
        wanted = [file for file in dump.files if not files.exists(files.join(directory, file.name))]
        self._count = len(wanted)
        self._size = dataclasses.replace(dump, files=wanted).size
        self._clock = clock
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._shown = clock()
        self._tenth = 0
        self._stream = sys.stderr if isinstance(sys.stderr, console.Stream) and sys.stderr.isatty() else None

    def __enter__(self) -> "DownloadProgress":
        of_bytes = "" if self._size is None else f", {self._size / _GIGABYTE:,.2f} GB"
        count = "1 file" if self._count == 1 else f"{self._count} files"
        console.tell(f"download: {self._name}, {count}{of_bytes}, into {self._directory}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.unpin()

    def show(self, name: str, done: int, size: int | None) -> None:
        """Is told of the bytes of a file that are there."""
        with self._lock:
            self._done[name] = done
            everything = sum(self._done.values())
            if self._stream is not None:
                if self._clock() >= self._shown + _PAUSE:
                    self._shown = self._clock()
                    self._stream.pin([self._line(everything)])
            elif self._size:
                tenth = _TENTHS * everything // self._size
                if self._tenth < tenth < _TENTHS:
                    self._tenth = tenth
                    console.tell(self._line(everything))

    def _line(self, everything: int) -> str:
        share = f"{everything / _GIGABYTE:,.2f} GB" if not self._size else f"{everything / self._size:.0%}"
        return f"download: {share}"
