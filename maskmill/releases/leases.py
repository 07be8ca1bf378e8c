"""A lease keeps a release from being removed while somebody reads it.

A reader writes its lease, then looks whether the release is complete and nobody removes it. Who removes a release
writes that down first, then looks for leases. So at least one of the two sees the other: the remover then leaves the
release, or the reader has no lease. A lease ends with its block, when its process dies on a machine that can tell, or
when it expires, because its reader does not renew it any more.
"""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from maskmill.arguments import checked
from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import holders
from maskmill.releases.holders import Hold, Holder, decode, new_holder
from maskmill.releases.names import LATEST, LATEST_LINK, RECORD, ReleaseName, find_release, release_path, state_path
from maskmill.releases.pointer import read_latest
from maskmill.storage import conditional, files

LIFETIME = 300.0  # seconds
REMOVING = "removing"
_FOLDER = "leases"
# How long a reader waits for somebody who says that the release is being removed: he may find that it is in use.
_PATIENCE = 10.0
_PAUSE = 0.1
_BUCKET_PART = 2  # of gs://BUCKET/NAME, split at slashes


class NotLeasableError(UnusableInputError):
    """The release is there, but no lease can be written beside it, as where the disk is read only."""


class ReleaseGoneError(UnusableInputError):
    """There is no such release, or not any more."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lease:
    """A release that is kept while this process reads it.

    Attributes:
      root: the directory above all releases.
      name: of the release.
      path: what was asked for, as a path that a switch of `latest` does not change.
      hold: the lease's file.
    """

    root: str
    name: ReleaseName
    path: str
    hold: Hold

    @property
    def release(self) -> str:
        """The release's directory."""
        return release_path(self.root, self.name)

    def check(self) -> None:
        """Makes sure that the release is still kept, and renews the lease.

        Somebody may just be looking whether he can remove the release. He finds this lease and leaves the release,
        unless the lease was so old that he may have taken it for expired (clocks differ, see locks.py).

        Raises:
          RunFailedError: it is not: this process could not renew its lease for longer than its lifetime.
        """
        before = self.hold.holder
        is_old = before.expires - time.time() < self.hold.lifetime / 2
        self.hold.check()
        problem = _problem(self.root, self.name)
        if problem == _BEING_REMOVED:
            problem = _wait_for_removers(self.root, self.name) if is_old else None
        if problem is not None:
            why = f"{self.release}: {problem}, because its lease was not renewed in time; name another release."
            self.hold.lose(why)
            self.hold.check()


def locate(path: str) -> tuple[str, ReleaseName, str] | None:
    """The release that a path is or lies in: the directory above all releases, the name, and the path without links.

    A path through ROOT/latest lies in the release that is the latest now, on gs:// too. None if the path lies in no
    release, or on a store that has no leases.
    """
    if not conditional.is_possible(path):
        return None
    found = find_release(path)
    if found is None:
        path = os.path.realpath(path) if files.is_local(path) else _without_latest(path)
        found = find_release(path)
    return None if found is None else (*found, path)


def _without_latest(path: str) -> str:
    """A path on an object store, which has no links: for ROOT/latest/X the path of X in the release."""
    parts = path.split("/")
    for place in range(len(parts) - 1, _BUCKET_PART, -1):
        root = "/".join(parts[:place])
        latest = read_latest(root) if parts[place] == LATEST_LINK else None
        if latest is not None:
            return "/".join((release_path(root, latest.name), *parts[place + 1 :]))
    return path


@contextlib.contextmanager
def hold(release: str, *, owner: str = "", lifetime: float = LIFETIME) -> Iterator[Lease]:
    """Keeps a release while the block runs.

    Args:
      release: the path of a complete release, or a path in it, also through the link ROOT/latest.
      owner: who reads it; empty: user@host:pid.
      lifetime: seconds after which the lease counts no more if this process cannot renew it.

    Raises:
      ReleaseGoneError: the path lies in no complete release, or it is being removed.
      NotLeasableError: nothing can be written beside the release.
      RunFailedError: the store does not answer.
    """
    located = locate(release)
    if located is None:
        raise ReleaseGoneError(f"{release}: this path lies in no release; releases are in OUTPUT/releases/NAME.")
    root, name, path = located
    lease = _take(root, name, path, new_holder(owner, lifetime))
    with lease.hold.renewed(lease.check):
        yield lease


def _take(root: str, name: ReleaseName, path: str, holder: Holder) -> Lease:
    directory = release_path(root, name)
    if not conditional.exists(files.join(directory, RECORD)):
        raise ReleaseGoneError(f"{directory}: there is no complete release here; name another one.")
    file = state_path(root, name, f"{_FOLDER}/{holder.token}.json")
    try:
        version = conditional.write(file, holder.encode(), expected=None)
    except (UnusableInputError, RunFailedError) as error:
        if not conditional.exists(files.join(directory, RECORD)):
            raise ReleaseGoneError(f"{directory}: this release was just removed; name another one.") from error
        raise NotLeasableError(
            f"{directory}: no lease can be written beside this release, so it may be removed while it is read ({error})"
        ) from error
    hold = Hold(file, holder, version, f"The lease on release {name}")
    problem = _wait_for_removers(root, name)
    if problem is not None:
        hold.release()
        raise ReleaseGoneError(f"{directory}: {problem}; name another release, such as the latest.")
    return Lease(root=root, name=name, path=path, hold=hold)


