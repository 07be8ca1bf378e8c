"""Read and write files: local ones with the standard library, others through the store of their scheme (stores.py).

A file appears under its final name only when it is complete. A local file is written under a temporary name with a
unique attempt id, fsynced and renamed; an object is written under its final name, because on an object store it appears
only when its upload is complete. Stores are imported for paths that are not local only.
"""

import contextlib
import dataclasses
import errno
import fcntl
import fnmatch
import hashlib
import io
import os
import posixpath
import re
import stat
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.storage import paths, turns

if TYPE_CHECKING:
    import gzip

    from maskmill.storage.stores import ObjectStore

T = TypeVar("T")

TEMPORARY_SUFFIX = ".maskmill-tmp"
MOST_AT_ONCE = 16  # parallel requests to a store
TO_THE_END = 1 << 62  # the end of a range that goes to the end of a file
_COPY_BYTES = 4 << 20
_ATTEMPT_BYTES = 8
_SENT_AT_ONCE = 32 << 20  # bytes of a file that are flushed to the disk together


def scratch_prefix(process: int | None = None) -> str:
    """Return the prefix of the names of a process's directories in the temporary directory; None: of this process.

    A command that is interrupted removes its own and its workers' directories (pipelines/running/interruption.py).
    """
    return f"maskmill-{process or os.getpid()}-"


# Held while a temporary file is created, and from the moment on when this process is about to end.
_beginning_a_file = threading.Lock()


def free_after_fork(lock: threading.Lock) -> None:
    """Make forks (local workers) start with this lock free: no other thread holds it while the process forks."""
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


free_after_fork(_beginning_a_file)


def no_more_temporary_files() -> None:
    """Keep all other threads from creating temporary files, so that those that exist now can be removed.

    Return after a second at the latest: a file system that hangs may block a thread that creates a file.
    """
    _beginning_a_file.acquire(timeout=1)


_MOST_PARTS = 8  # into which commas may have cut a name
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class FileInfo:
    """A file that exists.

    Attributes:
      path, size: the size is in bytes.
      changed: the time of the last change, in parts of a second; 0: not known.
      version: differs after each change; "": not known.
      checksum: the store's own, of the content; "": none.
    """

    path: str
    size: int
    changed: int = dataclasses.field(default=0, compare=False)
    version: str = dataclasses.field(default="", compare=False)
    checksum: str = dataclasses.field(default="", compare=False)

    @property
    def stored(self) -> str:
        """The store's checksum and the version, which identify the content; "" without a checksum."""
        return f"{self.checksum} {self.version}" if self.checksum else ""


class ChangedError(UnusableInputError):
    """A file does not have the expected version. The constructor takes the file's path alone."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: this file was changed while it was read; open the data set again.")
        self.path = path


class DeniedError(UnusableInputError):
    """The server refuses the credentials, or needs some. status: its answer, as part of a sentence."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def is_local(path: str) -> bool:
    """Return whether `path` is on this machine's file system, as opposed to gs://, s3:// and so on."""
    return "://" not in path


def store_of(path: str) -> "ObjectStore":
    """Return the store of a path that is not local.

    Raises:
      UnusableInputError: the scheme is not supported here, or the path names no bucket.
    """
    paths.check_scheme(path)
    from maskmill.storage import stores

    return stores.store_of(path)


def join(directory: str, name: str) -> str:
    """Join a directory, local or not, and a name below it."""
    return f"{directory.rstrip('/')}/{name}" if directory != "/" else f"/{name}"


