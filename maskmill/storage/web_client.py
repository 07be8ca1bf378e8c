"""HTTP requests over urllib3: patience with servers that fail for a while, and one set of errors."""

import contextlib
import dataclasses
import email.utils
import logging
import os
import random
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import urllib3

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage.files import ChangedError, DeniedError
from maskmill.storage.network import cause_of, delays, plain
from maskmill.storage.paths import is_web

T = TypeVar("T")

_log = logging.getLogger(__name__)

# How long a server may fail before the run ends. One that has never answered may be none.
PATIENCE = 120.0
FIRST_PATIENCE = 5.0
_UNTOLD = 10.0  # seconds for which nobody is told that a server is waited for
SILENCE = 20.0  # seconds without a byte after which a request is made again
_FIRST_DELAY, _MOST_DELAY = 0.1, 15.0  # seconds between two tries
_LONGEST_WAIT = 60.0  # of what a server asks for
_MOST_REDIRECTS = 5
_MOST_UNWANTED = 4096  # bytes of an answer that are read though nobody wants them
_MOST_KEPT = 64  # connections to a server
_REDIRECTS = {301, 302, 303, 307, 308}
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_DENIED = {401, 403}
_MISSING = {404, 410}
_USER_AGENT = "maskmill"
_FAILING = (
    "{host} does not deliver this file ({error}); check the network, and once the server answers, run the same command "
    "again."
)
_DENIED_ACCESS = (
    "the server refuses access to this file ({error}); check the address, or download the data set and open the copy."
)
_MISSING_FILE = "there is no such file; check the address."


class TransientError(Exception):
    """A request failed in a way that may pass. The text says how, as part of a sentence.

    Attributes:
      wait: how many seconds the server wants to be left alone.
      progressed: whether the request brought something.
      server: which one failed; None where the first one did, before any redirect.
    """

    def __init__(
        self, text: str, *, wait: float = 0.0, progressed: bool = False, server: "Server | None" = None
    ) -> None:
        super().__init__(text)
        self.wait = wait
        self.progressed = progressed
        self.server = server


