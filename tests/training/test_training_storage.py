"""Files for libraries that know local files only, and a run's logs, on a disk and in a bucket."""

import os

import pytest
from training_helpers import BACKEND

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training import storage

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")


@pytest.fixture(params=["local", "remote"])
def directory(request, tmp_path):
    return str(tmp_path) if request.param == "local" else f"{request.getfixturevalue('bucket')}/{tmp_path.name}"


def test_a_log_is_appended_to(directory):
    for line in (b"one\n", b"two\n"):
        storage.append(f"{directory}/a/log", line)
    assert files.read_bytes(f"{directory}/a/log") == b"one\ntwo\n"


def test_a_directory_is_one_where_files_are(directory):
    files.write_bytes(f"{directory}/model.ckpt", b"x")
    assert storage.is_directory(directory)
    assert not storage.is_directory(f"{directory}/model.ckpt")
    assert not storage.is_directory(f"{directory}/model")


def test_a_local_file_is_its_own_copy(tmp_path):
    path = str(tmp_path / "file")
    with storage.local_copy(path) as copy:
        assert copy == path


def test_a_remote_files_copy_is_deleted(bucket):
    path = f"{bucket}/copied/weights.safetensors"
    files.write_bytes(path, b"weights")
    with storage.local_copy(path) as copy:
        assert os.path.basename(copy) == "weights.safetensors"
        with open(copy, "rb") as file:
            assert file.read() == b"weights"
    assert not os.path.exists(copy)


def test_files_that_a_library_writes_are_put_where_they_belong(directory):
    prefix = f"{directory}/new/model.ckpt"
    with storage.written_here(prefix) as here:
        for suffix in (".index", ".data"):
            with open(here + suffix, "w") as file:
                file.write(suffix)
    assert [files.read_bytes(path) for path in files.list_directory(f"{directory}/new")] == [b".data", b".index"]
    assert os.path.exists(here + ".index") == files.is_local(directory)


def test_a_missing_remote_file_is_one_sentence(bucket):
    with pytest.raises(UnusableInputError, match="gone: there is no such object"), storage.local_copy(f"{bucket}/gone"):
        pass


def test_local_files_are_dropped_from_memory_and_remote_ones_are_not_looked_at(tmp_path):
    path = tmp_path / "examples"
    path.write_bytes(b"x" * 100_000)
    assert storage.drop_cached([str(path), "gs://no-such-bucket/examples"])
    assert path.read_bytes() == b"x" * 100_000
