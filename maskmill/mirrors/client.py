"""Reads a mirror: its files over HTTP, in a bucket or in a directory, and the lists of what lies in its folders."""

import contextlib
import dataclasses
import email.utils
import fnmatch
import html.parser
import logging
import os
import random
import ssl
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import urllib3

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.paths import COMPARING, is_web

T = TypeVar("T")

_log = logging.getLogger(__name__)

# A mirror that has failed for so long will not be there soon; the next start goes on where this one stopped.
_PATIENCE = 900.0
_FIRST_PATIENCE = 5.0  # with one that has never answered, which may be none
_SILENCE = 60.0  # seconds without a byte after which a request has failed
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 60.0  # seconds between two tries
_UNTOLD = 10.0  # a pause that nobody is told of
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_DENIED = {401, 403}
_MISSING = {404, 410}
_NO_SUCH_RANGE = 416
# Redirects are followed; all other errors are ours to try again.
_RETRIES = urllib3.Retry(connect=0, read=0, status=0, other=0, redirect=5, respect_retry_after_header=False)
_PERMANENT = (ssl.SSLCertVerificationError, urllib3.exceptions.ResponseError)  # the latter: redirects without an end


class TransientError(Exception):
    """A request failed in a way that may pass, which the text says as part of a sentence. wait: for so many seconds."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


class NoSuchRangeError(UnusableInputError):
    """The server does not send the part of a file that it was asked for."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a file without reading it.

    Attributes:
      size: in bytes; None where nobody says.
      modified: when it was last changed, in seconds of time.time(); None where nobody says.
    """

    size: int | None = None
    modified: float | None = None


class MirrorClient:
    """Reads files and lists folders, and tells a web server who asks. Several threads may use it."""

    def __init__(
        self, contact: str | None, version: str, *, patience: float = _PATIENCE, silence: float = _SILENCE
    ) -> None:
        """Connect to nothing yet.

        Args:
          contact: an address or a page of the person who answers for the downloads; sent to web servers.
          version: of maskmill.
          patience: for how many seconds a server that has answered once may fail.
          silence: after how many seconds without a byte a request has failed.
        """
        self._contact = contact
        self._version = version
        self._patience = patience
        self._silence = silence
        self._has_answered = False
        self._proxies = urllib.request.getproxies()
        self._pools: dict[str, urllib3.PoolManager] = {}  # by proxy

    def close(self) -> None:
        """Close connections."""
        for pool in self._pools.values():
            pool.clear()

    @property
    def headers(self) -> dict[str, str]:
        """What goes with each request.

        Raises:
          UnusableInputError: there is no contact, or one that no request can have.
        """
        if not self._contact:
            raise UnusableInputError(
                "watch.contact is missing: give an address or a page at which the mirror's operators can reach you."
            )
        if not self._contact.isascii() or not self._contact.isprintable():
            raise UnusableInputError(
                f"watch.contact is {self._contact!r}, and requests can have ASCII characters only: give an address "
                "or a page without others."
            )
        return {"User-Agent": f"maskmill/{self._version} ({self._contact})", "Accept-Encoding": "identity"}

    def patiently(
        self,
        url: str,
        attempt: Callable[[], T],
        progress: Callable[[], int] = lambda: 0,
        stop: threading.Event | None = None,
    ) -> T:
        """Call `attempt` until its connection does not fail, with pauses in between that grow.

        progress: a number that grows with what was reached; when it does, patience begins anew. stop: ends a pause.

        Raises:
          RunFailedError: the server has failed for too long, or wants to be left alone for longer.
        """
        most, pause, since = progress(), _FIRST_PAUSE, 0.0
        while True:
            try:
                return attempt()
            except (TransientError, urllib3.exceptions.HTTPError) as error:
                now, text = time.monotonic(), _plain(error)
                if progress() > most or not since:
                    most, pause, since = progress(), _FIRST_PAUSE, now
                # Many clients that a server has refused at once should not come back at once.
                wait = max(pause * random.uniform(0.5, 1.0), getattr(error, "wait", 0.0))
                pause = min(2 * pause, _LONGEST_PAUSE)
                patience = self._patience if self._has_answered else min(_FIRST_PATIENCE, self._patience)
                if now + wait - since > patience:
                    raise RunFailedError(
                        f"{url}: {urllib.parse.urlsplit(url).hostname} does not deliver this file ({text}); check the "
                        "network, and once the server answers, run the same command again."
                    ) from error
                if wait > _UNTOLD:
                    _log.warning("%s: this file does not come (%s); it is asked for again in %.0f s.", url, text, wait)
                if (stop or threading.Event()).wait(wait):
                    raise RunFailedError(f"{url}: this download was ended while it waited ({text}).") from error

    @contextlib.contextmanager
    def answer(
        self, method: str, url: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Make one request, and give a successful answer.

        Raises:
          TransientError, urllib3.exceptions.HTTPError: no answer, or one that may be another the next time.
          MissingFileError: there is no such file.
          NoSuchRangeError: the file has no such part.
          UnusableInputError: access is refused, or the server does not take such a request.
        """
        try:
            response = self._pool(url).request(
                method, _quoted(url), headers={**self.headers, **(headers or {})}, retries=_RETRIES,
                timeout=self._silence, preload_content=False, decode_content=False,
            )  # fmt: skip
        except urllib3.exceptions.MaxRetryError as error:
            causes = (error.reason, *error.reason.args) if error.reason else ()
            if any(isinstance(cause, _PERMANENT) for cause in causes):
                raise UnusableInputError(f"{url}: this address leads nowhere ({_plain(error)}); check it.") from error
            raise
        self._has_answered = True
        try:
            _check_status(url, response)
            yield response
            response.drain_conn()  # so that the connection can be used again
        finally:
            response.close()

    def read(self, place: str) -> bytes | None:
        """Return the content of a small file; None where there is none.

        Raises:
          UnusableInputError, RunFailedError: it cannot be read.
        """
        if not is_web(place):
            return files.read_if_there(place)

        def attempt() -> bytes:
            with self.answer("GET", place) as response:
                return bytes(response.read())

        try:
            return self.patiently(place, attempt)
        except MissingFileError:
            return None

    def facts(self, place: str) -> Facts | None:
        """Return what is known of a file without reading it; None where there is no such file.

        Raises:
          UnusableInputError, RunFailedError: it cannot be read.
        """
        if files.is_local(place):
            try:
                found = os.stat(place)
            except FileNotFoundError:
                return None
            return Facts(size=found.st_size, modified=found.st_mtime)
        if not is_web(place):
            file = files.find(place)
            return None if file is None else Facts(size=file.size)

        def attempt() -> Facts:
            with self.answer("HEAD", place) as response:
                size, modified = response.headers.get("Content-Length", ""), response.headers.get("Last-Modified", "")
                return Facts(size=int(size) if size.isdecimal() else None, modified=_seconds_of(modified))

        try:
            return self.patiently(place, attempt)
        except MissingFileError:
            return None

    def names(self, folder: str) -> list[str] | None:
        """Return the names in a folder, those of folders with a slash at the end, sorted; None without such a folder.

        Raises:
          UnusableInputError, RunFailedError: it cannot be listed.
        """
        folder = folder.rstrip("/") + "/"
        if is_web(folder):
            page = self.read(folder)
            return None if page is None else _links(page, folder)
        if files.is_local(folder):
            if not os.path.isdir(folder):
                return None
            try:
                return sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(folder))
            except OSError as error:
                raise UnusableInputError(f"{folder}: this directory cannot be read ({error.strerror}).") from error
        found, folders = files.store_of(folder).entries(folder, deep=False)
        return sorted(name.removeprefix(folder) for name in (*(file.path for file in found), *folders)) or None

    def _pool(self, url: str) -> urllib3.PoolManager:
        """Return the connections to a server, through its proxy if it has one."""
        parts = urllib.parse.urlsplit(url)
        proxy = "" if urllib.request.proxy_bypass(parts.hostname or "") else self._proxies.get(parts.scheme, "")
        if proxy not in self._pools:
            if proxy:
                address = urllib3.util.parse_url(proxy if "//" in proxy else f"http://{proxy}")
                account = urllib.parse.unquote(address.auth) if address.auth else None
                told = urllib3.util.make_headers(proxy_basic_auth=account)
                self._pools[proxy] = urllib3.ProxyManager(address.url, proxy_headers=told)
            else:
                self._pools[proxy] = urllib3.PoolManager(maxsize=8)
        return self._pools[proxy]


