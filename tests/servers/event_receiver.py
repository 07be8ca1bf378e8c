"""A web server on this machine that takes POSTs, keeps them, and refuses or delays them as it is told."""

import collections
import contextlib
import dataclasses
import http.server
import json
import time
from collections.abc import Iterator
from typing import Any

from servers.serving import QuietServer, served


@dataclasses.dataclass(frozen=True)
class Received:
    """A POST: its path, its headers by name, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """What came, and what is to go wrong.

    Attributes:
      url: where it is.
      received: the POSTs, in their order.
      statuses: each of the next POSTs takes one; without, it is 200.
      headers: of all answers.
      delay: seconds before each answer.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.received: list[Received] = []
        self.statuses: collections.deque[int] = collections.deque()
        self.headers: dict[str, str] = {}
        self.delay = 0.0


@contextlib.contextmanager
def receive() -> Iterator[Receiver]:
    """Runs a server on loopback."""

    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait for the client's word that it has the headers

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, dict(self.headers), body))
            time.sleep(receiver.delay)
            self.send_response(receiver.statuses.popleft() if receiver.statuses else 200)
            for name, value in {"Content-Length": "0", **receiver.headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(QuietServer):
        daemon_threads = True
        block_on_close = False  # a delayed answer does not delay the test

    server = Server(("127.0.0.1", 0), Answer)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}/hook")
    with served(server):
        yield receiver
