"""A web server on this machine that serves files from memory, in parts, and misbehaves as it is told."""

import collections
import contextlib
import dataclasses
import hashlib
import http.server
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

from servers.serving import QuietServer, served

Handler = http.server.BaseHTTPRequestHandler
_LOOK = "0-0"  # the part by which a client asks how large a file is


@dataclasses.dataclass(frozen=True)
class Request:
    """What a client asked for: part is the Range header without "bytes=", "" where there is none."""

    method: str
    name: str
    part: str
    headers: dict[str, str]


class FileServer:
    """Files by name, what was asked for, and what is to go wrong.

    Attributes:
      files: content by name, without a slash at the beginning.
      requests: those that came, in their order.
      faults: each of the next requests but looks takes one: it answers itself and returns True, or returns False.
      always: as a fault, for each such request.
      knows_ranges, has_etags: what the server can do.
      delay: seconds before each answer.
      connections: how many were made.
      most_at_once: how many requests were answered at the same time, at most.
      url: where it is.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.faults: collections.deque[Fault] = collections.deque()
        self.always: Fault | None = None
        self.knows_ranges = self.has_etags = True
        self.delay = 0.0
        self.connections = 0
        self.answering = self.most_at_once = 0
        self.lock = threading.Lock()

    def parts(self, name: str) -> list[str]:
        """The parts of a file that were asked for, but for looks at its first byte."""
        return [request.part for request in self.requests if request.name == name and request.part != _LOOK]


Fault = Callable[[Handler, bytes, dict[str, str]], bool]


def status(code: int, **headers: str) -> Fault:
    """Answers with a status and these headers (_ stands for -)."""

    def fault(handler: Handler, content: bytes, _: dict[str, str]) -> bool:
        handler.send_response(code)
        for name, value in {"Content-Length": "0", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        return True

    return fault


def cut(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Sends half of what was asked for, then closes the connection."""
    _send(handler, content[: len(content) // 2], headers)
    handler.close_connection = True
    return True


def hang_up(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Closes the connection without an answer."""
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True
    return True


def wrong_part(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Says that it sends the bytes beside those that were asked for."""
    first, last, size = re.findall(r"\d+", headers["Content-Range"])
    _send(handler, content, headers | {"Content-Range": f"bytes {int(first) + 1}-{int(last) + 1}/{size}"})
    return True


def short_part(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Sends less than was asked for, and says so."""
    first, _, size = map(int, re.findall(r"\d+", headers["Content-Range"]))
    half = content[: (len(content) + 1) // 2]
    part = {"Content-Length": str(len(half)), "Content-Range": f"bytes {first}-{first + len(half) - 1}/{size}"}
    _send(handler, half, headers | part)
    return True


def nonsense(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Answers in no HTTP."""
    handler.wfile.write(b"220 mail.example.org ESMTP\r\n\r\n")
    handler.close_connection = True
    return True


def damage(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Sends other bytes, of the same length."""
    _send(handler, bytes(byte ^ 0x55 for byte in content), headers)
    return True


def stall(seconds: float) -> Fault:
    """Sends half of what was asked for, and nothing more for so long."""

    def fault(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
        _send(handler, content[: len(content) // 2], headers)
        time.sleep(seconds)
        handler.close_connection = True
        return True

    return fault


def no_fault(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Lets the server answer."""
    return False


@contextlib.contextmanager
def serve(certificate: Path | None = None) -> Iterator[FileServer]:
    """Runs a server on loopback. certificate: its key and certificate, for https."""

    class Answer(Handler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait for the client's word that it has the headers

        def setup(self) -> None:
            super().setup()
            files.connections += 1

        def do_GET(self) -> None:
            name = self._note()
            with files.lock:
                files.answering += 1
                files.most_at_once = max(files.most_at_once, files.answering)
            time.sleep(files.delay)
            with files.lock:
                files.answering -= 1
            content = files.files.get(name)
            if content is None:
                self.send_error(404)
                return
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'} if files.has_etags else {}
            if asked and files.knows_ranges:
                first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
                headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
                content = content[first : last + 1]
            headers["Content-Length"] = str(len(content))
            is_look = self.headers.get("Range") == f"bytes={_LOOK}"
            faults = [files.faults.popleft()] if files.faults and not is_look else []
            faults += [files.always] if files.always and not is_look else []
            if not any(fault(self, content, headers) for fault in faults):
                _send(self, content, headers)

        def _note(self) -> str:
            name = urllib.parse.unquote(self.path).removeprefix(files.url).lstrip("/")
            part = self.headers.get("Range", "").removeprefix("bytes=")
            files.requests.append(Request(self.command, name, part, dict(self.headers)))
            return name

        def log_message(self, *_: object) -> None:
            pass

    server = QuietServer(("127.0.0.1", 0), Answer)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    files = FileServer(f"{scheme}://127.0.0.1:{server.server_address[1]}")
    with served(server):
        yield files


def _send(handler: Handler, content: bytes, headers: dict[str, str]) -> None:
    handler.send_response(206 if "Content-Range" in headers else 200)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)
