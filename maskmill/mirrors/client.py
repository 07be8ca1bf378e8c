"""Reads a mirror: its files over HTTP, in a bucket or in a directory, and the lists of what lies in its folders."""

import contextlib
import dataclasses
import email.utils
import fnmatch
import html.parser
import os
import urllib.parse
from collections.abc import Iterator, Mapping

import urllib3

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.storage import files
from maskmill.storage.paths import COMPARING, is_web
from maskmill.storage.web_client import DeniedError, WebClient

# A mirror that has failed for so long will not be there soon; the next start goes on where this one stopped.
_PATIENCE = 900.0
_SILENCE = 60.0  # seconds without a byte
# A mirror that wants to be left alone for longer than our patience ends the download: it is not asked before.
_LONGEST_WAIT = float("inf")
_FILE = "file://"


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

    def __init__(self, contact: str | None, version: str, web: WebClient | None = None) -> None:
        """Connects to nothing yet.

        Args:
          contact: an address or a page of the person who answers for the downloads; sent to web servers.
          version: of maskmill.
          web: makes the requests; None: one that waits as long as a download should.
        """
        self._contact = contact
        self._version = version
        self.web = web or WebClient(patience=_PATIENCE, silence=_SILENCE, longest_wait=_LONGEST_WAIT)

    def close(self) -> None:
        """Closes connections, and ends waits."""
        self.web.close()

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
        return {"User-Agent": f"maskmill/{self._version} ({self._contact})"}

    @contextlib.contextmanager
    def answer(
        self, method: str, url: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Makes one request; raises as WebClient.answer, and UnusableInputError where access is refused."""
        try:
            with self.web.answer(url, method, _quoted(url), {**self.headers, **(headers or {})}) as response:
                yield response
        except DeniedError as error:
            raise UnusableInputError(
                f"{url}: access is refused ({error.status}); check the address, and whether watch.contact says who you "
                "are."
            ) from error

    def read(self, place: str) -> bytes | None:
        """The content of a small file; None where there is none.

        Raises:
          UnusableInputError, RunFailedError: it cannot be read.
        """
        if not is_web(place):
            return files.read_if_there(place)

        def attempt() -> bytes:
            with self.answer("GET", place) as response:
                return bytes(response.read())

        try:
            return self.web.patiently(place, place, attempt)
        except MissingFileError:
            return None

    def facts(self, place: str) -> Facts | None:
        """What is known of a file without reading it; None where there is no such file.

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
            return self.web.patiently(place, place, attempt)
        except MissingFileError:
            return None

    def names(self, folder: str) -> list[str] | None:
        """The names in a folder, those of folders with a slash at the end, sorted; None where there is no such folder.

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


def plain_address(source: str) -> str:
    """The address of a mirror with the characters that its folders' names have; `MirrorClient` quotes them again.

    Raises:
      UnusableInputError: it is no address of a folder.
    """
    if source.startswith(_FILE):
        return urllib.parse.unquote(source.removeprefix(_FILE).removeprefix("localhost"))
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
    """An address whose path may have any characters, as it is sent."""
    scheme, _, rest = url.partition("://")
    server, slash, path = rest.partition("/")
    return f"{scheme}://{server}{slash}{urllib.parse.quote(path)}"


def _seconds_of(time: str) -> float | None:
    """The seconds since 1970 of a header's time; None where it is none."""
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
    """The names of what a web server's index of a folder links to directly below the folder."""
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
    """The names of files among `names` that a glob matches."""
    return [name for name in names if not name.endswith("/") and fnmatch.fnmatchcase(name, pattern)]
