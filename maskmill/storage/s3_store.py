"""s3:// in Amazon S3 and in stores with its protocol, with botocore (extra [aws]).

Credentials, region and endpoint are those of AWS's own tools: $AWS_…, ~/.aws/config, a machine's role. `version` is an
object's entity tag: the same content written again may have the same one. Writes are conditional with
If-None-Match and If-Match: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import botocore.session
from botocore import UNSIGNED, exceptions
from botocore.config import Config

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.storage.files import ChangedError, FileInfo
from maskmill.storage.network import plain
from maskmill.storage.stores import ObjectStore, denied, failing, microseconds, no_bucket

T = TypeVar("T")

_CONNECT_SECONDS, _SILENCE = 5.0, 20.0
_ATTEMPTS, _FIRST_ATTEMPTS = 10, 3  # of a request, by botocore; the second before the service first answers
_answered: set[str] = set()  # not empty after the service has answered, also in forks
_READS = 5  # of a body that is cut or damaged
_MOST_CONNECTIONS = 64
_MISSING = {"404", "NoSuchKey", "NotFound"}
_DENIED = {"401", "403", "AccessDenied"}
_CHANGED = {"412", "PreconditionFailed", "ConditionalRequestConflict"}
_NOTHING_THERE = {"416", "InvalidRange"}
_SERVER_ERROR, _TOO_MANY = 500, 429
_PASSING = (
    exceptions.HTTPClientError,
    exceptions.ConnectionError,
    exceptions.IncompleteReadError,
    exceptions.FlexibleChecksumError,  # the answer does not fit its checksum
)


class S3Store(ObjectStore):
    """Objects of S3. Without credentials, requests are not signed, as public buckets allow."""

    scheme = "s3://"

    def __init__(self) -> None:
        """Read AWS's settings; send no request yet."""
        super().__init__()
        self._session = botocore.session.get_session()
        self._clients: dict[tuple[int, int], Any] = {}

    def _client(self) -> Any:
        """Return this process's client; a fork must not use its parent's connections."""
        attempts = _ATTEMPTS if _answered else _FIRST_ATTEMPTS
        key = os.getpid(), attempts
        if key not in self._clients:
            settings = Config(
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_SILENCE,
                retries={"mode": "standard", "total_max_attempts": attempts},
                max_pool_connections=_MOST_CONNECTIONS,
                request_checksum_calculation="when_supported",
                signature_version=None if self._session.get_credentials() is not None else UNSIGNED,
            )
            region = self._session.get_config_variable("region") or "us-east-1"
            self._clients[key] = self._session.create_client("s3", region_name=region, config=settings)
        return self._clients[key]

    def _ask(self, path: str, call: Callable[[Any], T]) -> T:
        """Return the result of a call of botocore; turn its errors into the common errors of stores."""
        try:
            result = call(self._client())
            _answered.add(self.scheme)
            return result
        except exceptions.ClientError as error:
            _answered.add(self.scheme)
            raise _common_error(path, error) from error
        except _PASSING as error:
            raise failing(path, plain(error)) from error
        except exceptions.BotoCoreError as error:
            raise UnusableInputError(f"{path}: AWS's settings do not fit ({plain(error)}); correct them.") from error

    def _place(self, path: str) -> dict[str, str]:
        """Return the bucket and the name of an object, as arguments of botocore."""
        bucket, name = self.split(path)
        return {"Bucket": bucket, "Key": name}

    def look(self, path: str) -> FileInfo | None:
        with contextlib.suppress(MissingFileError):
            found = self._ask(path, lambda s3: s3.head_object(**self._place(path)))
            return _described(path, found, found["ContentLength"])
        return None

    def fetch(self, path: str, start: int = 0, end: int | None = None, version: str = "") -> tuple[bytes, str]:
        if end is not None and end <= start:
            return b"", version
        condition = {"IfMatch": version} if version else {}
        if (start, end) != (0, None):
            condition["Range"] = f"bytes={start}-{'' if end is None else end - 1}"

        def read(s3: Any) -> tuple[bytes, str]:
            for left in reversed(range(_READS)):
                try:
                    found = s3.get_object(**self._place(path), **condition)
                    with contextlib.closing(found["Body"]) as body:
                        return body.read(), found["ETag"]
                except _PASSING:
                    if not left:
                        raise
                except exceptions.ClientError as error:
                    if not _codes(error) & _NOTHING_THERE:
                        raise
                    break
            return b"", version

        return self._ask(path, read)

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        bucket, name = self.split(prefix)
        query = {"Bucket": bucket, "Prefix": name, **({} if deep else {"Delimiter": "/"})}
        root = f"s3://{bucket}/"
        for page in self._ask(prefix, lambda s3: list(s3.get_paginator("list_objects_v2").paginate(**query))):
            yield (
                [_described(root + one["Key"], one, one["Size"]) for one in page.get("Contents", ())],
                [root + one["Prefix"] for one in page.get("CommonPrefixes", ())],
            )

    def write(self, path: str, content: bytes, expected: str | None = None) -> FileInfo:
        """Write an object; the store verifies a checksum of the bytes it receives."""
        condition = {} if expected is None else {"IfMatch": expected} if expected else {"IfNoneMatch": "*"}
        answer = self._ask(path, lambda s3: s3.put_object(**self._place(path), Body=content, **condition))
        return _written(path, answer, len(content))

    def send(self, path: str, parts: Iterator[bytes]) -> FileInfo:
        def upload(s3: Any) -> FileInfo:
            sent, size = list[dict[str, Any]](), 0
            answer = s3.create_multipart_upload(**self._place(path))
            place = {**self._place(path), "UploadId": answer["UploadId"]}
            try:
                for number, part in enumerate(parts, 1):
                    answer = s3.upload_part(**place, PartNumber=number, Body=part)
                    sums = {name: value for name, value in answer.items() if re.fullmatch("Checksum(?!Type).*", name)}
                    sent.append({"PartNumber": number, "ETag": answer["ETag"], **sums})
                    size += len(part)
                return _written(path, s3.complete_multipart_upload(**place, MultipartUpload={"Parts": sent}), size)
            except BaseException:
                with contextlib.suppress(exceptions.ClientError, exceptions.BotoCoreError):
                    s3.abort_multipart_upload(**place)
                raise

        return self._ask(path, upload)

    def remove(self, path: str, version: str | None = None) -> None:
        if version is not None:
            # Some stores ignore the condition, so compare the version first.
            found = self.look(path)
            if found is not None and found.version != version:
                raise ChangedError(path)
        with contextlib.suppress(MissingFileError):
            condition = {} if version is None else {"IfMatch": version}
            self._ask(path, lambda s3: s3.delete_object(**self._place(path), **condition))


def _codes(error: exceptions.ClientError) -> set[str]:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return {str(error.response.get("Error", {}).get("Code")), str(status)}


def _common_error(path: str, error: exceptions.ClientError) -> Exception:
    """Return the common error of stores for an answer of the store."""
    details, codes = error.response.get("Error", {}), _codes(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{details.get('Code') or status}: {' '.join(str(details.get('Message', '')).split())}".rstrip(": .")
    if details.get("Code") == "NoSuchBucket":
        return no_bucket(path)
    if codes & _MISSING:
        return MissingFileError(f"{path}: there is no such object.")
    if codes & _CHANGED:
        return ChangedError(path)
    if codes & _DENIED:
        return denied(path, text)
    if status >= _SERVER_ERROR or status == _TOO_MANY:
        return failing(path, text)
    return UnusableInputError(f"{path}: the object store refuses this ({text}).")


def _described(path: str, found: Any, size: int) -> FileInfo:
    changed = microseconds(found["LastModified"])
    return FileInfo(path=path, size=size, changed=changed, version=found["ETag"], checksum=found["ETag"])


def _written(path: str, answer: Any, size: int) -> FileInfo:
    return FileInfo(path=path, size=size, version=answer["ETag"], checksum=answer["ETag"])
