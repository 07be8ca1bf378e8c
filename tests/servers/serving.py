"""Runs the servers of tests on threads of this process."""

import contextlib
import ctypes
import http.server
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of mallopt(3)
_MOST = (1 << 31) - 1


class QuietServer(http.server.ThreadingHTTPServer):
    """Says nothing of clients that leave before an answer ends."""

    request_queue_size = 128

    def handle_error(self, request: Any, address: Any) -> None:
        pass


def keep_freed_memory() -> None:
    """Lets this process use again what it has freed: to clear what the system gives takes longer than to send it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for setting, value in ((_TRIM_THRESHOLD, _MOST), (_MMAP_MAX, 0), (_ARENA_MAX, 1)) if mallopt else ():
        mallopt(setting, value)


@contextlib.contextmanager
def served(server: socketserver.BaseServer) -> Iterator[None]:
    """Answers requests while the block runs."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
