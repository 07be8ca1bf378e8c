"""Downloads of dumps: each way in which a mirror, a connection or a disk can fail."""

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP
from conftest import ROOT
from servers import mirror_server
from servers.mirror_server import LONG_AGO, Mirror, classic_files, content_files

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors import download, newest
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump
from maskmill.storage.web_client import WebClient

pytest_plugins = ("servers.mirror_fixtures",)

DATE = "2026-03-01"
SAMPLE = DUMP.read_bytes()
# Three pieces of the sample dump, as the files of a dump in parts: 100 to 140 kB each.
PARTS = [SAMPLE[:100_000], SAMPLE[100_000:220_000], SAMPLE[220_000:360_000]]
FIRST, SECOND, THIRD = (
    f"enwiki-20260301-pages-articles-multistream{part}.bz2" for part in mirror_server.ENWIKI_PARTS[:3]
)


def new_client(silence: float = 5.0, patience: float = 10.0) -> MirrorClient:
    """A client that is less patient than the command's."""
    return MirrorClient("data@example.org", "1.2.3", WebClient(patience=patience, silence=silence))


def look(mirror: Mirror, client: MirrorClient, layout: str = "auto", source: str = "") -> Dump:
    """The newest dump of a mirror."""
    found = next(
        newest.dumps(source or mirror.url, wiki="enwiki", layout=layout, pattern="*.xml*", client=client), None
    )
    assert found is not None
    return found


def publish(mirror: Mirror, contents: list[bytes] = PARTS) -> dict[str, bytes]:
    """Puts a dump on a mirror; returns the files of its pages."""
    files = classic_files("enwiki", DATE, contents)
    mirror.publish_classic("enwiki", DATE, files)
    return {name: content for name, content in files.items() if "index" not in name}


def downloaded(folder: Path) -> dict[str, bytes]:
    """What lies in the directory of a dump's download, but dump.json."""
    return {path.name: path.read_bytes() for path in (folder / f"enwiki-{DATE}").iterdir() if path.name != "dump.json"}


