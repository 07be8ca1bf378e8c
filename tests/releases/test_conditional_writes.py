"""Conditional writes on a disk and on the emulator: nobody's change gets lost."""

import http.server
import os
from collections.abc import Mapping

import pytest
from release_runs import roots as release_roots
from servers import cloud

from maskmill.errors import UnusableInputError
from maskmill.storage import conditional, files

pytest_plugins = ("release_runs.fixtures",)


def test_a_file_is_written_only_if_it_is_as_expected(root: str) -> None:
    path = files.join(root, "new/a.json")
    assert conditional.read(path) is None
    assert not conditional.exists(path)
    first = conditional.write(path, b"1", expected=None)
    assert conditional.exists(path)
    assert conditional.read(path) == (b"1", first)
    with pytest.raises(files.ChangedError):
        conditional.write(path, b"2", expected=None)
    second = conditional.write(path, b"2", expected=first)
    with pytest.raises(files.ChangedError):
        conditional.write(path, b"3", expected=first)
    with pytest.raises(files.ChangedError):
        conditional.delete(path, expected=first)
    assert conditional.read(path) == (b"2", second)
    conditional.delete(path, expected=second)
    assert conditional.read(path) is None
    conditional.delete(path, expected=second)  # it is gone, as it should be


def test_the_same_content_again_is_another_version(root: str) -> None:
    path = files.join(root, "a.json")
    first = conditional.write(path, b"1", expected=None)
    assert conditional.write(path, b"1", expected=first) != first


def test_a_file_that_is_gone_is_not_written_over(root: str) -> None:
    path = files.join(root, "a.json")
    version = conditional.write(path, b"1", expected=None)
    conditional.delete(path, expected=version)
    with pytest.raises(files.ChangedError):
        conditional.write(path, b"2", expected=version)


COUNT = """
import os, sys
from maskmill.storage import conditional, files
path, times = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
while times:
    found = conditional.read(path)
    content, version = found or (b"0 0", None)
    count = int(content.split()[0]) + 1
    try:  # what processes compete for has something of its writer in it
        conditional.write(path, f"{count} {os.getpid()}".encode(), expected=version)
    except files.ChangedError:
        continue
    times -= 1
"""


@pytest.mark.builds
def test_no_process_undoes_what_another_wrote(root: str) -> None:
    path, times = files.join(root, "count"), 15
    release_roots.race([(COUNT, path, str(times))] * 4)
    found = conditional.read(path)
    assert found is not None
    assert int(found[0].split()[0]) == 4 * times


@pytest.mark.builds
def test_a_write_whose_answer_got_lost_is_no_conflict(emulator: str) -> None:
    """The library sends the write again, and then meets what its first attempt has written."""
    store, lost = os.environ["STORAGE_EMULATOR_HOST"], []

    def handle(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        answer = cloud.forward(request, body, store)
        if request.path.startswith("/upload/") and not lost:
            lost.append(answer)
            return 503, {}, b""
        return answer

    with cloud.server(handle) as url, cloud.set_environment({"STORAGE_EMULATOR_HOST": url}):
        version = conditional.write(f"{emulator}/lost/a.json", b"1", expected=None)
        assert len(lost) == 1
        assert conditional.read(f"{emulator}/lost/a.json") == (b"1", version)
        conditional.write(f"{emulator}/lost/a.json", b"2", expected=version)
        with pytest.raises(files.ChangedError):
            conditional.write(f"{emulator}/lost/a.json", b"3", expected=version)


@pytest.mark.builds
def test_a_bucket_that_is_not_there_is_one_sentence(emulator: str) -> None:
    with pytest.raises(UnusableInputError, match="there is no such bucket"):
        conditional.write("gs://maskmill-no-such-bucket/a.json", b"1", expected=None)


@pytest.mark.builds
def test_folders_and_all_that_is_below_one(emulator: str) -> None:
    for name in ("a/1", "a/2/3", "b/1", "c"):
        files.write_bytes(f"{emulator}/tree/{name}", b"")
    files.write_bytes(f"{emulator}/tree-2/d/1", b"")
    assert files.list_folders(f"{emulator}/tree") == ["a", "b"]
    assert files.list_below(f"{emulator}/tree/a") == [f"{emulator}/tree/a/1", f"{emulator}/tree/a/2/3"]
    files.delete([*files.list_below(f"{emulator}/tree/a"), f"{emulator}/tree/gone"])
    assert files.list_folders(f"{emulator}/tree") == ["b"]
    assert files.list_below(f"{emulator}/tree-2") == [f"{emulator}/tree-2/d/1"]
