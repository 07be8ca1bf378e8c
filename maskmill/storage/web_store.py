"""Files on web servers that know Range requests."""

import contextlib
import re
import urllib.parse
from collections.abc import Mapping
from http import HTTPStatus

import urllib3

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.storage.files import ChangedError, DeniedError, FileInfo
from maskmill.storage.stores import Store
from maskmill.storage.web_client import RefusedError, TransientError, WebClient

_BLOCK = 1 << 20
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


class WebStore(Store):
    """Reads files of web servers. `version` is an entity tag or a time; "" where the server gives none."""

    def __init__(self, client: WebClient | None = None) -> None:
        """Ask nothing yet."""
        self.client = client or WebClient()

    def close(self) -> None:
        self.client.close()

    def address(self, path: str) -> str:
        return urllib.parse.quote(path, safe="%/:=&?~+!$,;'@()*[]")

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        url = self.address(path)
        try:
            return self.client.patiently(path, url, lambda: self._look(path, url, _freshness(fresh)))
        except MissingFileError:
            return None

    def _look(self, path: str, url: str, headers: Mapping[str, str]) -> FileInfo:
        # An address may be signed for GET alone, and a server may not know HEAD, or not say the size.
        with (
            contextlib.suppress(DeniedError, RefusedError),
            self.client.answer(path, "HEAD", url, headers) as response,
        ):
            size = response.headers.get("Content-Length", "")
            if response.status == HTTPStatus.OK and size.isdecimal():
                return FileInfo(path=path, size=int(size), version=_version(response))
        with self.client.answer(path, "GET", url, {"Range": "bytes=0-0", **headers}) as response:
            total = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            size = total[3] if total else response.headers.get("Content-Length", "")
            if not size.isdecimal():
                raise UnusableInputError(f"{path}: the server does not say how large this file is; copy it from there.")
            return FileInfo(path=path, size=int(size), version=_version(response))

    def read(self, file: FileInfo, start: int, end: int, *, fresh: bool = False) -> bytearray:
        """Return bytes of a file; a request that is cut is made again for the rest."""
        url, content = self.address(file.path), bytearray()

        def attempt() -> None:
            before = len(content)
            headers = {"Range": f"bytes={start + before}-{end - 1}", **_freshness(fresh)}
            try:
                with self.client.answer(file.path, "GET", url, headers) as response:
                    _check_range(file, response, start + before, end)
                    if _version(response) != file.version:
                        raise ChangedError(file.path)
                    while len(content) < end - start:
                        block = response.read1(min(_BLOCK, end - start - len(content)))
                        if not block:
                            raise TransientError("the connection was cut")
                        content.extend(block)
            except TransientError as error:
                error.progressed |= len(content) > before
                raise

        self.client.patiently(file.path, url, attempt)
        return content

    def glob(self, pattern: str) -> list[FileInfo]:
        """The file itself; servers list nothing."""
        if "*" in pattern:
            raise UnusableInputError(
                f"{pattern}: web servers do not list files; name a data set's directory, or the files one by one."
            )
        return [FileInfo(path=pattern, size=0)]


def _freshness(fresh: bool) -> dict[str, str]:
    """The header that says that copies of a file may be damaged, if they may."""
    return {"Cache-Control": "no-cache"} if fresh else {}


def _version(response: urllib3.BaseHTTPResponse) -> str:
    return response.headers.get("ETag") or response.headers.get("Last-Modified") or ""


def _check_range(file: FileInfo, response: urllib3.BaseHTTPResponse, start: int, end: int) -> None:
    """Checks that an answer has bytes of a file from `start` on.

    Raises:
      TransientError: it has others.
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
        return
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != start or not start < int(found[2]) + 1 <= end:
        raise TransientError("it sends other bytes than were asked for")
    if found[3] not in ("*", str(file.size)):
        raise ChangedError(file.path)
