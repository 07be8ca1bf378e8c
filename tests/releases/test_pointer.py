"""latest.json names the latest release at every moment, and the symlink follows it."""

import json
import os
import shutil
import threading

import pytest
from release_runs import roots as release_roots
from release_runs.roots import make_release, name_of, record_of

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import records
from maskmill.releases.names import ReleaseName
from maskmill.releases.pointer import Latest, read_latest, repair_link, switch_latest
from maskmill.storage import conditional, files

pytest_plugins = ("release_runs.fixtures",)


def link_of(root: str) -> str:
    """What the symlink names; that of latest.json on an object store, which has none."""
    if files.is_local(root):
        return os.readlink(f"{root}/latest")
    found = conditional.read(f"{root}/latest.json")
    assert found is not None
    return str(json.loads(found[0])["path"])


def latest_of(name: ReleaseName) -> Latest:
    """What names a release that was made up."""
    return Latest(name=name, fingerprint=records.fingerprint(record_of(name)))


def test_the_latest_release(root: str) -> None:
    assert read_latest(root) is None
    repair_link(root)
    name = make_release(root, "2026-11-01", "0a1b2c3d")
    assert switch_latest(root, name)
    assert read_latest(root) == latest_of(name)
    found = conditional.read(files.join(root, "latest.json"))
    assert found is not None
    assert json.loads(found[0]) == {
        "release": "enwiki-2026-11-01-0a1b2c3d",
        "path": "releases/enwiki-2026-11-01-0a1b2c3d",
        "date": "2026-11-01",
        "fingerprint": latest_of(name).fingerprint,
    }
    assert link_of(root) == "releases/enwiki-2026-11-01-0a1b2c3d"


def test_a_release_that_is_older_is_not_made_the_latest(root: str) -> None:
    """Of two of one date, that which was completed later is newer: the dump was published again, or options changed."""
    dates = [("2026-11-01",), ("2026-10-01",), ("2026-11-01", "ffffffff")]
    new, old, same_day = (make_release(root, *of) for of in dates)
    for name, latest in ((old, old), (new, new), (old, new), (same_day, same_day), (new, same_day), (old, same_day)):
        assert switch_latest(root, name) == (name == latest)
        assert read_latest(root) == latest_of(latest)
        assert link_of(root) == f"releases/{latest}"


def test_what_is_not_complete_is_not_made_the_latest(root: str) -> None:
    name = name_of("2026-11-01")
    release_roots.make_files(root, name)
    with pytest.raises(RunFailedError, match="not complete"):
        switch_latest(root, name)
    assert read_latest(root) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"release": "nonsense", "fingerprint": ""}', b"\xff"])
def test_a_damaged_pointer_is_one_sentence(root: str, content: bytes) -> None:
    name = make_release(root, "2026-11-01")
    files.write_bytes(files.join(root, "latest.json"), content)
    for act in (lambda: read_latest(root), lambda: switch_latest(root, name)):
        with pytest.raises(UnusableInputError, match=r"latest\.json: this file is damaged; delete it"):
            act()


def test_a_wrong_link_is_mended_and_what_is_no_link_stays(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("root")
    root = str(directory / "a")
    name = make_release(root, "2026-11-01")
    switch_latest(root, name)
    for target in (None, "releases/another"):
        os.unlink(f"{root}/latest")
        if target is not None:
            os.symlink(target, f"{root}/latest")
        assert switch_latest(root, name)
        assert link_of(root) == f"releases/{name}"
    shutil.move(directory / "a", directory / "b")  # the link and the pointer are relative
    root = str(directory / "b")
    assert os.path.exists(f"{root}/latest/release.json")
    os.unlink(f"{root}/latest")
    os.mkdir(f"{root}/latest")
    with pytest.raises(UnusableInputError, match="latest: this is no symlink"):
        switch_latest(root, name)
    assert os.path.isdir(f"{root}/latest")


def test_two_switches_at_any_moment(root: str) -> None:
    """Whoever comes between the steps of a switch, the newest dump is the latest in the end, and the link's."""
    for moment in range(10):
        place = files.join(root, str(moment))
        older, newer = make_release(place, "2026-11-01"), make_release(place, "2026-12-01")
        for first, second in ((older, newer), (newer, older)):

            def come(number: int, second=second, place: str = place, moment: int = moment) -> None:  # type: ignore[no-untyped-def]
                if number == moment:
                    switch_latest(place, second)

            with release_roots.before_operations(come) as count:
                switch_latest(place, first)
            if count[0] > moment:
                assert read_latest(place) == latest_of(newer)
                assert link_of(place) == f"releases/{newer}"
    assert count[0] <= moment, "there are more moments"


def test_a_switch_that_was_killed_at_any_moment(root: str) -> None:
    killed = True
    operation = 0
    while killed:
        place = files.join(root, str(operation))
        older, newer = make_release(place, "2026-11-01"), make_release(place, "2026-12-01")
        switch_latest(place, older)

        def switch(place: str = place, newer=newer) -> None:  # type: ignore[no-untyped-def]
            switch_latest(place, newer)

        killed = release_roots.killed_before(operation, switch)
        latest = read_latest(place)
        assert latest is not None
        assert latest.name in (older, newer)
        assert link_of(place) in (f"releases/{older}", f"releases/{newer}")
        switch()
        assert read_latest(place) == latest_of(newer)
        assert link_of(place) == f"releases/{newer}"
        operation += 1
    assert operation > 2


def test_the_link_is_that_of_the_last_switch(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that comes while another one makes its link waits, and does not find its own link replaced later."""
    root = str(tmp_path_factory.mktemp("root"))
    older, newer = make_release(root, "2026-11-01"), make_release(root, "2026-12-01")
    symlink, threads = os.symlink, []

    def come(target: str, link: str) -> None:
        if not threads:
            threads.append(threading.Thread(target=switch_latest, args=(root, newer)))
            threads[0].start()
            threads[0].join(0.3)  # if it can, it is done in that time
        symlink(target, link)

    monkeypatch.setattr(os, "symlink", come)
    switch_latest(root, older)
    threads[0].join()
    assert link_of(root) == f"releases/{newer}"
