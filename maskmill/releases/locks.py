"""A lock keeps two processes from building, or removing, one release at the same time, also on an object store.

A lock is a small file beside the release, written conditionally (storage/conditional.py). Its holder renews it every
quarter of its lifetime. Somebody else may take it over when it has expired; when its process is known to be dead, on
the same machine; or when the owner that was given by name is the same, because that is the same step of the same
scheduler's run, tried again.

While a holder lives, at least three quarters of a lifetime are left, less what the store takes to answer. So clocks may
differ by half a lifetime. Where they differ by more, two processes may build the same release at once; what they write
is the same, and each file appears whole.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from maskmill.errors import RunFailedError
from maskmill.releases.holders import Hold, Holder, default_owner, new_holder, read_holder, show_time
from maskmill.releases.names import ReleaseName, state_path
from maskmill.storage import conditional, files
from maskmill.storage.network import delays

LIFETIME = 120.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between two looks at a lock

Lock = Hold


class LockedError(RunFailedError):
    """Somebody else holds the lock; `holder` says who."""

    def __init__(self, message: str, holder: Holder | None) -> None:
        """Takes the sentence for the user, and the holder where the lock's file names one."""
        super().__init__(message)
        self.holder = holder


def hold(root: str, name: ReleaseName, **how: Any) -> contextlib.AbstractContextManager[Lock]:
    """Holds the lock of a release below a root while the block runs, as `hold_file` does."""
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
    """Holds a lock that is any file while the block runs.

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
    lock = _take(path, what, new_holder(owner, lifetime), wait, say)
    with lock.renewed():
        yield lock


def _take(path: str, what: str, holder: Holder, wait: float, say: Callable[[str], None]) -> Lock:
    lifetime, until = holder.expires - holder.started, time.monotonic() + wait
    pauses, is_told = delays(_FIRST_PAUSE, _LONGEST_PAUSE), False
    while True:
        pause = next(pauses)
        holder = new_holder(holder.owner, lifetime)
        lock, other = _try(path, what, holder)
        if lock is not None:
            return lock
        if time.monotonic() + pause > until:
            raise LockedError(f"{_held(what, path, other)}; wait for it, or give --release.wait=MINUTES.", other)
        if not is_told:
            say(f"{_held(what, path, other)}; waiting up to {wait:g} s")
            is_told = True
        time.sleep(pause * random.uniform(0.75, 1.0))  # two that wait do not look at the same moments


def _held(what: str, path: str, other: Holder | None) -> str:
    if other is None:
        return f"{what} was just taken by another process ({path})"
    return (
        f"{what} is held by {other.owner} since {show_time(other.started)}, and until {show_time(other.expires)} "
        f"unless renewed ({path})"
    )


def _try(path: str, what: str, holder: Holder) -> tuple[Lock | None, Holder | None]:
    """The lock, if it can be taken now, or else who holds it."""
    found = read_holder(path)
    other, version = found if found is not None else (None, None)
    is_same_owner = other is not None and other.owner == holder.owner and holder.owner != default_owner()
    if other is not None and other.is_live() and not is_same_owner:
        return None, other
    try:
        return Hold(path, holder, conditional.write(path, holder.encode(), expected=version), what), None
    except files.ChangedError:
        found = read_holder(path)  # another was faster; the sentence names it
        return None, found[0] if found is not None else None


def is_locked(root: str, name: ReleaseName) -> bool:
    """Whether some process holds the lock of a release now."""
    found = read_holder(state_path(root, name, "lock"))
    return found is not None and found[0] is not None and found[0].is_live()
