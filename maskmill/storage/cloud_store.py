"""gs:// in Google Cloud Storage, or in the emulator that $STORAGE_EMULATOR_HOST names, with google-cloud-storage.

`version` is an object's generation, `checksum` its crc32c. An upload is finished only when the store has the crc32c of
the bytes sent. A download of a whole object is compared with its crc32c, and repeated if it differs; the store has no
checksums of parts.
"""

import base64
import contextlib
import http
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import google.auth
import google_crc32c
import requests.adapters
import requests.exceptions
from google.api_core import exceptions
from google.api_core.retry import Retry
from google.auth import exceptions as account_exceptions
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
from google.cloud.storage.retry import DEFAULT_RETRY

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files, stores
from maskmill.storage.files import ChangedError, FileInfo
from maskmill.storage.network import plain
from maskmill.storage.read_ahead import RangeFile
from maskmill.storage.stores import ObjectStore, denied, failing, microseconds, missing, no_bucket

T = TypeVar("T")

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_MOST_CONNECTIONS = 64
_TIMEOUT = (5.0, 60.0)  # seconds to connect, and without a byte
_PATIENCE, _FIRST_PATIENCE = 120.0, 5.0  # seconds for which a service may fail: later on, and before it ever answers
_FIELDS = "name,size,updated,generation,crc32c"
_DAMAGED = "it arrives with other bytes than its checksum says"
_RETRY = DEFAULT_RETRY.with_delay(initial=0.1, maximum=15)
_answered: set[str] = set()  # endpoints that have answered, inherited by forks
_FAILURES = (
    exceptions.ServerError,
    exceptions.TooManyRequests,
    exceptions.RetryError,
    account_exceptions.TransportError,
    requests.exceptions.RequestException,
)


