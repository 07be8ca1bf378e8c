"""The pointer to the latest release: ROOT/latest.json, and on local disks a symlink beside it.

The file is authoritative. It is replaced in one step, so a reader sees either release. Scripts can read it: `path` is
the release's directory relative to ROOT.
"""

import contextlib
import dataclasses
import json
import os
import secrets

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import records
from maskmill.releases.names import LATEST, LATEST_LINK, RELEASES, ReleaseName, find_release, release_path
from maskmill.releases.records import ReleaseRecord
from maskmill.storage import conditional, files

_BUCKET_PART = 2  # of gs://BUCKET/NAME, split at slashes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latest:
    """The latest release.

    Attributes:
      name: of the release.
      fingerprint: of its content (records.fingerprint).
    """

    name: ReleaseName
    fingerprint: str

    def encode(self) -> bytes:
        """Return the content of latest.json."""
        fields = {
            "release": str(self.name),
            "path": f"{RELEASES}/{self.name}",
            "date": self.name.date,
            "fingerprint": self.fingerprint,
        }
        return (json.dumps(fields, indent=1) + "\n").encode()


def read_latest(root: str) -> Latest | None:
    """Return the latest release below a directory; None if no release is complete.

    Raises:
      UnusableInputError: latest.json is damaged, or cannot be read.
    """
    path = files.join(root, LATEST)
    found = conditional.read(path)
    return None if found is None else _parse(path, found[0])


def _parse(path: str, content: bytes) -> Latest:
    try:
        fields = json.loads(content)
        name, fingerprint = ReleaseName.parse(fields["release"]), str(fields["fingerprint"])
    except (ValueError, KeyError, TypeError):
        name, fingerprint = None, ""
    if name is None:
        raise UnusableInputError(
            f"{path}: this file is damaged; delete it and run maskmill build --release again, which writes it anew."
        )
    return Latest(name=name, fingerprint=fingerprint)


def switch_latest(root: str, name: ReleaseName) -> bool:
    """Make a complete release the latest, unless the current one is newer, and repair the symlink.

    The newer release is that of the newer dump; for dumps of one date, the one completed later. The caller holds the
    release's lock, so that nobody removes it meanwhile.

    Returns:
      Whether it is the latest now.

    Raises:
      RunFailedError: the release is not complete.
      UnusableInputError: latest.json or a record is damaged, or latest.json cannot be written.
    """
    record = records.read_record(release_path(root, name))
    if record is None:
        raise RunFailedError(f"{release_path(root, name)}: this release is not complete, so it cannot be the latest.")
    path = files.join(root, LATEST)
    latest = Latest(name=name, fingerprint=records.fingerprint(record))
    while True:
        found = conditional.read(path)
        present = None if found is None else _parse(path, found[0])
        is_newer = present is not None and present != latest and _is_newer(root, present.name, record)
        if is_newer or present == latest:
            break
        with contextlib.suppress(files.ChangedError):
            conditional.write(path, latest.encode(), expected=None if found is None else found[1])
            break
    repair_link(root)
    return not is_newer


def _is_newer(root: str, present: ReleaseName, record: ReleaseRecord) -> bool:
    """Return whether a release is newer than that of a record."""
    if present.date != record.name.date:
        return present.date > record.name.date
    other = records.read_record(release_path(root, present))
    return other is not None and other.finished > record.finished


def repair_link(root: str) -> None:
    """Point the symlink at the release in latest.json; do nothing on an object store, or without latest.json.

    Raises:
      UnusableInputError: a file that is not a symlink has its name.
    """
    path, link = files.join(root, LATEST), files.join(root, LATEST_LINK)
    if not files.is_local(root) or not os.path.exists(path):
        return
    # The next process that switches the pointer repairs the link after this one, from the newer file.
    with conditional.guarded(path):
        latest = read_latest(root)
        if latest is None:
            return
        target = os.path.join(RELEASES, str(latest.name))
        if os.path.lexists(link):
            if not os.path.islink(link):
                raise UnusableInputError(
                    f"{link}: this is no symlink, and builds make one of that name to the latest release; move it away."
                )
            if os.readlink(link) == target:
                return
        temporary = f"{link}.{secrets.token_hex(8)}{files.TEMPORARY_SUFFIX}"
        os.symlink(target, temporary)
        os.replace(temporary, link)


def resolved(path: str) -> str:
    """Replace ROOT/latest in a path by the latest release's directory; return any other path as it is."""
    if not conditional.is_possible(path) or find_release(path) is not None:
        return path
    if files.is_local(path):
        real = os.path.realpath(path)
        return real if find_release(real) is not None else path
    parts = path.split("/")
    for place in range(len(parts) - 1, _BUCKET_PART, -1):  # an object store has no links
        root = "/".join(parts[:place])
        latest = read_latest(root) if parts[place] == LATEST_LINK else None
        if latest is not None:
            return "/".join((release_path(root, latest.name), *parts[place + 1 :]))
    return path
