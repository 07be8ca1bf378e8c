"""Dumps in a bucket, and downloads into one: the emulator of Cloud Storage answers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_runs.commands import DUMP
from servers import cloud, mirror_server
from servers.mirror_looks import Looks
from servers.mirror_server import Mirror, classic_files, content_files, cut, sha256_sums

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors import download
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump, DumpChangedError
from maskmill.storage import files

pytest_plugins = ("servers.mirror_fixtures",)

pytestmark = pytest.mark.builds

BUCKET = "maskmill-mirrors"
DATE = "2026-03-01"
SAMPLE = DUMP.read_bytes()
PARTS = [SAMPLE[:100_000], SAMPLE[100_000:220_000], SAMPLE[220_000:360_000]]
DOWNLOADS = f"gs://{BUCKET}/downloads"
FOLDER = f"{DOWNLOADS}/enwiki-{DATE}"
FIRST, SECOND = (f"enwiki-20260301-pages-articles-multistream{part}.bz2" for part in mirror_server.ENWIKI_PARTS[:2])


@pytest.fixture(scope="module", autouse=True)
def _storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as environment, cloud.set_environment(environment):
        yield


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    files.delete(files.list_below(f"gs://{BUCKET}"))


def publish(mirror: Mirror, client: MirrorClient, parts: list[bytes] = PARTS) -> tuple[Dump, dict[str, bytes]]:
    """Puts a dump on a mirror; gives it and the files of its pages."""
    mirror.files.clear()
    contents = classic_files("enwiki", DATE, parts)
    mirror.publish_classic("enwiki", DATE, contents)
    expected = {name: content for name, content in contents.items() if "index" not in name}
    return Looks(mirror.url, client).newest, expected


def downloaded() -> dict[str, bytes]:
    """What lies in the directory of the dump's download, but dump.json."""
    found = {files.base_name(path): files.read_bytes(path) for path in files.list_directory(FOLDER)}
    return {name: content for name, content in found.items() if name != "dump.json"}


@pytest.mark.parametrize("folder", ["", "dumps/of/wikimedia/"])
def test_both_layouts_are_found_in_a_bucket(mirror: Mirror, client: MirrorClient, folder: str) -> None:
    mirror.publish_classic("enwiki", "2026-02-01", classic_files("enwiki", "2026-02-01", PARTS))
    mirror.publish_content("enwiki", DATE, content_files("enwiki", DATE, PARTS))
    for path, content in mirror.files.items():
        files.write_bytes(f"gs://{BUCKET}/{folder}{path}", content)
    found = Looks(f"gs://{BUCKET}/{folder}".rstrip("/"), client, pattern="*")
    assert [(dump.layout, dump.date) for dump in found.dumps] == [("content", DATE), ("classic", "2026-02-01")]
    assert not mirror.requests


@pytest.mark.parametrize("place", ["bucket", "directory"])
def test_a_listing_is_used_where_it_is_if_it_fits_its_checksums(
    client: MirrorClient, place: str, tmp_path: Path
) -> None:
    folder = f"gs://{BUCKET}/dumps" if place == "bucket" else str(tmp_path)
    contents = content_files("enwiki", DATE, PARTS)
    name = next(iter(contents))
    for path, content in {**contents, "SHA256SUMS": sha256_sums(contents), name: contents[name][:-1]}.items():
        files.write_bytes(f"{folder}/{path}", content)
    dump = Looks(f"{folder}/", client).newest
    with pytest.raises(
        DumpChangedError,
        match=rf"^{folder}/{name}: its sha256 is \w+, and the mirror says \w+; this copy is damaged",
    ):
        download.download(dump, DOWNLOADS, client=client)
    assert not download.is_downloaded(dump, DOWNLOADS)
    files.write_bytes(f"{folder}/{name}", contents[name])
    paths = download.download(dump, DOWNLOADS, client=client)
    assert [files.read_bytes(path) for path in paths] == PARTS
    assert paths == [f"{folder}/{name}" for name in contents]
    files.delete([paths[1]])
    assert Looks(f"{folder}/", client, "listing").dumps == []


@pytest.mark.parametrize("source", [f"gs://{BUCKET}/nothing", "gs://maskmill-no-such-bucket", "hdfs://host/dumps"])
def test_a_place_that_is_not_there_is_one_sentence(client: MirrorClient, source: str) -> None:
    with pytest.raises(UnusableInputError, match=r"^[^\n]+\.$|^[^\n]+\)$"):
        Looks(source, client)


def ignore_ranges(mirror: Mirror) -> None:
    mirror.takes_ranges = False
    mirror.fail(SECOND, cut(0.5), cut(0.75))


@pytest.mark.parametrize(
    ("act", "asked"),
    [
        (lambda mirror: None, [""]),
        (lambda mirror: mirror.fail(SECOND, cut(0.5)), ["", "60000-"]),
        (ignore_ranges, ["", "60000-", "90000-"]),
    ],
)
def test_a_dump_is_downloaded_into_a_bucket(
    mirror: Mirror, client: MirrorClient, act: Callable[[Mirror], None], asked: list[str]
) -> None:
    dump, expected = publish(mirror, client)
    act(mirror)
    paths = download.download(dump, DOWNLOADS, client=client)
    assert downloaded() == expected
    assert [request.part for request in mirror.asked(SECOND)] == asked
    assert paths == [f"{FOLDER}/{name}" for name in expected]
    before = len(mirror.requests)
    assert download.download(dump, DOWNLOADS, client=client) == paths
    assert len(mirror.requests) == before
    assert download.downloaded_dumps(DOWNLOADS) == [(FOLDER, dump)]
    again, republished = publish(mirror, client, [SAMPLE[:90_000]])
    download.download(again, DOWNLOADS, client=client)
    assert downloaded() == republished
    download.delete_downloaded(FOLDER)
    assert files.list_below(DOWNLOADS) == []


@pytest.mark.parametrize(
    "faults", [[mirror_server.damage] * 2, [mirror_server.status(404)], [cut(0.5), mirror_server.status(404)]]
)
def test_an_object_appears_only_when_it_is_whole_and_others_stay(
    mirror: Mirror, client: MirrorClient, faults: list[mirror_server.Fault]
) -> None:
    dump, expected = publish(mirror, client)
    mirror.fail(SECOND, *faults, *[mirror_server.status(404)])
    with pytest.raises(RunFailedError, match=SECOND):
        download.download(dump, DOWNLOADS, client=client, connections=1)
    assert FIRST in downloaded()
    assert SECOND not in downloaded()
    assert download.downloaded_dumps(DOWNLOADS) == []
    assert download.unfinished_downloads(DOWNLOADS, "enwiki") == [(FOLDER, DATE)]
    mirror.clear()
    download.download(dump, DOWNLOADS, client=client)
    assert downloaded() == expected
    assert len(mirror.asked(FIRST)) == 1
