"""A web server on this machine that plays a mirror of Wikimedia's dumps in both layouts, and misbehaves as it is told.

Names of files are real ones. What lies in a folder is shown as web servers show it.
"""

import bz2
import collections
import contextlib
import dataclasses
import hashlib
import html
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence

from maskmill.mirrors import wikimedia
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump
from servers.serving import QuietServer, served

Handler = http.server.BaseHTTPRequestHandler
# Told what a GET would be answered with; answers itself and returns True, or returns False.
Fault = Callable[[Handler, bytes, dict[str, str]], bool]

# The parts of enwiki of March 2026, by the pages in them; their names differ only in date and kind.
ENWIKI_PARTS = ("1.xml-p1p41242", "2.xml-p41243p151573", "3.xml-p151574p311329", "11.xml-p311330p7054859")
ENWIKI_RANGES = ("p10p1147431", "p1147435p20110389", "p20110420p21500133")


@dataclasses.dataclass(frozen=True)
class Request:
    """What a client asked for: a path, without a slash at the beginning; headers as they were sent."""

    path: str
    headers: Mapping[str, str]

    @property
    def part(self) -> str:
        """The range that was asked for; empty where the whole file was."""
        return self.headers.get("Range", "").removeprefix("bytes=")


class Mirror:
    """Files by path, what was asked for, and what is to go wrong.

    Attributes:
      url: where it is.
      files: content by path, without a slash at the beginning.
      requests: those that came, in their order.
      takes_ranges: whether parts of files can be asked for.
      pace: seconds between two blocks of 8 KiB.
      always: a fault that each request meets first.
      early: how many requests came while `throttle` wanted none.
      most_at_once: how many files of dumps were sent at the same time, at most.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.requests: list[Request] = []
        self.takes_ranges = True
        self.pace = 0.0
        self.most_at_once = self._sending = 0
        self.always: Fault | None = None
        self.early = 0
        self._faults: dict[str, collections.deque[Fault]] = collections.defaultdict(collections.deque)
        self._lock = threading.Lock()

    def fail(self, name: str, *faults: Fault) -> None:
        """The next requests of a file, by its base name, meet these faults, one each."""
        self._faults[name].extend(faults)

    def clear(self) -> None:
        """No fault waits any more."""
        self._faults.clear()

    def fault(self, path: str) -> Fault | None:
        """The fault that a request of a file meets."""
        with self._lock:
            waiting = self._faults[path.rsplit("/", 1)[-1]]
            return waiting.popleft() if waiting else None

    def asked(self, name: str) -> list[Request]:
        """The requests of a file, by its base name."""
        return [request for request in self.requests if request.path.rsplit("/", 1)[-1] == name]

    @contextlib.contextmanager
    def sending(self, path: str) -> Iterator[None]:
        """Counts the files of dumps that are sent at the same time."""
        counts = ".xml" in path
        with self._lock:
            self._sending += counts
            self.most_at_once = max(self.most_at_once, self._sending)
        try:
            yield
        finally:
            with self._lock:
                self._sending -= counts

    def throttle(self, seconds: int) -> Fault:
        """Wants to be left alone for so long; requests that come earlier count."""
        until = 0.0

        def fault(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
            nonlocal until
            self.early += time.time() < until
            until = time.time() + seconds
            return status(429, Retry_After=str(seconds))(handler, content, headers)

        return fault

    def publish(self, folder: str, contents: Mapping[str, bytes]) -> None:
        """Puts files into a folder."""
        self.files |= {f"{folder}/{name}": content for name, content in contents.items()}

    def publish_classic(
        self,
        wiki: str,
        date: str,
        contents: Mapping[str, bytes],
        *,
        job: str = "articlesmultistreamdump",
        statuses: Mapping[str, str] | None = None,
        sums: bool = True,
    ) -> str:
        """Puts files into WIKI/YYYYMMDD/ with what says that they are complete; returns the folder.

        statuses: of jobs, by their names; else done.
        """
        day = date.replace("-", "")
        folder = f"{wiki}/{day}"
        listed = {
            name: {
                "size": len(content),
                "url": f"/{folder}/{name}",
                "md5": hashlib.md5(content).hexdigest(),
                "sha1": hashlib.sha1(content).hexdigest(),
            }
            for name, content in contents.items()
        }
        jobs = {
            "sitestatstable": {
                "status": "done",
                "updated": "2026-03-01 08:02:11",
                "files": {f"{wiki}-{day}-site_stats.sql.gz": {"size": 1, "url": "", "md5": "", "sha1": ""}},
            },
            "metahistory7zdump": {"status": "waiting", "updated": ""},
            job: {"status": "done", "updated": "2026-03-02 11:24:53", "files": listed},
        }
        for name, status in (statuses or {}).items():
            jobs.setdefault(name, {"updated": ""})["status"] = status
        self.publish(folder, {**contents, "dumpstatus.json": json.dumps({"version": "0.8", "jobs": jobs}).encode()})
        if sums:
            lines = "".join(f"{entry['sha1']}  {name}\n" for name, entry in listed.items())
            self.publish(folder, {f"{wiki}-{day}-sha1sums.txt": lines.encode()})
        return folder

    def publish_content(self, wiki: str, date: str, contents: Mapping[str, bytes], *, success: bool = True) -> str:
        """Puts files into other/mediawiki_content_current/WIKI/DATE/xml/bzip2/ with their sums; returns the folder."""
        folder = f"other/mediawiki_content_current/{wiki}/{date}/xml/bzip2"
        self.publish(folder, {**contents, "SHA256SUMS": sha256_sums(contents)})
        if success:
            self.publish(folder, {"_SUCCESS": b""})
        return folder

    def page_of(self, path: str) -> bytes | None:
        """The page that lists a folder; None where there is no such folder."""
        below = [name.removeprefix(path) for name in sorted(self.files) if name.startswith(path) and name != path]
        folders = sorted({name.split("/")[0] + "/" for name in below if "/" in name})
        names = [name for name in below if "/" not in name]
        if not below:
            return None
        # As nginx and Apache do: links to other orders and to the parent, and names that are cut in what is shown.
        links = ["?C=N;O=D", "../", *map(urllib.parse.quote, folders + names)]
        lines = "\n".join(
            f'<a href="{html.escape(link)}">{link[:50]}..&gt;</a>  01-Mar-2026 08:02  1.0K' for link in links
        )
        return f"<html><body><pre>{lines}</pre></body></html>".encode()


def sha256_sums(contents: Mapping[str, bytes]) -> bytes:
    """What sha256sum writes of files."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items()).encode()


