"""s3:// in Amazon S3 and in stores that speak its protocol, by botocore (extra [aws]).

Credentials, region and endpoint come from where AWS's own tools have them: $AWS_…, ~/.aws/config, a machine's role.
`version` is an object's entity tag: the same content written again may have the same one. Writes are conditional with
If-None-Match and If-Match: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html.
"""

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.storage.files import ChangedError, FileInfo
from maskmill.storage.stores import (
    DENIED,
    FAILING,
    PART_BYTES,
    Content,
    ObjectStore,
    ObjectWriter,
    PartedUpload,
    Stored,
    microseconds,
    missing,
    range_header,
    whole_size,
)
from maskmill.storage.web_client import FIRST_PATIENCE, SILENCE, DeniedError, RefusedError, TransientError, WebClient

T = TypeVar("T")

_MOST_CONNECTIONS = 64
_MOST_COPIED = 5 << 30  # bytes
_MISSING = {"404", "NoSuchKey", "NoSuchBucket", "NotFound"}
_DENIED = {"401", "403", "AccessDenied"}
_CHANGED = {"412", "PreconditionFailed"}
# 409: another conditional write of the same object is under way.
_TRY_AGAIN = {408, 409, 425, 429}
_SERVER_ERROR = 500


class S3Store(ObjectStore):
    """Objects of S3. Where there are no credentials, it asks without, as public buckets allow."""

    scheme = "s3://"

    def __init__(self) -> None:
        """Asks nothing yet; reads AWS's settings."""
        import botocore.session
        from botocore import UNSIGNED
        from botocore.config import Config

        super().__init__(WebClient(failing=FAILING))
        session = botocore.session.get_session()
        self._has_account = session.get_credentials() is not None
        settings = Config(
            connect_timeout=FIRST_PATIENCE,
            read_timeout=SILENCE,
            retries={"total_max_attempts": 1},  # `patiently` tries again
            max_pool_connections=_MOST_CONNECTIONS,
            request_checksum_calculation="when_supported",
            signature_version=None if self._has_account else UNSIGNED,
        )
        region = session.get_config_variable("region") or "us-east-1"
        self._s3 = session.create_client("s3", region_name=region, config=settings)
        self._s3.meta.events.register("needs-retry.s3", self._count)

    def _count(self, request_dict: dict[str, Any], response: Any, **_: Any) -> None:
        if response is not None:
            self.client.count(request_dict["method"], self._s3.meta.endpoint_url)

    def address(self, path: str) -> str:
        return f"{self._s3.meta.endpoint_url}/{path.removeprefix(self.scheme)}"

    def ask_for_bucket(self, name: str, bucket: str) -> None:
        self._ask(name, lambda: self._s3.head_bucket(Bucket=bucket))

    def _ask(self, path: str, ask: Callable[[], T]) -> T:
        """What a call of botocore gives; makes it as often as it takes."""

        def attempt() -> T:
            with self._explained(path):
                return ask()

        return self.client.patiently(path, self._s3.meta.endpoint_url, attempt)

    @contextlib.contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Turns botocore's errors into those of all stores."""
        from botocore import exceptions

        try:
            yield
        except exceptions.ClientError as error:
            said = error.response.get("Error", {})
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            codes = {str(said.get("Code")), str(status)}
            text = f"{said.get('Code') or status}: {' '.join(str(said.get('Message', '')).split())}".rstrip(": .")
            if codes & _MISSING:
                missing(path)
            if codes & _CHANGED:
                raise ChangedError(path) from error
            if codes & _DENIED:
                raise DeniedError(f"{path}: {DENIED.format(error=text)}", text) from error
            if status in _TRY_AGAIN or status >= _SERVER_ERROR:
                raise TransientError(text) from error
            raise RefusedError(f"{path}: the object store refuses this ({text}).", status) from error
        except (
            exceptions.HTTPClientError,
            exceptions.ConnectionError,
            exceptions.IncompleteReadError,
            exceptions.FlexibleChecksumError,  # what arrived does not fit the checksum that came with it
        ) as error:
            raise TransientError(_plain(error)) from error
        except exceptions.BotoCoreError as error:
            raise UnusableInputError(f"{path}: AWS's settings do not fit ({_plain(error)}); correct them.") from error

    def find(self, path: str, *, fresh: bool = False) -> FileInfo | None:
        with contextlib.suppress(MissingFileError):
            found = self._ask(path, lambda: self._s3.head_object(**_split(path)))
            return _described(path, found, found["ContentLength"])
        return None

    def content(self, path: str, start: int, end: int | None) -> tuple[bytes, FileInfo]:
        """The entity tag comes with the content."""

        def ask() -> tuple[bytes, FileInfo]:
            found = self._s3.get_object(**_split(path), **range_header(start, end))
            content = found["Body"].read()
            return content, _described(path, found, whole_size(found.get("ContentRange", ""), content))

        return self._ask(path, ask)

    @contextlib.contextmanager
    def body(self, file: FileInfo, start: int, end: int, *, fresh: bool) -> Iterator[Any]:
        with self._explained(file.path):
            found = self._s3.get_object(**_split(file.path), **range_header(start, end), IfMatch=file.version)
            with contextlib.closing(found["Body"]) as body:
                yield types.SimpleNamespace(read1=body.read)

    def pages(self, prefix: str, *, deep: bool) -> Iterator[tuple[list[FileInfo], list[str]]]:
        place = _split(prefix)
        query = {"Bucket": place["Bucket"], "Prefix": place["Key"], **({} if deep else {"Delimiter": "/"})}
        root = f"s3://{place['Bucket']}/"
        while True:
            page = self._ask(prefix, lambda: self._s3.list_objects_v2(**query))
            yield (
                [_described(root + one["Key"], one, one["Size"]) for one in page.get("Contents", ())],
                [root + one["Prefix"] for one in page.get("CommonPrefixes", ())],
            )
            if not page.get("IsTruncated"):
                return
            query["ContinuationToken"] = page["NextContinuationToken"]

    def put(self, path: str, content: Content, expected: str | None = None) -> Stored:
        """Writes an object; the store compares a checksum of what it gets."""
        condition, body = _condition(expected), b"".join(content)
        made = self._ask(path, lambda: self._s3.put_object(**_split(path), Body=body, **condition))
        return Stored(made["ETag"], made["ETag"])

    def begin(self, path: str) -> PartedUpload:
        return _MultipartUpload(self, path)

    def delete_one(self, path: str, version: str | None = None) -> None:
        if version is not None:
            # Some stores do not know the condition: they are asked before.
            found = self.find(path)
            if found is not None and found.version != version:
                raise ChangedError(path)
        with contextlib.suppress(MissingFileError):
            condition = {} if version is None else {"IfMatch": version}
            self._ask(path, lambda: self._s3.delete_object(**_split(path), **condition))

    def copy(self, source: str, target: str) -> None:
        """Asks the store to copy an object; one of more than 5 GB goes through this machine."""
        file = self.find(source)
        if file is None:
            missing(source)
        if file.size <= _MOST_COPIED:
            self._ask(target, lambda: self._s3.copy_object(**_split(target), CopySource=_split(source)))
            return
        writer = ObjectWriter(self, target)
        with self.open(source) as content:
            while block := content.read(PART_BYTES):
                writer.write(block)
        writer.finish()


