"""Remove old releases: never the latest, a young one, one that holds a file `keep`, or one that is being built.

A removal holds the release's lock and writes NAME.removing first. Then the record goes: without it a release is not
complete, and nobody begins to read it. NAME.removing goes last, so that a later run finishes a removal that was killed.
"""

import contextlib
import datetime
import errno
import os
import shutil
from collections.abc import Callable

from maskmill.errors import RunFailedError
from maskmill.releases import holders, locks
from maskmill.releases.names import RECORD, RELEASES, STATE, ReleaseName, release_path, state_path
from maskmill.releases.pointer import read_latest
from maskmill.releases.records import ReleaseRecord, complete_releases, unfinished_releases
from maskmill.storage import conditional, files

KEEP = "keep"  # a file in a release, of any content, that keeps it
_REMOVING = "removing"
_ATTEMPTS = 100  # to delete a directory to which files are added meanwhile


def removable(root: str, keep: int, keep_days: float) -> list[ReleaseName]:
    """Return the releases that `remove_old` would remove if nobody builds them; change nothing.

    Args:
      root: the directory above all releases.
      keep: how many complete releases stay.
      keep_days: for how many days after it was completed a release stays.
    """
    if keep < 1:
        raise ValueError(f"keep={keep}")
    latest = read_latest(root)
    complete = complete_releases(root)
    old = [
        record.name
        for record in complete[:-keep]
        if (latest is None or record.name != latest.name) and not is_kept(root, record, keep_days)
    ]
    abandoned = [name for name in unfinished_releases(root) if latest is not None and name.date < latest.name.date]
    return old + abandoned


def is_kept(root: str, record: ReleaseRecord, keep_days: float) -> bool:
    """Say whether a complete release stays because of its age, or of a file `keep` in it."""
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(record.finished)
    is_young = age < datetime.timedelta(days=keep_days)
    return is_young or conditional.exists(files.join(release_path(root, record.name), KEEP))


def remove_old(
    root: str, keep: int, keep_days: float, *, say: Callable[[str], None] = lambda line: None
) -> dict[ReleaseName, str]:
    """Remove old releases: of the complete ones those that `removable` names, and abandoned ones.

    A release that is not complete is abandoned when the latest one has a newer dump and nobody builds it. Removals that
    were killed are finished, whatever `keep` is.

    Args:
      root: the directory above all releases.
      keep: how many complete releases stay, the newest ones.
      keep_days: for how many days after it was completed a release stays.
      say: takes a line for each release that is removed, or is locked.

    Returns:
      For each of these releases why it was not removed: "it is locked by …"; empty: it was.

    Raises:
      UnusableInputError: latest.json or a record is damaged, or something cannot be deleted.
      RunFailedError: something cannot be deleted.
    """
    found: dict[ReleaseName, str] = {}
    for remove, names in ((_finish, _begun(root)), (_remove, removable(root, keep, keep_days))):
        for name in names:
            if found.get(name) == "":
                continue
            reason = _with_lock(root, name, remove)
            if reason != _STAYS:
                found[name] = reason or ""
                say(f"{release_path(root, name)}: {f'not removed, {reason}' if reason else 'removed'}")
    for path in _state_files(root, ".lock"):
        holders.sweep(path)
    if files.is_local(root):
        for directory in (root, files.join(root, f"{RELEASES}/{STATE}")):
            files.delete_abandoned(directory)
    return found


# The reason for a release that was not to be removed after all.
_STAYS = "it stays"


def _begun(root: str) -> list[ReleaseName]:
    """Return the releases whose removal has begun and not ended."""
    suffix = f".{_REMOVING}"
    markers = _state_files(root, suffix)
    names = [ReleaseName.parse(files.base_name(path).removesuffix(suffix)) for path in markers]
    return [name for name in names if name is not None]


def _state_files(root: str, suffix: str) -> list[str]:
    """The files about releases whose names end so."""
    return files.list_directory(files.join(root, f"{RELEASES}/{STATE}"), f"*{suffix}")


def finish_removal(root: str, name: ReleaseName) -> bool:
    """Finishes the removal of a release if one was killed; the caller holds the release's lock, and builds it anew.

    Returns:
      whether something was removed.
    """
    marker = state_path(root, name, _REMOVING)
    found = conditional.read(marker)
    if found is None:
        return False
    is_begun = not conditional.exists(files.join(release_path(root, name), RECORD))
    if is_begun:
        _delete_tree(release_path(root, name))
    with contextlib.suppress(files.ChangedError):
        conditional.delete(marker, expected=found[1])
    return is_begun


def _with_lock(
    root: str, name: ReleaseName, remove: Callable[[str, ReleaseName, locks.Lock], str | None]
) -> str | None:
    """Removes a release by a function that needs its lock; returns why it was not removed, a clause."""
    try:
        with locks.hold(root, name) as lock:
            return remove(root, name, lock)
    except locks.LockedError as error:
        return f"it is locked by {error.holder.owner}" if error.holder is not None else "it is locked"


def _finish(root: str, name: ReleaseName, lock: locks.Lock) -> str | None:
    return None if finish_removal(root, name) else _STAYS


def _remove(root: str, name: ReleaseName, lock: locks.Lock) -> str | None:
    finish_removal(root, name)  # a marker that was left by a dead process
    latest = read_latest(root)
    if latest is not None and latest.name == name:
        return _STAYS
    directory = release_path(root, name)
    marker = state_path(root, name, _REMOVING)
    try:
        version = conditional.write(marker, b"", expected=None)
    except files.ChangedError:
        return "another process removes it"  # which has lost its lock and does not know yet
    try:
        lock.check()
    except RunFailedError:
        conditional.delete(marker, expected=version)
        raise
    files.delete([files.join(directory, RECORD)])
    _delete_tree(directory)
    with contextlib.suppress(files.ChangedError):
        conditional.delete(marker, expected=version)
    return None


def _delete_tree(directory: str) -> None:
    """Deletes a directory and all below it; one that is not there is no error.

    Raises:
      RunFailedError: something cannot be deleted.
    """
    if not files.is_local(directory):
        files.delete(files.list_below(directory))
        return
    last: OSError | None = None
    for _ in range(_ATTEMPTS):
        if not os.path.lexists(directory):
            return
        try:
            shutil.rmtree(directory)
        except OSError as error:
            # Somebody who does not know yet may add a file to a directory that was just emptied, or delete one, too.
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise _not_deleted(directory, error) from error
            last = error
    if last is not None:
        raise _not_deleted(directory, last) from last


def _not_deleted(directory: str, error: OSError) -> RunFailedError:
    return RunFailedError(
        f"{error.filename or directory}: this cannot be deleted ({error.strerror}); check its permissions, and run the "
        "same command again."
    )
