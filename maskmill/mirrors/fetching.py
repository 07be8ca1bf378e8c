"""One file of a dump comes over HTTP, however often the connection fails, and is held against its checksum.

A local file grows under the name NAME.part, and NAME.part.json says of what it is, so that another process can go on.
An object in a bucket appears when it is complete; what interrupts the process makes it begin again.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from http import HTTPStatus
from typing import Protocol

import urllib3

from maskmill.errors import MissingFileError, RunFailedError
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import DumpChangedError, DumpFile, DumpGoneError
from maskmill.storage import completions, files
from maskmill.storage.web_client import RefusedError, TransientError

PART = ".part"
PART_RECORD = ".part.json"
_BLOCK = 1 << 20
_ATTEMPTS = 2  # at a file whose checksum is wrong
_MOST_BEGINNINGS = 8  # of an object, whose beginning cannot be kept
_WEAK = "W/"

# Is told of a file's name, the bytes of it that are there, and its size (None: not known).
Progress = Callable[[str, int, int | None], None]


class StoppedError(Exception):
    """The download of a file ends because that of another has failed; its part stays."""


class _WrongChecksumError(Exception):
    """Ends the writing of an object without making it visible."""


class _BeginAgainError(Exception):
    """What was written of an object cannot be used."""


class Fetching:
    """What the downloads of a dump's files share. For any number of threads."""

    def __init__(self, client: MirrorClient, progress: Progress) -> None:
        """client: makes the requests. progress: is told how far each file is."""
        self.client = client
        self.progress = progress
        self._stop = threading.Event()
        self._quiet_until = 0.0

    def stop(self) -> None:
        """Ends all downloads soon, with StoppedError."""
        self._stop.set()

    def check(self) -> None:
        """Raises StoppedError where the downloads are to end."""
        if self._stop.is_set():
            raise StoppedError

    def patiently(self, file: DumpFile, attempt: Callable[[], None]) -> None:
        """Calls `attempt` until it raises no TransientError; asks nothing while the server wants to be left alone.

        Raises:
          RunFailedError: the server has failed for too long.
          StoppedError: the downloads are to end.
        """

        def considerate() -> None:
            # One connection is told so, and all of them are meant.
            while (pause := self._quiet_until - time.monotonic()) > 0:
                self._stop.wait(pause)
                self.check()
            self.check()
            try:
                attempt()
            except TransientError as error:
                self._quiet_until = max(self._quiet_until, time.monotonic() + error.wait)
                raise

        self.client.web.patiently(file.url, file.url, considerate)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Seen:
    """What a server said of a file when its download began.

    Attributes:
      url, checksum: of the file, as the mirror lists it.
      size: in bytes; None where nobody says.
      etag, modified: the headers ETag and Last-Modified; empty where there is none.
    """

    url: str
    checksum: str
    size: int | None = None
    etag: str = ""
    modified: str = ""

    @property
    def condition(self) -> str:
        """What makes a server send the rest only of this same file (If-Range); empty where nothing does."""
        return self.etag if self.etag and not self.etag.startswith(_WEAK) else self.modified

    def may_be(self, other: "_Seen") -> bool:
        """Whether another answer may be of the same file: whether all agree that both have."""
        pairs = [(self.etag.removeprefix(_WEAK), other.etag.removeprefix(_WEAK)), (self.size, other.size)]
        pairs += [] if all(pairs[0]) else [(self.modified, other.modified)]
        return all(one == another for one, another in pairs if one and another)


class _Sink(Protocol):
    """Where a file's bytes go.

    Attributes:
      seen: what the server said of the file when its first byte was written; None before.
      size: how many bytes are there.
    """

    seen: _Seen | None
    size: int

    def begin(self, start: int, seen: _Seen) -> None:
        """What comes now begins at `start`: 0 or the size."""

    def write(self, block: bytes) -> None:
        """Appends a block."""

    def digests(self) -> dict[str, str]:
        """The checksums of what was written, by the algorithms of those that the mirror has published."""


def _wrong_checksum(file: DumpFile, digests: Mapping[str, str]) -> str:
    """A clause that names the first checksum that is wrong; empty where all are right."""
    for algorithm, published in file.sums.items():
        if digests[algorithm] != published:
            return f"its {algorithm} is {digests[algorithm]}, and the mirror says {published}"
    return ""


def _digests_of(path: str, algorithms: Collection[str], told: Callable[[int], None] | None = None) -> dict[str, str]:
    """The checksums of a file, by their algorithms. told: takes the size of each block that was read."""
    digests = {algorithm: hashlib.new(algorithm) for algorithm in algorithms}
    with files.open_input(path) as content:
        while digests and (block := content.read(_BLOCK)):
            for digest in digests.values():
                digest.update(block)
            if told is not None:
                told(len(block))
    return {algorithm: digest.hexdigest() for algorithm, digest in digests.items()}