class _MultipartUpload(PartedUpload):
    def __init__(self, store: S3Store, path: str) -> None:
        self._store, self._path, self._tags = store, path, list[dict[str, Any]]()
        made = store._ask(path, lambda: store._s3.create_multipart_upload(**_split(path)))
        self._place = {**_split(path), "UploadId": made["UploadId"]}

    def send(self, part: Content) -> None:
        number, body, s3 = len(self._tags) + 1, b"".join(part), self._store._s3
        made = self._store._ask(self._path, lambda: s3.upload_part(**self._place, PartNumber=number, Body=body))
        sums = {name: value for name, value in made.items() if name.startswith("Checksum") and name != "ChecksumType"}
        self._tags.append({"PartNumber": number, "ETag": made["ETag"], **sums})

    def finish(self, part: Content) -> Stored:
        self.send(part)
        parts = {"Parts": self._tags}
        s3 = self._store._s3
        made = self._store._ask(self._path, lambda: s3.complete_multipart_upload(**self._place, MultipartUpload=parts))
        return Stored(made["ETag"], made["ETag"])

    def abandon(self) -> None:
        self._store._ask(self._path, lambda: self._store._s3.abort_multipart_upload(**self._place))


def _condition(expected: str | None) -> dict[str, str]:
    if expected is None:
        return {}
    return {"IfMatch": expected} if expected else {"IfNoneMatch": "*"}


def _split(path: str) -> dict[str, str]:
    """The bucket and the name of an object, as arguments of botocore."""
    bucket, _, name = path.removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": name}


def _described(path: str, found: Any, size: int) -> FileInfo:
    changed = microseconds(found["LastModified"])
    return FileInfo(path=path, size=size, changed=changed, version=found["ETag"], checksum=found["ETag"])


def _plain(error: Exception) -> str:
    """An error as part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")
