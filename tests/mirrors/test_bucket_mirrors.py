"""Dumps in a bucket, and downloads into one: the emulator of Cloud Storage answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_runs.commands import DUMP
from servers import cloud, mirror_server
from servers.mirror_server import Mirror, classic_files, content_files, sha256_sums

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors import download, newest
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump, DumpChangedError
from maskmill.storage import files

pytest_plugins = ("servers.mirror_fixtures",)

pytestmark = pytest.mark.releases

BUCKET = "maskmill-mirrors"
DATE = "2026-03-01"
SAMPLE = DUMP.read_bytes()
PARTS = [SAMPLE[:100_000], SAMPLE[100_000:220_000], SAMPLE[220_000:360_000]]
DOWNLOADS = f"gs://{BUCKET}/downloads"
FIRST, SECOND = (f"enwiki-20260301-pages-articles-multistream{part}.bz2" for part in mirror_server.ENWIKI_PARTS[:2])


@pytest.fixture(scope="module", autouse=True)
def _storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as environment, cloud.set_environment(environment):
        yield


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    files.delete([found.path for found in files.match([f"gs://{BUCKET}/**"])] if below("") else [])


def below(folder: str) -> dict[str, bytes]:
    """The objects below a folder of the bucket."""
    start = f"gs://{BUCKET}/{folder}"
    try:
        found = files.match([f"{start}**"])
    except UnusableInputError:
        return {}
    return {file.path.removeprefix(start): files.read_bytes(file.path) for file in found}


def look(source: str, client: MirrorClient, layout: str = "auto") -> Dump | None:
    """The newest dump of a place."""
    return next(newest.dumps(source, wiki="enwiki", layout=layout, pattern="*.xml*", client=client), None)


def publish(mirror: Mirror, client: MirrorClient) -> tuple[Dump, dict[str, bytes]]:
    """Puts a dump on a mirror; gives it and the files of its pages."""
    contents = classic_files("enwiki", DATE, PARTS)
    mirror.publish_classic("enwiki", DATE, contents)
    dump = look(mirror.url, client)
    assert dump is not None
    return dump, {name: content for name, content in contents.items() if "index" not in name}


def downloaded() -> dict[str, bytes]:
    """What lies in the directory of the dump's download, but dump.json."""
    found = below(f"downloads/enwiki-{DATE}/")
    return {name: content for name, content in found.items() if name != "dump.json"}


@pytest.mark.parametrize("folder", ["", "dumps/of/wikimedia/"])
def test_both_layouts_are_found_in_a_bucket(mirror: Mirror, client: MirrorClient, folder: str) -> None:
    mirror.publish_classic("enwiki", "2026-02-01", classic_files("enwiki", "2026-02-01", PARTS))
    mirror.publish_content("enwiki", DATE, content_files("enwiki", DATE, PARTS))
    for path, content in mirror.files.items():
        files.write_bytes(f"gs://{BUCKET}/{folder}{path}", content)
    source = f"gs://{BUCKET}/{folder}".rstrip("/")
    found = list(newest.dumps(source, wiki="enwiki", layout="auto", pattern="*", client=client))
    assert [(dump.layout, dump.date) for dump in found] == [("content", DATE), ("classic", "2026-02-01")]
    assert not mirror.requests


def test_a_listing_in_a_bucket_is_used_where_it_is(client: MirrorClient) -> None:
    contents = content_files("enwiki", DATE, PARTS)
    for name, content in {**contents, "SHA256SUMS": sha256_sums(contents)}.items():
        files.write_bytes(f"gs://{BUCKET}/dumps/{name}", content)
    dump = look(f"gs://{BUCKET}/dumps/", client)
    assert dump is not None
    assert dump.size == sum(map(len, PARTS))
    paths = download.download(dump, DOWNLOADS, client=client)
    assert paths == [f"gs://{BUCKET}/dumps/{name}" for name in contents]
    assert [files.read_bytes(path) for path in paths] == PARTS
    files.delete([paths[1]])
    assert look(f"gs://{BUCKET}/dumps/", client, "listing") is None


@pytest.mark.parametrize("place", ["bucket", "directory"])
def test_a_copy_that_does_not_fit_its_checksums_is_refused(client: MirrorClient, place: str, tmp_path: Path) -> None:
    folder = f"gs://{BUCKET}/dumps" if place == "bucket" else str(tmp_path)
    contents = content_files("enwiki", DATE, PARTS)
    sums = sha256_sums(contents)
    name = next(iter(contents))
    for path, content in {**contents, "SHA256SUMS": sums, name: contents[name][:-1]}.items():
        files.write_bytes(f"{folder}/{path}", content)
    dump = look(f"{folder}/", client)
    assert dump is not None
    sentence = (
        rf"^{folder}/{name}: its sha256 is \w+, and the mirror says \w+; this copy is damaged, or not complete yet"
    )
    with pytest.raises(DumpChangedError, match=sentence):
        download.download(dump, DOWNLOADS, client=client)
    assert not download.is_downloaded(dump, DOWNLOADS)
    files.write_bytes(f"{folder}/{name}", contents[name])
    assert download.download(dump, DOWNLOADS, client=client) == [f"{folder}/{name}" for name in contents]


