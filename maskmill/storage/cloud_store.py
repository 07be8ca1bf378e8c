"""gs:// in Google Cloud Storage, or in the emulator that $STORAGE_EMULATOR_HOST names, by google-cloud-storage.

`version` is an object's generation, `checksum` its crc32c. An upload counts as finished only when the store has the
crc32c of the bytes that were sent. A download of a whole object is compared with its crc32c, and made once more if it
does not fit; the store has no checksum of a part.
"""

import base64
import contextlib
import http
import os
import threading
import types
from collections.abc import Callable, Iterator, Sequence
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
from maskmill.storage import files
from maskmill.storage.files import ChangedError, FileInfo
from maskmill.storage.network import plain
from maskmill.storage.read_ahead import RangeFile
from maskmill.storage.stores import (
    UPLOAD_BYTES,
    ObjectStore,
    PartedUpload,
    Stored,
    denied,
    failing,
    microseconds,
    missing,
)

T = TypeVar("T")

_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_MOST_CONNECTIONS = 64
_TIMEOUT = (5.0, 60.0)  # seconds to connect, and without a byte
_PATIENCE, _FIRST_PATIENCE = 120.0, 5.0  # seconds for which a service may fail; one that has never answered may be none
_FIELDS = "name,size,updated,generation,crc32c"
_TRIES = 2  # of a download that does not fit its checksum
_BATCH = 100  # the most requests that the service takes at once
_FAILURES = (
    exceptions.ServerError,
    exceptions.TooManyRequests,
    exceptions.RetryError,
    account_exceptions.TransportError,
    requests.exceptions.RequestException,
)


