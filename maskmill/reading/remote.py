"""Ranges of files on web servers and in Google Cloud Storage."""

import abc
import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import functools
import http.client
import json
import os
import re
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.reading import disk_cache
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges
from maskmill.reading.cloud_account import CloudAccount
from maskmill.reading.disk_cache import DiskCache, Piece
from maskmill.storage import files, paths, web_client
from maskmill.storage.web_client import DeniedError, RefusedError, TransientError, WebClient

CACHE_BYTES = 8 << 30
PARALLEL_READS = 32

_WEB = ("http://", "https://")
_CLOUD = "gs://"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_CLOUD_ENDPOINT = "https://storage.googleapis.com"


def open_ranges(path: str, cache_dir: str | None = None, cache_bytes: int = CACHE_BYTES) -> ByteRanges:
    """What reads ranges of the files in a directory, or of files beside one another.

    Args:
      path: of the directory or a file: local, gs://, http:// or https://. Nothing is asked of it yet.
      cache_dir: where pieces of remote files are kept; None: below the user's cache directory.
      cache_bytes: how much is kept there at most; 0: nothing.

    Raises:
      UnusableInputError: nothing can be read under such a path.
    """
    if files.is_local(path):
        return LocalRanges()
    cache = DiskCache(cache_dir or disk_cache.default_directory(), cache_bytes) if cache_bytes else None
    if path.lower().startswith(_WEB):
        if not urllib.parse.urlsplit(path).hostname:
            raise UnusableInputError(f"{path}: this address names no server; write https://SERVER/FOLDER.")
        return WebRanges(cache, WebClient())
    if not path.startswith((_CLOUD, "file://")):
        raise UnusableInputError(
            f"{path}: data sets are read from local directories, gs://, http:// and https://; copy this one there."
        )
    paths.check_scheme(path)
    return CloudRanges(cache, WebClient())


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """A remote file as it was found.

    Attributes:
      path: as the user knows it.
      url: where its content is.
      size: bytes.
      version: differs where the content does: an entity tag, a generation, a time; "" where the server gives none,
        so that nobody can tell whether a copy is still right.
    """

    path: str
    url: str
    size: int
    version: str

    @property
    def identity(self) -> str:
        """Tells it from other files, and from itself with other content."""
        return f"{self.url} {self.version} {self.size}"


