"""Old releases go, whatever is needed stays, and a removal that was killed is finished by the next one."""

import dataclasses
import datetime
import os
from pathlib import Path

import pytest
from release_runs import roots as release_roots
from release_runs.roots import make_release, name_of, record_of

from maskmill.errors import RunFailedError
from maskmill.releases import locks, records, removing
from maskmill.releases.names import ReleaseName, release_path
from maskmill.releases.pointer import read_latest, switch_latest
from maskmill.storage import conditional, files

pytest_plugins = ("release_runs.fixtures",)


def make_some(root: str, months: int = 5) -> list[ReleaseName]:
    """Releases of consecutive months, of which the last is the latest."""
    names = [make_release(root, f"2026-{month:02}-01") for month in range(1, months + 1)]
    switch_latest(root, names[-1])
    return names


def present(root: str) -> list[ReleaseName]:
    """The complete releases, oldest first."""
    return [record.name for record in records.complete_releases(root)]


def test_the_newest_stay_and_what_is_pinned_or_locked(root: str) -> None:
    names = make_some(root)
    files.write_bytes(files.join(release_path(root, names[0]), removing.KEEP), b"")
    said: list[str] = []
    with locks.hold(root, names[1], owner="build"):
        assert removing.remove_old(root, 2, 0, say=said.append) == [names[2]]
    assert said[0].startswith(f"{release_path(root, names[1])}: not removed. The lock of release {names[1]} is held by")
    assert said[1] == f"{release_path(root, names[2])}: removed"
    assert present(root) == records.all_names(root) == [*names[:2], *names[3:]]
    files.delete([files.join(release_path(root, names[0]), removing.KEEP)])
    removing.remove_old(root, 1, 0)
    assert present(root) == names[4:]
    assert not [path for path in release_roots.below(root) if path.startswith("releases/.state/")]
    assert removing.remove_old(root, 1, 0) == []
    with pytest.raises(ValueError, match="keep=0"):
        removing.remove_old(root, 0, 0)


def test_the_latest_stays_whatever_its_date(root: str) -> None:
    names = make_some(root, 2)
    newer = [make_release(root, f"2027-{month:02}-01") for month in (1, 2)]  # complete, but not switched to
    assert removing.remove_old(root, 1, 0) == [names[0], newer[0]]
    assert present(root) == [names[1], newer[1]]


def test_young_releases_stay(root: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    names = []
    for month, days in enumerate((90, 61, 59, 1, 0), 1):
        names.append(name_of(f"2026-{month:02}-01"))
        release_roots.make_files(root, names[-1])
        finished = (now - datetime.timedelta(days=days)).isoformat()
        records.write_record(root, dataclasses.replace(record_of(names[-1]), finished=finished))
    switch_latest(root, names[-1])
    assert removing.remove_old(root, 4, 60) == names[:1]
    assert removing.remove_old(root, 1, 60) == names[1:2]
    assert present(root) == names[2:]


def test_abandoned_builds_go_once_there_is_a_newer_latest(root: str) -> None:
    old, built, same, new = begun = [
        name_of("2026-01-15"), name_of("2025-12-01"), name_of("2026-02-01", "f" * 8), name_of("2026-03-01")
    ]  # fmt: skip
    for name in begun:
        release_roots.make_files(root, name)
    assert removing.remove_old(root, 1, 0) == []
    names = make_some(root, 2)
    with locks.hold(root, built, owner="build"):
        assert removing.remove_old(root, 2, 0) == [old]
    assert records.unfinished_releases(root) == [built, same, new]
    assert present(root) == names


@pytest.mark.builds
def test_what_becomes_the_latest_at_any_moment_stays(root: str) -> None:
    """A build that finds its release complete makes it the latest, as after a kill, while another one removes it."""
    outcomes = set()
    for moment in range(40):
        place = files.join(root, str(moment))
        old, _ = make_release(place, "2026-01-01"), make_release(place, "2026-02-01")

        def come(number: int, place: str = place, old: ReleaseName = old, moment: int = moment) -> None:
            if number == moment:
                try:
                    with locks.hold(place, old):
                        switch_latest(place, old)
                except RunFailedError as error:  # it is locked, or was removed
                    outcomes.add(type(error))

        with release_roots.before_operations(come) as count:
            removing.remove_old(place, 1, 0)
        latest = read_latest(place)
        outcomes.add(latest is None)
        assert latest is None or latest.name in present(place)
        if count[0] <= moment:
            break
    assert count[0] <= moment, "there are more moments"
    assert {True, False, locks.LockedError} <= outcomes


@pytest.mark.builds
@pytest.mark.exhaustive_but("disk")
def test_a_removal_that_was_killed_at_any_moment_is_finished(root: str) -> None:
    operation, killed, begun = 0, True, 0
    while killed:
        place = files.join(root, str(operation))
        names = make_some(place, 2)

        def remove(place: str = place) -> None:
            removing.remove_old(place, 1, 0)

        killed = release_roots.killed_before(operation, remove)
        begun += bool(killed and records.unfinished_releases(place))
        assert read_latest(place) is not None
        for name in names:  # complete means whole
            if records.read_record(release_path(place, name)) is not None:
                for file in release_roots.FILES:
                    assert conditional.exists(files.join(release_path(place, name), file))
        removing.remove_old(place, 1, 0)
        assert present(place) == records.all_names(place) == names[1:]
        operation += 1
    assert begun > 1


def test_what_cannot_be_deleted_is_one_sentence_and_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, root = tmp_path / "mine", str(tmp_path / "root")
    mine.mkdir()
    names = make_some(root, 2)
    os.symlink(mine, f"{release_path(root, names[0])}/link")

    def refuse(directory: str) -> None:
        raise PermissionError(13, "Permission denied", f"{directory}/text")

    with monkeypatch.context() as patches:
        patches.setattr("shutil.rmtree", refuse)
        with pytest.raises(RunFailedError, match=r"/text: this cannot be deleted \(Permission denied\)"):
            removing.remove_old(root, 1, 0)
    assert present(root) == names[1:]
    removing.remove_old(root, 1, 0)
    assert records.all_names(root) == names[1:]
    assert mine.exists()
