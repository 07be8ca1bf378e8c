"""How far the download of a dump is."""

import dataclasses
import threading
from types import TracebackType

from maskmill.mirrors.dumps import Dump
from maskmill.storage import files
from pipelines.terminal import console
from pipelines.terminal.progress_display import Progress
from pipelines.terminal.progress_steps import Counter

_MEGABYTE = 10**6


class DownloadProgress:
    """Shows how far a download is; its method `show` is called from the threads that download."""

    def __init__(self, dump: Dump, directory: str) -> None:
        """Shows nothing yet. directory: where to; files that are there count no more."""
        wanted = [file for file in dump.files if not files.exists(files.join(directory, file.name))]
        self._size = dataclasses.replace(dump, files=wanted).size
        of_bytes = "" if self._size is None else f", {console.bytes_text(self._size)}"
        count = "1 file" if len(wanted) == 1 else f"{len(wanted)} files"
        self._heading = f"download: {dump.wiki}-{dump.date}, {count}{of_bytes}, into {directory}"
        self._step = Counter("download, MB")
        self._display = Progress([self._step], is_local=False)
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}

    def __enter__(self) -> "DownloadProgress":
        console.tell(self._heading)
        self._display.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.__exit__(kind, error, trace)

    def show(self, name: str, done: int, size: int | None) -> None:
        """Is told of the bytes of a file that are there."""
        with self._lock:
            self._done[name] = done
            everything = sum(self._done.values())
            if self._size:
                self._step.tell(everything // _MEGABYTE, -(-self._size // _MEGABYTE), everything)