class RefusedError(UnusableInputError):
    """The server does not take such a request. status: its HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Server:
    """Where a connection goes."""

    scheme: str
    host: str
    port: int | None


def status_of(response: urllib3.BaseHTTPResponse) -> str:
    """The status of an answer as part of a sentence."""
    return f"{response.status} {response.reason}".rstrip()


class WebClient:
    """Makes requests, each over a connection of its own while it lasts. For any number of threads."""

    def __init__(
        self,
        *,
        patience: float = PATIENCE,
        silence: float = SILENCE,
        longest_wait: float = _LONGEST_WAIT,
    ) -> None:
        """Connects to nothing yet.

        Args:
          patience: for how many seconds a server that has answered once may fail.
          silence: after how many seconds without a byte a request is made again.
          longest_wait: seconds for which a server is left alone, at most, where it asks for that.
        """
        self._patience = patience
        self._silence = silence
        self._longest_wait = longest_wait
        self._lock = threading.Lock()
        self._pools: dict[tuple[int, str, str], urllib3.PoolManager] = {}  # by process, scheme and proxy
        self._answered: set[Server] = set()
        self._told: set[Server] = set()  # of those that are waited for
        self._closed = threading.Event()
        self._proxies = urllib.request.getproxies()

    def close(self) -> None:
        """Closes idle connections and ends waits; requests that wait raise RunFailedError."""
        self._closed.set()
        with self._lock:
            pools, self._pools = self._pools, {}
        for pool in pools.values():
            pool.clear()

    def patiently(self, path: str, url: str, attempt: Callable[[], T]) -> T:
        """Calls `attempt` until it raises no TransientError, with waits in between that grow; long ones are logged.

        Raises:
          RunFailedError: the server has failed for too long.
        """
        first = _server_of(url)
        waits, failing_since = delays(_FIRST_DELAY, _MOST_DELAY), None
        while True:
            try:
                result = attempt()
            except TransientError as error:
                now, server = time.monotonic(), error.server or first
                if error.progressed or failing_since is None:
                    waits, failing_since = delays(_FIRST_DELAY, _MOST_DELAY), now
                # Many clients that a server has refused at once should not come back at once.
                pause = max(next(waits) * random.uniform(0.5, 1.0), min(error.wait, self._longest_wait))
                patience = self._patience if server in self._answered else min(FIRST_PATIENCE, self._patience)
                if now + pause - failing_since > patience:
                    raise RunFailedError(f"{path}: {_FAILING.format(host=server.host, error=error)}") from error
                if now + pause - failing_since > _UNTOLD and server not in self._told:
                    self._told.add(server)
                    _log.warning(
                        "%s: %s does not deliver this file (%s); it is asked again for up to %.0f seconds.",
                        path, server.host, error, patience - (now - failing_since),
                    )  # fmt: skip
                if self._closed.wait(pause):
                    raise RunFailedError(f"{path}: this file was closed while it was read ({error}).") from error
            else:
                if failing_since is not None:
                    self._told.discard(server)
                return result

    @contextlib.contextmanager
    def answer(
        self, path: str, method: str, url: str, headers: Mapping[str, str]
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Makes one request, follows redirects, and gives a successful answer.

        Args:
          path: the file, for messages.
          method: as GET or HEAD.
          url: http:// or https://.
          headers: sent with it; Authorization goes only to the server of `url`.

        Raises:
          TransientError: no answer, or one that may be another the next time; also for what the block raises when the
            connection fails.
          DeniedError: access is refused.
          MissingFileError: there is no such file.
          ChangedError: the file is not the one that the request names.
          RefusedError: the server does not take such a request.
        """
        sent = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity", **headers}
        for _ in range(_MOST_REDIRECTS + 1):
            server = _server_of(url)
            with self._exchange(path, method, url, sent) as response:
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None:
                    self._check_status(path, server, response)
                    yield response
                    return
            url = urllib.parse.urljoin(url, location)
            if not is_web(url):
                break
            if _server_of(url) != server:
                sent.pop("Authorization", None)
        raise UnusableInputError(f"{path}: this address leads nowhere (its redirects end at {url}); correct it.")

    @contextlib.contextmanager
    def _exchange(
        self, path: str, method: str, url: str, headers: Mapping[str, str]
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Make one request and give whatever is answered; the connection is kept if the exchange ends as it should.

        Raises:
          TransientError: no answer, or one that ends too early.
          UnusableInputError: the server's certificate is not trusted.
        """
        server, response = _server_of(url), None
        silence = self._silence if server in self._answered else min(FIRST_PATIENCE, self._silence)
        try:
            response = self._pool(server).urlopen(
                method, url, headers=headers, retries=False, redirect=False, timeout=silence,
                preload_content=False, decode_content=False, enforce_content_length=False,
            )  # fmt: skip
            self._answered.add(server)
            yield response
            if response.length_remaining is not None and response.length_remaining <= _MOST_UNWANTED:
                response.drain_conn()  # so that the connection can be used again
        except TransientError as error:
            error.server = server
            raise
        except urllib3.exceptions.HTTPError as error:
            cause = cause_of(error)
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise UnusableInputError(
                    f"{path}: the certificate of {server.host} is not trusted ({cause.verify_message}); check the "
                    "address."
                ) from error
            raise TransientError(plain(error), server=server) from error
        finally:
            if response is not None:
                if response.closed:
                    response.release_conn()
                else:
                    response.close()

    def _check_status(self, path: str, server: Server, response: urllib3.BaseHTTPResponse) -> None:
        """Raises what a status means that is no success."""
        if response.status < HTTPStatus.MULTIPLE_CHOICES:
            return
        text = status_of(response)
        if response.status in _TRY_AGAIN:
            raise TransientError(text, wait=seconds_of(response.headers.get("Retry-After", "")))
        if response.status in _DENIED:
            raise DeniedError(f"{path}: {_DENIED_ACCESS.format(error=text)}", text)
        if response.status in _MISSING:
            raise MissingFileError(f"{path}: {_MISSING_FILE}")
        if response.status == HTTPStatus.PRECONDITION_FAILED:
            raise ChangedError(path)
        raise RefusedError(
            f"{path}: {server.host} refuses to deliver this file ({text}); check the address.", response.status
        )

    def _pool(self, server: Server) -> urllib3.PoolManager:
        """The connections to a server, through its proxy if it has one. A forked process must not use its parent's."""
        proxy = "" if urllib.request.proxy_bypass(server.host) else self._proxies.get(server.scheme, "")
        key = os.getpid(), server.scheme, proxy
        with self._lock:
            pool = self._pools.get(key)
            if pool is None:
                settings: dict[str, Any] = {"maxsize": _MOST_KEPT}
                if server.scheme == "https":
                    settings["ssl_context"] = ssl.create_default_context()
                if proxy:
                    url = urllib3.util.parse_url(proxy if "//" in proxy else f"http://{proxy}")
                    account = urllib.parse.unquote(url.auth) if url.auth else None
                    basic = urllib3.util.make_headers(proxy_basic_auth=account)
                    told = {name.title(): value for name, value in basic.items()}
                    pool = urllib3.ProxyManager(url.url, proxy_headers=told, **settings)
                else:
                    pool = urllib3.PoolManager(**settings)
                self._pools[key] = pool
        return pool


def _server_of(url: str) -> Server:
    parts = urllib.parse.urlsplit(url)
    return Server(parts.scheme, parts.hostname or "", parts.port)


def seconds_of(retry_after: str) -> float:
    """The seconds from now that a Retry-After header means: a number, or a date (RFC 9110, section 10.2.3)."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        moment = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max(0.0, moment.timestamp() - time.time())
