"""Reads a mirror: files over HTTP, in a bucket or in a directory, and the names in its folders."""

import contextlib
import html
import logging
import random
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import TypeVar

import requests
import urllib3

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.network import plain
from maskmill.storage.paths import COMPARING, is_web

T = TypeVar("T")

_log = logging.getLogger(__name__)

# After failing for so long, a mirror will not be back soon; the next run continues the download.
_PATIENCE = 900.0
_FIRST_PATIENCE = 5.0  # for a server that has never answered, because the address may be wrong
_SILENCE = 60.0  # seconds without a byte after which a request has failed
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 60.0  # seconds between two tries
_UNLOGGED_PAUSE = 10.0  # seconds; only longer pauses are logged
_TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_DENIED = {401, 403}
_MISSING = {404, 410}
_LINK = re.compile(r'<a\s[^>]*?href="([^"?#\[]+)"', re.IGNORECASE)


class TransientError(Exception):
    """A request failed and may work later; the text is a clause of a sentence. wait: seconds before the next try."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


class MirrorClient:
    """Reads files and lists folders, and sends its contact to web servers. Several threads may use it."""

    def __init__(
        self, contact: str | None, version: str, *, patience: float = _PATIENCE, silence: float = _SILENCE
    ) -> None:
        """Create a client; it connects with its first request.

        Args:
          contact: an address or a page of the person responsible for the downloads; sent to web servers.
          version: of maskmill.
          patience: seconds for which a server that has answered once may fail.
          silence: seconds without a byte after which a request has failed.
        """
        self._contact = contact
        self._patience = patience
        self._silence = silence
        self._has_answered = False
        self.stopped = threading.Event()  # ends the waits and downloads of other threads
        self._session = requests.Session()
        self._session.max_redirects = 5
        self._session.headers.update({"User-Agent": f"maskmill/{version} ({contact})", "Accept-Encoding": "identity"})

    def close(self) -> None:
        """Close connections."""
        self._session.close()

    def check_stopped(self, url: str) -> None:
        """Raise RunFailedError if downloads must end."""
        if self.stopped.is_set():
            raise RunFailedError(f"{url}: this download was ended, because another file has failed.")

    def patiently(self, url: str, attempt: Callable[[], T], progress: Callable[[], int] = lambda: 0) -> T:
        """Call `attempt` until it raises no TransientError, with growing pauses in between.

        progress: returns a number that grows with progress; whenever it has grown, the patience starts again.

        Raises:
          RunFailedError: the server has failed for too long, or demands a longer pause.
        """
        most, since, pause = -1, 0.0, _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except TransientError as error:
                now = time.monotonic()
                if progress() > most:
                    most, since, pause = progress(), now, _FIRST_PAUSE
                # Many clients that a server has refused at once should not return at once.
                wait = max(pause * random.uniform(0.5, 1.0), error.wait)
                pause = min(2 * pause, _LONGEST_PAUSE)
                if now + wait - since > (
                    self._patience if self._has_answered else min(_FIRST_PATIENCE, self._patience)
                ):
                    raise RunFailedError(
                        f"{url}: {urllib.parse.urlsplit(url).hostname} does not deliver this file ({error}); check the "
                        "network, and once the server answers, run the same command again."
                    ) from error
                if wait > _UNLOGGED_PAUSE:
                    _log.warning("%s: this file does not come (%s); the next try is in %.0f s.", url, error, wait)
                self.stopped.wait(wait)
                self.check_stopped(url)

    @contextlib.contextmanager
    def answer(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[urllib3.BaseHTTPResponse]:
        """Request a file once, and yield the answer: a success, or that the file has no such range.

        Raises:
          TransientError: no answer, or an error that may pass, also while the block reads the answer.
          MissingFileError: there is no such file.
          UnusableInputError: access is refused, the server rejects the request, or `contact` is missing.
        """
        self._check_contact()
        try:
            with self._session.get(url, headers=headers, stream=True, timeout=self._silence) as response:
                self._has_answered = True
                _check_status(url, response)
                yield response.raw
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            is_nowhere = isinstance(error, requests.TooManyRedirects | requests.exceptions.InvalidURL)
            if is_nowhere or "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise UnusableInputError(f"{url}: this address leads nowhere ({plain(error)}); check it.") from error
            raise TransientError(plain(error)) from error

    def _check_contact(self) -> None:
        if not self._contact:
            raise UnusableInputError(
                "watch.contact is missing: give an address or a page at which the mirror's operators can reach you."
            )
        if not self._contact.isascii() or not self._contact.isprintable():
            raise UnusableInputError(
                f"watch.contact is {self._contact!r}, and requests can have ASCII characters only: give an address "
                "or a page without others."
            )

    def read(self, place: str) -> bytes | None:
        """Return the content of a small file; None if it does not exist.

        Raises:
          UnusableInputError, RunFailedError: it cannot be read.
        """
        if not is_web(place):
            return files.read_if_there(place)

        def attempt() -> bytes:
            with self.answer(place) as answer:
                return bytes(answer.read())

        try:
            return self.patiently(place, attempt)
        except MissingFileError:
            return None

    def names(self, folder: str) -> list[str] | None:
        """Return the names of the files and folders in a folder, sorted; None if there is no such folder, or it is
        empty.

        Raises:
          UnusableInputError, RunFailedError: it cannot be listed.
        """
        if is_web(folder):
            page = self.read(f"{folder}/")
            return None if page is None else _links(page.decode(errors="replace"), f"{folder}/")
        try:
            names = {files.base_name(path) for path in files.list_directory(folder)} | set(files.list_folders(folder))
        except OSError as error:
            raise UnusableInputError(f"{folder}: this directory cannot be read ({error.strerror}).") from error
        return sorted(names) or None


def _check_status(url: str, response: requests.Response) -> None:
    """Raise the error for the status of an unsuccessful answer."""
    status, text = response.status_code, f"{response.status_code} {response.reason}".rstrip()
    if response.ok or status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return
    if status in _TRY_AGAIN:
        raise TransientError(text, urllib3.Retry().get_retry_after(response.raw) or 0.0)
    if status in _MISSING:
        raise MissingFileError(f"{url}: there is no such file; check the address.")
    if status in _DENIED:
        raise UnusableInputError(
            f"{url}: access is refused ({text}); check the address, and whether watch.contact says who you are."
        )
    raise UnusableInputError(f"{url}: the server refuses to deliver this file ({text}); check the address.")


def check_source(source: str) -> str:
    """Return the address of a mirror, without a slash at its end.

    Raises:
      UnusableInputError: it is not the address of a folder.
    """
    if is_web(source):
        parts = urllib.parse.urlsplit(source)
        if not parts.netloc or parts.query or parts.fragment:
            raise UnusableInputError(
                f"watch.source is {source!r}; it must be the address of a folder, as https://HOST/PATH."
            )
    elif not files.is_local(source) and not source.startswith(COMPARING):
        raise UnusableInputError(
            f"watch.source is {source!r}; it must be a directory, gs://, s3://, http:// or https://."
        )
    return source.rstrip("/") or "/"


def _links(page: str, url: str) -> list[str]:
    """Return the names directly below a folder that the links in a web server's index of it point to."""
    links = [urllib.parse.urljoin(url, html.unescape(link)) for link in _LINK.findall(page)]
    names = {urllib.parse.unquote(link.removeprefix(url)).removesuffix("/") for link in links if link.startswith(url)}
    return sorted(name for name in names if name.strip(".") and "/" not in name)