@pytest.mark.parametrize("source", [f"gs://{BUCKET}/nothing", "gs://maskmill-no-such-bucket", "hdfs://host/dumps"])
def test_a_place_that_is_not_there_is_one_sentence(client: MirrorClient, source: str) -> None:
    with pytest.raises(UnusableInputError, match=r"^[^\n]+\.$|^[^\n]+\)$"):
        look(source, client)


def test_a_dump_is_downloaded_into_a_bucket(mirror: Mirror, client: MirrorClient) -> None:
    dump, expected = publish(mirror, client)
    paths = download.download(dump, DOWNLOADS, client=client)
    assert downloaded() == expected
    assert paths == [f"{DOWNLOADS}/enwiki-{DATE}/{name}" for name in expected]
    before = len(mirror.requests)
    assert download.download(dump, DOWNLOADS, client=client) == paths
    assert len(mirror.requests) == before
    assert [found.date for _, found in download.downloaded_dumps(DOWNLOADS)] == [DATE]
    download.delete_downloaded(f"{DOWNLOADS}/enwiki-{DATE}")
    assert below("downloads/") == {}


def test_a_cut_connection_goes_on_in_the_same_object(mirror: Mirror, client: MirrorClient) -> None:
    dump, expected = publish(mirror, client)
    mirror.fail(SECOND, mirror_server.cut(0.5))
    download.download(dump, DOWNLOADS, client=client)
    assert downloaded() == expected
    assert [request.part for request in mirror.asked(SECOND)] == ["", "60000-"]


def test_an_object_begins_again_where_the_mirror_ignores_ranges(mirror: Mirror, client: MirrorClient) -> None:
    dump, expected = publish(mirror, client)
    mirror.takes_ranges = False
    mirror.fail(SECOND, mirror_server.cut(0.5), mirror_server.cut(0.75))
    download.download(dump, DOWNLOADS, client=client)
    assert downloaded() == expected


def test_a_mirror_that_can_never_send_a_whole_file_is_given_up(mirror: Mirror, client: MirrorClient) -> None:
    dump, _ = publish(mirror, client)
    mirror.takes_ranges = False
    mirror.fail(SECOND, *[mirror_server.cut(0.5)] * 40)
    with pytest.raises(RunFailedError, match="run the same command again"):
        download.download(dump, DOWNLOADS, client=client, connections=1)
    assert list(downloaded()) == ["dump.part.json", FIRST]


def test_a_file_that_is_wrong_never_becomes_an_object(mirror: Mirror, client: MirrorClient) -> None:
    dump, _ = publish(mirror, client)
    mirror.fail(SECOND, mirror_server.damage, mirror_server.damage)
    with pytest.raises(download.DumpChangedError):
        download.download(dump, DOWNLOADS, client=client, connections=1)
    assert list(downloaded()) == ["dump.part.json", FIRST]


def test_an_interrupted_download_keeps_the_objects_that_are_there(mirror: Mirror, client: MirrorClient) -> None:
    dump, expected = publish(mirror, client)
    mirror.fail(SECOND, mirror_server.status(404))
    with pytest.raises(download.DumpGoneError):
        download.download(dump, DOWNLOADS, client=client, connections=1)
    assert download.downloaded_dumps(DOWNLOADS) == []
    assert download.unfinished_downloads(DOWNLOADS, "enwiki") == [(f"{DOWNLOADS}/enwiki-{DATE}", DATE)]
    download.download(dump, DOWNLOADS, client=client)
    assert downloaded() == expected
    assert len(mirror.asked(FIRST)) == 1


def test_a_republished_dump_replaces_the_objects(mirror: Mirror, client: MirrorClient) -> None:
    dump, _ = publish(mirror, client)
    download.download(dump, DOWNLOADS, client=client)
    mirror.files.clear()
    contents = classic_files("enwiki", DATE, [SAMPLE[:90_000]])
    mirror.publish_classic("enwiki", DATE, contents)
    again = look(mirror.url, client)
    assert again is not None
    download.download(again, DOWNLOADS, client=client)
    assert downloaded() == {"enwiki-20260301-pages-articles-multistream.xml.bz2": SAMPLE[:90_000]}
