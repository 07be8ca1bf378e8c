"""Files on a local disk and on an object store, for which TensorFlow's file system in memory stands."""

import os

import pytest
import tensorflow as tf
from training_helpers import BACKEND

from maskmill.errors import RunFailedError, UnusableInputError
from training import storage

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")


@pytest.fixture(params=["local", "remote"])
def directory(request, tmp_path):
    return str(tmp_path) if request.param == "local" else f"ram://{tmp_path.name}-{os.getpid()}"


def test_what_is_written_is_read(directory):
    path = f"{directory}/a/file"
    storage.write_bytes(path, b"new\0")
    assert storage.read_bytes(path) == b"new\0"
    assert storage.exists(path)
    assert not storage.exists(f"{directory}/a/other")


def test_a_file_is_replaced_whole(tmp_path):
    # TensorFlow's file system in memory appends here, unlike object stores.
    path = str(tmp_path / "file")
    storage.write_bytes(path, b"old and longer")
    storage.write_bytes(path, b"new")
    assert storage.read_bytes(path) == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_globs_are_sorted(directory):
    for name in ("step-2", "step-1", "other"):
        storage.write_bytes(f"{directory}/{name}", b"")
    assert storage.matching(f"{directory}/step-*") == [f"{directory}/step-1", f"{directory}/step-2"]
    assert storage.matching(f"{directory}/nothing-*") == []


def test_a_file_may_be_gone_before_it_is_deleted(directory):
    path = f"{directory}/file"
    storage.write_bytes(path, b"x")
    storage.delete(path)
    storage.delete(path)
    assert not storage.exists(path)


def test_a_local_file_is_its_own_copy(tmp_path):
    path = str(tmp_path / "file")
    with storage.local_copy(path) as copy:
        assert copy == path


def test_a_remote_files_copy_is_deleted(tmp_path):
    path = f"ram://{tmp_path.name}/weights.safetensors"
    storage.write_bytes(path, b"weights")
    with storage.local_copy(path) as copy:
        assert os.path.basename(copy) == "weights.safetensors"
        with open(copy, "rb") as file:
            assert file.read() == b"weights"
    assert not os.path.exists(copy)


def test_a_missing_remote_file_is_one_sentence():
    with pytest.raises(UnusableInputError, match="ram://nowhere/file: this file cannot be read"):
        storage.read_bytes("ram://nowhere/file")
    with (
        pytest.raises(UnusableInputError, match="ram://nowhere/file: this file cannot be read"),
        storage.local_copy("ram://nowhere/file"),
    ):
        pass


def test_a_store_that_cannot_be_asked_is_one_sentence():
    for function in (storage.exists, storage.matching, storage.delete):
        with pytest.raises(
            UnusableInputError, match=r"^s3://bucket/x: this place cannot be reached; .*'s3' not impl"
        ) as e:
            function("s3://bucket/x")
        assert len(str(e.value).splitlines()) == 1


def test_a_store_that_refuses_a_file_is_one_sentence(monkeypatch):
    def refuse(path, mode):
        raise tf.errors.PermissionDeniedError(None, None, "no access")

    monkeypatch.setattr(tf.io.gfile, "GFile", refuse)
    with pytest.raises(RunFailedError, match=r"ram://bucket/file: this file cannot be written \(no access\)"):
        storage.write_bytes("ram://bucket/file", b"x")


def test_local_files_are_dropped_from_memory_and_remote_ones_are_not_looked_at(tmp_path):
    path = tmp_path / "examples"
    path.write_bytes(b"x" * 100_000)
    assert storage.drop_cached([str(path), "gs://no-such-bucket/examples"])
    assert path.read_bytes() == b"x" * 100_000