def check(file: DumpFile, fetching: Fetching) -> None:
    """Compares a file that is read where it lies, in a directory or a bucket, with the checksums beside it.

    Raises:
      DumpChangedError: one is wrong.
      UnusableInputError, RunFailedError: it cannot be read.
    """
    done = 0

    def told(count: int) -> None:
        nonlocal done
        done += count
        fetching.progress(file.name, done, file.size)

    if wrong := _wrong_checksum(file, _digests_of(file.url, file.sums, told)):
        raise DumpChangedError(
            f"{file.url}: {wrong}; this copy is damaged, or not complete yet: copy it again, and run the same command "
            "again."
        )


def fetch(file: DumpFile, path: str, fetching: Fetching) -> None:
    """Downloads a file, unless it is there, and checks it; it gets its name when it is whole and right.

    Args:
      file: as the mirror lists it.
      path: where it goes, local or in a bucket.
      fetching: of all files of the dump.

    Raises:
      DumpGoneError: the mirror does not have it any more.
      DumpChangedError: the mirror has another file now, or one with the wrong checksum.
      StoppedError: all downloads are to end.
      UnusableInputError, RunFailedError: it cannot be read or written.
    """
    if files.exists(path):
        return
    receive = _receive_local if files.is_local(path) else _receive_object
    wrong = ""
    try:
        for _ in range(_ATTEMPTS):
            wrong = receive(file, path, fetching)
            if not wrong:
                return
    except MissingFileError as error:
        raise DumpGoneError(
            f"{file.url}: this file is not on the mirror any more; run the same command again for the dump that is."
        ) from error
    raise DumpChangedError(
        f"{file.url}: {wrong}; it was downloaded twice. "
        "The mirror may be replacing it: run the same command again later."
    )


def _receive(file: DumpFile, sink: _Sink, fetching: Fetching) -> None:
    """Makes requests until all of a file is in the sink; errors are those of `fetch`."""
    most = sink.size

    def attempt() -> None:
        nonlocal most
        try:
            _request_rest(file, sink, fetching)
        except TransientError as error:
            # A server that always sends the same beginning makes no progress, however often it does.
            error.progressed = sink.size > most
            raise
        finally:
            most = max(most, sink.size)

    fetching.patiently(file, attempt)


def _request_rest(file: DumpFile, sink: _Sink, fetching: Fetching) -> None:
    """Makes one request for what is missing of a file, and appends what comes.

    Raises:
      TransientError: the connection failed; what came stays.
      DumpChangedError: the file is not the one that the mirror lists, or not the one whose beginning is there.
    """
    start, seen, headers = sink.size, sink.seen, {}
    if seen is not None and start and start == seen.size:
        return
    if seen is not None and start and (seen.condition or file.checksum):
        headers = {"Range": f"bytes={start}-"} | ({"If-Range": seen.condition} if seen.condition else {})
    try:
        with fetching.client.answer("GET", file.url, headers) as response:
            first, now = _described(response, file)
            _check_same(file, sink, now, first)
            sink.begin(first, now)
            size = now.size
            while block := response.read1(_BLOCK):
                fetching.check()
                sink.write(block)
                fetching.progress(file.name, sink.size, size)
    except RefusedError:
        if not headers or seen is None:
            raise
        # What is there is longer than the file, or the server does not take ranges at all.
        sink.begin(0, seen)
        raise TransientError("it refused to send the rest") from None
    if size is not None and sink.size < size:
        raise TransientError("the connection was cut")


def _described(response: urllib3.BaseHTTPResponse, file: DumpFile) -> tuple[int, _Seen]:
    """Where what comes begins in the file, and what the server says of the file.

    Raises:
      DumpChangedError: it has not the size that the mirror lists.
      TransientError: the server says nothing that makes sense.
    """
    first, size = 0, response.length_remaining
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", "").strip())
        if match is None:
            raise TransientError("it does not say which part it sends")
        first, size = int(match[1]), None if match[3] == "*" else int(match[3])
    if size is not None and file.size is not None and size != file.size:
        raise DumpChangedError(
            f"{file.url}: the mirror lists {file.size:,} bytes and sends {size:,}: it is replacing this file; run the "
            "same command again later."
        )
    return first, _Seen(
        url=file.url,
        checksum=file.checksum,
        size=file.size if size is None else size,
        etag=response.headers.get("ETag", ""),
        modified=response.headers.get("Last-Modified", ""),
    )


