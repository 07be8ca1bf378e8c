"""Remove old releases: never the latest, a young one, one that holds a file `keep`, or one that is being built.

A removal holds the release's lock. The record goes first: without it a release is not complete, and nobody begins to
read it. What a killed removal leaves is an unfinished release, which goes once `latest` has a newer dump; a build of
the same release goes on with it as with any interrupted build.
"""

import datetime
import errno
import os
import shutil
from collections.abc import Callable

from maskmill.errors import RunFailedError
from maskmill.releases import locks
from maskmill.releases.names import RECORD, RELEASES, STATE, ReleaseName, release_path
from maskmill.releases.pointer import read_latest
from maskmill.releases.records import ReleaseRecord, complete_releases, in_order, unfinished_releases
from maskmill.storage import conditional, files

KEEP = "keep"  # a file in a release, of any content, that keeps it
_ATTEMPTS = 100  # to delete a directory to which files are added meanwhile


def removable(root: str, keep: int, keep_days: float, new: ReleaseName | None = None) -> list[ReleaseName]:
    """Return the releases that `remove_old` would remove if nobody builds them; change nothing.

    Args:
      root: the directory above all releases.
      keep: how many complete releases stay, the newest ones.
      keep_days: for how many days after it was completed a release stays.
      new: a release that counts as complete already, and as the latest, unless that has a newer dump.
    """
    if keep < 1:
        raise ValueError(f"keep={keep}")
    pointer, complete, unfinished = read_latest(root), complete_releases(root), unfinished_releases(root)
    latest = None if pointer is None else pointer.name
    if new is not None and new not in [record.name for record in complete]:
        now = datetime.datetime.now(datetime.UTC).isoformat()
        complete = in_order([*complete, ReleaseRecord(name=new, config={}, inputs=(), stages={}, finished=now)])
        latest = new if latest is None or latest.date <= new.date else latest
    old = [
        record.name
        for record in complete[:-keep]
        if record.name not in (latest, new) and not is_kept(root, record, keep_days)
    ]
    abandoned = [name for name in unfinished if latest is not None and name != new and name.date < latest.date]
    return old + abandoned


def is_kept(root: str, record: ReleaseRecord, keep_days: float) -> bool:
    """Say whether a complete release stays because of its age, or of a file `keep` in it."""
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(record.finished)
    is_young = age < datetime.timedelta(days=keep_days)
    return is_young or conditional.exists(files.join(release_path(root, record.name), KEEP))


def remove_old(
    root: str, keep: int, keep_days: float, *, say: Callable[[str], None] = lambda line: None
) -> list[ReleaseName]:
    """Remove old releases: of the complete ones those that `removable` names, and abandoned ones.

    A release that is not complete is abandoned when the latest one has a newer dump and nobody builds it.

    Args:
      root: the directory above all releases.
      keep: how many complete releases stay, the newest ones.
      keep_days: for how many days after it was completed a release stays.
      say: takes a line for each release that is removed, or is locked.

    Returns:
      The releases that were removed.

    Raises:
      UnusableInputError: latest.json or a record is damaged, or something cannot be deleted.
      RunFailedError: something cannot be deleted.
    """
    removed = []
    for name in removable(root, keep, keep_days):
        directory = release_path(root, name)
        try:
            with locks.hold(root, name) as lock:
                latest = read_latest(root)
                if latest is not None and latest.name == name:
                    continue
                lock.check()
                files.delete([files.join(directory, RECORD)])
                _delete_tree(directory)
        except locks.LockedError as error:
            say(f"{directory}: not removed, it is locked by {error.owner or 'another process'}")
        else:
            removed.append(name)
            say(f"{directory}: removed")
    if files.is_local(root):
        for directory in (root, files.join(root, f"{RELEASES}/{STATE}")):
            files.delete_abandoned(directory)
    return removed


def _delete_tree(directory: str) -> None:
    """Delete a directory and all below it; one that is not there is no error.

    Raises:
      RunFailedError: something cannot be deleted.
    """
    if not files.is_local(directory):
        files.delete(files.list_below(directory))
        return
    for attempt in range(1, _ATTEMPTS + 1):
        if not os.path.lexists(directory):
            return
        try:
            shutil.rmtree(directory)
        except OSError as error:
            # A worker of a killed build may add a file to a directory that was just emptied, or delete one, too.
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or attempt == _ATTEMPTS:
                raise RunFailedError(
                    f"{error.filename or directory}: this cannot be deleted ({error.strerror}); check its permissions, "
                    "and run the same command again."
                ) from error