def _check_status(url: str, response: urllib3.BaseHTTPResponse) -> None:
    """Raise what the status of an answer means that is no success."""
    status, text = response.status, f"{response.status} {response.reason}".rstrip()
    if status < 300:
        return
    if status in _TRY_AGAIN:
        raise TransientError(text, _RETRIES.get_retry_after(response) or 0.0)
    if status in _MISSING:
        raise MissingFileError(f"{url}: there is no such file; check the address.")
    if status in _DENIED:
        raise UnusableInputError(
            f"{url}: access is refused ({text}); check the address, and whether watch.contact says who you are."
        )
    kind = NoSuchRangeError if status == _NO_SUCH_RANGE else UnusableInputError
    raise kind(f"{url}: the server refuses to deliver this file ({text}); check the address.")


def _plain(error: BaseException) -> str:
    """Return an error of a connection as part of a sentence."""
    if isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason is not None:
        error = error.reason
    cause = next((one for one in (error.__cause__, *error.args) if isinstance(one, OSError)), error)
    if isinstance(cause, TimeoutError | urllib3.exceptions.ReadTimeoutError | urllib3.exceptions.ConnectTimeoutError):
        return "no answer in time"
    if isinstance(error, urllib3.exceptions.ProtocolError):
        return "the connection was cut"
    return str(getattr(cause, "verify_message", None) or getattr(cause, "strerror", None) or cause).rstrip(".")


