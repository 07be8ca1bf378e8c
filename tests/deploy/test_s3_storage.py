"""s3:// paths on moto's server: what holds for gs:// holds here, too."""

import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs import commands, store_builds
from servers import cloud, s3

from maskmill.errors import UnusableInputError
from maskmill.reading.remote import open_ranges
from maskmill.storage import conditional, files, manifest, stores

pytestmark = pytest.mark.long

BUCKET = "maskmill-bucket"
ROOT = f"s3://{BUCKET}"
PART, LARGE = 16 << 20, 48 << 20  # bytes: an upload sends this in three parts
MOST_REQUESTS = 40  # of a finished build that is run again


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Service]:
    """Runs the server with one bucket. This process and those that it starts find it by the environment."""
    with s3.service(tmp_path_factory.mktemp("s3"), BUCKET) as running, cloud.set_environment(running.environment):
        yield running


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "UPLOAD_BYTES", PART)


@pytest.mark.parametrize("size", [0, 3, LARGE])
def test_an_object_appears_when_it_is_complete(service: s3.Service, size: int) -> None:
    path, data = f"{ROOT}/complete/{size}", os.urandom(size)
    with files.new_file(path) as file:
        for start in range(0, len(data), 3 << 20):
            file.write(memoryview(data)[start : start + (3 << 20)])
        assert not files.exists(path)
    assert file.stored == files.stored_checksum(path) != ""
    assert (file.size, file.sha256) == (size, hashlib.sha256(data).hexdigest())
    assert files.read_bytes(path) == data
    assert files.read_range(path, size // 2, size) == data[size // 2 :]
    assert files.sha256_of(path) == file.sha256


def test_a_failed_write_keeps_the_object_of_before(service: s3.Service) -> None:
    path = f"{ROOT}/kept"
    files.write_bytes(path, b"old")
    for size in (3, LARGE):
        with pytest.raises(ZeroDivisionError), files.new_file(path) as file:
            file.write(bytes(size))
            raise ZeroDivisionError
        assert files.read_bytes(path) == b"old"


def test_patterns_folders_and_deleting(service: s3.Service) -> None:
    root = f"{ROOT}/tree"
    for name in ("b1", "b0", "a0", "below/b2", "below/more/b3"):
        files.write_bytes(f"{root}/{name}", name.encode())
    matched = files.match(f"{root}/b*,{root}/a0,{root}/b0")
    assert [(files.base_name(file.path), file.size) for file in matched] == [("b0", 2), ("b1", 2), ("a0", 2)]
    assert [file.path for file in files.match(f"{root}/**3")] == [f"{root}/below/more/b3"]
    assert files.list_directory(root) == [f"{root}/a0", f"{root}/b0", f"{root}/b1"]
    assert files.list_folders(root) == ["below"]
    files.delete([*files.list_below(f"{root}/below"), f"{root}/never-there"])
    assert [files.base_name(path) for path in files.list_below(root)] == ["a0", "b0", "b1"]


def test_what_is_missing_is_one_sentence(service: s3.Service) -> None:
    with pytest.raises(UnusableInputError, match="does not exist"):
        files.match(f"{ROOT}/none")
    with pytest.raises(UnusableInputError, match=r"/none: there is no such object\.$"):
        files.open_input(f"{ROOT}/none")
    with pytest.raises(UnusableInputError, match=r"^s3://no-such-bucket: there is no such bucket; correct its name"):
        files.list_below("s3://no-such-bucket/x")


def test_an_object_that_is_replaced_while_it_is_read_is_noticed(service: s3.Service) -> None:
    path = f"{ROOT}/replaced"
    files.write_bytes(path, b"old content")
    ranges = open_ranges(path, cache_bytes=0)
    assert ranges.read(path, 0, 3).tobytes() == b"old"
    files.write_bytes(path, b"new content")
    with pytest.raises(UnusableInputError, match="this file was changed while it was read"):
        ranges.read(path, 0, 3)


def test_writes_compare_versions(service: s3.Service) -> None:
    path = f"{ROOT}/compared"
    first = conditional.write(path, b"1", expected=None)
    with pytest.raises(files.ChangedError):
        conditional.write(path, b"2", expected=None)
    second = conditional.write(path, b"2", expected=first)
    assert conditional.read(path) == (b"2", second)
    for attempt in (
        lambda: conditional.write(path, b"3", expected=first),
        lambda: conditional.delete(path, expected=first),
    ):
        with pytest.raises(files.ChangedError):
            attempt()
    conditional.delete(path, expected=second)
    conditional.delete(path, expected=second)
    assert conditional.read(path) is None


def test_of_first_writers_one_wins(service: s3.Service) -> None:
    def claim(number: int) -> bool:
        try:
            conditional.write(f"{ROOT}/won", str(number).encode(), expected=None)
        except files.ChangedError:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        won = list(threads.map(claim, range(8)))
    assert won.count(True) == 1
    assert files.read_bytes(f"{ROOT}/won") == str(won.index(True)).encode()


def test_two_first_runs_cannot_both_win(service: s3.Service) -> None:
    claims = [manifest.check_output(f"{ROOT}/claimed", "extract", {"seed": seed}) for seed in (1, 2, 2)]
    claims[1].write()
    claims[2].write()  # the same options
    with pytest.raises(UnusableInputError, match="another run with other parameters has just claimed this directory"):
        claims[0].write()


def test_without_the_extra_the_path_is_refused() -> None:
    code = (
        "import sys; sys.modules['botocore'] = None\n"
        "from maskmill.storage import files\n"
        "try: files.exists('s3://bucket/x')\n"
        "except files.UnusableInputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=commands.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "s3://bucket/x: s3:// needs maskmill's extra [aws]; install it: pip install 'maskmill[aws]'.\n"
    )


@pytest.mark.builds
def test_a_build_from_and_to_s3_gives_the_local_bytes(service: s3.Service, tmp_path: Path) -> None:
    expected = store_builds.build_demo_locally(tmp_path)
    config = store_builds.write_demo_config(tmp_path, ROOT)

    def build() -> tuple[str, list[tuple[str, str]]]:
        service.requests.clear()
        return store_builds.build_demo(config, ROOT), list(service.requests)

    build()
    data = store_builds.digests_in_store(ROOT)
    text = json.loads(files.read_bytes(f"{ROOT}/demo/text/manifest.json"))
    assert [entry["sha256"] for entry in text["inputs"]] == [hashlib.sha256(commands.DUMP.read_bytes()).hexdigest()]
    assert data.pop("report.html")
    assert data == expected
    said, requests = build()
    assert {method for method, _ in requests} == {"GET", "HEAD"}
    assert len(requests) <= MOST_REQUESTS
    assert said.count("made       nothing") == 2


def test_an_answer_that_does_not_fit_its_checksum_is_asked_for_again(
    service: s3.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import FlexibleChecksumError

    path = f"{ROOT}/checksum"
    files.write_bytes(path, b"one")
    client = files.store_of(path)._client()  # type: ignore[attr-defined]
    get, failures = client.get_object, [0, 1]

    def damaged(**given: Any) -> Any:
        if failures:
            failures.pop()
            raise FlexibleChecksumError(error_msg="Expected checksum a did not match calculated checksum: b")
        return get(**given)

    monkeypatch.setattr(client, "get_object", damaged)
    assert files.read_bytes(path) == b"one"
    assert not failures