def _check_same(file: DumpFile, sink: _Sink, now: _Seen, first: int) -> None:
    """Refuses to mix two files.

    Raises:
      DumpChangedError: the file was replaced, and no checksum would tell whether it is still one of this dump.
      TransientError: what comes does not go on where the sink ends; it begins anew.
    """
    if sink.seen is not None and sink.size and not sink.seen.may_be(now):
        if not file.checksum:
            raise DumpChangedError(f"{file.url}: this file was replaced while it was read; run the same command again.")
        if first:
            sink.begin(0, now)
            raise TransientError("the file was replaced")
    if first not in (0, sink.size):
        raise TransientError("it sent another part than it was asked for")


class _LocalPart:
    """The part of a file on a local disk, which another process may have begun."""

    def __init__(self, file: DumpFile, part: str) -> None:
        self._algorithms = tuple(file.sums)
        self._path = part
        self.seen = _read_seen(part)
        fits = self.seen is not None and (self.seen.url, self.seen.checksum) == (file.url, file.checksum)
        self._raw = io.FileIO(part, "r+" if os.path.exists(part) else "w+")
        self.size = self._raw.seek(0, os.SEEK_END) if fits else 0

    def begin(self, start: int, seen: _Seen) -> None:
        """Forgets what lies behind `start`. Nothing is ever there of another file than the record says."""
        with _writing(self._path):  # here, because an OSError in the midst of an answer counts as the connection's
            self._raw.truncate(start)
            self._raw.seek(start)
        self.size = start
        if seen != self.seen:
            files.write_bytes(_record_of(self._path), completions.canonical_json(seen).encode())
            self.seen = seen

    def write(self, block: bytes) -> None:
        """Appends a block, past all buffers of this process: a kill loses nothing that came."""
        rest = memoryview(block)
        with _writing(self._path):
            while rest:
                written = self._raw.write(rest)
                self.size += written
                rest = rest[written:]

    def digests(self) -> dict[str, str]:
        """The checksums of the whole part."""
        return _digests_of(self._path, self._algorithms)

    def close(self, final: str) -> None:
        """Gives the file its name; an empty name deletes it."""
        os.fsync(self._raw.fileno())
        self._raw.close()
        if final:
            os.replace(self._path, final)
        else:
            os.unlink(self._path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_record_of(self._path))

    def leave(self) -> None:
        """Leaves the part to whoever goes on."""
        self._raw.close()


def _receive_local(file: DumpFile, path: str, fetching: Fetching) -> str:
    """Downloads a file to a local disk; it has its name if no checksum is wrong (`_wrong_checksum`)."""
    with _writing(path):
        part = _LocalPart(file, path + PART)
        try:
            _receive(file, part, fetching)
            wrong = _wrong_checksum(file, part.digests())
            part.close("" if wrong else path)
        finally:
            part.leave()
    return wrong


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Turns what a disk refuses into a sentence.

    Raises:
      RunFailedError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise RunFailedError(
            f"{path}: this file cannot be written ({error.strerror or error}); what is there stays. Make room, and run "
            "the same command again."
        ) from error


def _record_of(part: str) -> str:
    return part.removesuffix(PART) + PART_RECORD


def _read_seen(part: str) -> _Seen | None:
    """What the part of a file is of; None where nobody knows."""
    try:
        with open(_record_of(part), "rb") as described:
            return _Seen(**json.loads(described.read()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


class _Object:
    """An object that is being written: it cannot go back."""

    def __init__(self, file: DumpFile, output: files.OutputFile) -> None:
        self.seen: _Seen | None = None
        self.size = 0
        self._output = output
        self._digests = {algorithm: hashlib.new(algorithm) for algorithm in file.sums}

    def begin(self, start: int, seen: _Seen) -> None:
        """Raises _BeginAgainError where something was written behind `start`."""
        if start != self.size:
            raise _BeginAgainError
        self.seen = seen

    def write(self, block: bytes) -> None:
        """Appends a block."""
        self._output.write(block)
        self.size += len(block)
        for digest in self._digests.values():
            digest.update(block)

    def digests(self) -> dict[str, str]:
        """The checksums of what was written."""
        return {algorithm: digest.hexdigest() for algorithm, digest in self._digests.items()}


def _receive_object(file: DumpFile, path: str, fetching: Fetching) -> str:
    """Downloads a file to a bucket; the object appears if no checksum is wrong (`_wrong_checksum`).

    Raises:
      RunFailedError: the mirror takes no ranges, and its connection fails each time.
    """
    wrong = ""
    for _ in range(_MOST_BEGINNINGS):
        with contextlib.suppress(_BeginAgainError):
            with contextlib.suppress(_WrongChecksumError), files.new_file(path, checksum=False) as output:
                sink = _Object(file, output)
                _receive(file, sink, fetching)
                wrong = _wrong_checksum(file, sink.digests())
                if wrong:
                    raise _WrongChecksumError
            return wrong
    raise RunFailedError(
        f"{file.url}: the mirror cannot send a part of this file, and the connection was cut {_MOST_BEGINNINGS} times; "
        "run the same command again later."
    )