def unquoted(source: str) -> str:
    """Return the address of a mirror with the characters that its folders' names have.

    Raises:
      UnusableInputError: it is no address of a folder.
    """
    if not is_web(source):
        if not files.is_local(source) and not source.startswith(COMPARING):
            raise UnusableInputError(
                f"watch.source is {source!r}; it must be a directory, gs://, s3://, http:// or https://."
            )
        return source
    parts = urllib.parse.urlsplit(source)
    if not parts.netloc or parts.query or parts.fragment:
        raise UnusableInputError(
            f"watch.source is {source!r}; it must be the address of a folder, as https://HOST/PATH."
        )
    return f"{parts.scheme}://{parts.netloc}{urllib.parse.unquote(parts.path)}"


def _quoted(url: str) -> str:
    """Return an address whose path may have any characters, as it is sent."""
    scheme, _, rest = url.partition("://")
    server, slash, path = rest.partition("/")
    return f"{scheme}://{server}{slash}{urllib.parse.quote(path)}"


def _seconds_of(time: str) -> float | None:
    """Return the seconds since 1970 of a header's time; None where it is none."""
    try:
        return email.utils.parsedate_to_datetime(time).timestamp()
    except ValueError:
        return None


class _Links(html.parser.HTMLParser):
    """Collects the addresses of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attributes if tag == "a" and name == "href" and value]


def _links(page: bytes, url: str) -> list[str]:
    """Return the names of what a web server's index of a folder links to directly below the folder."""
    parser = _Links()
    parser.feed(page.decode("utf-8", errors="replace"))
    url = _quoted(url)
    base = urllib.parse.urlsplit(url)
    folder = urllib.parse.unquote(base.path)
    names = set()
    for link in parser.found:
        try:
            target = urllib.parse.urlsplit(urllib.parse.urljoin(url, link))
        except ValueError:
            continue  # it is no address
        path = urllib.parse.unquote(target.path)
        if target.netloc != base.netloc or target.query or target.fragment or not path.startswith(folder):
            continue
        name = path.removeprefix(folder)
        if name.rstrip("/") not in ("", ".", "..") and "/" not in name.removesuffix("/") and name.isprintable():
            names.add(name)
    return sorted(names)


def matching(names: list[str], pattern: str) -> list[str]:
    """Return the names of files among `names` that a glob matches."""
    return [name for name in names if not name.endswith("/") and fnmatch.fnmatchcase(name, pattern)]
