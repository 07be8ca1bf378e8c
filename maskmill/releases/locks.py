"""A lock keeps two processes from building, or removing, one release at the same time, also on an object store.

A lock is a small file beside the release, written conditionally (storage/conditional.py). It holds its owner and its
time of expiry; a thread of the holder renews it four times in a lifetime. Another process may take the lock over when
it has expired; when its process is known to be dead, on the same machine; or when the user gave both the same owner,
because that is a retry of the same step of the same scheduler's run.

While a holder lives, at least three quarters of a lifetime are left, less the store's response time. So clocks may
differ by half a lifetime. If they differ by more, two processes may build the same release at once; they write the same
bytes, and each file appears whole.
"""

import contextlib
import dataclasses
import datetime
import getpass
import json
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from maskmill.errors import RunFailedError
from maskmill.releases.names import ReleaseName, state_path
from maskmill.storage import conditional, files

LIFETIME = 120.0  # seconds
_RENEWALS = 4  # in a lifetime
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between two reads of a lock
_START_FIELD = 19  # of /proc/PID/stat after the name in parentheses: start of the process, in clock ticks


class LockedError(RunFailedError):
    """Somebody else holds the lock."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that holds a lock.

    Attributes:
      owner: the process for people, or the run of a scheduler.
      process: the process and its machine (`_process_of`); empty if the system does not tell.
      token: different for each hold.
      started, expires: seconds since 1970, by the holder's clock.
    """

    owner: str
    process: str
    token: str
    started: float
    expires: float

    def __str__(self) -> str:
        started = datetime.datetime.fromtimestamp(self.started, datetime.UTC)
        return f"{self.owner} since {started:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def is_live(self) -> bool:
        """True if the lock is neither expired nor held by a dead process."""
        return time.time() < self.expires and not self.is_dead

    @property
    def is_dead(self) -> bool:
        """True if this machine knows that the process has ended."""
        *machine, pid, _ = self.process.split() if self.process else ("", "0", "")
        if machine != _process_of(os.getpid()).split()[:2]:
            return False
        try:
            with contextlib.suppress(PermissionError):
                os.kill(int(pid), 0)
        except ProcessLookupError:
            return True
        return _process_of(int(pid)) not in (self.process, "")  # the machine may hide processes of other users

    def encode(self) -> bytes:
        """Return the content of the lock's file."""
        return json.dumps(dataclasses.asdict(self), indent=1).encode()


def new_holder(owner: str, lifetime: float) -> Holder:
    """Return this process as a new holder. owner: "" for `default_owner`. lifetime: in seconds."""
    now = time.time()
    return Holder(
        owner=owner or default_owner(),
        process=_process_of(os.getpid()),
        token=secrets.token_hex(8),
        started=now,
        expires=now + lifetime,
    )


def default_owner() -> str:
    """Return the name of this process: user@host:pid."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a container's user may have no name
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


def _process_of(pid: int) -> str:
    """Return the boot id of this machine, its namespace of processes, the process id, and the start of the process.

    The start is `ended` for a process that has ended. Empty if the system does not tell.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot, open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
            started = "ended" if fields[0] in "ZX" else fields[_START_FIELD]
            return f"{boot.read().strip()} {os.readlink('/proc/self/ns/pid')} {pid} {started}"
    except OSError:
        return ""


def read_holder(path: str) -> tuple[Holder | None, conditional.Version | None]:
    """Return the holder in a lock's file (None if it is empty or damaged), and its version (None without a file)."""
    found = conditional.read(path)
    if found is None:
        return None, None
    try:
        holder = Holder(**json.loads(found[0]))
        kinds = {field.name: str if field.type is str else float | int for field in dataclasses.fields(Holder)}
        is_whole = all(isinstance(getattr(holder, name), kind) for name, kind in kinds.items())
    except (ValueError, TypeError):
        return None, found[1]
    return holder if is_whole else None, found[1]


def holder_of(root: str, name: ReleaseName) -> Holder | None:
    """Return the process that holds the lock of a release now; None if none does."""
    holder, _ = read_holder(state_path(root, name, "lock"))
    return holder if holder is not None and holder.is_live else None


