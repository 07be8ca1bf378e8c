"""gs:// in Google Cloud Storage, or in the emulator that $STORAGE_EMULATOR_HOST names, by its JSON API.

https://cloud.google.com/storage/docs/json_api. An upload counts as finished only when the store's crc32c is that of the
bytes that were sent. `version` is an object's generation.
"""

import base64
import contextlib
import datetime
import itertools
import json
import os
import re
import secrets
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import urllib3

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import files, network
from maskmill.storage.files import ChangedError, FileInfo
from maskmill.storage.stores import (
    DENIED,
    FAILING,
    MISSING,
    Content,
    ObjectStore,
    PartedUpload,
    Stored,
    microseconds,
    missing,
    range_header,
    whole_size,
)
from maskmill.storage.web_client import (
    INCOMPLETE,
    Body,
    DeniedError,
    RefusedError,
    TransientError,
    WebClient,
    status_of,
)
from maskmill.storage.web_store import check_range, freshness

_ENDPOINT = "https://storage.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_CONNECT_SECONDS = 5.0
_DEFAULT_PORTS = {"http": 80, "https": 443}
_FIELDS = "name,size,updated,generation,crc32c"
_RANGE_LAST = "bytes=0-"
_BLOCK = 1 << 20
_TRIES = 2  # of a download that does not fit its checksum
_CRC32C = re.compile(r"crc32c=([A-Za-z0-9+/=]+)")
_BATCH = 100  # the most requests that the service takes at once
_DELETED = re.compile(rb"^HTTP/1\.1 (?:20\d|404) ", re.MULTILINE)
_Sent = tuple[Mapping[str, str], Body]  # the headers and the body of a request


