"""A release that is read is not removed, whoever comes first."""

import dataclasses
import threading
import time

import pytest
from release_runs import roots as release_roots
from release_runs.roots import make_release, name_of

import maskmill
from maskmill.errors import RunFailedError
from maskmill.releases import holders, leases, removing
from maskmill.releases.names import RECORD, ReleaseName, release_path, state_path
from maskmill.releases.pointer import switch_latest
from maskmill.storage import conditional, files
from training import command, launchers
from training.options import TrainOptions

pytest_plugins = ("release_runs.fixtures",)


def write_marker(root: str, name: ReleaseName, **changed: object) -> None:
    """Says that a release is being removed, as another process would."""
    holder = dataclasses.replace(holders.new_holder("remover", 100), **changed)  # type: ignore[arg-type]
    conditional.write(state_path(root, name, "removing"), holder.encode(), expected=None)


def write_lease(root: str, name: ReleaseName, **changed: object) -> None:
    """Writes a lease as another process would."""
    holder = dataclasses.replace(holders.new_holder("reader", 100), **changed)  # type: ignore[arg-type]
    conditional.write(state_path(root, name, f"leases/{holder.token}.json"), holder.encode(), expected=None)


ELSEWHERE = {"host": "another", "machine": "another"}


def test_a_reader_keeps_its_lease_while_somebody_looks_whether_he_can_remove_the_release(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_PATIENCE", 300.0)
    name = make_release(root, "2026-11-01")
    with leases.hold(release_path(root, name), owner="training") as lease:
        write_marker(root, name)
        began = time.monotonic()
        lease.check()
        assert time.monotonic() - began < leases._PATIENCE
        assert [holder.owner for holder in leases.active(root, name)] == ["training"]


def test_a_reader_whose_lease_was_old_does_not_trust_it_while_the_release_is_removed(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_PATIENCE", 0.1)
    name = make_release(root, "2026-11-01")
    with leases.hold(release_path(root, name)) as lease:
        old = dataclasses.replace(lease.hold.holder, expires=time.time() + leases.LIFETIME / 3)
        lease.hold.holder = old
        write_marker(root, name)
        with pytest.raises(RunFailedError, match="is being removed, because its lease was not renewed in time"):
            lease.check()


def delete_record(root: str, name: ReleaseName) -> None:
    path = files.join(release_path(root, name), RECORD)
    found = conditional.read(path)
    assert found is not None
    conditional.delete(path, expected=found[1])


def test_a_lease_counts_while_its_block_runs(root: str) -> None:
    name = make_release(root, "2026-11-01")
    before = release_roots.below(root)
    with leases.hold(release_path(root, name), owner="training") as lease:
        lease.check()
        assert lease.path == lease.release == release_path(root, name)
        with leases.hold(files.join(release_path(root, name), "train"), owner="evaluation") as other:
            assert other.path == files.join(release_path(root, name), "train")
            assert [holder.owner for holder in leases.active(root, name)] == ["training", "evaluation"]
    assert leases.active(root, name) == []
    assert release_roots.below(root) == before


def test_what_can_have_no_lease(root: str) -> None:
    name = name_of("2026-11-01")
    with pytest.raises(leases.ReleaseGoneError, match="lies in no release"), leases.hold(root):
        pass
    with pytest.raises(leases.ReleaseGoneError, match="no complete release"), leases.hold(release_path(root, name)):
        pass
    with pytest.raises(leases.ReleaseGoneError, match="lies in no release"), maskmill.lease(root):
        pass
    release_roots.make_files(root, name)
    with pytest.raises(leases.ReleaseGoneError, match="no complete release"), leases.hold(release_path(root, name)):
        pass
    with pytest.raises(leases.ReleaseGoneError, match="lies in no release"), leases.hold_any(root):
        pass


def test_the_latest_is_the_same_release_until_the_end(root: str) -> None:
    first, second = make_release(root, "2026-11-01"), make_release(root, "2026-12-01")
    switch_latest(root, first, "")
    with (
        maskmill.lease(root, owner="a") as by_root,
        maskmill.lease(files.join(root, "latest/train"), owner="b") as by_link,
    ):
        switch_latest(root, second, "")
        path = release_path(root, first)
        assert by_root.path == path
        assert by_link.path == files.join(path, "train")
        assert len(leases.active(root, first)) == 2
    with leases.hold_any(root) as lease:
        assert lease.name == second
    assert leases.resolved(files.join(root, "latest/train/*")) == files.join(release_path(root, second), "train/*")
    assert leases.resolved(files.join(root, "other/train")) == files.join(root, "other/train")


def test_the_latest_may_move_while_a_lease_is_taken(root: str) -> None:
    """Before any operation, another release becomes the latest and the one that was it is removed."""
    for moment in range(10):
        place = files.join(root, str(moment))
        first = make_release(place, "2026-11-01")
        switch_latest(place, first, "")

        def move(number: int, place: str = place, moment: int = moment) -> None:
            if number == moment:
                switch_latest(place, make_release(place, "2026-12-01"), "")
                removing.remove_old(place, 1)

        with release_roots.before_operations(move) as count, leases.hold_any(place) as lease:
            assert conditional.exists(files.join(lease.release, RECORD))
    assert count[0] <= moment  # the moments were enough


def test_a_dead_readers_lease_does_not_count(root: str) -> None:
    name = make_release(root, "2026-11-01")
    write_lease(root, name, process_start="1")
    assert leases.active(root, name) == []
    leases.sweep(root, name)
    assert not [path for path in release_roots.below(root) if ".leases/" in path]


def test_a_lease_of_another_machine_counts_until_it_expires(root: str) -> None:
    name = make_release(root, "2026-11-01")
    write_lease(root, name, **ELSEWHERE)
    write_lease(root, name, **ELSEWHERE, expires=time.time() - 1)
    conditional.write(state_path(root, name, "leases/damaged.json"), b"{", expected=None)
    assert [holder.owner for holder in leases.active(root, name)] == ["reader"]
    leases.sweep(root, name)
    assert len([path for path in release_roots.below(root) if ".leases/" in path]) == 3  # the process may renew it


def test_no_lease_on_what_is_being_removed(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PATIENCE", 0.2)
    name = make_release(root, "2026-11-01")
    write_marker(root, name)
    with pytest.raises(leases.ReleaseGoneError, match="being removed; name"), leases.hold(release_path(root, name)):
        pass
    delete_record(root, name)
    with pytest.raises(leases.ReleaseGoneError), leases.hold(release_path(root, name)):
        pass
    with pytest.raises(leases.ReleaseGoneError), leases.hold_inputs([files.join(release_path(root, name), "train/*")]):
        pass
    assert leases.active(root, name) == []


def test_a_reader_waits_for_a_remover_that_sees_another_reader(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PATIENCE", 300.0)
    name = make_release(root, "2026-11-01")
    write_marker(root, name)
    marker = state_path(root, name, "removing")

    def leave() -> None:
        while not [path for path in release_roots.below(root) if ".leases/" in path]:
            time.sleep(0.02)
        found = conditional.read(marker)
        assert found is not None
        conditional.delete(marker, expected=found[1])

    thread = threading.Thread(target=leave)
    thread.start()
    with leases.hold(release_path(root, name)) as lease:
        lease.check()
    thread.join()


def test_the_marker_of_a_dead_remover_stops_nobody(root: str) -> None:
    name = make_release(root, "2026-11-01")
    write_marker(root, name, process_start="1")
    with leases.hold(release_path(root, name)) as lease:
        lease.check()


def test_a_lease_that_was_lost_says_so(root: str) -> None:
    name = make_release(root, "2026-11-01")
    with leases.hold(release_path(root, name)) as lease:
        delete_record(root, name)
        with pytest.raises(RunFailedError, match="this release was removed, because its lease was not renewed in time"):
            lease.check()
        with pytest.raises(RunFailedError):
            lease.check()


def test_where_no_lease_can_be_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = str(tmp_path_factory.mktemp("root"))
    name = make_release(root, "2026-11-01")
    files.write_bytes(leases.lease_folder(root, name), b"no folder")
    with pytest.raises(leases.NotLeasableError, match="may be removed while it is read"):
        leases.hold(release_path(root, name)).__enter__()
    said: list[str] = []
    with leases.hold_inputs([f"{release_path(root, name)}/train"], say=said.append) as held:
        assert held == []
    assert len(said) == 1
    assert said[0].startswith(f"warning: {release_path(root, name)}: no lease can be written")


def test_inputs_of_releases_are_kept(root: str) -> None:
    first, second, unfinished = (
        make_release(root, "2026-11-01"),
        make_release(root, "2026-12-01"),
        name_of("2026-10-01"),
    )
    release_roots.make_files(root, unfinished)
    paths = [files.join(release_path(root, name), "train/*") for name in (first, first, second, unfinished)]
    with leases.hold_inputs([*paths, "hdfs://host/releases/enwiki-2026-11-01-00000000/train", "examples"]) as held:
        assert [lease.name for lease in held] == [first, second]
    assert leases.active(root, first) == []


def test_a_training_keeps_its_release(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path_factory.mktemp("root"))
    name = make_release(root, "2026-11-01")
    switch_latest(root, name, "")
    seen: list[tuple[tuple[str, ...], int]] = []

    def train(options: TrainOptions) -> int:
        seen.append((options.input_file, len(leases.active(root, name))))
        return 7

    monkeypatch.setattr(command, "_run_here", train)
    options = TrainOptions(input_file=(f"{root}/latest/train",), output_dir=f"{root}/run")
    assert command.run(options) == 7
    assert seen == [((f"{release_path(root, name)}/train",), 1)]
    assert leases.active(root, name) == []


def test_all_processes_that_a_launcher_starts_read_one_release(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path_factory.mktemp("root"))
    name = make_release(root, "2026-11-01")
    switch_latest(root, name, "")
    launched: list[TrainOptions] = []
    monkeypatch.setattr(launchers, "launch", lambda options: launched.append(options) or 0)
    options = TrainOptions(input_file=(f"{root}/latest/train",), output_dir=f"{root}/run", launcher="slurm")
    assert command.run(options) == 0
    assert launched[0].input_file == (f"{release_path(root, name)}/train",)


def reads_whole(root: str, name: ReleaseName) -> bool:
    """Whether all files of a release are there, as they were made."""
    for file, content in release_roots.FILES.items():
        found = conditional.read(files.join(release_path(root, name), file))
        if found is None or found[0] != content:
            return False
    return True


@pytest.mark.releases
@pytest.mark.parametrize("reader_first", [True, False])
@pytest.mark.exhaustive_but("cloud-False", "disk-True")
def test_reader_and_remover_at_any_moment(root: str, reader_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each operation of the one, the other comes: a reader that gets a lease reads a whole release."""
    monkeypatch.setattr(leases, "_PATIENCE", 0.0)
    outcomes = set()

    def read(place: str, name: ReleaseName) -> None:
        try:
            with leases.hold(release_path(place, name)) as lease:
                if not reader_first:
                    removing.remove_old(place, 1)
                assert reads_whole(place, name)
                lease.check()
                outcomes.add("read")
        except leases.ReleaseGoneError:
            outcomes.add("gone")

    for moment in range(40):
        place = files.join(root, str(moment))
        name, latest = make_release(place, "2026-11-01"), make_release(place, "2026-12-01")
        switch_latest(place, latest, "")

        def come(number: int, place: str = place, name: ReleaseName = name, moment: int = moment) -> None:
            if number == moment:
                read(place, name) if not reader_first else removing.remove_old(place, 1)

        with release_roots.before_operations(come) as count:
            removing.remove_old(place, 1) if not reader_first else read(place, name)
        removing.remove_old(place, 1)
        assert not [path for path in release_roots.below(place) if str(name) in path]
        if count[0] <= moment:
            break
    assert count[0] <= moment, "there are more moments"
    assert outcomes == {"read", "gone"}


@pytest.mark.releases
def test_who_stays_is_never_removed(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader comes before each operation of a removal, and stays if it gets its lease."""
    monkeypatch.setattr(leases, "_PATIENCE", 0.0)
    stayed = 0
    for moment in range(40):
        place = files.join(root, str(moment))
        name, latest = make_release(place, "2026-11-01"), make_release(place, "2026-12-01")
        switch_latest(place, latest, "")
        held = []

        def come(
            number: int, name: ReleaseName = name, place: str = place, moment: int = moment, held: list = held
        ) -> None:
            if number == moment:
                try:
                    context = leases.hold(release_path(place, name))
                    held.append((context, context.__enter__()))
                except leases.ReleaseGoneError:
                    held.append(None)

        with release_roots.before_operations(come) as count:
            removing.remove_old(place, 1)
        if held and held[0] is not None:
            stayed += 1
            context, lease = held[0]
            lease.check()
            assert reads_whole(place, name)
            context.__exit__(None, None, None)
        if count[0] <= moment:
            break
    assert count[0] <= moment, "there are more moments"
    assert stayed
