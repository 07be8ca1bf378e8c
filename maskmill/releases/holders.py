"""Who holds a lock, until when, and whether that process still lives.

A holder gives itself a time at which its hold expires, and moves that time on while it lives. So a hold ends by itself
when its process or machine dies. Clocks of the machines that share releases may differ by up to half of a lifetime (see
locks.py), which is a minute by default.
"""

import contextlib
import dataclasses
import datetime
import getpass
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator

from maskmill.errors import RunFailedError
from maskmill.storage import conditional, files

# A holder moves its expiry on after this part of its lifetime.
_RENEWALS = 4
_TOKEN_BYTES = 8
# How many seconds ago a hold expired that nobody will renew any more.
_FORGOTTEN = 86400.0
_START_FIELD = 19  # of /proc/PID/stat behind the name in parentheses: when the process started, in clock ticks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that holds something.

    Attributes:
      owner: who it is, for people, and for the steps of one scheduler's run.
      host: the name of its machine.
      machine: tells whether a process number can be looked up here: the boot and the process namespace; empty where the
        system does not tell.
      pid: the number of the process. process_start: when it started, in the system's own count; tells it from a later
        process with the same number.
      token: another one for each hold.
      started, expires: seconds since 1970, by the holder's clock.
    """

    owner: str
    host: str
    machine: str
    pid: int
    process_start: str
    token: str
    started: float
    expires: float

    def is_dead(self) -> bool:
        """Whether this machine knows that the process has ended."""
        if self.host != socket.gethostname() or self.machine != _machine() or not self.machine:
            return False
        start = _process_start(self.pid)
        return not _is_there(self.pid) if start is None else start != self.process_start

    def is_live(self) -> bool:
        """Whether the hold still counts."""
        return time.time() < self.expires and not self.is_dead()

    def encode(self) -> bytes:
        """The content of its file."""
        return json.dumps(dataclasses.asdict(self), indent=1).encode()


def new_holder(owner: str, lifetime: float) -> Holder:
    """This process as a holder from now on.

    Args:
      owner: who it is; empty: `default_owner`.
      lifetime: seconds until the hold expires if it is not renewed.
    """
    if lifetime <= 0:
        raise ValueError(f"a lifetime of {lifetime} s")
    now = time.time()
    return Holder(
        owner=owner or default_owner(),
        host=socket.gethostname(),
        machine=_machine(),
        pid=os.getpid(),
        process_start=_process_start(os.getpid()) or "",
        token=secrets.token_hex(_TOKEN_BYTES),
        started=now,
        expires=now + lifetime,
    )


def decode(content: bytes) -> Holder | None:
    """The holder that a file names; None if it is damaged, or another version's."""
    try:
        holder = Holder(**json.loads(content))
    except (ValueError, TypeError):
        return None
    times = (holder.started, holder.expires)
    texts = (holder.owner, holder.host, holder.machine, holder.process_start, holder.token)
    is_whole = all(isinstance(time, int | float) for time in times) and all(isinstance(text, str) for text in texts)
    return holder if is_whole and isinstance(holder.pid, int) and holder.pid > 0 else None


def default_owner() -> str:
    """Who this process is: user@host:pid."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a container's user may have no name
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


def show_time(seconds: float) -> str:
    """A time for people, in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _machine() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _process_start(pid: int) -> str | None:
    """When a process of this machine started: empty if it has ended and awaits its parent, None if it is not shown."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in "ZX" else fields[_START_FIELD]


def _is_there(pid: int) -> bool:
    """Whether there is a process: a machine may hide those of other users."""
    try:
        with contextlib.suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Hold:
    """A file that says that this process holds something; a thread of the process renews it.

    Attributes:
      path: of the file.
      holder: what it says now.
      lifetime: seconds after which it expires if it is not renewed.
    """

    def __init__(self, path: str, holder: Holder, version: conditional.Version, what: str) -> None:
        """Describes a hold whose file is written. what: what is held, as the beginning of a sentence."""
        self.path = path
        self.holder = holder
        self._what = what
        self._version = version
        self.lifetime = holder.expires - holder.started
        self._lost = ""
        self._mutex = threading.Lock()

    def check(self) -> None:
        """Makes sure that this process still has its hold, and renews it.

        Raises:
          RunFailedError: it was lost: another process has taken it over, or the store did not answer for a lifetime.
        """
        with self._mutex:
            if not self._lost:
                self._renew()
            if self._lost:
                raise RunFailedError(self._lost)

    def _renew(self) -> None:
        holder = dataclasses.replace(self.holder, expires=time.time() + self.lifetime)
        try:
            self._version = conditional.write(self.path, holder.encode(), expected=self._version)
        except files.ChangedError:
            self._lost = (
                f"{self._what} was taken over from this process ({self.holder.owner}), or deleted ({self.path}); run "
                "the same command again."
            )
            return
        self.holder = holder

    def release(self) -> None:
        """Ends the hold: deletes its file, unless it is somebody else's by now."""
        with self._mutex:
            if not self._lost:
                with contextlib.suppress(files.ChangedError):
                    conditional.delete(self.path, expected=self._version)

    @contextlib.contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew the hold while the block runs, and end it then; what a renewal raises, `check` raises again."""
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
            try:
                self.check()
            except Exception as error:  # noqa: BLE001  The store's library has its own; the next check raises it.
                if self._is_lost(error):
                    return

    def _is_lost(self, error: Exception) -> bool:
        """Whether an error of a renewal ends the hold: a store may fail to answer for less than a lifetime."""
        with self._mutex:
            if not self._lost and time.time() >= self.holder.expires:
                self._lost = (
                    f"{self._what} could not be kept: {self.path} cannot be written ({error}); run the same command "
                    "again."
                )
            return bool(self._lost)


def sweep(path: str) -> None:
    """Deletes the file of a hold whose process is dead, or has not renewed it for long."""
    found = read_holder(path)
    if found is None or found[0] is None:
        return
    if found[0].is_dead() or found[0].expires < time.time() - _FORGOTTEN:
        with contextlib.suppress(files.ChangedError):
            conditional.delete(path, expected=found[1])


def read_holder(path: str) -> tuple[Holder | None, conditional.Version] | None:
    """Who a file says holds it, and the file's version; None without a file, no holder where it is damaged."""
    found = conditional.read(path)
    return None if found is None else (decode(found[0]), found[1])