class Lock:
    """A lock held by this process, which a thread renews; `holder` is the content of its file."""

    def __init__(self, path: str, holder: Holder, version: conditional.Version, what: str) -> None:
        """Represent a lock whose file is written. what: the locked thing, as the beginning of a sentence."""
        self.holder = holder
        self._path = path
        self._what = what
        self._version = version
        self._lifetime = holder.expires - holder.started
        self._lost = ""
        self._mutex = threading.Lock()

    def check(self) -> None:
        """Renew the lock.

        Raises:
          RunFailedError: it is lost: another process took it over, or the store did not answer for a lifetime.
          Exception: the store does not answer, in its library's words; a later renewal may still be in time.
        """
        with self._mutex:
            if not self._lost:
                self._renew()
            if self._lost:
                raise RunFailedError(f"{self._lost}; run the same command again.")

    def _renew(self) -> None:
        holder = dataclasses.replace(self.holder, expires=time.time() + self._lifetime)
        try:
            self._version = conditional.write(self._path, holder.encode(), expected=self._version)
            self.holder = holder
        except files.ChangedError:
            me = self.holder.owner
            self._lost = f"{self._what} was taken over from this process ({me}), or deleted ({self._path})"
        except Exception as error:
            if time.time() < self.holder.expires:
                raise
            self._lost = f"{self._what} could not be kept: {self._path} cannot be written ({error})"

    @contextlib.contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the lock while the block runs; then delete its file, unless another process has taken it over."""
        stop = threading.Event()
        thread = threading.Thread(target=self._keep_renewing, args=(stop,), name="maskmill-renewal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            if not self._lost:
                with contextlib.suppress(files.ChangedError):
                    conditional.delete(self._path, expected=self._version)

    def _keep_renewing(self, stop: threading.Event) -> None:
        while not stop.wait(self._lifetime / _RENEWALS):
            # The store may fail for a while. A lost lock stays lost, and `check` raises that in the caller's thread.
            with contextlib.suppress(Exception):
                self.check()


def hold(root: str, name: ReleaseName, **how: Any) -> contextlib.AbstractContextManager[Lock]:
    """Hold the lock of a release below a root while the block runs, as `hold_file` does."""
    return hold_file(state_path(root, name, "lock"), f"The lock of release {name}", **how)


@contextlib.contextmanager
def hold_file(
    path: str,
    what: str,
    *,
    owner: str = "",
    wait: float = 0,
    lifetime: float = LIFETIME,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[Lock]:
    """Hold a lock on any file while the block runs.

    Args:
      path: of the file.
      what: the locked thing; begins the sentences about it, such as "The lock of …".
      owner: a scheduler's name of its run; a later hold of the same owner takes the lock over. Empty: this process,
        user@host:pid, whose lock nobody takes over while it lives.
      wait: seconds to wait for a lock that another process holds.
      lifetime: seconds after which the lock expires if this process cannot renew it.
      say: called once if another process must be waited for.

    Yields:
      the lock: its `check` renews it, and raises RunFailedError once it is lost.

    Raises:
      LockedError: another process still holds it.
      UnusableInputError: it cannot be written, or the store has no conditional writes.
    """
    until, pause = time.monotonic() + wait, _FIRST_PAUSE
    while not isinstance(lock := _try(path, what, new_holder(owner, lifetime)), Lock):
        if time.monotonic() + pause > until:
            raise LockedError(f"{what} is held by {lock} ({path}); wait for it, or give --release.wait=MINUTES.")
        if pause == _FIRST_PAUSE:
            say(f"{what} is held by {lock} ({path}); waiting up to {wait:g} s")
        time.sleep(pause * random.uniform(0.75, 1.0))  # so that two waiting processes read at different moments
        pause = min(2 * pause, _LONGEST_PAUSE)
    with lock.renewed():
        yield lock


def _try(path: str, what: str, holder: Holder) -> Lock | Holder | str:
    """Return the lock if it is free, or else its holder."""
    other, version = read_holder(path)
    is_same_owner = other is not None and other.owner == holder.owner != default_owner()
    if other is not None and other.is_live and not is_same_owner:
        return other
    try:
        return Lock(path, holder, conditional.write(path, holder.encode(), expected=version), what)
    except files.ChangedError:  # another was faster
        return read_holder(path)[0] or "another process"
