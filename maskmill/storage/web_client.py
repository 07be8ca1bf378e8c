"""HTTP requests that read: connections that are kept, and patience with servers that fail for a while."""

import base64
import contextlib
import dataclasses
import email.utils
import functools
import http.client
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
from typing import TypeVar

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError

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
_REDIRECTS = {301, 302, 303, 307, 308}
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_DENIED = {401, 403}
_MISSING = {404, 410}
_USER_AGENT = "maskmill"


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


class DeniedError(Exception):
    """The server wants credentials, or other ones: HTTP statuses 401 and 403. The text is the status."""


class RefusedError(UnusableInputError):
    """The server does not take such a request."""


@dataclasses.dataclass(frozen=True)
class Server:
    """Where a connection goes."""

    scheme: str
    host: str
    port: int | None


class WebClient:
    """Makes GET and HEAD requests, each over a connection of its own while it lasts. For any number of threads."""

    def __init__(
        self, *, patience: float = PATIENCE, silence: float = SILENCE, longest_wait: float = _LONGEST_WAIT
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
        self._idle: dict[Server, list[http.client.HTTPConnection]] = {}
        self._process = os.getpid()
        self._answered: set[Server] = set()
        self._told: set[Server] = set()  # of those that are waited for
        self._closed = threading.Event()
        self._proxies = urllib.request.getproxies()

    def close(self) -> None:
        """Closes idle connections and ends waits; requests that wait raise RunFailedError."""
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def patiently(self, path: str, url: str, attempt: Callable[[], T]) -> T:
        """Calls `attempt` until it raises no TransientError, with waits in between that grow; long ones are logged.

        Raises:
          RunFailedError: the server has failed for too long.
        """
        first = _server_of(url)
        delay, failing_since = _FIRST_DELAY, None
        while True:
            try:
                result = attempt()
            except TransientError as error:
                now, server = time.monotonic(), error.server or first
                if error.progressed or failing_since is None:
                    delay, failing_since = _FIRST_DELAY, now
                # Many clients that a server has refused at once should not come back at once.
                pause = max(delay * random.uniform(0.5, 1.0), min(error.wait, self._longest_wait))
                patience = self._patience if server in self._answered else min(FIRST_PATIENCE, self._patience)
                if now + pause - failing_since > patience:
                    raise RunFailedError(
                        f"{path}: {server.host} does not deliver this file ({error}); check the network, and once the "
                        "server answers, run the same command again."
                    ) from error
                if now + pause - failing_since > _UNTOLD and server not in self._told:
                    self._told.add(server)
                    _log.warning(
                        "%s: %s does not deliver this file (%s); it is asked again for up to %.0f seconds.",
                        path, server.host, error, patience - (now - failing_since),
                    )  # fmt: skip
                if self._closed.wait(pause):
                    raise RunFailedError(f"{path}: this file was closed while it was read ({error}).") from error
                delay = min(2 * delay, _MOST_DELAY)
            else:
                if failing_since is not None:
                    self._told.discard(server)
                return result

    @contextlib.contextmanager
    def answer(
        self, path: str, method: str, url: str, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """Makes one request, follows redirects, and gives a successful answer.

        Args:
          path: the file, for messages.
          method: GET or HEAD.
          url: http:// or https://.
          headers: sent with it; Authorization goes only to the server of `url`.

        Raises:
          TransientError: no answer, or one that may be another the next time; also for what the block raises when the
            connection fails.
          DeniedError: access is refused.
          MissingFileError: there is no such file.
          RefusedError: the server does not take such a request.
        """
        sent = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity", **headers}
        for _ in range(_MOST_REDIRECTS + 1):
            server = _server_of(url)
            with self._connection(path, server) as connection:
                target = url if server.scheme == "http" and self._proxy(server) else _target(url)
                connection.request(method, target, headers=sent | self._proxy_headers(server, "http"))
                response = connection.getresponse()
                self._answered.add(server)
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None:
                    _check_status(path, server, response)
                    yield response
                    location = None
                if response.length is not None and response.length <= _MOST_UNWANTED:
                    response.read()  # so that the connection can be used again
                if not response.isclosed():
                    connection.close()
            if location is None:
                return
            url = urllib.parse.urljoin(url, location)
            if not url.startswith(("http://", "https://")):
                break
            if _server_of(url) != server:
                sent.pop("Authorization", None)
        raise UnusableInputError(f"{path}: this address leads nowhere (its redirects end at {url}); correct it.")

    @contextlib.contextmanager
    def _connection(self, path: str, server: Server) -> Iterator[http.client.HTTPConnection]:
        """A connection that nobody else uses; it is kept if the exchange ended as it should."""
        connection, is_whole = self._take(server), False
        try:
            yield connection
            is_whole = connection.sock is not None
        except ssl.SSLCertVerificationError as error:
            raise UnusableInputError(
                f"{path}: the certificate of {server.host} is not trusted ({error.verify_message}); check the address."
            ) from error
        except TransientError as error:
            error.server = server
            raise
        except (OSError, http.client.HTTPException) as error:
            with self._lock:
                self._idle.pop(server, None)  # the server has probably closed them, too
            raise TransientError(_plain(error), server=server) from error
        finally:
            if is_whole and not self._closed.is_set():
                with self._lock:
                    self._idle.setdefault(server, []).append(connection)
            else:
                connection.close()

    def _take(self, server: Server) -> http.client.HTTPConnection:
        with self._lock:
            if self._process != os.getpid():
                # A forked process must not use the connections of its parent.
                self._process, self._idle = os.getpid(), {}
            if idle := self._idle.get(server):
                return idle.pop()
        silence = self._silence if server in self._answered else min(FIRST_PATIENCE, self._silence)
        proxy = self._proxy(server)
        to = _server_of(proxy) if proxy else server
        if server.scheme == "http":
            return http.client.HTTPConnection(to.host, to.port, timeout=silence)
        secure = http.client.HTTPSConnection(to.host, to.port, timeout=silence, context=self._tls)
        if proxy:
            secure.set_tunnel(server.host, server.port, headers=self._proxy_headers(server, "https"))
        return secure

    @functools.cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def _proxy(self, server: Server) -> str:
        """The address of the proxy before a server; "" where there is none."""
        proxy = self._proxies.get(server.scheme, "")
        if not proxy or urllib.request.proxy_bypass(server.host):
            return ""
        return proxy if "//" in proxy else f"//{proxy}"

    def _proxy_headers(self, server: Server, scheme: str) -> dict[str, str]:
        """What a proxy wants to be told where the server's scheme is this one."""
        url = urllib.parse.urlsplit(self._proxy(server) if server.scheme == scheme else "")
        if url.username is None:
            return {}
        account = f"{urllib.parse.unquote(url.username)}:{urllib.parse.unquote(url.password or '')}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(account.encode()).decode()}"}


def _server_of(url: str) -> Server:
    parts = urllib.parse.urlsplit(url)
    return Server(parts.scheme, parts.hostname or "", parts.port)


def _target(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _check_status(path: str, server: Server, response: http.client.HTTPResponse) -> None:
    """Raises what a status means that is no success."""
    if response.status < HTTPStatus.MULTIPLE_CHOICES:
        return
    text = f"{response.status} {response.reason}".rstrip()
    if response.status in _TRY_AGAIN:
        raise TransientError(text, wait=_seconds_of(response.headers.get("Retry-After", "")))
    if response.status in _DENIED:
        raise DeniedError(text)
    if response.status in _MISSING:
        raise MissingFileError(f"{path}: there is no such file; check the address.")
    if response.status == HTTPStatus.PRECONDITION_FAILED:
        raise changed(path)
    raise RefusedError(f"{path}: {server.host} refuses to deliver this file ({text}); check the address.")


def _seconds_of(retry_after: str) -> float:
    """The seconds from now that a Retry-After header means: a number, or a date (RFC 9110, section 10.2.3)."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        moment = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    return max(0.0, moment.timestamp() - time.time())


def changed(path: str) -> UnusableInputError:
    """The error for a file that is not the one whose other parts were read."""
    return UnusableInputError(f"{path}: this file was changed while it was read; open the data set again.")


def _plain(error: Exception) -> str:
    """An error of a connection as part of a sentence."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".") or type(error).__name__