class RemoteRanges(ByteRanges):
    """Files on a server. What was read once is read from a cache on disk."""

    parallel_reads = PARALLEL_READS

    def __init__(self, cache: DiskCache | None, client: WebClient) -> None:
        """Asks nothing yet.

        Args:
          cache: takes what was read; None: there is none.
          client: makes the requests; closed with this object.
        """
        self._cache = cache
        self._client = client
        self._lock = threading.Lock()
        self._files: dict[str, RemoteFile] = {}
        self._fresh: set[str] = set()  # files of which no proxy's copy is wanted
        self._bytes_read = self._bytes_fetched = 0

    def read(self, path: str, start: int, end: int) -> npt.NDArray[np.uint8]:
        file = self._file(path)
        if end > file.size:
            raise UnusableInputError(
                f"{path}: this file ends before byte {end:,} (it has {file.size:,}); make or fetch it again."
            )
        if start >= end:
            return np.empty(0, np.uint8)
        if self._cache is None or not file.version:
            data = self._fetch(file, start, end)
        else:
            piece = Piece(file=file.identity, start=start, end=end)
            data = self._cache.get(piece, functools.partial(self._fetch, file, start, end))
        with self._lock:
            self._bytes_read += end - start
        return data

    def read_all(self, path: str) -> bytes:
        return self.read(path, 0, self.size(path)).tobytes()

    def size(self, path: str) -> int:
        return self._file(path).size

    def sizes(self, paths: Sequence[str]) -> list[int]:
        with concurrent.futures.ThreadPoolExecutor(self.parallel_reads) as threads:
            return list(threads.map(self.size, paths))

    def forget(self, path: str) -> bool:
        with self._lock:
            file = self._files.pop(path, None)
            self._fresh.add(path)
        if file is not None and self._cache is not None:
            self._cache.drop(file.identity)
        return True

    def stats(self) -> dict[str, int]:
        counts = {"bytes_read": self._bytes_read, "bytes_fetched": self._bytes_fetched}
        return counts | (self._cache.stats() if self._cache is not None else {})

    def close(self) -> None:
        self._client.close()

    def _file(self, path: str) -> RemoteFile:
        """A file as it was when it was first asked for. Two threads may both ask the server."""
        with self._lock:
            file = self._files.get(path)
        if file is None:
            file = self._client.patiently(path, self._address(path), lambda: self._look(path))
            with self._lock:
                file = self._files.setdefault(path, file)
        return file

    def _fetch(self, file: RemoteFile, start: int, end: int) -> npt.NDArray[np.uint8]:
        """Bytes [start, end) from the server. A request that is cut is made again for what is missing."""
        data = np.empty(end - start, np.uint8)
        filled = 0

        def attempt() -> None:
            nonlocal filled
            before = filled
            try:
                wanted = {"Range": f"bytes={start + filled}-{end - 1}"}
                with self._answer(file.path, "GET", file.url, wanted) as response:
                    _check_range(file, response, start + filled, end)
                    self._check_version(file, response)
                    while filled < len(data):
                        count = response.readinto(data[filled:].data)
                        if not count:
                            raise TransientError("the connection was cut")
                        filled += count
            except TransientError as error:
                error.progressed |= filled > before
                raise
            finally:
                with self._lock:
                    self._bytes_fetched += filled - before

        self._client.patiently(file.path, file.url, attempt)
        return data

    @contextlib.contextmanager
    def _answer(
        self, path: str, method: str, url: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[http.client.HTTPResponse]:
        """The successful answer to one request; raises as WebClient.answer does, but no DeniedError."""
        account = self._account(path, url)
        try:
            with self._client.answer(path, method, url, {**headers, **self._freshness(path), **account}) as response:
                yield response
        except DeniedError as error:
            self._deny(path, account, error)

    def _freshness(self, path: str) -> dict[str, str]:
        """The header that says that copies of a file may be damaged, if they may."""
        return {"Cache-Control": "no-cache"} if path in self._fresh else {}

    @abc.abstractmethod
    def _address(self, path: str) -> str:
        """An address to ask for a file."""

    @abc.abstractmethod
    def _look(self, path: str) -> RemoteFile:
        """Asks for a file's size and version, once."""

    @abc.abstractmethod
    def _check_version(self, file: RemoteFile, response: http.client.HTTPResponse) -> None:
        """Raises UnusableInputError if an answer is of another version of a file."""

    def _account(self, path: str, url: str) -> dict[str, str]:
        """The headers that say who asks."""
        return {}

    def _deny(self, path: str, account: Mapping[str, str], error: DeniedError) -> NoReturn:
        """Raises TransientError where other credentials may be accepted, otherwise UnusableInputError.

        account: the headers that were sent with the request.
        """
        raise UnusableInputError(
            f"{path}: the server refuses access to this file ({error}); check the address, or download the data set "
            "and open the copy."
        ) from error


def _check_range(file: RemoteFile, response: http.client.HTTPResponse, start: int, end: int) -> None:
    """Checks that an answer has bytes of a file from `start` on.

    Raises:
      TransientError: it has others.
      UnusableInputError: the server always sends whole files, or the file has another size now.
    """
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise UnusableInputError(
            f"{file.path}: the server packs what it sends (Content-Encoding: {response.headers['Content-Encoding']}), "
            "so parts cannot be asked for; switch that off for this folder."
        )
    if response.status == HTTPStatus.OK:
        if response.length not in (file.size, None):
            raise web_client.changed(file.path)
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
        raise web_client.changed(file.path)


def _matches(name: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether the parts of a name between slashes match those of a pattern."""
    return len(name) == len(wanted) and all(map(fnmatch.fnmatchcase, name, wanted))


def _version(response: http.client.HTTPResponse) -> str:
    return response.headers.get("ETag") or response.headers.get("Last-Modified") or ""


class WebRanges(RemoteRanges):
    """Files on web servers that know Range requests."""

    def _address(self, path: str) -> str:
        return urllib.parse.quote(path, safe="%/:=&?~+!$,;'@()*[]")

    def _look(self, path: str) -> RemoteFile:
        url = self._address(path)
        # An address may be signed for GET alone, and a server may not know HEAD, or not say the size.
        with (
            contextlib.suppress(DeniedError, RefusedError),
            self._client.answer(path, "HEAD", url, self._freshness(path)) as response,
        ):
            size = response.headers.get("Content-Length", "")
            if response.status == HTTPStatus.OK and size.isdecimal():
                return RemoteFile(path, url, int(size), _version(response))
        with self._answer(path, "GET", url, {"Range": "bytes=0-0"}) as response:
            total = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            size = total[3] if total else response.headers.get("Content-Length", "")
            if not size.isdecimal():
                raise UnusableInputError(f"{path}: the server does not say how large this file is; copy it from there.")
            return RemoteFile(path, url, int(size), _version(response))

    def glob(self, pattern: str) -> list[str]:
        if "*" in pattern:
            raise UnusableInputError(
                f"{pattern}: web servers do not list files; name a data set's directory, or the files one by one."
            )
        return [pattern]

    def _check_version(self, file: RemoteFile, response: http.client.HTTPResponse) -> None:
        if _version(response) != file.version:
            raise web_client.changed(file.path)


class CloudRanges(RemoteRanges):
    """Objects in Google Cloud Storage, or in the emulator that $STORAGE_EMULATOR_HOST names.

    Public buckets and the emulator need no credentials, and to look for some takes seconds outside of Google's network.
    They are looked for when access without is refused.
    """

    def __init__(self, cache: DiskCache | None, client: WebClient) -> None:
        """Asks nothing yet; arguments as in RemoteRanges."""
        super().__init__(cache, client)
        endpoint = os.environ.get("STORAGE_EMULATOR_HOST") or _CLOUD_ENDPOINT
        self._endpoint = (endpoint if "://" in endpoint else f"http://{endpoint}").rstrip("/")
        self._cloud_account = CloudAccount()

    def glob(self, pattern: str) -> list[str]:
        bucket, _, names = pattern.removeprefix(_CLOUD).partition("/")
        prefix = re.split(r"[*?[]", names, maxsplit=1)[0]
        url = (
            f"{self._endpoint}/storage/v1/b/{bucket}/o?fields=items(name),nextPageToken"
            f"&prefix={urllib.parse.quote(prefix, safe='')}"
        )
        found: list[str] = []
        token: str | None = ""
        while token is not None:
            page = self._client.patiently(pattern, url, functools.partial(self._list, pattern, url, token))
            found += [item["name"] for item in page.get("items", ())]
            token = page.get("nextPageToken")
        wanted = names.split("/")
        return sorted(
            f"{_CLOUD}{bucket}/{name}" for name in found if _matches(name.split("/"), wanted) or name == names
        )

    def _list(self, pattern: str, url: str, token: str) -> dict[str, Any]:
        """A page of a bucket's objects."""
        with self._answer(
            pattern, "GET", url + (f"&pageToken={urllib.parse.quote(token, safe='')}" if token else "")
        ) as response:
            try:
                page: dict[str, Any] = json.loads(response.read())
            except ValueError as error:
                raise TransientError("it does not answer as Cloud Storage does") from error
        return page

    def _object(self, path: str) -> str:
        bucket, _, name = path.removeprefix(_CLOUD).partition("/")
        return f"storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"

    def _address(self, path: str) -> str:
        return f"{self._endpoint}/{self._object(path)}?fields=size,generation"

    def _look(self, path: str) -> RemoteFile:
        with self._answer(path, "GET", self._address(path)) as response:
            try:
                found = json.loads(response.read())
                size, generation = int(found["size"]), str(found["generation"])
            except (ValueError, KeyError, TypeError) as error:
                raise TransientError("it does not answer as Cloud Storage does") from error
        url = f"{self._endpoint}/download/{self._object(path)}?alt=media&ifGenerationMatch={generation}"
        return RemoteFile(path, url, size, generation)

    def _check_version(self, file: RemoteFile, response: http.client.HTTPResponse) -> None:
        if response.headers.get("x-goog-generation", file.version) != file.version:
            raise web_client.changed(file.path)

    def _account(self, path: str, url: str) -> dict[str, str]:
        return self._cloud_account.headers(path, url)

    def _deny(self, path: str, account: Mapping[str, str], error: DeniedError) -> NoReturn:
        if account:
            raise UnusableInputError(
                f"{path}: Cloud Storage refuses access with these credentials ({error}); use an account that may read "
                "objects of this bucket."
            ) from error
        self._cloud_account.look_for(path)
        raise TransientError("it wants credentials", progressed=True) from error
