"""Runs the servers of tests on threads of this process."""

import contextlib
import http.server
import socketserver
import threading
from collections.abc import Iterator
from typing import Any


class QuietServer(http.server.ThreadingHTTPServer):
    """Says nothing of clients that leave before an answer ends."""

    request_queue_size = 128

    def handle_error(self, request: Any, address: Any) -> None:
        pass


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
