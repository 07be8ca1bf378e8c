"""Removes old releases: never the latest, a young one, one that holds a file `keep`, or one that is being built.

A removal holds the release's lock. It deletes the record first: without it a release is not complete, and nobody starts
to read it. A killed removal leaves an unfinished release, which is removed once `latest` has a newer dump; a build of
the same release continues with it as with any interrupted build.
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
from maskmill.releases.records import ReleaseRecord, complete_releases, unfinished_releases
from maskmill.storage import conditional, files

KEEP = "keep"  # a file in a release, of any content, that keeps it
_ATTEMPTS = 100  # at deleting a directory to which files are being added


def _old_releases(root: str, keep: int, keep_days: float) -> list[ReleaseName]:
    """Return the releases to remove if nobody builds them: old complete ones, and unfinished ones of older dumps."""
    latest = read_latest(root)
    name = None if latest is None else latest.name
    old = [
        record.name
        for record in complete_releases(root)[:-keep]
        if record.name != name and not _is_kept(root, record, keep_days)
    ]
    return old + [left for left in unfinished_releases(root) if name is not None and left.date < name.date]


def _is_kept(root: str, record: ReleaseRecord, keep_days: float) -> bool:
    """Return whether a complete release stays because of its age, or of a file `keep` in it."""
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(record.finished)
    is_young = age < datetime.timedelta(days=keep_days)
    return is_young or conditional.exists(files.join(release_path(root, record.name), KEEP))


def remove_old(
    root: str, keep: int, keep_days: float, *, say: Callable[[str], None] = lambda line: None
) -> list[ReleaseName]:
    """Remove old releases, and unfinished ones that nobody builds if the latest has a newer dump.

    Args:
      root: the directory above all releases.
      keep: the number of complete releases that stay, the newest ones.
      keep_days: the days for which a release stays after its completion.
      say: called with a line for each release that is removed or locked.

    Returns:
      The releases that were removed.

    Raises:
      UnusableInputError: latest.json or a record is damaged, or something cannot be deleted.
      RunFailedError: something cannot be deleted.
    """
    if keep < 1:
        raise ValueError(f"keep={keep}")
    removed = []
    for name in _old_releases(root, keep, keep_days):
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
            say(f"{directory}: not removed. {error}")
        else:
            removed.append(name)
            say(f"{directory}: removed")
    if files.is_local(root):
        for directory in (root, files.join(root, f"{RELEASES}/{STATE}")):
            files.delete_abandoned(directory)
    return removed


def _delete_tree(directory: str) -> None:
    """Delete a directory and all below it; do nothing if it does not exist.

    Raises:
      RunFailedError: something cannot be deleted.
    """
    if not files.is_local(directory):
        files.delete(files.list_below(directory))
        return
    for attempt in range(_ATTEMPTS):
        try:
            if os.path.lexists(directory):
                shutil.rmtree(directory)
            return
        except OSError as error:
            # A worker of a killed build may add a file to a directory that was just emptied, or delete one.
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT) or attempt + 1 == _ATTEMPTS:
                raise RunFailedError(
                    f"{error.filename or directory}: this cannot be deleted ({error.strerror}); check its permissions, "
                    "and run the same command again."
                ) from error