class CloudStore(ObjectStore):
    """Objects of Cloud Storage.

    Access is anonymous at first, which public buckets and emulators allow. The application default credentials, whose
    search takes seconds outside of Google's network, are used after the first 401 or 403.
    """

    scheme = "gs://"

    def __init__(self) -> None:
        """Send no request yet."""
        super().__init__()
        # Otherwise Google's library requests metadata of the bucket in the background, for traces.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        self._credentials: Any = _new(AnonymousCredentials)
        self._clients: dict[tuple[int, bool], tuple[storage.Client, requests.Session]] = {}

    def _client(self) -> tuple[storage.Client, requests.Session]:
        """Return this process's client and its session; a fork must not use its parent's connections."""
        key = os.getpid(), self._is_anonymous
        if key not in self._clients:
            session = _new(AuthorizedSession, self._credentials)
            adapter = requests.adapters.HTTPAdapter(pool_maxsize=_MOST_CONNECTIONS)
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            client = storage.Client(project="none", credentials=self._credentials, _http=session)
            # requests would look for proxies, certificates and ~/.netrc at each request, which takes a quarter of it.
            settings = session.merge_environment_settings(client.api_endpoint, {}, None, None, None)
            session.proxies, session.verify, session.trust_env = settings["proxies"], settings["verify"], False
            self._clients[key] = client, session
        return self._clients[key]

    @property
    def _is_anonymous(self) -> bool:
        return isinstance(self._credentials, AnonymousCredentials)

    def _blob(self, path: str, chunk_size: int | None = None) -> storage.Blob:
        bucket, name = self.split(path)
        return self._client()[0].bucket(bucket).blob(name, chunk_size=chunk_size)

    def _ask(self, path: str, call: Callable[[], T]) -> T:
        """Return the result of a call of the library; after an anonymous 401 or 403, repeat it with credentials."""
        with self._explained(path):
            was_anonymous = self._is_anonymous
            try:
                return call()
            except (exceptions.Unauthorized, exceptions.Forbidden, account_exceptions.InvalidOperation):
                if not was_anonymous:
                    raise
            if self._is_anonymous:  # unless another thread has found credentials
                self._find_credentials(path)
            return call()

    def _of_bucket(self, path: str, call: Callable[[], T]) -> T:
        """Return the result of a call whose "not found" can only mean the bucket."""
        try:
            return self._ask(path, call)
        except MissingFileError as error:
            raise no_bucket(path) from error

    def _find_credentials(self, path: str) -> None:
        try:
            self._credentials = google.auth.default(scopes=[_SCOPE])[0]
        except account_exceptions.DefaultCredentialsError as error:
            raise UnusableInputError(
                f"{path}: access needs credentials, and there are no usable Google credentials ({plain(error)}); "
                "run `gcloud auth application-default login`, or name a service account's file in "
                "GOOGLE_APPLICATION_CREDENTIALS."
            ) from error

    @contextlib.contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Turn the library's errors into the common errors of stores."""
        endpoint = self._client()[0].api_endpoint
        try:
            yield
            _answered.add(endpoint)
        except InvalidResponse as error:
            raise self._common_error(path, _new(exceptions.from_http_response, error.response)) from error
        except (exceptions.GoogleAPIError, account_exceptions.GoogleAuthError, requests.RequestException) as error:
            raise self._common_error(path, error) from error

    def _common_error(self, path: str, error: Exception) -> Exception:
        """Return the common error of stores for an error of the library."""
        endpoint, cause, why = self._client()[0].api_endpoint, getattr(error, "cause", None) or error, _reason(error)
        if isinstance(error, _FAILURES):
            if endpoint in _answered or isinstance(cause, exceptions.GoogleAPICallError):
                return failing(path, why)
            via = " through its proxy" if isinstance(cause, requests.exceptions.ProxyError) else ""
            bucket, _ = self.split(path)
            return UnusableInputError(
                f"{self.scheme}{bucket}: {endpoint} cannot be reached{via} ({why}); check the network, and "
                "STORAGE_EMULATOR_HOST, which should be like http://localhost:9000 or not be set."
            )
        if isinstance(error, account_exceptions.GoogleAuthError):
            return UnusableInputError(
                f"{path}: Google refuses the credentials ({why}); renew them, for example with `gcloud auth "
                "application-default login`."
            )
        _answered.add(endpoint)
        if isinstance(error, exceptions.NotFound):
            return MissingFileError(f"{path}: there is no such object.")
        if isinstance(error, exceptions.PreconditionFailed):
            return ChangedError(path)
        if isinstance(error, exceptions.Unauthorized | exceptions.Forbidden):
            return denied(path, why)
        return UnusableInputError(f"{path}: the object store refuses this ({why}).")

    @property
    def _retry(self) -> Retry:
        is_known = self._client()[0].api_endpoint in _answered
        retry: Retry = _RETRY.with_timeout(_PATIENCE if is_known else _FIRST_PATIENCE)
        return retry

    def look(self, path: str) -> FileInfo | None:
        bucket, name = self.split(path)
        blob = self._ask(
            path, lambda: self._client()[0].bucket(bucket).get_blob(name, retry=self._retry, timeout=_TIMEOUT)
        )
        return None if blob is None else _described(path, blob)

    def fetch(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        """Return bytes of an object, by a plain request: the library's own download is slower."""
        if end is not None and end <= start:
            return b"", version
        bucket, name = self.split(path)
        query = "alt=media" + (f"&ifGenerationMatch={version}" if version else "")
        place = f"/download/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?{query}"
        headers = {"Accept-Encoding": "gzip"}  # objects come as they are stored
        if (start, end) != (0, None):
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"

        def ask() -> tuple[bytes, str]:
            client, session = self._client()
            with session.get(f"{client.api_endpoint}{place}", headers=headers, timeout=_TIMEOUT, stream=True) as answer:
                _answered.add(client.api_endpoint)
                if answer.status_code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    return b"", version
                if not answer.ok:
                    raise _new(exceptions.from_http_response, answer)
                content, sent = answer.raw.read(decode_content=False), answer.headers
                is_right = _is_part(content, start, end, sent) if "Range" in headers else _fits(content, sent)
                if not is_right:
                    raise ConnectionError(_DAMAGED)  # _retry repeats the request
                return content, sent.get("x-goog-generation", "")

        try:
            content, found = self._ask(path, self._retry(ask))
        except ChangedError:
            if self.look(path) is None:
                missing(path)
            raise
        if version and found != version:
            raise ChangedError(path)
        return content, found

    def file_over(self, file: FileInfo, read: Callable[[int, int], Any]) -> RangeFile:
        return _CheckedFile(file, read)

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        bucket, name = self.split(prefix)
        root = f"{self.scheme}{bucket}/"

        def ask() -> list[tuple[list[FileInfo], list[str]]]:
            listed = self._client()[0].list_blobs(
                bucket, prefix=name, fields=f"items({_FIELDS}),prefixes,nextPageToken", delimiter=None if deep else "/",
                retry=self._retry, timeout=_TIMEOUT,
            )  # fmt: skip
            return [
                ([_described(root + blob.name, blob) for blob in page], [root + one for one in sorted(page.prefixes)])
                for page in listed.pages
            ]

        yield from self._of_bucket(prefix, ask)

    def write(self, path: str, content: bytes, expected: str | None = None) -> FileInfo:
        def ask() -> FileInfo:
            blob = self._blob(path)
            if expected is not None:
                # Otherwise caches serve a public object for an hour after it changes.
                blob.cache_control = "no-store"
            blob.upload_from_string(
                content,
                content_type="application/octet-stream" if expected is None else "application/json",
                if_generation_match=None if expected is None else int(expected or 0),
                checksum="crc32c",
                retry=self._retry,
                timeout=_TIMEOUT,
            )
            if blob.crc32c != _encoded(google_crc32c.value(content)):
                raise DataCorruption(None, "the answer has another checksum")
            return _described(path, blob)

        with self._received(path):
            return self._of_bucket(path, ask)

    def send(self, path: str, parts: Iterator[bytes]) -> FileInfo:
        blob = self._blob(path, stores.UPLOAD_BYTES)
        with self._received(path), self._explained(path):
            blob.upload_from_file(_Parts(parts), checksum="crc32c", retry=self._retry, timeout=_TIMEOUT)
        return _described(path, blob)

    @contextlib.contextmanager
    def _received(self, path: str) -> Iterator[None]:
        """Delete an object if the store has received other bytes than were sent."""
        try:
            yield
        except DataCorruption as error:
            self.remove(path)
            raise RunFailedError(
                f"{path}: the object store received other bytes than were sent; the object was deleted, run again."
            ) from error

    def remove(self, path: str, version: str | None = None) -> None:
        condition = None if version is None else int(version)
        with contextlib.suppress(MissingFileError):
            self._ask(
                path,
                lambda: self._blob(path).delete(if_generation_match=condition, retry=self._retry, timeout=_TIMEOUT),
            )


class _Parts:
    """Parts of an upload as a file, for the library; each `read` returns a part."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._at = parts, 0

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        part = next(self._parts, b"")
        self._at += len(part)
        return part


class _CheckedFile(RangeFile):
    """An object that is read in parts, and compared with its checksum if it is read from its start to its end."""

    def __init__(self, file: FileInfo, read: Callable[[int, int], Any]) -> None:
        super().__init__(file.size, read)
        self._file = file
        self._checked, self._value = 0, 0

    def readinto(self, buffer: Any, /) -> int:
        start = self.tell()
        count = super().readinto(buffer)
        if start == self._checked and count:
            self._value = google_crc32c.extend(self._value, bytes(memoryview(buffer)[:count]))
            self._checked += count
            is_whole = self._checked == self._file.size and self._file.checksum
            if is_whole and _encoded(self._value) != self._file.checksum:
                raise failing(self._file.path, _DAMAGED)
        return count


def _is_part(content: bytes, start: int, end: int | None, headers: Mapping[str, str]) -> bool:
    """Return whether an answer has the bytes [start, end) of an object, or those up to its end."""
    first, _, size = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    return first.startswith(f"{start}-") and len(content) == min(end or files.TO_THE_END, int(size)) - start


def _fits(content: bytes, headers: Mapping[str, str]) -> bool:
    """Return whether a whole object has the crc32c in the headers of the answer; True without one."""
    sums = [one.strip() for one in headers.get("x-goog-hash", "").split(",")]
    known = [one.removeprefix("crc32c=") for one in sums if one.startswith("crc32c=")]
    return not known or known == [_encoded(google_crc32c.value(content))]


def _encoded(crc32c: int) -> str:
    """Return a checksum in the encoding of Cloud Storage."""
    return base64.b64encode(crc32c.to_bytes(4, "big")).decode()


def _new(untyped: Any, *arguments: Any) -> Any:
    """Return the result of a function of Google's libraries that has no types."""
    return untyped(*arguments)


def _described(path: str, blob: storage.Blob) -> FileInfo:
    return FileInfo(
        path=path,
        size=int(blob.size),
        changed=microseconds(blob.updated),
        version=str(blob.generation),
        checksum=blob.crc32c or "",
    )


def _reason(error: BaseException) -> str:
    """Return the answer of the service or the error of the network, as part of a sentence."""
    error = getattr(error, "cause", None) or error
    if isinstance(error, exceptions.GoogleAPICallError):
        status = http.HTTPStatus(error.code or 0)
        message = " ".join((error.message.partition(": ")[2] or error.message).split())
        return f"{status} {status.phrase}" + ("" if message == "unknown error" else f": {message}".rstrip("."))
    return plain(error)
