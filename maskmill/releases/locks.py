"""A lock keeps two processes from building, or removing, one release at the same time, also on an object store.

A lock is a small file beside the release, written conditionally (storage/conditional.py). It says who holds it and when
it expires; a thread of the holder moves that time on every quarter of a lifetime. Somebody else may take the lock over
when it has expired; when its process is known to be dead, on the same machine; or when the owner that was given by name
is the same, because that is the same step of the same scheduler's run, tried again.

While a holder lives, at least three quarters of a lifetime are left, less what the store takes to answer. So clocks may
differ by half a lifetime. Where they differ by more, two processes may build the same release at once; what they write
is the same, and each file appears whole.
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
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between two looks at a lock
_START_FIELD = 19  # of /proc/PID/stat after the name in parentheses: when the process started, in clock ticks
_PARTS = 3  # of Holder.process


class LockedError(RunFailedError):
    """Somebody else holds the lock. owner: who; empty where the lock's file does not say."""

    def __init__(self, message: str, owner: str) -> None:
        """Take the sentence for the user, and the owner."""
        super().__init__(message)
        self.owner = owner


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that holds a lock.

    Attributes:
      owner: who it is, for people, and for the steps of one scheduler's run.
      process: its machine (the boot and the process namespace), its number and when it started, in the system's own
        count; empty where the system does not tell.
      token: another one for each hold.
      started, expires: seconds since 1970, by the holder's clock.
    """

    owner: str
    process: str
    token: str
    started: float
    expires: float

    def is_live(self) -> bool:
        """Say whether the hold still counts."""
        return time.time() < self.expires and not self.is_dead()

    def is_dead(self) -> bool:
        """Say whether this machine knows that the process has ended."""
        parts = self.process.rsplit(" ", _PARTS - 1)
        if len(parts) != _PARTS or parts[0] != _machine() or not parts[1].isdecimal():
            return False
        started = _start_of(int(parts[1]))
        return started != parts[2] if started is not None else not _is_there(int(parts[1]))

    def encode(self) -> bytes:
        """Return the content of the lock's file."""
        return json.dumps(dataclasses.asdict(self), indent=1).encode()


def new_holder(owner: str, lifetime: float) -> Holder:
    """Return this process as a holder from now on. owner: empty: `default_owner`. lifetime: in seconds."""
    now, machine, pid = time.time(), _machine(), os.getpid()
    return Holder(
        owner=owner or default_owner(),
        process=f"{machine} {pid} {_start_of(pid)}" if machine else "",
        token=secrets.token_hex(8),
        started=now,
        expires=now + lifetime,
    )


def default_owner() -> str:
    """Return who this process is: user@host:pid."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a container's user may have no name
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


def show_time(seconds: float) -> str:
    """Return a time for people, in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _machine() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _start_of(pid: int) -> str | None:
    """Return when a process started: empty if it has ended and awaits its parent, None if the machine does not tell."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[_START_FIELD]


def _is_there(pid: int) -> bool:
    """Say whether there is a process; the machine may hide those of other users."""
    try:
        with contextlib.suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def read_holder(path: str) -> tuple[Holder | None, conditional.Version | None]:
    """Return who a lock's file names, None if nobody or if it is damaged, and its version, None without a file."""
    found = conditional.read(path)
    if found is None:
        return None, None
    try:
        holder = Holder(**json.loads(found[0]))
    except (ValueError, TypeError):
        return None, found[1]
    is_whole = all(isinstance(text, str) for text in (holder.owner, holder.process, holder.token))
    is_whole = is_whole and all(isinstance(moment, int | float) for moment in (holder.started, holder.expires))
    return holder if is_whole else None, found[1]


def holder_of(root: str, name: ReleaseName) -> Holder | None:
    """Return the process that holds the lock of a release now; None if none does."""
    holder, _ = read_holder(state_path(root, name, "lock"))
    return holder if holder is not None and holder.is_live() else None


