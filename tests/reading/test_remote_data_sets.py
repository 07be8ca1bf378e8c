"""Data sets in Google Cloud Storage (an emulator) and on web servers: the same batches as from local files."""

import contextlib
import http.server
import os
import pickle
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from data_sets.example_sets import setup_of, write_set
from servers import cloud, file_server
from servers.file_server import FileServer

import maskmill
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.reading.block_reader import DamagedBlockError
from maskmill.reading.remote import open_ranges
from maskmill.storage import files

BUCKET = "maskmill-loading"
FORMATS = ("tfrecord", "parquet", "mds", "spans")


@pytest.fixture(name="sets", scope="module")
def fixture_sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Writes a data set in each format; their directories by format."""
    of_spans = {"dynamic_masking": True, "dupe_factor": 1, "max_seq_length": 12}
    return {
        name: write_set(tmp_path_factory.mktemp(name), setup_of(format=name, **of_spans if name == "spans" else {}))
        for name in FORMATS
    }


@pytest.fixture(name="bucket", scope="module")
def fixture_bucket(sets: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Runs the emulator, with the data sets in a bucket; gives its environment, which is set."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables, cloud.set_environment(variables):
        for name, directory in sets.items():
            for file, content in files_of(directory).items():
                cloud.upload(variables, BUCKET, f"{name}/{file}", content)
        for file, content in files_of(f"{sets['spans']}/../text").items():
            cloud.upload(variables, BUCKET, f"text/{file}", content)
        yield variables


def files_of(directory: str) -> dict[str, bytes]:
    """The contents of the files below a directory, by their paths."""
    paths = (path for path in Path(directory).rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def batches(path: str, cache: Path) -> list[dict[str, np.ndarray]]:
    """The batches of an epoch."""
    with maskmill.open(path, batch_size=16, seed=3, tail="pad", with_samples=True, cache_dir=str(cache)) as loader:
        return list(loader)


def assert_same(got: list[dict[str, np.ndarray]], wanted: list[dict[str, np.ndarray]]) -> None:
    """The arrays of all batches are equal."""
    assert len(got) == len(wanted) > 5
    for one, other in zip(got, wanted, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("name", FORMATS)
def test_a_bucket_gives_the_batches_of_a_directory(
    bucket: Mapping[str, str], sets: dict[str, str], tmp_path: Path, name: str
) -> None:
    for _ in range(2):
        assert_same(batches(f"gs://{BUCKET}/{name}", tmp_path), batches(sets[name], tmp_path))
    with maskmill.open(f"gs://{BUCKET}/{name}", batch_size=16, cache_dir=str(tmp_path)) as loader:
        list(loader)
        stats = loader.stats()
        assert stats.cache_hits > 0
        assert (stats.cache_misses, stats.bytes_fetched) == (0, 0)
        state = loader.state_dict()
    with maskmill.open(sets[name], batch_size=16) as loader:
        loader.load_state_dict(state)  # the fingerprint is the same


@pytest.mark.parametrize("name", FORMATS)
def test_a_web_server_gives_the_batches_of_a_directory(sets: dict[str, str], tmp_path: Path, name: str) -> None:
    with serve(sets[name]) as server:
        server.faults.extend([file_server.no_fault, file_server.cut, file_server.hang_up] * 3)
        assert_same(batches(f"{server.url}/data", tmp_path), batches(sets[name], tmp_path))


def test_spans_of_text_on_a_web_server_and_an_index_on_this_machine(sets: dict[str, str], tmp_path: Path) -> None:
    wanted = batches(sets["spans"], tmp_path)
    with serve(sets["spans"]) as server:
        options = {"batch_size": 16, "seed": 3, "tail": "pad", "with_samples": True, "text": f"{server.url}/text"}
        with maskmill.open(sets["spans"], **options) as loader:
            assert_same(list(loader), wanted)
            assert pickle.loads(pickle.dumps(loader)).data_sets == loader.data_sets
        asked = server.parts("text/part-00000-of-00002")
        assert len(set(asked)) < len(wanted)  # whole pieces, not a part for each row


@contextlib.contextmanager
def serve(directory: str) -> Iterator[FileServer]:
    """Serves the files of a directory below data/."""
    with file_server.serve() as server:
        server.files = {f"data/{name}": content for name, content in files_of(directory).items()}
        server.files |= {f"text/{name}": content for name, content in files_of(f"{directory}/../text").items()}
        yield server


def test_a_block_that_arrives_damaged_is_fetched_again(sets: dict[str, str], tmp_path: Path) -> None:
    wanted = batches(sets["tfrecord"], tmp_path)
    with serve(sets["tfrecord"]) as server:
        damaged = set()

        def damage_once(handler: file_server.Handler, content: bytes, headers: dict[str, str]) -> bool:
            if not handler.path.endswith(".tfrecord") or handler.path in damaged:
                return False
            damaged.add(handler.path)
            return file_server.damage(handler, content, headers)

        server.always = damage_once
        assert_same(batches(f"{server.url}/data", tmp_path), wanted)
        assert len(damaged) == 2
        parts = {name: server.parts(f"data/{name}") for name in ("part-00000-of-00002.tfrecord", "manifest.json")}
        assert [len(set(asked)) for asked in parts.values()] == [1, 1]  # the block, not the whole file for its index
        assert [len(asked) for asked in parts.values()] == [2, 1]


def test_a_block_that_always_arrives_damaged_is_named(sets: dict[str, str], tmp_path: Path) -> None:
    with serve(sets["tfrecord"]) as server:
        name = "data/part-00001-of-00002.tfrecord"
        content = bytearray(server.files[name])
        content[-20] ^= 1
        server.files[name] = bytes(content)
        with pytest.raises(DamagedBlockError, match=f"^{server.url}/{name}, record 63 .*\\.$"):
            batches(f"{server.url}/data", tmp_path)


def test_ranks_of_a_machine_share_the_cache(sets: dict[str, str], tmp_path: Path) -> None:
    with serve(sets["tfrecord"]) as server:
        found: list[int] = []

        def read(rank: int) -> None:
            options = {"batch_size": 16, "ranks": 4, "rank": rank, "cache_dir": str(tmp_path)}
            with maskmill.open(f"{server.url}/data", **options) as loader:
                found.append(len(list(loader)))

        threads = [threading.Thread(target=read, args=(rank,)) for rank in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1
        for name in server.files:
            parts = server.parts(name)
            assert len(parts) == len(set(parts))


def test_objects_are_listed(bucket: Mapping[str, str], tmp_path: Path) -> None:
    ranges = open_ranges(f"gs://{BUCKET}/tfrecord", str(tmp_path))
    names = sorted(name for name in cloud.objects(bucket, BUCKET) if name.startswith("tfrecord/part"))
    assert ranges.glob(f"gs://{BUCKET}/*/part-*.tfrecord") == [f"gs://{BUCKET}/{n}" for n in names if n[-1] == "d"]
    assert ranges.glob(f"gs://{BUCKET}/{names[0]}") == [f"gs://{BUCKET}/{names[0]}"]
    assert ranges.glob(f"gs://{BUCKET}/part*") == []
    for name in ("[ab]/x", "a/x", "b/[x]", "b/x"):
        cloud.upload(bucket, BUCKET, f"marks/{name}", b"x")
    for pattern, found in (
        ("[ab]/x", ["[ab]/x"]),
        ("[ab]/*", ["a/x", "b/[x]", "b/x"]),
        ("[a]/x", ["a/x"]),
        ("b/[x]", ["b/[x]"]),
        ("?/x", ["a/x", "b/x"]),
    ):
        assert ranges.glob(f"gs://{BUCKET}/marks/{pattern}") == [f"gs://{BUCKET}/marks/{name}" for name in found]
    assert not files.is_glob(f"gs://{BUCKET}/marks/[ab]")
    assert files.is_glob(f"gs://{BUCKET}/marks/[a]")
    assert ranges.sizes([f"gs://{BUCKET}/{n}" for n in names]) == [
        len(cloud.content(bucket, BUCKET, name)) for name in names
    ]
    with pytest.raises(MissingFileError, match=f"^gs://{BUCKET}/tfrecord/none: there is no such file; check"):
        ranges.read_all(f"gs://{BUCKET}/tfrecord/none")


def test_an_object_that_changes_while_it_is_read(bucket: Mapping[str, str]) -> None:
    path, ranges = f"gs://{BUCKET}/changing", open_ranges(f"gs://{BUCKET}", cache_bytes=0)
    for content in (b"first content", b"second"):
        cloud.upload(bucket, BUCKET, "changing", content)
        if content == b"second":
            with pytest.raises(UnusableInputError, match=f"^{path}: this file was changed while it was read; open"):
                ranges.read(path, 1, 5)
        else:
            assert ranges.read(path, 1, 5).tobytes() == b"irst"


Answer = tuple[int, Mapping[str, str], bytes]


@contextlib.contextmanager
def private_bucket(bucket: Mapping[str, str], token: str) -> Iterator[list[str]]:
    """Puts a server before the emulator that wants a token; gives the tokens that came."""
    came: list[str] = []

    def handle(request: http.server.BaseHTTPRequestHandler, body: bytes) -> Answer:
        came.append(request.headers.get("Authorization", ""))
        if came[-1] != token:
            return 401 if not came[-1] else 403, {}, b""
        return cloud.forward(request, body, bucket["STORAGE_EMULATOR_HOST"])

    with cloud.server(handle) as url, cloud.set_environment({"STORAGE_EMULATOR_HOST": url}):
        yield came


def test_credentials_are_used_where_a_bucket_wants_them(
    bucket: Mapping[str, str], sets: dict[str, str], tmp_path: Path
) -> None:
    with private_bucket(bucket, "Bearer made-up") as came:
        assert_same(batches(f"gs://{BUCKET}/mds", tmp_path), batches(sets["mds"], tmp_path))
    assert came.count("") == 1
    assert set(came[1:]) == {"Bearer made-up"}


def test_credentials_that_are_refused(bucket: Mapping[str, str]) -> None:
    path = f"gs://{BUCKET}/mds/manifest.json"
    with private_bucket(bucket, "Bearer other"), pytest.raises(UnusableInputError) as raised:
        open_ranges(path, cache_bytes=0).size(path)
    assert str(raised.value) == (f"{path}: access is refused; check the credentials (403 Forbidden).")


def test_no_credentials(bucket: Mapping[str, str], tmp_path: Path) -> None:
    path = f"gs://{BUCKET}/mds/manifest.json"
    none = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json")}
    with (
        cloud.set_environment(none),
        private_bucket(bucket, "Bearer made-up"),
        pytest.raises(UnusableInputError) as raised,
    ):
        open_ranges(path, cache_bytes=0).size(path)
    assert str(raised.value).startswith(
        f"{path}: access needs credentials, and there are no usable Google credentials ("
    )
    assert str(raised.value).endswith(
        "); run `gcloud auth application-default login`, or name a service account's file in "
        "GOOGLE_APPLICATION_CREDENTIALS."
    )


def test_credentials_that_google_does_not_take(bucket: Mapping[str, str], tmp_path: Path) -> None:
    path = f"gs://{BUCKET}/mds/manifest.json"
    refusal = cloud.json_answer({"error": "invalid_grant", "error_description": "Account not found"}, 400)
    with cloud.credentials(tmp_path) as variables, cloud.server(lambda request, body: refusal) as url:
        account = Path(variables["GOOGLE_APPLICATION_CREDENTIALS"])
        lines = account.read_text().split('"token_uri": "')
        account.write_text(f'{lines[0]}"token_uri": "{url}/token"}}')
        with (
            cloud.set_environment(variables),
            private_bucket(bucket, "Bearer made-up"),
            pytest.raises(UnusableInputError, match=f"^{path}: Google refuses the credentials \\(.*invalid_grant.*"),
        ):
            open_ranges(path, cache_bytes=0).size(path)
    assert os.environ["GOOGLE_APPLICATION_CREDENTIALS"] == bucket["GOOGLE_APPLICATION_CREDENTIALS"]