def base_name(path: str) -> str:
    """Return the last component of a path, local or not."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def parent(path: str) -> str:
    """Return the directory of a path, local or not."""
    if is_local(path):
        return os.path.dirname(path) or "."
    scheme, _, name = path.rstrip("/").partition("://")
    # A bucket or a server is its own parent, as "/" is.
    return f"{scheme}://{name.rsplit('/', 1)[0]}"


def match(patterns: str | Sequence[str], *, may_be_missing: bool = False) -> list[FileInfo]:
    """Return the files that globs match, each file once: in the order of the globs, sorted within a glob.

    Args:
      patterns: globs, as a list or separated by commas. A name with commas may come in parts, as options split it, if
        no file has the name of the first part.
      may_be_missing: whether a glob may match no file.

    Raises:
      UnusableInputError: a glob matches no file, or a file that cannot be read; or there is no glob.
    """
    if isinstance(patterns, str):
        patterns = patterns.split(",")
    parts = [pattern.strip() for pattern in patterns if pattern.strip()]
    if not parts:
        raise UnusableInputError("No input was named: give a path, a glob or a comma list of them.")
    matched: dict[str, FileInfo] = {}
    at = 0
    # Only a local name may have been cut at commas; in a store each try would take a request.
    whole = [] if any(map(is_local, parts)) else each(parts[0], _match_one, parts)
    while at < len(parts):
        found, taken = (whole[at], 1) if whole else _match_first(parts[at : at + _MOST_PARTS])
        if not found and not may_be_missing:
            raise UnusableInputError(paths.explain_missing(parts[at]))
        for file in found:
            matched.setdefault(file.path, file)
        at += taken
    return list(matched.values())


def _match_first(parts: Sequence[str]) -> tuple[list[FileInfo], int]:
    """Return the files that the first part matches, or the first parts joined with commas, and the number of parts."""
    found = _match_one(parts[0])
    if found or not is_local(parts[0]):
        return found, 1
    for count in range(2, len(parts) + 1):
        for comma in (",", ", "):
            if found := _match_one(comma.join(parts[:count])):
                return found, count
    return [], 1


def may_match(pattern: str, path: str) -> bool:
    """Return whether a pattern of `match` would match a file with this path, whether that exists or not."""
    if not is_local(pattern):
        return not is_local(path) and _matcher_of(pattern).fullmatch(path) is not None
    if not is_local(path) or os.path.lexists(pattern):
        return False
    folder, rest = "", os.path.expanduser(pattern).split("/")
    while rest and (not paths.has_wildcard(rest[0]) or os.path.lexists(os.path.join(folder, rest[0]))):
        folder = os.path.join(folder, rest.pop(0) or "/")
    for of_folder in (os.path.abspath, os.path.realpath):
        below = os.path.relpath(of_folder(path), of_folder(folder or "."))
        # A glob matches no hidden folder.
        if _matcher_of("/".join(rest)).fullmatch(below) and not re.search(r"(?:^|/)\.", below):
            return True
    return False


def _matcher_of(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern; `**/` also matches nothing."""
    from maskmill.storage.stores import matcher

    return matcher(pattern.replace("**/", "**"))


def find(path: str) -> FileInfo | None:
    """Return the file of exactly this name; None if there is none."""
    if is_local(path):
        found = paths.regular_file(path)
        return None if found is None else FileInfo(path=path, size=found.st_size, changed=found.st_mtime_ns)
    return store_of(path).find(path)


def _match_one(pattern: str) -> list[FileInfo]:
    if is_local(pattern):
        return _match_local(os.path.expanduser(pattern))
    return store_of(pattern).glob(pattern)


def _match_local(pattern: str) -> list[FileInfo]:
    by_glob = is_glob(pattern)
    names = paths.expand(pattern) if by_glob else [pattern]
    found = [(name, paths.regular_file(name, by_glob=by_glob)) for name in names]
    return [
        FileInfo(path=name, size=file.st_size, changed=file.st_mtime_ns) for name, file in found if file is not None
    ]


def is_glob(pattern: str) -> bool:
    """Return whether a pattern has wildcards, and no file or folder has the pattern itself as its name."""
    if not paths.has_wildcard(pattern) or paths.is_web(pattern):
        return False
    if is_local(pattern):
        return not os.path.lexists(os.path.expanduser(pattern))
    store = store_of(pattern)
    return store.find(pattern) is None and not any(store.entries(join(pattern, ""), deep=False))


def exists(path: str) -> bool:
    """Return whether a file exists under this exact name."""
    if is_local(path):
        return os.path.exists(path)
    return store_of(path).find(path) is not None


def size(path: str) -> int:
    """Return the size of a file in bytes."""
    if is_local(path):
        return os.path.getsize(path)
    return match([path])[0].size


def open_input(path: str, start: int = 0, end: int | None = None) -> BinaryIO:
    """Open a file to read its raw bytes, without unpacking; the file object can seek.

    Its methods raise RunFailedError if reading fails. Parts of objects are fetched ahead of use, up to 40 MiB
    (read_ahead.py).

    Args:
      path: the file.
      start, end: the range that will be read for certain, which is fetched ahead from a store; None: maybe only a
        little at the start. The position is at the start of the file in any case.

    Raises:
      UnusableInputError: the file cannot be opened.
    """
    try:
        if is_local(path):
            return io.BufferedReader(_Input(path))
        return store_of(path).open(path, start, end)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: this input does not exist; check the path.") from None
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise  # a limit of the machine, not the file's fault
        raise UnusableInputError(f"{path}: this input cannot be read ({paths.why(error)}).") from None