class Lock:
    """A lock that this process holds.

    Attributes:
      path: of its file.
      holder: what the file says.
      lifetime: seconds after which it expires if it is not renewed.
    """

    def __init__(self, path: str, holder: Holder, version: conditional.Version, what: str) -> None:
        """Describe a lock whose file is written. what: what is locked, as the beginning of a sentence."""
        self.path = path
        self.holder = holder
        self.lifetime = holder.expires - holder.started
        self._what = what
        self._version = version
        self._lost = ""
        self._mutex = threading.Lock()

    def check(self) -> None:
        """Renew the lock.

        Raises:
          RunFailedError: it is lost: another process has taken it over, or the store did not answer for a lifetime.
          Exception: the store does not answer, in its library's words; the lock may still be renewed in time.
        """
        with self._mutex:
            if not self._lost:
                self._renew()
            if self._lost:
                raise RunFailedError(f"{self._lost}; run the same command again.")

    def _renew(self) -> None:
        holder = dataclasses.replace(self.holder, expires=time.time() + self.lifetime)
        try:
            self._version = conditional.write(self.path, holder.encode(), expected=self._version)
            self.holder = holder
        except files.ChangedError:
            me = self.holder.owner
            self._lost = f"{self._what} was taken over from this process ({me}), or deleted ({self.path})"
        except Exception as error:
            if time.time() < self.holder.expires:
                raise
            self._lost = f"{self._what} could not be kept: {self.path} cannot be written ({error})"

    def release(self) -> None:
        """Delete the lock's file, unless it is somebody else's by now."""
        with self._mutex:
            if not self._lost:
                with contextlib.suppress(files.ChangedError):
                    conditional.delete(self.path, expected=self._version)

    @contextlib.contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the lock while the block runs, and release it then."""
        stop = threading.Event()
        thread = threading.Thread(target=self._keep_renewing, args=(stop,), name="maskmill-renewal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.release()

    def _keep_renewing(self, stop: threading.Event) -> None:
        while not stop.wait(self.lifetime / _RENEWALS):
            # The store may fail for a while. What is lost stays lost, and `check` raises it in the caller's thread.
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
    """Hold a lock that is any file while the block runs.

    Args:
      path: of the file.
      what: what is locked; begins the sentences about it, as "The lock of …".
      owner: who holds it, as a scheduler names its run; a later hold of the same owner takes it over. Empty: this
        process, user@host:pid, which nobody takes over while it lives.
      wait: seconds to wait for a lock that somebody else holds.
      lifetime: seconds after which the lock counts no more if this process cannot renew it.
      say: is told, once, that somebody else is waited for.

    Yields:
      the lock: its `check` renews it, and raises RunFailedError once it is lost.

    Raises:
      LockedError: somebody else holds it still.
      UnusableInputError: it cannot be written, or the store has no conditional writes.
    """
    until, pause, is_told = time.monotonic() + wait, _FIRST_PAUSE, False
    while not isinstance(lock := _try(path, what, new_holder(owner, lifetime)), Lock):
        if time.monotonic() + pause > until:
            raise LockedError(
                f"{_held(what, path, lock)}; wait for it, or give --release.wait=MINUTES.", lock.owner if lock else ""
            )
        if not is_told:
            say(f"{_held(what, path, lock)}; waiting up to {wait:g} s")
            is_told = True
        time.sleep(pause * random.uniform(0.75, 1.0))  # two that wait do not look at the same moments
        pause = min(2 * pause, _LONGEST_PAUSE)
    with lock.renewed():
        yield lock


def _held(what: str, path: str, other: Holder | None) -> str:
    if other is None:
        return f"{what} was just taken by another process ({path})"
    return (
        f"{what} is held by {other.owner} since {show_time(other.started)}, and until {show_time(other.expires)} "
        f"unless renewed ({path})"
    )


def _try(path: str, what: str, holder: Holder) -> Lock | Holder | None:
    """Return the lock, if it can be taken now, or else who holds it; None where nobody says who."""
    other, version = read_holder(path)
    is_same_owner = other is not None and other.owner == holder.owner and holder.owner != default_owner()
    if other is not None and other.is_live() and not is_same_owner:
        return other
    try:
        return Lock(path, holder, conditional.write(path, holder.encode(), expected=version), what)
    except files.ChangedError:
        return read_holder(path)[0]  # another was faster; the sentence names it