class CloudStore(ObjectStore):
    """Objects of Cloud Storage.

    Public buckets and emulators need no credentials, and to look for some takes seconds outside of Google's network.
    They are looked for when access without is refused.
    """

    scheme = "gs://"

    def __init__(self) -> None:
        """Ask nothing yet."""
        super().__init__()
        # Google's library asks in the background what bucket it is, for traces that nobody collects.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        self._credentials: Any = _new(AnonymousCredentials)
        self._clients: dict[tuple[int, bool], storage.Client] = {}
        self._looking = threading.Lock()
        self._retry = DEFAULT_RETRY.with_delay(initial=0.1, maximum=15).with_timeout(_PATIENCE)

    def _client(self) -> storage.Client:
        """Return this process's client; a fork must not use its parent's connections."""
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
            self._clients[key] = client
        return self._clients[key]

    @property
    def _is_anonymous(self) -> bool:
        return isinstance(self._credentials, AnonymousCredentials)

    def _blob(self, path: str) -> storage.Blob:
        bucket, name = self.split(path)
        return self._client().bucket(bucket).blob(name)

    def _ask(self, path: str, call: Callable[[], T]) -> T:
        """Return what a call of the library gives; look for an account where access without is refused."""
        with self._explained(path):
            try:
                return call()
            except (exceptions.Unauthorized, exceptions.Forbidden, account_exceptions.InvalidOperation):
                if not self._is_anonymous:
                    raise
            self._look_for_account(path)
            return call()

    def _look_for_account(self, path: str) -> None:
        with self._looking:
            if not self._is_anonymous:
                return
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
        """Turn the library's errors into those of all stores."""
        try:
            try:
                yield
            except InvalidResponse as error:
                raise _new(exceptions.from_http_response, error.response) from error
        except exceptions.NotFound:
            missing(path)
        except exceptions.PreconditionFailed as error:
            raise ChangedError(path) from error
        except (exceptions.Unauthorized, exceptions.Forbidden) as error:
            raise denied(path, _reason(error)) from error
        except _FAILURES as error:
            raise failing(path, _reason(error)) from error
        except account_exceptions.GoogleAuthError as error:
            raise UnusableInputError(
                f"{path}: Google refuses the credentials ({plain(error)}); renew them, for example with `gcloud auth "
                "application-default login`."
            ) from error
        except exceptions.GoogleAPICallError as error:
            raise UnusableInputError(f"{path}: the object store refuses this ({_reason(error)}).") from error

    def ask_for_bucket(self, name: str, bucket: str) -> None:
        """Ask for one object of the bucket."""
        endpoint = os.environ.get("STORAGE_EMULATOR_HOST", "")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise UnusableInputError(
                f"{name}: {endpoint!r} is no address of a storage service; STORAGE_EMULATOR_HOST should be like "
                "http://localhost:9000."
            )
        quick = self._retry.with_timeout(_FIRST_PATIENCE)
        try:
            self._ask(name, lambda: list(self._listed(bucket, "", "items(name)", quick, max_results=1)))
        except RunFailedError as error:
            cause = getattr(error.__cause__, "cause", error.__cause__) or error
            if isinstance(cause, requests.exceptions.ConnectionError):
                via = " through its proxy" if isinstance(cause, requests.exceptions.ProxyError) else ""
                raise UnusableInputError(
                    f"{name}: {self._client().api_endpoint} cannot be reached{via} ({_reason(cause)}); check the "
                    "network."
                ) from error
            raise RunFailedError(
                f"{name}: Cloud Storage does not answer as it should ({_reason(cause)}); run the same command again "
                "later."
            ) from error

    def _listed(self, bucket: str, prefix: str, fields: str, retry: Retry, **options: Any) -> Any:
        return self._client().list_blobs(bucket, prefix=prefix, fields=fields, retry=retry, timeout=_TIMEOUT, **options)

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        bucket, name = self.split(path)

        def ask() -> storage.Blob | None:
            return self._client().bucket(bucket).get_blob(name, retry=self._retry, timeout=_TIMEOUT)

        blob = self._ask(path, ask)
        return None if blob is None else _described(path, blob)

    def get(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        if end is not None and end <= start:
            return b"", version
        is_whole = start == 0 and end is None

        def ask() -> tuple[bytes, str]:
            blob, blocks = self._blob(path), list[bytes]()
            try:
                blob.download_to_file(
                    types.SimpleNamespace(write=blocks.append),  # which copies nothing
                    start=None if is_whole else start,
                    end=None if end is None else end - 1,
                    raw_download=True,
                    checksum="crc32c" if is_whole else None,
                    if_generation_match=int(version) if version else None,
                    single_shot_download=True,
                    retry=self._retry,
                    timeout=_TIMEOUT,
                )
            except exceptions.RequestRangeNotSatisfiable:
                return b"", version
            return b"".join(blocks), str(blob.generation or "")

        for _ in range(_TRIES):
            try:
                content, found = self._ask(path, ask)
            except DataCorruption:
                continue
            except ChangedError:
                if self.find(path) is None:
                    missing(path)
                raise
            if version and found != version:
                raise ChangedError(path)
            if end is None or len(content) == end - start or self._ends_there(path, start, end, len(content)):
                return content, found
        raise _damaged(path, f"{_TRIES} times")

    def _ends_there(self, path: str, start: int, end: int, count: int) -> bool:
        """Return whether an object has just `count` of the bytes [start, end)."""
        file = self.find(path)
        return file is not None and count == max(0, min(end, file.size) - start)

    def file_over(self, file: FileInfo, read: Callable[[int, int], Any]) -> RangeFile:
        return _CheckedFile(file, read)

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        bucket, name = self.split(prefix)
        fields = f"items({_FIELDS}),prefixes,nextPageToken"
        root = f"{self.scheme}{bucket}/"

        def ask() -> list[tuple[list[FileInfo], list[str]]]:
            listed = self._listed(bucket, name, fields, self._retry, delimiter=None if deep else "/")
            return [
                ([_described(root + blob.name, blob) for blob in page], [root + one for one in sorted(page.prefixes)])
                for page in listed.pages
            ]

        yield from self._ask(prefix, ask)

    def put(self, path: str, content: bytes | bytearray, expected: str | None = None) -> Stored:
        def ask() -> Stored:
            blob = self._blob(path)
            if expected is not None:
                # An object that everybody may read is served from caches otherwise, for an hour.
                blob.cache_control = "no-store"
            blob.upload_from_string(
                data,
                content_type="application/octet-stream" if expected is None else "application/json",
                if_generation_match=None if expected is None else int(expected or 0),
                checksum="crc32c",
                retry=self._retry,
                timeout=_TIMEOUT,
            )
            if blob.crc32c != _checksum(data):
                raise DataCorruption(None, "the answer has another checksum")
            return Stored(str(blob.generation), blob.crc32c)

        data = bytes(content)
        with self._received(path):
            return self._ask(path, ask)

    @contextlib.contextmanager
    def _received(self, path: str) -> Iterator[None]:
        """Delete an object that the store has received with other bytes than were sent."""
        try:
            yield
        except DataCorruption as error:
            self.delete_one(path)
            raise RunFailedError(
                f"{path}: the object store received other bytes than were sent; the object was deleted, run again."
            ) from error

    def begin(self, path: str) -> PartedUpload:
        return _ResumableUpload(self, path)

    def delete_one(self, path: str, version: str | None = None) -> None:
        condition = None if version is None else int(version)
        with contextlib.suppress(MissingFileError):
            self._ask(
                path,
                lambda: self._blob(path).delete(if_generation_match=condition, retry=self._retry, timeout=_TIMEOUT),
            )

    def delete(self, paths: Sequence[str]) -> None:
        """Delete a hundred objects with one request (https://cloud.google.com/storage/docs/batch)."""
        batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
        files.each(self.scheme, self._delete_batch, batches)

    def _delete_batch(self, paths: Sequence[str]) -> None:
        if len(paths) > 1:
            # ValueError: a server that knows no batches has answered something else.
            with contextlib.suppress(UnusableInputError, RunFailedError, ValueError):
                self._ask(paths[0], lambda: self._retry(self._batch)(paths))
                return
        for path in paths:  # which explains what is wrong with one
            self.delete_one(path)

    def _batch(self, paths: Sequence[str]) -> None:
        with self._client().batch():
            for path in paths:
                self._blob(path).delete(timeout=_TIMEOUT)


class _CheckedFile(RangeFile):
    """An object that is read in parts. One that is read from its beginning to its end must fit its checksum."""

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
                raise _damaged(self._file.path, "in parts")
        return count


def _checksum(content: bytes) -> str:
    """Return the checksum that Cloud Storage keeps of an object with this content."""
    return _encoded(google_crc32c.value(content))


def _encoded(crc32c: int) -> str:
    return base64.b64encode(crc32c.to_bytes(4, "big")).decode()


def _new(untyped: Any, *arguments: Any) -> Any:
    """Return what one of Google's functions without types makes."""
    return untyped(*arguments)


def _damaged(path: str, how: str) -> RunFailedError:
    return RunFailedError(
        f"{path}: this object arrived {how} with other bytes than its checksum says; check the network, and run the "
        "same command again."
    )


class _ResumableUpload(PartedUpload):
    """https://cloud.google.com/storage/docs/performing-resumable-uploads"""

    def __init__(self, store: CloudStore, path: str) -> None:
        self._store, self._path = store, path
        self._blob: storage.Blob | None = None
        self._writer: Any = None

    def _begin(self, part: bytes) -> None:
        self._blob = self._store._blob(self._path)
        self._writer = self._blob.open(
            "wb", chunk_size=UPLOAD_BYTES, retry=self._store._retry, timeout=_TIMEOUT, checksum="crc32c"
        )
        self._writer.write(part)

    def send(self, part: bytes) -> None:
        if self._writer is None:
            self._store._ask(self._path, lambda: self._begin(part))
        else:
            with self._store._explained(self._path):
                self._writer.write(part)

    def finish(self, part: bytes) -> Stored:
        with self._store._received(self._path), self._store._explained(self._path):
            self._writer.write(part)
            self._writer.close()
        found = self._store.find(self._path)
        if found is None:
            missing(self._path)
        return Stored(found.version, found.checksum)

    def abandon(self) -> None:
        if self._writer is not None:
            with self._store._explained(self._path):
                self._writer.terminate()


def _described(path: str, blob: storage.Blob) -> FileInfo:
    return FileInfo(
        path=path,
        size=int(blob.size),
        changed=microseconds(blob.updated),
        version=str(blob.generation),
        checksum=blob.crc32c or "",
    )


def _reason(error: BaseException) -> str:
    """Return what the service or the network says, as part of a sentence."""
    error = getattr(error, "cause", None) or error
    if isinstance(error, exceptions.GoogleAPICallError):
        status = http.HTTPStatus(error.code or 0)
        said = " ".join((error.message.partition(": ")[2] or error.message).split())
        return f"{status} {status.phrase}" + ("" if said == "unknown error" else f": {said}".rstrip("."))
    return plain(error)
