"""Read files on web servers with Range requests, with urllib3, which follows redirects and retries."""

import contextlib
import os
import re
import ssl
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus

import urllib3

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage.files import ChangedError, DeniedError, FileInfo
from maskmill.storage.network import plain
from maskmill.storage.stores import Store

_SILENCE = 20.0  # seconds without a byte after which a request is repeated
_MOST_CONNECTIONS = 64  # to a server
_MOST_UNUSED = 4096  # bytes of an answer that are read only to use the connection again
_READS = 5  # of a part in a row whose answers bring no bytes, before giving up
# Together the pauses are some two minutes; fewer before a server first answers, as the address may be wrong.
_RETRIES = urllib3.Retry(
    13, redirect=5, status_forcelist={408, 425, 429, 500, 502, 503, 504}, raise_on_status=False,
    backoff_factor=0.1, backoff_max=15, backoff_jitter=0.1, retry_after_max=60,
)  # fmt: skip
_FIRST_RETRIES = _RETRIES.new(total=5)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


class WebStore(Store):
    """Files on web servers. `version` is an entity tag or a time; "" if the server sends neither."""

    def __init__(self) -> None:
        """Send no request yet."""
        self._pools: dict[tuple[int, str], urllib3.PoolManager] = {}  # by process and proxy
        self._lock = threading.Lock()
        self._answered: set[str] = set()  # servers that have answered
        self._proxies = urllib.request.getproxies()

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        # A GET of one byte: an address may be signed for GET only, and a server may not support HEAD.
        with contextlib.suppress(MissingFileError), self._answer(path, "bytes=0-0", fresh=fresh) as response:
            total = response.headers.get("Content-Range", "").rpartition("/")[2]
            size = total or response.headers.get("Content-Length", "")
            if not size.isdecimal():
                raise UnusableInputError(f"{path}: the server does not say how large this file is; copy it from there.")
            return FileInfo(path=path, size=int(size), version=_version(response))
        return None

    def read(self, file: FileInfo, start: int, end: int, *, fresh: bool = False) -> bytearray:
        """Return bytes of a file; if an answer is cut, request the rest."""
        content, left, why = bytearray(), _READS, ""
        while len(content) < end - start:
            if not left:
                raise _failing(file.path, urllib.parse.urlsplit(file.path).hostname, why)
            before = len(content)
            with self._answer(file.path, f"bytes={start + before}-{end - 1}", fresh=fresh) as response:
                if _is_part(file, response, start + before, end):
                    if _version(response) != file.version:
                        raise ChangedError(file.path)
                    why = _read_into(content, response, end - start)
                else:
                    why = "it sends other bytes than were asked for"
            left = _READS if len(content) > before else left - 1
        return content

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return the file itself, as web servers do not list files."""
        if "*" in pattern:
            raise UnusableInputError(
                f"{pattern}: web servers do not list files; name a data set's directory, or the files one by one."
            )
        return [FileInfo(path=pattern, size=0)]

    @contextlib.contextmanager
    def _answer(self, path: str, part: str, *, fresh: bool) -> Iterator[urllib3.BaseHTTPResponse]:
        """Request a part of a file and yield a successful answer.

        part: the value of the header Range. fresh: not from a proxy's cache, which may be damaged.

        Raises:
          RunFailedError: the server fails, or does not answer.
          UnusableInputError: the file cannot be read.
        """
        url = urllib.parse.quote(path, safe="%/:=&?~+!$,;'@()*[]")
        server = urllib.parse.urlsplit(url)
        headers = {"User-Agent": "maskmill", "Accept-Encoding": "identity", "Range": part}
        headers |= {"Cache-Control": "no-cache"} if fresh else {}
        try:
            response = self._pool(server).request(
                "GET", url, headers=headers, timeout=_SILENCE, preload_content=False, decode_content=False,
                retries=_RETRIES if server.netloc in self._answered else _FIRST_RETRIES,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            raise _common_error(path, error) from error
        self._answered.add(server.netloc)
        try:
            _check_status(path, response)
            yield response
            if response.length_remaining is not None and response.length_remaining <= _MOST_UNUSED:
                response.drain_conn()  # so that the connection can be used again
        finally:
            response.close()

    def _pool(self, server: urllib.parse.SplitResult) -> urllib3.PoolManager:
        """Return the connections to a server, through its proxy if there is one. A fork must not use its parent's."""
        proxy = "" if urllib.request.proxy_bypass(server.hostname or "") else self._proxies.get(server.scheme, "")
        with self._lock:
            if (key := (os.getpid(), proxy)) not in self._pools:
                url = urllib3.util.parse_url(proxy if "//" in proxy else f"http://{proxy}") if proxy else None
                account = urllib.parse.unquote(url.auth) if url and url.auth else None
                headers = urllib3.util.make_headers(proxy_basic_auth=account)
                context = ssl.create_default_context()
                self._pools[key] = (
                    urllib3.ProxyManager(url.url, proxy_headers=headers, maxsize=_MOST_CONNECTIONS, ssl_context=context)
                    if url
                    else urllib3.PoolManager(maxsize=_MOST_CONNECTIONS, ssl_context=context)
                )
            return self._pools[key]


