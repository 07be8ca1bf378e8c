"""What holds for every store, on three servers: our emulator and fake-gcs-server for gs://, moto for s3://."""

import concurrent.futures
import contextlib
import gc
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_runs import commands, store_builds
from servers import cloud, fake_gcs, s3

from maskmill.errors import UnusableInputError
from maskmill.reading.remote import open_ranges
from maskmill.storage import conditional, files, manifest, stores
from maskmill.storage.found_files import unchanged

pytestmark = pytest.mark.long

BUCKET = "maskmill-bucket"
PART, LARGE = 16 << 20, 48 << 20  # bytes: an upload sends this in three parts
FAKE_GCS = pytest.param("fake-gcs-server", marks=pytest.mark.elsewhere)


@pytest.fixture(name="root", scope="module", params=["emulator", "moto", FAKE_GCS])
def fixture_root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Runs a server with one bucket, which this process and those that it starts find by the environment."""
    folder = tmp_path_factory.mktemp("store")
    with contextlib.ExitStack() as running:
        if request.param == "moto":
            environment = running.enter_context(s3.service(folder, BUCKET)).environment
        elif request.param == "emulator":
            environment = running.enter_context(cloud.storage(folder, BUCKET))
        else:
            environment = running.enter_context(fake_gcs.storage(folder, BUCKET))
        running.enter_context(cloud.set_environment(environment))
        yield f"{'s3' if request.param == 'moto' else 'gs'}://{BUCKET}"


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "UPLOAD_BYTES", PART)


@pytest.mark.parametrize("size", [0, 3, PART, PART + 1, LARGE])
def test_an_object_appears_when_it_is_complete(root: str, size: int) -> None:
    path, data = f"{root}/complete/{size}", os.urandom(size)
    with files.new_file(path) as file:
        for start in range(0, len(data), 3 << 20):
            file.write(memoryview(data)[start : start + (3 << 20)])
        assert not files.exists(path)
    assert file.stored == files.stored_checksum(path) != ""
    assert (file.size, file.sha256) == (size, hashlib.sha256(data).hexdigest())
    assert files.read_bytes(path) == data
    assert files.read_range(path, size // 2, size + 5) == data[size // 2 :]
    assert (files.sha256_of(path), files.size(path)) == (file.sha256, size)


@pytest.mark.parametrize("size", [0, 100, LARGE])
def test_a_failed_write_leaves_what_was_there(root: str, size: int) -> None:
    new, old = f"{root}/failed/{size}", f"{root}/kept"
    files.write_bytes(old, b"old")
    for path in (new, old):
        with pytest.raises(ZeroDivisionError), files.new_file(path) as file:
            file.write(bytes(size))
            raise ZeroDivisionError
    gc.collect()  # a collected writer must not finish its upload
    assert not files.exists(new)
    assert files.read_bytes(old) == b"old"


def test_patterns_folders_and_deleting(root: str) -> None:
    top = f"{root}/tree"
    for name in ("b1", "b0", "a 0 +%", "below/b2", "below/more/b3"):
        files.write_bytes(f"{top}/{name}", name.encode())
    matched = files.match(f"{top}/b*,{top}/a*,{top}/b0")
    assert [(files.base_name(file.path), file.size) for file in matched] == [("b0", 2), ("b1", 2), ("a 0 +%", 6)]
    assert [file.path for file in files.match(f"{top}/**3")] == [f"{top}/below/more/b3"]
    assert files.list_directory(top) == [f"{top}/a 0 +%", f"{top}/b0", f"{top}/b1"]
    assert files.list_directory(top, "b*") == [f"{top}/b0", f"{top}/b1"]
    assert files.list_folders(top) == ["below"]
    with files.remembering(top):
        files.delete([f"{top}/a 0 +%", f"{top}/b0", f"{top}/never-there"])
        left = [f"{top}/b1", f"{top}/below/b2", f"{top}/below/more/b3"]
        assert files.list_below(top) == left
    assert files.list_below(top) == left


def test_a_listing_has_pages(root: str) -> None:
    paths = [f"{root}/many/{number:04}" for number in range(1100)]
    files.each(root, lambda path: files.write_bytes(path, b""), paths)
    assert files.list_below(f"{root}/many") == paths
    files.delete(paths)
    assert files.list_below(f"{root}/many") == []


def test_what_is_missing_is_one_sentence(root: str) -> None:
    with pytest.raises(UnusableInputError, match="does not exist"):
        files.match(f"{root}/none")
    with pytest.raises(UnusableInputError, match="matches no file"):
        files.match(f"{root}/none-*")
    for attempt in (files.open_input, files.read_bytes):
        with pytest.raises(UnusableInputError, match=r"/none: there is no such object\.$"):
            attempt(f"{root}/none")
    bucket = f"{root.partition(':')[0]}://no-such-bucket"
    for ask in (lambda: files.match(f"{bucket}/x*"), lambda: files.write_bytes(f"{bucket}/x", b"1")):
        with pytest.raises(UnusableInputError, match=f"^{bucket}: there is no such bucket; correct its name"):
            ask()


def test_an_object_that_is_replaced_while_it_is_read_is_noticed(root: str) -> None:
    path = f"{root}/replaced"
    files.write_bytes(path, b"old content")
    found = files.match(path)
    with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
        assert ranges.read(path, 0, 3).tobytes() == b"old"
        files.write_bytes(path, b"new content")
        with pytest.raises(UnusableInputError, match="this file was changed while it was read"):
            ranges.read(path, 0, 3)
    with pytest.raises(Exception, match="this input was changed while the command ran"), unchanged(found):
        files.read_bytes(path)


def test_writes_compare_versions(root: str, request: pytest.FixtureRequest) -> None:
    path = f"{root}/compared"
    first = conditional.write(path, b"1", expected=None)
    second = conditional.write(path, b"2", expected=first)
    for wrong in (None, first):
        with pytest.raises(files.ChangedError):
            conditional.write(path, b"3", expected=wrong)
    assert conditional.read(path) == (b"2", second)
    if "fake-gcs-server" not in request.node.name:  # which compares nothing when it deletes
        with pytest.raises(files.ChangedError):
            conditional.delete(path, expected=first)
    for _ in range(2):
        conditional.delete(path, expected=second)
    assert conditional.read(path) is None


def test_of_first_writers_one_wins(root: str) -> None:
    def claim(number: int) -> bool:
        try:
            conditional.write(f"{root}/won", str(number).encode(), expected=None)
        except files.ChangedError:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        won = list(threads.map(claim, range(8)))
    assert won.count(True) == 1
    assert files.read_bytes(f"{root}/won") == str(won.index(True)).encode()


def test_two_first_runs_cannot_both_win(root: str) -> None:
    claims = [manifest.check_output(f"{root}/claimed", "extract", {"seed": seed}) for seed in (1, 2, 2)]
    claims[1].write()
    claims[2].write()  # the same options
    with pytest.raises(UnusableInputError, match="another run with other parameters has just claimed this directory"):
        claims[0].write()


@pytest.mark.builds
def test_a_build_from_and_to_a_store_gives_the_local_bytes(root: str, tmp_path: Path) -> None:
    root = f"{root}/{tmp_path.name}"  # moto keeps what other tests of this process wrote
    expected = store_builds.build_demo_locally(tmp_path)
    config = store_builds.write_demo_config(tmp_path, root)
    for has_made in (True, False):
        said = store_builds.build_demo(config, root)
        assert (said.count("made       nothing") == 2) is not has_made
    data = store_builds.digests_in_store(root)
    text = json.loads(files.read_bytes(f"{root}/demo/text/manifest.json"))
    assert [entry["sha256"] for entry in text["inputs"]] == [hashlib.sha256(commands.DUMP.read_bytes()).hexdigest()]
    assert data.pop("report.html")
    assert data == expected


def test_tables_of_documents_are_those_of_a_local_build(root: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps({"text": f"Town {n}.", "url": f"u{n}"}) + "\n" for n in range(9))
    )
    flags = ["--metadata_columns=url", "--num_eval_articles=2", "--language=en", *commands.IN_MEMORY]
    outputs = [str(tmp_path / "local"), f"{root}/tables"]
    for output in (*outputs, outputs[1]):
        done = commands.maskmill("extract", f"--input={tmp_path}/in.jsonl", f"--output={output}", *flags)
        assert done.returncode == 0, done.stderr
        tables = [f"{output}/documents/{name}.parquet" for name in ("part-00000-of-00001", "eval.txt")]
        digests = [files.sha256_of(table) for table in tables]
        expected = [files.sha256_of(table.replace(output, outputs[0])) for table in tables]
        assert digests == expected
        files.delete(tables[:1] if output == outputs[1] and "made again" not in done.stdout else [])
    assert "made again part-00000-of-00001" in done.stdout