def _wait_for_removers(root: str, name: ReleaseName) -> str | None:
    until = time.monotonic() + _PATIENCE
    while True:
        problem = _problem(root, name)
        if problem != _BEING_REMOVED or time.monotonic() > until:
            return problem
        time.sleep(_PAUSE)


def _is_complete_or_leaving(root: str, name: ReleaseName) -> bool:
    # In this order: a removal writes its marker before it deletes the record.
    is_complete = conditional.exists(files.join(release_path(root, name), RECORD))
    return is_complete or conditional.exists(state_path(root, name, REMOVING))


_BEING_REMOVED = "this release is being removed"


def _problem(root: str, name: ReleaseName) -> str | None:
    """Why a release cannot be read on, a clause; None where nothing is wrong.

    The marker is looked at before the record: the record is gone before the marker is.
    """
    found = conditional.read(state_path(root, name, REMOVING))
    if not conditional.exists(files.join(release_path(root, name), RECORD)):
        return "this release was removed"
    # Of a dead remover nothing follows: the next one begins anew, and looks for leases again.
    remover = None if found is None else decode(found[0])
    return _BEING_REMOVED if remover is not None and remover.is_live() else None


def active(root: str, name: ReleaseName) -> list[Holder]:
    """Who reads a release now: leases that have not expired, and whose process is not known to be dead.

    A lease whose file is damaged counts as long as a lease lives at most, which nobody can tell; so it does not count.
    """
    found_holders = []
    for path in _lease_files(root, name):
        found = conditional.read(path)
        holder = None if found is None else decode(found[0])
        if holder is not None and holder.is_live():
            found_holders.append(holder)
    return sorted(found_holders, key=lambda holder: (holder.started, holder.token))


def sweep(root: str, name: ReleaseName) -> None:
    """Deletes the leases of processes that are dead, or have not renewed them for long."""
    for path in _lease_files(root, name):
        holders.sweep(path)


def lease_folder(root: str, name: ReleaseName) -> str:
    """The directory of a release's leases."""
    return state_path(root, name, _FOLDER)


def _lease_files(root: str, name: ReleaseName) -> Sequence[str]:
    return files.list_directory(lease_folder(root, name), "*.json")


def _latest(root: str, stack: contextlib.ExitStack, owner: str, lifetime: float) -> Lease | None:
    latest = read_latest(root)
    while latest is not None:
        try:
            return stack.enter_context(hold(release_path(root, latest.name), owner=owner, lifetime=lifetime))
        except ReleaseGoneError:
            # Another release may have become the latest, and this one have been removed, since latest.json was read.
            now = read_latest(root)
            if now == latest:
                raise
            latest = now
    return None


@checked
def lease(path: str | os.PathLike[str], *, owner: str = "") -> AbstractContextManager[Lease]:
    """Keeps a release of a data set while it is read: `maskmill build --release --keep` does not remove it.

        with maskmill.lease("demo") as held:  # the latest release below demo
            data = maskmill.open(held.path)

    A small file beside the release says that it is read. A thread renews it, the end of the block deletes it, and it
    counts no more five minutes after its process died.

    Args:
      path: a release, a path in it, also through OUTPUT/latest, or the directory above all releases: then the latest is
        meant. On a local disk or gs://.
      owner: who reads it, as it is shown to who wants to remove it; empty: user@host:pid.

    Returns:
      what `with` takes. Its `path` stays the same release's when another one becomes the latest, `release` is the
      release's directory, and `check()` raises if the lease was lost.

    Raises:
      UnusableInputError: there is no complete release, or nothing can be written beside it.
      RunFailedError: the object store does not answer.
    """
    return hold_any(os.fspath(path), owner=owner)


@contextlib.contextmanager
def hold_any(path: str, *, owner: str = "", lifetime: float = LIFETIME) -> Iterator[Lease]:
    """Keeps the release that a path lies in, or the latest one of the releases below it, while the block runs.

    Raises:
      ReleaseGoneError: there is no complete release at this path or below it.
      NotLeasableError, UnusableInputError, RunFailedError: as from `hold`.
    """
    with contextlib.ExitStack() as stack:
        is_root = locate(path) is None and conditional.exists(files.join(path, LATEST))
        lease = _latest(path, stack, owner, lifetime) if is_root else None
        yield lease or stack.enter_context(hold(path, owner=owner, lifetime=lifetime))


def resolved(path: str) -> str:
    """A path through ROOT/latest as the path in the release that is the latest now; any other path as it is."""
    located = locate(path)
    return path if located is None else located[2]


@contextlib.contextmanager
def hold_inputs(
    patterns: Sequence[str], *, owner: str = "", say: Callable[[str], None] = lambda line: None
) -> Iterator[list[Lease]]:
    """Keeps every complete release in which one of these paths or globs lies while the block runs.

    A release that is not complete yet needs no lease: its build has its lock, and trains on it.

    say: is told of a release beside which no lease can be written.

    Raises:
      ReleaseGoneError: a release is being removed.
    """
    found = dict.fromkeys(located[:2] for located in map(locate, patterns) if located is not None)
    with contextlib.ExitStack() as stack:
        leases = []
        for root, name in found:
            if not _is_complete_or_leaving(root, name):
                continue
            try:
                leases.append(stack.enter_context(hold(release_path(root, name), owner=owner)))
            except NotLeasableError as error:
                say(f"warning: {error}")
        yield leases