class _Input(io.FileIO):
    """A raw local file that raises RunFailedError with a sentence, for a failing disk or a lost network."""

    def __init__(self, path: str) -> None:
        super().__init__(os.path.expanduser(path))
        self._path = path

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with self._explained():
            return super().seek(offset, whence)

    def readinto(self, buffer: Any, /) -> int:
        with self._explained():
            return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        with self._explained():
            return super().readall() or b""

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunFailedError(
                f"{self._path}: this input cannot be read on ({error.strerror or error}); run the same command again."
            ) from error


def read_bytes(path: str) -> bytes:
    """Return the whole content of a file, which should be small; errors as in `open_input`."""
    if is_local(path):
        with open_input(path) as file:
            return file.read()
    return store_of(path).get(path)[0]


def read_if_there(path: str) -> bytes | None:
    """Return the content of a small file, or None if it does not exist; an object takes one request."""
    if is_local(path):
        return read_bytes(path) if exists(path) else None
    with contextlib.suppress(MissingFileError):
        return store_of(path).get(path)[0]
    return None


def read_range(path: str, start: int, end: int) -> bytes:
    """Return bytes [start, end) of a file; fewer if the file ends before."""
    if not is_local(path):
        if start >= end:
            return b""
        return store_of(path).get(path, start, end)[0]
    with open_input(path) as opened:
        opened.seek(start)
        return opened.read(end - start)


def sha256_of(path: str, also: Callable[[bytes], object] | None = None) -> str:
    """Return the sha256 of a file's content, in hexadecimal.

    also: called with each block of the content, in order.
    """
    digest = hashlib.sha256()
    with open_input(path, 0, TO_THE_END) as file:
        while block := file.read(_COPY_BYTES):
            digest.update(block)
            if also is not None:
                also(block)
    return digest.hexdigest()


def stored_checksum(path: str) -> str | None:
    """Return the checksum that a store has of an object (gs://: crc32c, s3://: the entity tag), without reading it.

    Return None elsewhere and for a missing object. An upload is finished only if this fits the bytes sent.
    """
    found = None if is_local(path) else store_of(path).find(path)
    return found.checksum or None if found is not None else None


def make_directory(path: str) -> None:
    """Create a local directory and its parents; object stores have no directories.

    Raises:
      UnusableInputError: the directory cannot be made.
    """
    if is_local(path):
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            check_directory(path)
            raise UnusableInputError(f"{path}: this directory cannot be made ({paths.why(error)}).") from None


def check_directory(path: str) -> None:
    """Check that a local directory can be created or written to, without doing so.

    Raises:
      UnusableInputError: it cannot; the message names the file or directory that prevents it.
    """
    if not is_local(path):
        return
    place = os.path.abspath(path)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        obstacle = "a link that leads to no directory" if os.path.islink(place) else "a file"
        raise UnusableInputError(f"{path}: this directory cannot be made ({place} is {obstacle}); name another one.")
    if not os.access(place, os.W_OK | os.X_OK):
        of_parent = "" if place == os.path.abspath(path) else f"cannot be made, because {place} "
        raise UnusableInputError(f"{path}: this directory {of_parent}is not writable.")


def list_directory(directory: str, pattern: str = "*") -> list[str]:
    """Return the sorted paths of the files in a directory, not in folders, whose names match a glob; [] without it."""
    if is_local(directory):
        if not os.path.isdir(directory):
            return []
        # `is_file` raises an error for a circle of links, `isfile` does not.
        names = sorted(e.name for e in os.scandir(directory) if e.is_file(follow_symlinks=False) or os.path.isfile(e))
        return [join(directory, n) for n in names if fnmatch.fnmatchcase(n, pattern)]
    found, _ = store_of(join(directory, "")).entries(join(directory, ""), deep=False)
    return [file.path for file in found if fnmatch.fnmatchcase(base_name(file.path), pattern)]


def list_folders(directory: str) -> list[str]:
    """Return the sorted names of the folders in a directory; [] if it does not exist."""
    if is_local(directory):
        return sorted(e.name for e in os.scandir(directory) if e.is_dir()) if os.path.isdir(directory) else []
    return [base_name(folder) for folder in store_of(join(directory, "")).entries(join(directory, ""), deep=False)[1]]


