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
    first = conditional.write(path, b"1", expected=None)
    assert conditional.read(path) == (b"1", first)
    second = conditional.write(path, b"1", expected=first)
    assert second != first, "the same content again is another version"
    for act in (
        lambda: conditional.write(path, b"2", expected=None),
        lambda: conditional.write(path, b"3", expected=first),
        lambda: conditional.delete(path, expected=first),
    ):
        with pytest.raises(files.ChangedError):
            act()
    assert conditional.read(path) == (b"1", second)
    conditional.delete(path, expected=second)
    assert not conditional.exists(path)
    conditional.delete(path, expected=second)  # it is gone, as it should be
    with pytest.raises(files.ChangedError):
        conditional.write(path, b"2", expected=second)


COUNT = """
import os, sys
from maskmill.errors import UnusableInputError
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