def classic_files(wiki: str, date: str, dumps: Sequence[bytes]) -> dict[str, bytes]:
    """The multistream files of a dump and their indexes, by the names that Wikimedia gives them: one file, or parts."""
    start = f"{wiki}-{date.replace('-', '')}-pages-articles-multistream"
    index = bz2.compress(b"638:10:AccessibleComputing\n638:12:Anarchism\n")
    if len(dumps) == 1:
        return {f"{start}.xml.bz2": dumps[0], f"{start}-index.txt.bz2": index}
    found = {}
    for part, dump in zip(ENWIKI_PARTS, dumps, strict=False):
        found[f"{start}{part}.bz2"] = dump
        found[f"{start}-index{part.replace('.xml', '.txt')}.bz2"] = index
    return found


def content_files(wiki: str, date: str, dumps: Sequence[bytes]) -> dict[str, bytes]:
    """The files of a dump of the new layout, by the names that Wikimedia gives them."""
    return {f"{wiki}-{date}-{pages}.xml.bz2": dump for pages, dump in zip(ENWIKI_RANGES, dumps, strict=False)}


def status(code: int, **headers: str) -> Fault:
    """Answers with a status and these headers (_ stands for -)."""

    def fault(handler: Handler, content: bytes, _: dict[str, str]) -> bool:
        _send(handler, code, b"", {"Content-Length": "0", **{n.replace("_", "-"): v for n, v in headers.items()}})
        return True

    return fault