def _version(response: urllib3.BaseHTTPResponse) -> str:
    return response.headers.get("ETag") or response.headers.get("Last-Modified") or ""


def _read_into(content: bytearray, response: urllib3.BaseHTTPResponse, size: int) -> str:
    """Append an answer to `content`, up to `size` bytes in all; return the reason if the rest is missing."""
    try:
        while len(content) < size and (block := response.read1(size - len(content))):
            content += block
    except urllib3.exceptions.HTTPError as error:
        return plain(error)
    return "the connection was cut"


def _is_part(file: FileInfo, response: urllib3.BaseHTTPResponse, start: int, end: int) -> bool:
    """Return whether an answer has bytes of a file from `start` on.

    Raises:
      UnusableInputError: the server always sends whole files, or the file has another size now.
    """
    packing = response.headers.get("Content-Encoding", "identity")
    if packing != "identity":
        raise UnusableInputError(
            f"{file.path}: the server packs what it sends (Content-Encoding: {packing}), "
            "so parts cannot be asked for; switch that off for this folder."
        )
    if response.status == HTTPStatus.OK:
        if response.length_remaining not in (file.size, None):
            raise ChangedError(file.path)
        if (start, end) != (0, file.size):
            raise UnusableInputError(
                f"{file.path}: the server sends whole files where parts are asked for; use one that knows Range "
                "requests (nginx, Caddy, any object store), or copy the data set here."
            )
        return True
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != start or not start < int(found[2]) + 1 <= end:
        return False
    if found[3] not in ("*", str(file.size)):
        raise ChangedError(file.path)
    return True


def _check_status(path: str, response: urllib3.BaseHTTPResponse) -> None:
    """Raise the error for a status other than success."""
    status, text = response.status, f"{response.status} {response.reason}".rstrip()
    server = urllib.parse.urlsplit(response.url or path).hostname or urllib.parse.urlsplit(path).hostname
    is_empty = (
        status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and response.headers.get("Content-Range") == "bytes */0"
    )
    if status < HTTPStatus.MULTIPLE_CHOICES or is_empty:
        return
    if status in (401, 403):
        raise DeniedError(
            f"{path}: the server refuses access to this file ({text}); check the address, or download the data set "
            "and open the copy.",
            text,
        )
    if status in (404, 410):
        raise MissingFileError(f"{path}: there is no such file; check the address.")
    if status in _RETRIES.status_forcelist:
        raise _failing(path, server, text)
    raise UnusableInputError(f"{path}: {server} refuses to deliver this file ({text}); check the address.")


def _common_error(path: str, error: urllib3.exceptions.HTTPError) -> Exception:
    """Return the common error of stores for a request without an answer."""
    reason = getattr(error, "reason", None) or error
    certificate = next((one for one in reason.args if isinstance(one, ssl.SSLCertVerificationError)), None)
    server = getattr(getattr(error, "pool", None), "host", urllib.parse.urlsplit(path).hostname)
    if certificate is not None:
        return UnusableInputError(
            f"{path}: the certificate of {server} is not trusted ({certificate.verify_message}); check the address."
        )
    if isinstance(reason, urllib3.exceptions.ResponseError | urllib3.exceptions.LocationValueError):
        return UnusableInputError(f"{path}: this address leads nowhere ({plain(reason)}); correct it.")
    return _failing(path, server, plain(error))


def _failing(path: str, server: str | None, why: str) -> RunFailedError:
    return RunFailedError(
        f"{path}: {server} does not deliver this file ({why}); check the network, and once the server answers, run the "
        "same command again."
    )