class CloudStore(ObjectStore):
    """Objects of Cloud Storage.

    Public buckets and the emulator need no credentials, and to look for some takes seconds outside of Google's network.
    They are looked for when access without is refused.
    """

    scheme = "gs://"

    def __init__(self) -> None:
        """Asks nothing yet."""
        super().__init__(WebClient(failing=FAILING, denied=DENIED, missing=MISSING, reason=_reason))
        endpoint = os.environ.get("STORAGE_EMULATOR_HOST") or _ENDPOINT
        self._named = endpoint
        self._endpoint = (endpoint if "://" in endpoint else f"http://{endpoint}").rstrip("/")
        self._account = CloudAccount()

    def address(self, path: str) -> str:
        bucket, name = _split(path)
        return f"{self._endpoint}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"

    def ask_for_bucket(self, name: str, bucket: str) -> None:
        """Asks for one object of the bucket."""
        _check_service(name, self._named)
        url = f"{self._endpoint}/storage/v1/b/{bucket}/o?maxResults=1&fields=items(name)"
        quick = WebClient(patience=_CONNECT_SECONDS, failing="{error}", reason=_reason)
        try:
            with contextlib.closing(quick):
                self._ask(name, "GET", url, client=quick)
        except RunFailedError as error:
            cause = str(error).removeprefix(f"{name}: ")
            raise RunFailedError(
                f"{name}: Cloud Storage does not answer as it should ({cause}); run the same command again later."
            ) from error

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        with contextlib.suppress(MissingFileError):
            return _described(path, self._ask_json(path, "GET", f"{self.address(path)}?fields={_FIELDS}"))
        return None

    def content(self, path: str, start: int, end: int | None) -> tuple[bytes, FileInfo]:
        """Generation and checksum come with the content, which is asked for once more if it does not fit."""
        for _ in range(_TRIES):
            headers, content = self._ask(
                path, "GET", f"{self._media(path)}?alt=media", (range_header(start, end), None)
            )
            file = FileInfo(
                path=path,
                size=whole_size(headers.get("Content-Range", ""), content),
                version=headers.get("x-goog-generation", ""),
                checksum=_checksum_of(headers),
            )
            if _fits(file, content):
                return content, file
        raise _arrived_damaged(path)

    def fill(self, file: FileInfo, start: int, buffer: memoryview, *, fresh: bool = False) -> None:
        """As of every store; a whole object is compared with its checksum, and fetched once more if it does not fit."""
        for _ in range(_TRIES):
            super().fill(file, start, buffer, fresh=fresh)
            if _fits(file, buffer):
                return
        raise _arrived_damaged(file.path)

    def _media(self, path: str) -> str:
        return self.address(path).replace("/storage/v1/", "/download/storage/v1/", 1)

    @contextlib.contextmanager
    def body(self, file: FileInfo, start: int, end: int, *, fresh: bool) -> Iterator[Any]:
        url = f"{self._media(file.path)}?alt=media&ifGenerationMatch={file.version}"
        headers = range_header(start, end) | freshness(fresh)
        try:
            with self._answer(self.client, file.path, "GET", url, headers) as response:
                check_range(file, response, start, end)
                if response.headers.get("x-goog-generation", file.version) != file.version:
                    raise ChangedError(file.path)
                yield response
        except ChangedError:
            if self.find(file.path) is None:
                missing(file.path)
            raise

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        bucket, name = _split(prefix)
        query = {"prefix": name, "fields": f"items({_FIELDS}),prefixes,nextPageToken"}
        query |= {} if deep else {"delimiter": "/"}
        while True:
            url = f"{self._endpoint}/storage/v1/b/{bucket}/o?{urllib.parse.urlencode(query)}"
            page = self._ask_json(prefix, "GET", url)
            root = f"gs://{bucket}/"
            yield (
                [_described(root + item["name"], item) for item in page.get("items", ())],
                [root + folder for folder in page.get("prefixes", ())],
            )
            if not page.get("nextPageToken"):
                return
            query["pageToken"] = page["nextPageToken"]

    def put(self, path: str, content: Content, expected: str | None = None) -> Stored:
        """Uploads description and content together."""
        described: dict[str, str] = {"name": _split(path)[1]}
        condition = ""
        if expected is not None:
            condition = f"&ifGenerationMatch={expected or 0}"
            # An object that everybody may read is served from caches otherwise, for an hour.
            described["cacheControl"] = "no-store"
        boundary = secrets.token_hex(16)
        kind = "application/octet-stream" if expected is None else "application/json"
        before = (
            f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(described)}\r\n"
            f"--{boundary}\r\nContent-Type: {kind}\r\n\r\n"
        ).encode()
        body = before, *content, f"\r\n--{boundary}--".encode()
        headers = {"Content-Type": f"multipart/related; boundary={boundary}", "Content-Length": str(_length(body))}
        made = self._ask_json(path, "POST", self._upload_url(path, "multipart") + condition, (headers, body))
        return self._received(path, made, _checksum_with(_checksum(), content))

    def _upload_url(self, path: str, kind: str) -> str:
        return f"{self._endpoint}/upload/storage/v1/b/{_split(path)[0]}/o?uploadType={kind}"

    def _received(self, path: str, made: Mapping[str, Any], sent: Any) -> Stored:
        checksum = base64.b64encode(sent.digest()).decode()
        if made.get("crc32c") != checksum:
            self.delete_one(path)
            raise RunFailedError(
                f"{path}: the object store received other bytes than were sent; the object was deleted, run again."
            )
        return Stored(str(made["generation"]), checksum)

    def begin(self, path: str) -> PartedUpload:
        return _ResumableUpload(self, path)

    def delete_one(self, path: str, version: str | None = None) -> None:
        condition = "" if version is None else f"?ifGenerationMatch={version}"
        with contextlib.suppress(MissingFileError):
            self._ask(path, "DELETE", self.address(path) + condition)

    def delete(self, paths: Sequence[str]) -> None:
        """Deletes a hundred objects with one request (https://cloud.google.com/storage/docs/batch)."""
        batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
        files.each(self.scheme, self._delete_batch, batches)

    def _delete_batch(self, paths: Sequence[str]) -> None:
        boundary = secrets.token_hex(16)
        parts = [
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
            f"DELETE {self.address(path).removeprefix(self._endpoint)} HTTP/1.1\r\n\r\n\r\n"
            for number, path in enumerate(paths)
        ]
        sent = {"Content-Type": f"multipart/mixed; boundary={boundary}"}, f"{''.join(parts)}--{boundary}--".encode()
        answers = b""
        if len(paths) > 1:
            with contextlib.suppress(MissingFileError, RefusedError, DeniedError):
                _, answers = self._ask(paths[0], "POST", f"{self._endpoint}/batch/storage/v1", sent)
        if len(_DELETED.findall(answers)) < len(paths):
            for path in paths:  # which explains what is wrong, or tries again
                self.delete_one(path)

    def copy(self, source: str, target: str) -> None:
        """Asks the store to rewrite an object, as often as it takes."""
        url = f"{self.address(source)}/rewriteTo/{self.address(target).removeprefix(f'{self._endpoint}/storage/v1/')}"
        done: dict[str, Any] = {"done": False}
        while not done.get("done", True):
            token = urllib.parse.quote(done.get("rewriteToken", ""), safe="")
            try:
                done = self._ask_json(target, "POST", url + (f"?rewriteToken={token}" if token else ""))
            except MissingFileError:
                missing(source)

    def _ask(
        self, path: str, method: str, url: str, sent: _Sent = ({}, None), client: WebClient | None = None
    ) -> tuple[Mapping[str, str], bytes]:
        """The headers and the content of a successful answer; asks as often as it takes."""
        client = client or self.client

        def attempt() -> tuple[Mapping[str, str], bytes]:
            with self._answer(client, path, method, url, *sent) as response:
                return response.headers, response.read()

        return client.patiently(path, url, attempt)

    def _ask_json(self, path: str, method: str, url: str, sent: _Sent = ({}, None)) -> dict[str, Any]:
        _, content = self._ask(path, method, url, sent)
        try:
            found: dict[str, Any] = json.loads(content)
        except ValueError as error:
            raise RunFailedError(f"{path}: {url} does not answer as Cloud Storage does; check the address.") from error
        return found

    @contextlib.contextmanager
    def _answer(
        self,
        client: WebClient,
        path: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body = None,
    ) -> Iterator[Any]:
        """The answer to one request, as WebClient.answer; looks for an account where access without is refused."""
        account = self._account.headers(path, url)
        try:
            with client.answer(path, method, url, {**headers, **account}, body) as response:
                yield response
        except DeniedError as error:
            if account:
                raise
            self._account.look_for(path)
            raise TransientError("it wants credentials", progressed=True) from error