def cut(share: float = 0.5) -> Fault:
    """Sends so much of what was asked for, then closes the connection."""

    def fault(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
        _send(handler, _status_of(headers), content[: int(len(content) * share)], headers)
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        return True

    return fault


def stall(seconds: float) -> Fault:
    """Sends half of what was asked for, and nothing more for so long."""

    def fault(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
        _send(handler, _status_of(headers), content[: len(content) // 2], headers)
        time.sleep(seconds)
        handler.close_connection = True
        return True

    return fault


def damage(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Sends other bytes, of the same length."""
    _send(handler, _status_of(headers), bytes(byte ^ 0x55 for byte in content), headers)
    return True


def wrong_part(handler: Handler, content: bytes, headers: dict[str, str]) -> bool:
    """Says that it sends the bytes beside those that were asked for."""
    first, last, size = re.findall(r"\d+", headers["Content-Range"])
    _send(handler, 206, content, headers | {"Content-Range": f"bytes {int(first) + 1}-{int(last) + 1}/{size}"})
    return True


@contextlib.contextmanager
def serve() -> Iterator[Mirror]:
    """Runs a mirror on loopback."""

    class Answer(Handler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait for the client's word that it has the headers

        def do_GET(self) -> None:
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
            mirror.requests.append(Request(path, dict(self.headers)))
            content = mirror.files.get(path)
            if content is None and (path.endswith("/") or not path):
                content = mirror.page_of(path)
            if content is None:
                self.send_error(404)
                return
            headers: dict[str, str] = {}
            content = self._part(content, headers)
            headers.setdefault("Content-Length", str(len(content)))
            fault = mirror.fault(path)
            if mirror.always is not None and mirror.always(self, content, headers):
                return
            with mirror.sending(path):
                if fault is None or not fault(self, content, headers):
                    _send(self, _status_of(headers), content, headers, mirror.pace)

        def _part(self, content: bytes, headers: dict[str, str]) -> bytes:
            """The part that was asked for."""
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if asked is None or not mirror.takes_ranges:
                return content
            first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
            if first >= len(content):
                headers |= {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"}
                return b""
            headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            return content[first : last + 1]

        def log_message(self, *_: object) -> None:
            pass

    server = QuietServer(("127.0.0.1", 0), Answer)
    mirror = Mirror(f"http://127.0.0.1:{server.server_address[1]}")
    with served(server):
        yield mirror


def _status_of(headers: Mapping[str, str]) -> int:
    """The status of an answer with these headers."""
    if "Content-Range" not in headers:
        return 200
    return 416 if headers["Content-Range"].startswith("bytes */") else 206


def _send(handler: Handler, code: int, content: bytes, headers: Mapping[str, str], pace: float = 0.0) -> None:
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    block = 8192 if pace else max(1, len(content))
    for start in range(0, len(content), block):
        handler.wfile.write(content[start : start + block])
        time.sleep(pace)


class Looks:
    """What is found on a mirror.

    Attributes:
      dumps: newest first.
      said: the lines about those that do not count.
    """

    def __init__(self, source: str, client: MirrorClient, layout: str = "auto", wiki: str | None = "enwiki") -> None:
        self.said: list[str] = []
        self.dumps = list(wikimedia.find_dumps(source, wiki=wiki, layout=layout, client=client, say=self.said.append))

    @property
    def dates(self) -> list[str]:
        """The dates of the dumps."""
        return [dump.date for dump in self.dumps]

    @property
    def names(self) -> list[list[str]]:
        """The names of the dumps' files."""
        return [[file.name for file in dump.files] for dump in self.dumps]

    @property
    def newest(self) -> Dump:
        """The newest dump; there must be one."""
        return self.dumps[0]