def list_below(directory: str) -> list[str]:
    """Return the paths of all files below a directory, at any depth, sorted."""
    if is_local(directory):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return [file.path for file in objects_below(directory)]


def objects_below(directory: str) -> list[FileInfo]:
    """Return all objects below a directory of a store, sorted."""
    return store_of(join(directory, "")).entries(join(directory, ""))[0]


@contextlib.contextmanager
def remembering(*directories: str) -> Iterator[None]:
    """Within the block, list the objects below directories of a store, and read each small one, only once.

    Changes by this process are included, those by other processes are not. Local directories are not cached.
    """
    with contextlib.ExitStack() as stack:
        for directory in directories:
            if not is_local(directory):
                stack.enter_context(store_of(directory).remembering(directory))
        yield


def each(place: str, function: Callable[..., T], *arguments: Iterable[Any]) -> list[T]:
    """Return the list of `map`; if `place` is in a store, with parallel calls.

    place: a path, local or not. arguments: of equal lengths.
    """
    calls = list(zip(*arguments, strict=True))
    if is_local(place) or len(calls) <= 1:
        return [function(*call) for call in calls]
    from concurrent.futures import ThreadPoolExecutor

    with turns.waiting(), ThreadPoolExecutor(min(MOST_AT_ONCE, len(calls))) as threads:
        return list(threads.map(lambda call: function(*call), calls))


def sizes_in(directory: str) -> dict[str, int]:
    """Return the sizes in bytes of the files in a directory, not in folders, by path; {} if it does not exist."""
    if is_local(directory):
        return {path: os.path.getsize(path) for path in list_directory(directory)}
    return {file.path: file.size for file in store_of(join(directory, "")).entries(join(directory, ""), deep=False)[0]}


def delete(paths: Sequence[str]) -> None:
    """Delete files, all local or none; a file that does not exist is no error."""
    if not paths:
        return
    if is_local(paths[0]):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        return
    store_of(paths[0]).delete(paths)


def delete_abandoned(directory: str) -> None:
    """Delete the temporary files in a directory whose writers are dead; those of living writers stay."""
    if not is_local(directory):
        return  # object stores do not list unfinished objects
    for path in list_directory(directory, f"*{TEMPORARY_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


class OutputFile:
    """A file being written.

    Attributes:
      path: its final name.
      size: the bytes written so far, after packing.
      stored: the store's own checksum, after the upload; "": none.
    """

    def __init__(self, path: str, raw: Any, *, checksum: bool, packed: bool) -> None:
        self.path = path
        self.size = 0
        self.stored = ""
        self._raw = raw
        self._digest = hashlib.sha256() if checksum else None
        self._packer = _gzip_into(self) if packed else None

    def write(self, block: bytes | bytearray | memoryview) -> None:
        """Append bytes, packed if the file is."""
        if self._packer is not None:
            self._packer.write(block)
        else:
            self._write_raw(block)

    def _write_raw(self, block: bytes | bytearray | memoryview) -> None:
        self._raw.write(block)
        self.size += len(block)
        if self._digest is not None:
            self._digest.update(block)

    def finish(self) -> None:
        """Write the bytes that the packer still has."""
        if self._packer is not None:
            self._packer.close()

    @property
    def sha256(self) -> str:
        """The sha256 of the bytes written so far, after packing, in hexadecimal.

        Raises:
          ValueError: the file is written without a checksum.
        """
        if self._digest is None:
            raise ValueError(f"{self.path} is written without a checksum")
        return self._digest.hexdigest()


def _gzip_into(file: OutputFile) -> "gzip.GzipFile":
    """Return a gzip file that writes to `file`; it has no time and no name, so equal content gives equal bytes."""
    import gzip

    target: Any = types.SimpleNamespace(write=file._write_raw, flush=lambda: None)
    return gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0, compresslevel=6)


@contextlib.contextmanager
def new_file(path: str, *, checksum: bool = True, packed: bool = False) -> Iterator[OutputFile]:
    """Write a file that appears under `path` only when the block ends without an exception.

    Args:
      path: final name, local or not. A missing directory is created.
      checksum: whether to compute the sha256 while writing.
      packed: whether to gzip the content; the same content gives the same bytes.

    Raises:
      RunFailedError: the file cannot be written: the disk is full, or an object store received other bytes.
      UnusableInputError: there is no such bucket, or it refuses access.
    """
    if is_local(path):
        with _new_local_file(path, checksum, packed) as output:
            yield output
        return
    from maskmill.storage.stores import ObjectWriter

    raw = ObjectWriter(store_of(path), path)
    output = OutputFile(path, raw, checksum=checksum, packed=packed)
    try:
        yield output
        output.finish()
        output.stored = raw.finish().checksum
    except BaseException:
        raw.abandon()
        raise


