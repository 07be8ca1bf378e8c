"""A file is changed only if it is as its writer has read it, on disks and, in tests/releases, on Cloud Storage."""

import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest

from maskmill.errors import UnusableInputError
from maskmill.storage import conditional


def test_other_stores_are_refused() -> None:
    with pytest.raises(UnusableInputError, match=r"hdfs://host/a: releases need a local disk, gs:// or s3://"):
        conditional.read("hdfs://host/a")


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInputError, match="file: this is no directory"):
        conditional.write(str(tmp_path / "file" / "a"), b"", expected=None)
    with pytest.raises(UnusableInputError, match="nothing can be written to this directory"):
        conditional.write(str(tmp_path / "file" / "folder" / "a"), b"", expected=None)
    assert conditional.read(str(tmp_path / "file" / "a")) is None


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="cannot be read"):
        conditional.read(str(tmp_path))


def test_writers_survive_that_their_directory_is_deleted(tmp_path: Path) -> None:
    """The guard goes with the directory: whoever waits for the old guard must not go on with it."""
    directory, stop = tmp_path / "leases", threading.Event()

    def delete() -> None:
        while not stop.is_set():
            shutil.rmtree(directory, ignore_errors=True)

    thread = threading.Thread(target=delete)
    thread.start()
    try:
        for _ in range(50):
            with conditional.guarded(str(directory / "a")):
                pass
    finally:
        stop.set()
        thread.join()


def test_a_guard_that_is_deleted_before_it_is_locked_is_no_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would open a new one, and not wait for who has the old one."""
    guard, flock, calls = tmp_path / conditional.GUARD, fcntl.flock, []

    def delete_first(descriptor: int, operation: int) -> None:
        if not calls:
            os.unlink(guard)
        calls.append(descriptor)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", delete_first)
    with conditional.guarded(str(tmp_path / "a")), open(guard) as other, pytest.raises(BlockingIOError):
        flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert len(calls) == 2


def test_a_guard_beside_another_file(tmp_path: Path) -> None:
    conditional.write(str(tmp_path / "data" / "a"), b"1", expected=None, guard=str(tmp_path / "state" / "a"))
    assert sorted(os.listdir(tmp_path / "data")) == ["a"]
    assert sorted(os.listdir(tmp_path / "state")) == [conditional.GUARD]
