"""A server before the Cloud Storage emulator that answers each request after a delay, notes it, and can fail some."""

import contextlib
import dataclasses
import http.server
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence

from servers import cloud

# A request's number, from 0 (one for a bucket has none) → the status that it is answered with instead, as 429 or 503;
# None: it is passed on. CUT: it is passed on, and the connection is closed after half of the answer.
Fault = Callable[[int], int | None]
CUT = 0
_UPLOAD = re.compile("upload_id=([^&]*)")


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request: what was asked of which object (or prefix), when it began and ended, the bytes of both bodies.

    part: the bytes that were asked for, as in the header Range; of a listing, its page and what divides it.
    """

    kind: str
    name: str
    part: str
    start: float
    end: float
    sent: int
    received: int


class SlowStore:
    """The requests so far."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._uploads: dict[str, str] = {}  # the objects' names, by the addresses that parts of them are sent to
        self._lock = threading.Lock()
        self._count = 0

    def number(self) -> int:
        """The number of the next request, from 0."""
        with self._lock:
            self._count += 1
            return self._count - 1

    def note(self, asked: Asked) -> None:
        """Adds a request."""
        with self._lock:
            self.asked.append(asked)

    def name_of(self, address: str, name: str, answer: Mapping[str, str]) -> str:
        """The object's name, which only the first request of an upload in parts has; answer: its headers."""
        told = _UPLOAD.search(answer.get("Location", ""))
        sent_to = _UPLOAD.search(address)
        with self._lock:
            if told is not None:
                self._uploads[told[1]] = name
            return name if sent_to is None else self._uploads.get(sent_to[1], name)


def chain(asked: Sequence[Asked]) -> int:
    """The most requests that followed one upon another, each begun after the one before had ended."""
    length, free = 0, 0.0
    for request in sorted(asked, key=lambda a: a.end):
        if request.start >= free:
            length, free = length + 1, request.end
    return length


def repeated(asked: Sequence[Asked]) -> list[Asked]:
    """The requests that asked again for what nobody had written, or deleted, since somebody asked for it."""
    seen: dict[str, set[tuple[str, str]]] = {}  # by the name: what was asked of it
    again = []
    for request in sorted(asked, key=lambda a: a.end):
        if request.kind in ("write", "copy", "delete"):
            for name in [name for name in seen if request.name.startswith(name)]:
                seen[name] = {one for one in seen[name] if name != request.name and one[0] != "list"}
        elif (one := (request.kind, request.part)) in seen.setdefault(request.name, set()):
            again.append(request)
        else:
            seen[request.name].add(one)
    return again


def kind_of(method: str, path: str, body: bytes = b"") -> tuple[str, str]:
    """What a request of Cloud Storage's JSON or XML protocol asks for, and the object's name or the prefix."""
    address = urllib.parse.urlsplit(path)
    query = dict(urllib.parse.parse_qsl(address.query))
    parts = address.path.split("/o/", 1)
    if address.path.startswith("/upload/"):
        told = re.search(rb'"name": ?"([^"]+)"', body[:4096])  # an upload's description comes first
        return "write", query.get("name", "") or (told[1].decode() if told else "")
    if address.path.startswith("/batch/"):
        named = re.search(rb"^DELETE \S+/o/(\S+)", body, re.MULTILINE)  # the first of many
        return "delete", urllib.parse.unquote(named[1].decode()) if named else ""
    if method == "DELETE":
        return "delete", urllib.parse.unquote(parts[-1])
    if len(parts) == 2:
        kind = "copy" if method == "POST" else "read" if query.get("alt") == "media" else "look"
        return kind, urllib.parse.unquote(parts[1])
    if address.path.endswith("/o"):
        return "list", query.get("prefix", "")
    if address.path.startswith("/storage/"):
        return "bucket", ""
    return "read", urllib.parse.unquote(address.path.lstrip("/").partition("/")[2])


@contextlib.contextmanager
def slow_store(
    environment: Mapping[str, str], *, delay: float = 0.05, fault: Fault = lambda number: None
) -> Iterator[tuple[dict[str, str], SlowStore]]:
    """Runs the server before an emulator; gives the environment in which it is found, and the requests."""
    store, emulator = SlowStore(), environment["STORAGE_EMULATOR_HOST"]

    def answer(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        start, (kind, name) = time.monotonic(), kind_of(request.command, request.path, body)
        status = None if kind == "bucket" else fault(store.number())  # Google's library asks for it when it likes
        time.sleep(delay)
        result = cloud.json_answer({}, status) if status else cloud.forward(request, body, emulator)
        if status == CUT:
            result = result[0], result[1], result[2][: len(result[2]) // 2]
            request.close_connection = True
        name = store.name_of(request.path, name, result[1])
        part = request.headers.get("Range", "") or "&".join(re.findall("(?:delimiter|pageToken)=[^&]*", request.path))
        store.note(Asked(kind, name, part, start, time.monotonic(), len(body), len(result[2])))
        return result

    with cloud.server(answer) as url:
        yield {**environment, "STORAGE_EMULATOR_HOST": url}, store