class _ResumableUpload(PartedUpload):
    """https://cloud.google.com/storage/docs/performing-resumable-uploads"""

    def __init__(self, store: CloudStore, path: str) -> None:
        self._store, self._path, self._sent, self._checksum = store, path, 0, _checksum()
        named = json.dumps({"name": _split(path)[1]}).encode()
        sent = {"Content-Type": "application/json"}, named
        headers, _ = store._ask(path, "POST", store._upload_url(path, "resumable"), sent)
        self._url = headers["Location"]

    def send(self, part: Content) -> None:
        self._send(part, "*")

    def finish(self, part: Content) -> Stored:
        made = json.loads(self._send(part, str(self._sent + _length(part))))
        return self._store._received(self._path, made, self._checksum)

    def _send(self, part: Content, total: str) -> bytes:
        """Sends a part; what is missing of it is sent again after a failure."""
        _checksum_with(self._checksum, part)
        start, end, is_first = self._sent, self._sent + _length(part), True

        def attempt() -> bytes:
            nonlocal start, is_first
            if not is_first:
                status, received, content = self._exchange((), f"bytes */{total}")
                if status != INCOMPLETE:
                    return content
                start = max(self._sent, received)
            is_first = False
            rest = _behind(part, start - self._sent)
            status, received, content = self._exchange(rest, f"bytes {start}-{end - 1}/{total}")
            if status == INCOMPLETE and (total != "*" or received < end):
                raise TransientError("it did not take all of a part", progressed=received > start)
            return content

        content = self._store.client.patiently(self._path, self._url, attempt)
        self._sent = end
        return content

    def _exchange(self, body: Content, content_range: str) -> tuple[int, int, bytes]:
        """The status of an answer, how many bytes the store has, and the content."""
        headers = {"Content-Range": content_range, "Content-Length": str(_length(body))}
        with self._store._answer(self._store.client, self._path, "PUT", self._url, headers, body) as response:
            has = response.headers.get("Range", "").removeprefix(_RANGE_LAST)
            return response.status, int(has) + 1 if has.isdecimal() else 0, response.read()

    def abandon(self) -> None:
        with contextlib.suppress(MissingFileError, RefusedError, DeniedError):
            self._store._ask(self._path, "DELETE", self._url)


def _checksum() -> Any:
    """The checksum that Cloud Storage keeps of an object, of nothing yet."""
    import google_crc32c

    checksum: Any = google_crc32c.Checksum
    return checksum()


def _checksum_with(checksum: Any, content: Content) -> Any:
    """The checksum, with more content."""
    for piece in content:
        for at in range(0, len(piece), _BLOCK):
            checksum.update(bytes(piece[at : at + _BLOCK]))  # it takes nothing that can be changed
    return checksum


def _checksum_of(headers: Mapping[str, str]) -> str:
    """The checksum of an object that an answer names; "" if there is none, or it is of what the store unpacks."""
    if headers.get("x-goog-stored-content-encoding", "identity") != "identity":
        return ""
    return "".join(_CRC32C.findall(headers.get("x-goog-hash", ""))[:1])