@contextlib.contextmanager
def _new_local_file(path: str, checksum: bool, packed: bool) -> Iterator[OutputFile]:
    # A link stays: the file that it points to is replaced.
    target = os.path.realpath(path) if os.path.islink(path) else path
    check_replaceable(target, path)
    make_directory(parent(target))
    temporary, raw = "", None
    try:
        temporary, raw = _locked_temporary(target)
        output = OutputFile(path, _WholeWriter(raw), checksum=checksum, packed=packed)
        yield output
        output.finish()
        os.fsync(raw.fileno())
        os.replace(temporary, target)
    except OSError as error:
        advice = "; make room and run the same command again" if error.errno in _NO_SPACE else ""
        raise RunFailedError(
            f"{path}: this file cannot be written ({error.strerror or error}); nothing was left under its name{advice}."
        ) from error
    finally:
        if raw is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raw.close()


def check_replaceable(target: str, path: str) -> None:
    """Refuse to rename a file over anything but a regular file: a device or a FIFO would be lost.

    Raises:
      UnusableInputError: `target`, which the user named as `path`, exists and is no regular file.
    """
    try:
        mode = os.stat(target).st_mode
    except OSError:
        return  # it does not exist, or creating it will raise the error
    if stat.S_ISDIR(mode):
        raise UnusableInputError(f"{path}: this output is a directory; name a file.")
    if not stat.S_ISREG(mode):
        raise UnusableInputError(
            f"{path}: this output is no regular file but a device, a FIFO or a socket; name a file."
        )


def check_outputs(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse outputs that are inputs or other outputs, also by another path or link: one would destroy the other.

    Raises:
      UnusableInputError: an output is one of the inputs, or another output, names no file, or is in a directory that
        cannot be created.
    """
    identities = {identity(path): path for path in inputs}
    seen: dict[tuple[int, int] | str, str] = {}
    for output in outputs:
        if not output or output.endswith("/"):
            raise UnusableInputError(f'"{output}" as output names no file; give the name of a file.')
        check_directory(parent(output))
        this = identity(output)
        if this in identities:
            same = identities[this]
            raise UnusableInputError(f"{output}: this output is also the input {same}; name another file.")
        if this in seen:
            raise UnusableInputError(
                f"{output}: this output, or an index beside it, is the same file as the output {seen[this]}; "
                "the outputs must be files, each named once."
            )
        seen[this] = output


def identity(path: str) -> tuple[int, int] | str:
    """Return the identity of a file, equal for all its names: device and inode, or a normalised path."""
    if not is_local(path):
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{posixpath.normpath(rest)}"
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino


def _locked_temporary(path: str) -> tuple[str, io.FileIO]:
    """Create a temporary file beside `path`, locked while its writer lives; return its name and the file."""
    while True:
        temporary = f"{path}.{os.urandom(_ATTEMPT_BYTES).hex()}{TEMPORARY_SUFFIX}"
        with _beginning_a_file:
            raw = io.FileIO(temporary, "x")
        fcntl.flock(raw, fcntl.LOCK_EX)
        if os.fstat(raw.fileno()).st_nlink:
            return temporary, raw
        raw.close()  # a sweep deleted it before it was locked


class _WholeWriter:
    """A raw file whose `write` writes everything or raises: an unbuffered write may write only a part.

    It makes the system flush a large file to the disk while it is written; else the final fsync waits for all of it.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._written = self._sent = 0

    def write(self, block: bytes | bytearray | memoryview) -> int:
        rest = memoryview(block).cast("B")
        total = len(rest)
        while len(rest):
            rest = rest[self._raw.write(rest) :]
        self._written += total
        if self._written - self._sent >= _SENT_AT_ONCE and hasattr(os, "posix_fadvise"):  # macOS has none
            # Linux starts to flush pages that are declared as not needed, and drops flushed ones from its cache.
            os.posix_fadvise(self._raw.fileno(), self._sent, self._written - self._sent, os.POSIX_FADV_DONTNEED)
            self._sent = self._written
        return total


def write_bytes(path: str, content: bytes) -> None:
    """Write a small file, which appears whole or not at all; errors as in `new_file`."""
    with new_file(path, checksum=False) as file:
        file.write(content)