def test_a_dump_is_downloaded(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """The files of pages with their names, whole; no index, and nothing else."""
    expected = publish(mirror)
    dump = look(mirror, client)
    seen: dict[str, tuple[int, int | None]] = {}
    paths = download.download(
        dump, str(tmp_path), client=client, progress=lambda name, done, size: seen.update({name: (done, size)})
    )
    assert downloaded(tmp_path) == expected
    assert paths == [str(tmp_path / f"enwiki-{DATE}" / name) for name in (FIRST, SECOND, THIRD)]
    assert seen == {name: (len(content), len(content)) for name, content in expected.items()}
    kept = download.read_downloaded(str(tmp_path / f"enwiki-{DATE}"))
    assert kept is not None
    assert [file.name for file in kept.files] == [FIRST, SECOND, THIRD]
    assert [(path, found.date) for path, found in download.downloaded_dumps(str(tmp_path))] == [
        (str(tmp_path / f"enwiki-{DATE}"), DATE)
    ]


def test_a_dump_that_is_here_is_not_asked_for_again(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    publish(mirror)
    dump = look(mirror, client)
    download.download(dump, str(tmp_path), client=client)
    before = len(mirror.requests)
    download.download(dump, str(tmp_path), client=client)
    assert len(mirror.requests) == before


def test_a_lost_file_is_downloaded_again(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    dump = look(mirror, client)
    paths = download.download(dump, str(tmp_path), client=client)
    os.unlink(paths[1])
    download.download(dump, str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [len(mirror.asked(name)) for name in (FIRST, SECOND, THIRD)] == [1, 2, 1]


def test_dump_json_that_is_damaged_does_not_count(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    dump = look(mirror, client)
    download.download(dump, str(tmp_path), client=client)
    described = tmp_path / f"enwiki-{DATE}" / "dump.json"
    described.write_bytes(described.read_bytes().replace(b"multistream1", b"multistream4"))
    assert download.read_downloaded(str(described.parent)) is None
    assert download.downloaded_dumps(str(tmp_path)) == []
    download.download(dump, str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected


@pytest.mark.releases
def test_there_are_three_connections_at_most(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Wikimedia allows three; whoever asks for more does not get them. All three are used."""
    expected = publish(mirror, [*PARTS, SAMPLE[360_000:460_000]])
    together = threading.Barrier(3)

    def wait_for_two_others(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        together.wait(300)
        time.sleep(0.2)  # for a fourth to come
        return False

    for name in list(expected)[:3]:
        mirror.fail(name, wait_for_two_others)
    download.download(look(mirror, client), str(tmp_path), client=client, connections=8)
    assert mirror.most_at_once == 3


def test_a_cut_connection_goes_on_where_it_was_cut(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    mirror.fail(SECOND, mirror_server.cut(0.5), mirror_server.cut(0.25))
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [request.part for request in mirror.asked(SECOND)] == ["", "60000-", "75000-"]
    assert {request.headers["If-Range"] for request in mirror.asked(SECOND)[1:]} == {
        f'"{int(LONG_AGO):x}-{len(PARTS[1]):x}"'
    }


def interrupted(mirror: Mirror, folder: Path) -> None:
    """Makes a download end when half of its second file is there, as a kill would."""
    mirror.fail(SECOND, mirror_server.cut(0.5), *[mirror_server.status(503)] * 50)
    client = new_client(patience=0.2)
    with pytest.raises(RunFailedError, match="does not deliver this file"):
        download.download(look(mirror, client), str(folder), client=client, connections=1)
    client.close()
    mirror.clear()
    mirror.requests.clear()


def test_an_interrupted_download_goes_on(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    interrupted(mirror, tmp_path)
    assert download.downloaded_dumps(str(tmp_path)) == []
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert not mirror.asked(FIRST)
    assert [request.part for request in mirror.asked(SECOND)] == ["60000-"]


@pytest.mark.releases
def test_a_file_that_fails_leaves_the_parts_of_the_others(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Hours of a download are not lost because another file is gone."""
    publish(mirror)
    dump = look(mirror, client)
    begun = threading.Event()
    mirror.pace = 0.05

    def wait_then_fail(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        assert begun.wait(30)
        return mirror_server.status(404)(handler, content, headers)

    mirror.fail(THIRD, wait_then_fail)

    def note(name: str, done: int, size: int | None) -> None:
        if name == FIRST and done >= 16_000:
            begun.set()

    with pytest.raises(download.DumpGoneError):
        download.download(dump, str(tmp_path), client=client, progress=note)
    part = tmp_path / f"enwiki-{DATE}" / f"{FIRST}.part"
    kept = part.read_bytes()
    assert 16_000 <= len(kept) < len(PARTS[0])
    assert PARTS[0].startswith(kept)
    mirror.pace = 0.0
    download.download(dump, str(tmp_path), client=client)
    assert mirror.asked(FIRST)[-1].part == f"{len(kept)}-"


def test_a_mirror_that_ignores_ranges_sends_all_again(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    mirror.takes_ranges = False
    mirror.fail(FIRST, mirror_server.cut(0.9))
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [(request.part, request.status) for request in mirror.asked(FIRST)] == [("", None), ("90000-", 200)]


@pytest.mark.releases
def test_a_mirror_that_sends_another_part_is_asked_again(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    mirror.fail(FIRST, mirror_server.cut(0.5), mirror_server.wrong_part)
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected


def test_a_part_longer_than_its_file_begins_again(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    expected = publish(mirror)
    interrupted(mirror, tmp_path)
    part = tmp_path / f"enwiki-{DATE}" / f"{SECOND}.part"
    part.write_bytes(b"x" * 130_000)
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected


def test_a_damaged_part_is_found_by_its_checksum(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """After a power cut a file may have zeros that nobody wrote."""
    expected = publish(mirror)
    interrupted(mirror, tmp_path)
    part = tmp_path / f"enwiki-{DATE}" / f"{SECOND}.part"
    part.write_bytes(bytes(60_000))
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [request.part for request in mirror.asked(SECOND)] == ["60000-", ""]


@pytest.mark.releases
@pytest.mark.parametrize("described", [b"", b"{", b"[]", b'{"url": 1}', None])
def test_a_part_of_nobody_knows_what_begins_again(
    mirror: Mirror, client: MirrorClient, tmp_path: Path, described: bytes | None
) -> None:
    expected = publish(mirror)
    interrupted(mirror, tmp_path)
    path = tmp_path / f"enwiki-{DATE}" / f"{SECOND}.part.json"
    path.unlink() if described is None else path.write_bytes(described)
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [request.part for request in mirror.asked(SECOND)] == [""]


def test_a_part_of_a_file_with_another_checksum_begins_again(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    expected = publish(mirror)
    interrupted(mirror, tmp_path)
    path = tmp_path / f"enwiki-{DATE}" / f"{SECOND}.part.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"checksum": "0" * 40}))
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [request.part for request in mirror.asked(SECOND)] == [""]


def test_a_file_gets_its_name_when_the_disk_has_its_content(
    mirror: Mirror, client: MirrorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power cut leaves an empty file under the name of a complete one."""
    expected = publish(mirror)
    on_disk: set[int] = set()
    named: dict[str, bool] = {}
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        fsync(descriptor)
        on_disk.add(os.fstat(descriptor).st_ino)

    def noted_replace(source: str, target: str) -> None:
        named[os.path.basename(target)] = os.stat(source).st_ino in on_disk
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert set(expected) <= set(named)
    assert all(named.values())


def test_a_file_whose_checksum_is_wrong_is_downloaded_once_more(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    expected = publish(mirror)
    mirror.fail(FIRST, mirror_server.damage)
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert len(mirror.asked(FIRST)) == 2


def test_a_file_whose_checksum_stays_wrong_is_not_kept(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    publish(mirror)
    dump = look(mirror, client)
    mirror.fail(FIRST, mirror_server.damage, mirror_server.damage, mirror_server.damage)
    published = hashlib.sha1(PARTS[0]).hexdigest()
    with pytest.raises(
        download.DumpChangedError, match=f"{FIRST}: its sha1 is [0-9a-f]+, and the mirror says {published}"
    ):
        download.download(dump, str(tmp_path), client=client, connections=1)
    assert len(mirror.asked(FIRST)) == 2
    assert not [name for name in downloaded(tmp_path) if name.startswith(FIRST)]
    assert download.downloaded_dumps(str(tmp_path)) == []


@pytest.mark.parametrize("layout", ["classic", "listing"])
def test_sums_that_disagree_are_refused(mirror: Mirror, client: MirrorClient, tmp_path: Path, layout: str) -> None:
    publish(mirror)
    if layout == "classic":
        status = mirror.files["enwiki/20260301/dumpstatus.json"]
        right = hashlib.md5(PARTS[0]).hexdigest().encode()
        assert right in status
        mirror.files["enwiki/20260301/dumpstatus.json"] = status.replace(right, b"0" * 32)
    else:
        mirror.publish("enwiki/20260301", {"enwiki-20260301-md5sums.txt": b"0" * 32 + f"  {FIRST}\n".encode()})
    source = "" if layout == "classic" else f"{mirror.url}/enwiki/20260301"
    with pytest.raises(download.DumpChangedError, match=f"{FIRST}: its md5 is [0-9a-f]+, and the mirror says 0{{32}}"):
        download.download(look(mirror, client, layout, source), str(tmp_path), client=client, connections=1)
    assert download.downloaded_dumps(str(tmp_path)) == []


def test_a_dump_that_vanishes_is_gone(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Mirrors delete old dumps, and have new ones before all of their files."""
    publish(mirror)
    dump = look(mirror, client)
    path = f"enwiki/20260301/{THIRD}"
    del mirror.files[path]
    with pytest.raises(download.DumpGoneError, match=f"{THIRD}: this file is not on the mirror any more"):
        download.download(dump, str(tmp_path), client=client)
    assert download.downloaded_dumps(str(tmp_path)) == []


def test_a_dump_that_vanishes_while_a_file_is_read_is_gone(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    publish(mirror)
    mirror.fail(FIRST, mirror_server.cut(), mirror_server.status(404))
    with pytest.raises(download.DumpGoneError):
        download.download(look(mirror, client), str(tmp_path), client=client)


@pytest.mark.releases
@pytest.mark.parametrize(("status", "as_date"), [(429, False), (429, True), (503, False)])
def test_a_mirror_that_wants_to_be_left_alone_is(
    mirror: Mirror, client: MirrorClient, tmp_path: Path, status: int, as_date: bool
) -> None:
    expected = publish(mirror)
    mirror.fail(FIRST, mirror.throttle(0.6, status, as_date=as_date))
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert len(mirror.asked(FIRST)) == 2
    assert mirror.early == 0


@pytest.mark.releases
def test_all_connections_leave_a_mirror_alone_that_wants_it(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    """The other connections do not ask for their next files meanwhile."""
    expected = publish(mirror)
    throttle = mirror.throttle(0.8)
    mirror.fail(FIRST, throttle)
    mirror.refuse_meanwhile = True
    download.download(look(mirror, client), str(tmp_path), client=client, connections=2)
    assert downloaded(tmp_path) == expected
    assert mirror.early <= 1  # a request that was under way when the mirror said so


def test_a_mirror_that_wants_to_be_left_alone_for_long_is_not_asked_before(mirror: Mirror, tmp_path: Path) -> None:
    """The next start of the command goes on; cron does not wait for hours in between."""
    publish(mirror)
    mirror.fail(FIRST, mirror_server.status(429, Retry_After="86400"))
    client = MirrorClient("data@example.org", "1.2.3")
    with pytest.raises(RunFailedError, match=r"429 Too Many Requests.*run the same command again"):
        download.download(look(mirror, client), str(tmp_path), client=client, connections=1)
    client.close()
    assert len(mirror.asked(FIRST)) == 1


@pytest.mark.releases
def test_a_slow_mirror_is_waited_for(mirror: Mirror, tmp_path: Path) -> None:
    """Bytes that come slowly are no silence."""
    expected = publish(mirror)
    mirror.pace = 0.05
    client = new_client(silence=0.5)
    download.download(look(mirror, client), str(tmp_path), client=client)
    client.close()
    assert downloaded(tmp_path) == expected
    assert [len(mirror.asked(name)) for name in (FIRST, SECOND, THIRD)] == [1, 1, 1]


@pytest.mark.releases
def test_a_mirror_that_falls_silent_is_asked_for_the_rest(mirror: Mirror, tmp_path: Path) -> None:
    expected = publish(mirror)
    mirror.fail(FIRST, mirror_server.stall(2))
    client = new_client(silence=0.3)
    download.download(look(mirror, client), str(tmp_path), client=client)
    client.close()
    assert downloaded(tmp_path) == expected
    assert [request.part for request in mirror.asked(FIRST)] == ["", "50000-"]


@pytest.mark.releases
def test_a_dump_that_is_replaced_while_it_is_read_is_looked_for_again(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    """Nothing of the old dump gets into the new one."""
    publish(mirror)
    dump = look(mirror, client)
    new = [SAMPLE[500_000:600_000], SAMPLE[600_000:720_000], SAMPLE[720_000:860_000]]  # of the same sizes
    mirror.fail(SECOND, mirror_server.then(lambda: publish_later(mirror, new), mirror_server.cut()))
    with pytest.raises(download.DumpChangedError):
        download.download(dump, str(tmp_path), client=client, connections=1)

    again = look(mirror, client)
    assert again != dump
    download.download(again, str(tmp_path), client=client)
    assert downloaded(tmp_path) == dict(zip((FIRST, SECOND, THIRD), new, strict=True))


def publish_later(mirror: Mirror, contents: list[bytes]) -> None:
    """Replaces a dump by another of the same name."""
    files = classic_files("enwiki", DATE, contents)
    mirror.publish_classic("enwiki", DATE, files)
    mirror.modified.update(dict.fromkeys(mirror.modified, LONG_AGO + 86_400))


def test_a_dump_that_is_replaced_by_another_size_is_looked_for_again(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    publish(mirror)
    dump = look(mirror, client)
    publish_later(mirror, [content + b"x" for content in PARTS])
    with pytest.raises(download.DumpChangedError, match="lists 100,000 bytes and sends 100,001"):
        download.download(dump, str(tmp_path), client=client, connections=1)
    assert len(mirror.asked(FIRST)) == 1


def test_a_republished_dump_replaces_the_one_that_is_here(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Also where its parts have other names: none of the old ones stays."""
    publish(mirror)
    download.download(look(mirror, client), str(tmp_path), client=client)
    mirror.files.clear()
    files = classic_files("enwiki", DATE, [SAMPLE[:90_000]])
    mirror.publish_classic("enwiki", DATE, files)
    download.download(look(mirror, client), str(tmp_path), client=client)
    name = "enwiki-20260301-pages-articles-multistream.xml.bz2"
    assert downloaded(tmp_path) == {name: files[name]}


@pytest.mark.releases
@pytest.mark.parametrize("etags", ["strong", "weak", "none"])
def test_files_without_checksums_are_never_mixed_of_two(
    mirror: Mirror, client: MirrorClient, tmp_path: Path, etags: str
) -> None:
    """A listing need not have checksums: only what the server says tells that a file was replaced."""
    name = "enwiki-20260301-pages-articles.xml.bz2"
    mirror.etags = etags
    mirror.publish("dumps", {name: PARTS[1]})
    source = f"{mirror.url}/dumps"
    dump = look(mirror, client, "listing", source)
    new = bytes(reversed(PARTS[1]))

    def replace() -> None:
        mirror.publish("dumps", {name: new}, LONG_AGO + 86_400)

    mirror.fail(name, mirror_server.then(replace, mirror_server.cut()))
    with contextlib.suppress(download.DumpChangedError):
        download.download(dump, str(tmp_path), client=client)
    download.download(look(mirror, client, "listing", source), str(tmp_path), client=client)
    assert downloaded(tmp_path) == {name: new}


def test_a_server_without_validators_resumes_what_has_a_checksum(
    mirror: Mirror, client: MirrorClient, tmp_path: Path
) -> None:
    expected = publish(mirror)
    mirror.etags = "weak"
    mirror.fail(FIRST, mirror_server.cut())
    download.download(look(mirror, client), str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert [request.part for request in mirror.asked(FIRST)] == ["", "50000-"]


@pytest.mark.parametrize("layout", ["classic", "content"])
def test_a_disk_without_room_is_said_before_anything_is_downloaded(
    mirror: Mirror, client: MirrorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """Also where the mirror does not list how large its files are."""
    publish(mirror)
    mirror.publish_content("enwiki", DATE, content_files("enwiki", DATE, PARTS))
    dump = look(mirror, client, layout)
    usage = shutil.disk_usage(tmp_path)._replace(free=200_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(RunFailedError, match=r"needs 0\.4 MB, and 0\.2 MB are free; make room"):
        download.download(dump, str(tmp_path), client=client)
    assert not any(mirror.asked(file.name) for file in dump.files)


def test_a_disk_that_becomes_full_keeps_what_is_there(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Once there is room, the download goes on."""
    expected = publish(mirror)
    dump = look(mirror, client)
    mirror.pace = 0.001
    with full_disk(40_000), pytest.raises(RunFailedError, match=r"File too large.*Make room"):
        download.download(dump, str(tmp_path), client=client, connections=1)
    part = tmp_path / f"enwiki-{DATE}" / f"{FIRST}.part"
    kept = part.stat().st_size
    assert 0 < kept <= 40_000
    download.download(dump, str(tmp_path), client=client)
    assert downloaded(tmp_path) == expected
    assert mirror.asked(FIRST)[-1].part == f"{kept}-"


@contextlib.contextmanager
def full_disk(room: int) -> Iterator[None]:
    """The system writes no more than so many bytes into a file, and then says why not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_directory_that_cannot_be_made_is_one_sentence(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    publish(mirror)
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInputError, match="this directory cannot be made"):
        download.download(look(mirror, client), str(tmp_path / "file"), client=client)


def test_a_deleted_download_leaves_nothing(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    publish(mirror)
    download.download(look(mirror, client), str(tmp_path), client=client)
    download.delete_downloaded(str(tmp_path / f"enwiki-{DATE}"))
    assert list(tmp_path.iterdir()) == []
    download.delete_downloaded(str(tmp_path / f"enwiki-{DATE}"))


def test_a_deletion_leaves_the_files_of_others(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    publish(mirror)
    interrupted(mirror, tmp_path)
    folder = tmp_path / f"enwiki-{DATE}"
    (folder / "notes.txt").write_text("mine")
    download.delete_downloaded(str(folder))
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_files_of_a_directory_are_used_where_they_are(client: MirrorClient, tmp_path: Path) -> None:
    source, downloads = tmp_path / "source", tmp_path / "downloads"
    source.mkdir()
    for name, content in content_files("enwiki", DATE, PARTS).items():
        (source / name).write_bytes(content)
        os.utime(source / name, (LONG_AGO, LONG_AGO))
    found = next(newest.dumps(str(source), wiki=None, layout="auto", pattern="*.xml*", client=client), None)
    assert found is not None
    paths = download.download(found, str(downloads), client=client)
    assert [Path(path).read_bytes() for path in paths] == PARTS
    assert not [path for path in downloads.rglob("*") if ".xml" in path.name]
    assert paths == download.paths_of(download.directory_of(str(downloads), found), found)


_PROGRAM = """
import sys
from maskmill.mirrors import download, newest
from maskmill.mirrors.client import MirrorClient

client = MirrorClient("data@example.org", "1.2.3")
dump = next(newest.dumps(sys.argv[1], wiki="enwiki", layout="auto", pattern="*.xml*", client=client), None)
print("begins", flush=True)
download.download(dump, sys.argv[2], client=client)
print("complete", flush=True)
"""


def size_of(folder: Path) -> int:
    """The bytes of the files in a folder, of which some get other names meanwhile."""
    size = 0
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


@pytest.mark.releases
def test_a_download_that_is_killed_again_and_again_ends_as_if_it_was_not(mirror: Mirror, tmp_path: Path) -> None:
    """Each start goes on where the last one was killed: no byte comes twice but those that were on their way."""
    expected = publish(mirror)
    mirror.pace = 0.08
    moments = random.Random(18)
    folder = tmp_path / f"enwiki-{DATE}"
    largest = max(map(len, expected.values()))
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, mirror.url, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        # Bytes tell the moment, not seconds, of which a busy machine needs more.
        enough = size_of(folder) + moments.randrange(1, largest)
        while process.poll() is None and size_of(folder) < enough:
            time.sleep(0.005)
        process.kill()
        process.wait()
        for name, content in expected.items():
            part, whole = folder / f"{name}.part", folder / name
            assert not part.exists() or content.startswith(part.read_bytes())
            assert not whole.exists() or whole.read_bytes() == content
        if download.read_downloaded(str(folder)) is not None:
            break
    mirror.pace = 0.0
    subprocess.run([sys.executable, "-c", _PROGRAM, mirror.url, str(tmp_path)], cwd=ROOT, check=True)
    assert downloaded(tmp_path) == expected
    assert any(request.part for name in expected for request in mirror.asked(name))