def _fits(file: FileInfo, content: bytes | memoryview) -> bool:
    """Whether a content is that of an object, as far as its checksum tells: not if it is a part of it."""
    if not file.checksum or len(content) != file.size:
        return True
    return base64.b64encode(_checksum_with(_checksum(), [content]).digest()).decode() == file.checksum


def _arrived_damaged(path: str) -> RunFailedError:
    return RunFailedError(
        f"{path}: this object arrived {_TRIES} times with other bytes than its checksum says; check the network, and "
        "run the same command again."
    )


def _length(content: Content) -> int:
    return sum(map(len, content))


def _behind(content: Content, start: int) -> Content:
    """The bytes of a content from a place on."""
    ends = itertools.accumulate(map(len, content))
    return [piece[max(0, start - (end - len(piece))) :] for piece, end in zip(content, ends, strict=True)]


def _split(path: str) -> tuple[str, str]:
    """The bucket and the name of an object."""
    bucket, _, name = path.removeprefix("gs://").partition("/")
    return bucket, name


def _reason(response: urllib3.BaseHTTPResponse) -> str:
    """The status of an answer, and what the store says about it."""
    try:
        said = str(json.loads(response.read())["error"]["message"])
    except (ValueError, KeyError, TypeError):
        said = ""
    return f"{status_of(response)}{': ' if said else ''}{' '.join(said.split()).rstrip('.')}"


def _described(path: str, found: Mapping[str, Any]) -> FileInfo:
    return FileInfo(
        path=path,
        size=int(found["size"]),
        changed=microseconds(datetime.datetime.fromisoformat(found["updated"])),
        version=str(found["generation"]),
        checksum=found.get("crc32c") or "",
    )


def _check_service(name: str, endpoint: str) -> None:
    """Connects to the service, or to the proxy before it, and closes the connection."""
    url = urllib.parse.urlsplit(endpoint)
    if url.scheme not in _DEFAULT_PORTS or not url.hostname:
        raise UnusableInputError(
            f"{name}: {endpoint!r} is no address of a storage service; STORAGE_EMULATOR_HOST should be like "
            "http://localhost:9000."
        )
    via = ""
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy and not urllib.request.proxy_bypass(url.hostname):
        via, url = f" through the proxy {proxy}", urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    port = url.port or _DEFAULT_PORTS.get(url.scheme, _DEFAULT_PORTS["http"])
    failure = network.connection_failure(url.hostname or "", port, _CONNECT_SECONDS)
    if failure:
        raise UnusableInputError(f"{name}: {endpoint} cannot be reached{via} ({failure}); check the network.")


class CloudAccount:
    """Nobody at first, and the machine's default account once somebody has looked for it."""

    def __init__(self) -> None:
        """Looks for nothing yet."""
        self._lock = threading.Lock()
        self._credentials: Any = None

    def headers(self, path: str, url: str) -> dict[str, str]:
        """What a request says about who asks; a token that has expired is renewed.

        Raises:
          TransientError: Google does not give a token at the moment.
          UnusableInputError: Google refuses the account.
        """
        with self._lock:
            if self._credentials is None:
                return {}
            from google.auth import exceptions
            from google.auth.transport.requests import Request

            sent: dict[str, str] = {}
            try:
                self._credentials.before_request(Request(), "GET", url, sent)
            except (exceptions.RefreshError, exceptions.InvalidOperation) as error:
                raise UnusableInputError(
                    f"{path}: Google refuses the credentials ({_plain(error)}); renew them, for example with `gcloud "
                    "auth application-default login`."
                ) from error
            except exceptions.GoogleAuthError as error:
                raise TransientError(_plain(error)) from error
            return sent

    def look_for(self, path: str) -> None:
        """Finds the machine's default account.

        Raises:
          UnusableInputError: there is none.
        """
        # Their import takes a second.
        import google.auth
        from google.auth import exceptions

        with self._lock:
            if self._credentials is not None:
                return
            try:
                self._credentials = google.auth.default(scopes=[_SCOPE])[0]
            except exceptions.DefaultCredentialsError as error:
                raise UnusableInputError(
                    f"{path}: access needs credentials, and there are no usable Google credentials ({_plain(error)}); "
                    "run `gcloud auth application-default login`, or name a service account's file in "
                    "GOOGLE_APPLICATION_CREDENTIALS."
                ) from error


def _plain(error: Exception) -> str:
    """An error as part of a sentence."""
    return " ".join(str(error.args[0] if error.args else error).split()).rstrip(".") or type(error).__name__
