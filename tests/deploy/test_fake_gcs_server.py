"""gs:// paths on fsouza's fake-gcs-server, a Cloud Storage that nobody here wrote (`make test-gcs` builds it).

It compares the generation when an object is written, and not when one is read or deleted.
"""

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_runs import commands, store_builds
from servers import cloud

from maskmill.errors import UnusableInputError
from maskmill.reading.remote import open_ranges
from maskmill.storage import conditional, files
from maskmill.storage.found_files import unchanged

pytestmark = pytest.mark.elsewhere

PROGRAM = Path(os.environ.get("MASKMILL_TOOLS", commands.ROOT / ".tools")) / "fake-gcs-server"
BUCKET = "maskmill-bucket"
ROOT = f"gs://{BUCKET}"


@pytest.fixture(name="server", scope="module", autouse=True)
def fixture_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs the server with one bucket. This process and those that it starts find it by the environment."""
    assert PROGRAM.exists(), f"{PROGRAM} is missing; run `make test-gcs`, which builds it"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [str(PROGRAM), "-scheme=http", "-host=127.0.0.1", f"-port={port}", "-backend=memory",
               f"-external-url={url}", f"-public-host=127.0.0.1:{port}", "-log-level=error"]  # fmt: skip
    with (
        cloud.credentials(tmp_path_factory.mktemp("account")) as account,
        cloud.set_environment(account | {"STORAGE_EMULATOR_HOST": url}),
        subprocess.Popen(command) as process,
    ):
        try:
            _make_bucket(url)
            yield
        finally:
            process.terminate()


def _make_bucket(url: str) -> None:
    request = urllib.request.Request(
        f"{url}/storage/v1/b?project=test", json.dumps({"name": BUCKET}).encode(), {"Content-Type": "application/json"}
    )
    for _ in range(600):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(request).close()
            return
        time.sleep(0.1)
    raise RuntimeError("fake-gcs-server did not come up")


@pytest.mark.parametrize("size", [0, 3, 9 << 20, 50 << 20, 80 << 20])
def test_an_object_appears_when_it_is_complete(size: int) -> None:
    path, data = f"{ROOT}/complete/{size}", os.urandom(size)
    with files.new_file(path) as file:
        for start in range(0, size, 3 << 20):
            file.write(memoryview(data)[start : start + (3 << 20)])
        assert not files.exists(path)
    assert file.stored == files.stored_checksum(path) != ""
    assert files.read_bytes(path) == data
    assert files.sha256_of(path) == file.sha256 == hashlib.sha256(data).hexdigest()
    assert files.read_range(path, size // 2, size + 5) == data[size // 2 :]


def test_a_failed_write_keeps_the_object_of_before() -> None:
    path = f"{ROOT}/kept"
    files.write_bytes(path, b"old")
    for size in (3, 50 << 20):
        with pytest.raises(ZeroDivisionError), files.new_file(path) as file:
            file.write(bytes(size))
            raise ZeroDivisionError
        assert files.read_bytes(path) == b"old"


def test_patterns_folders_and_deleting() -> None:
    root = f"{ROOT}/tree"
    for name in ("b1", "b0", "a 0 +%", "below/b2", "below/more/b3"):
        files.write_bytes(f"{root}/{name}", name.encode())
    assert [file.path for file in files.match(f"{root}/b*")] == [f"{root}/b0", f"{root}/b1"]
    assert [file.path for file in files.match(f"{root}/**3")] == [f"{root}/below/more/b3"]
    assert files.list_folders(root) == ["below"]
    with files.remembering(root):
        files.delete([f"{root}/a 0 +%", f"{root}/b0", f"{root}/never-there"])
        left = [f"{root}/b1", f"{root}/below/b2", f"{root}/below/more/b3"]
        assert files.list_below(root) == left
    assert files.list_below(root) == left


def test_a_listing_has_pages() -> None:
    paths = [f"{ROOT}/many/{number:04}" for number in range(1100)]
    files.each(ROOT, lambda path: files.write_bytes(path, b""), paths)
    assert files.list_below(f"{ROOT}/many") == paths
    files.delete(paths)
    assert files.list_below(f"{ROOT}/many") == []


def test_writes_compare_generations() -> None:
    path = f"{ROOT}/compared"
    first = conditional.write(path, b"1", expected=None)
    for wrong in (None, "12345"):
        with pytest.raises(files.ChangedError):
            conditional.write(path, b"2", expected=wrong)
    second = conditional.write(path, b"2", expected=first)
    assert conditional.read(path) == (b"2", second)
    with pytest.raises(files.ChangedError):
        conditional.write(path, b"3", expected=first)
    conditional.delete(path, expected=second)
    assert conditional.read(path) is None


def test_an_object_that_is_replaced_while_it_is_read_is_noticed() -> None:
    path = f"{ROOT}/replaced"
    files.write_bytes(path, b"old content")
    found = files.match(path)
    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        assert ranges.read(path, 0, 3).tobytes() == b"old"
        files.write_bytes(path, b"new content")
        with pytest.raises(UnusableInputError, match="this file was changed while it was read"):
            ranges.read(path, 0, 3)
    with pytest.raises(Exception, match="this input was changed while the command ran"), unchanged(found):
        files.read_bytes(path)


def test_what_is_missing_is_one_sentence() -> None:
    with pytest.raises(UnusableInputError, match=r"/none: there is no such object\.$"):
        files.open_input(f"{ROOT}/none")
    with pytest.raises(UnusableInputError, match=r"^gs://no-such-bucket: there is no such bucket; correct its name"):
        files.list_below("gs://no-such-bucket/x")


def test_a_build_from_and_to_it_gives_the_local_bytes(tmp_path: Path) -> None:
    expected = store_builds.build_demo_locally(tmp_path)
    config = store_builds.write_demo_config(tmp_path, ROOT)
    for has_made in (True, False):
        said = store_builds.build_demo(config, ROOT)
        assert (said.count("made       nothing") == 2) is not has_made
    data = store_builds.digests_in_store(ROOT)
    assert data.pop("report.html")
    assert data == expected
