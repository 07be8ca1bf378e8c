"""Downloads of dumps: each way in which a mirror, a connection or a disk can fail."""

import contextlib
import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import DUMP
from conftest import ROOT
from servers import mirror_server
from servers.mirror_server import Fault, Looks, Mirror, classic_files, content_files, cut, damage

from maskmill.errors import RunFailedError
from maskmill.mirrors import download
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump, DumpChangedError
from maskmill.storage import files

pytest_plugins = ("servers.mirror_fixtures", "release_runs.fixtures")

DATE = "2026-03-01"
SAMPLE = DUMP.read_bytes()
# Three pieces of the sample dump, as the files of a dump in parts: 100 to 140 kB each.
PARTS = [SAMPLE[:100_000], SAMPLE[100_000:220_000], SAMPLE[220_000:360_000]]
NAMES = FIRST, SECOND, THIRD = tuple(
    f"enwiki-20260301-pages-articles-multistream{part}.bz2" for part in mirror_server.ENWIKI_PARTS[:3]
)
EXPECTED = dict(zip(NAMES, PARTS, strict=True))


def publish(mirror: Mirror, contents: Sequence[bytes] = PARTS) -> dict[str, bytes]:
    """Puts a dump on a mirror; returns the files of its pages."""
    found = classic_files("enwiki", DATE, contents)
    mirror.publish_classic("enwiki", DATE, found)
    return {name: content for name, content in found.items() if "index" not in name}


def look(mirror: Mirror, client: MirrorClient, layout: str = "classic") -> Dump:
    """The newest dump of a mirror."""
    return Looks(mirror.url, client, layout).newest


class Place:
    """Where a dump is downloaded to: one file at a time, unless it is said otherwise."""

    def __init__(self, path: Path, mirror: Mirror, client: MirrorClient) -> None:
        self.path = path
        self.folder = path / f"enwiki-{DATE}"
        self.mirror = mirror
        self.client = client

    def download(self, dump: Dump | None = None, **how: Any) -> list[str]:
        """Downloads a dump; the mirror's newest if none is given."""
        how = {"client": self.client, "connections": 1} | how
        return download.download(dump or look(self.mirror, self.client), str(self.path), **how)

    @property
    def files(self) -> dict[str, bytes]:
        """What lies in the directory of the download, but dump.json."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.name != "dump.json"}

    @property
    def complete(self) -> list[str]:
        """The dates of the dumps that are here whole."""
        return [dump.date for _, dump in download.downloaded_dumps(str(self.path))]

    def interrupt(self) -> None:
        """Makes a download end when half of its second file is there, as a kill would."""
        self.mirror.fail(SECOND, cut(0.5), *[mirror_server.status(503)] * 50)
        client = MirrorClient("data@example.org", "1.2.3", patience=0.2, silence=5)
        with pytest.raises(RunFailedError, match="does not deliver this file"):
            self.download(client=client)
        client.close()
        self.mirror.clear()
        self.mirror.requests.clear()

    def asked(self, name: str) -> list[str]:
        """The parts of a file that were asked for."""
        return [request.part for request in self.mirror.asked(name)]


@pytest.fixture
def place(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> Place:
    """A place, and a mirror with a dump."""
    publish(mirror)
    return Place(tmp_path, mirror, client)


def test_a_dump_is_downloaded_once(place: Place) -> None:
    """The files of pages with their names, whole; no index, and nothing else."""
    dump, seen = look(place.mirror, place.client), dict[str, int]()
    paths = place.download(dump, progress=lambda name, done: seen.update({name: done}))
    assert place.files == EXPECTED
    assert paths == [str(place.folder / name) for name in NAMES]
    assert seen == {name: len(content) for name, content in EXPECTED.items()}
    assert download.downloaded_dumps(str(place.path)) == [(str(place.folder), dump)]
    before = len(place.mirror.requests)
    assert place.download(dump) == paths
    assert len(place.mirror.requests) == before


def test_a_lost_file_or_a_damaged_record_is_downloaded_again(place: Place) -> None:
    os.unlink(place.download()[1])
    place.download()
    assert place.files == EXPECTED
    assert [len(place.asked(name)) for name in NAMES] == [1, 2, 1]
    described = place.folder / "dump.json"
    described.write_bytes(described.read_bytes().replace(b"multistream1", b"multistream4"))
    assert place.complete == []
    place.download()
    assert place.files == EXPECTED


@pytest.mark.builds
def test_there_are_three_connections_at_most(place: Place) -> None:
    """Wikimedia allows three; whoever asks for more does not get them. All three are used."""
    expected = publish(place.mirror, [*PARTS, SAMPLE[360_000:460_000]])
    together = threading.Barrier(3)

    def wait_for_two_others(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        together.wait(300)
        time.sleep(0.2)  # for a fourth to come
        return False

    for name in NAMES:
        place.mirror.fail(name, wait_for_two_others)
    place.download(connections=8)
    assert place.files == expected
    assert place.mirror.most_at_once == 3


# ---- what ends well


@pytest.mark.parametrize(
    ("faults", "takes_ranges", "asked"),
    [
        ([cut(0.5), cut(0.25)], True, ["", "60000-", "75000-"]),
        ([cut(0.9)], False, ["", "108000-"]),
        ([cut(0.5), mirror_server.wrong_part], True, ["", "60000-", ""]),
        ([damage], True, ["", ""]),
        ([mirror_server.stall(2)], True, ["", "60000-"]),
    ],
    ids=["cut", "no-ranges", "wrong-part", "damaged", "silent"],
)
def test_a_file_comes_whole_whatever_happens(
    place: Place, faults: list[Fault], takes_ranges: bool, asked: list[str]
) -> None:
    place.mirror.takes_ranges = takes_ranges
    place.mirror.fail(SECOND, *faults)
    place.download(client=MirrorClient("data@example.org", "1.2.3", patience=10, silence=1))
    assert place.files == EXPECTED
    assert place.asked(SECOND) == asked


@pytest.mark.parametrize(
    ("layout", "there", "asked"),
    [
        ("classic", PARTS[1][:60_000], ["60000-"]),
        ("classic", PARTS[1], []),  # killed before it had its name
        ("content", PARTS[1], ["120000-"]),  # whose list has no sizes
        ("classic", bytes(60_000), ["60000-", ""]),  # a power cut leaves zeros; another dump leaves its own
        ("classic", b"x" * 130_000, ["130000-", ""]),
    ],
    ids=["half", "whole", "whole-without-size", "zeros", "longer"],
)
def test_an_interrupted_download_goes_on(place: Place, layout: str, there: bytes, asked: list[str]) -> None:
    contents = content_files("enwiki", DATE, PARTS)
    place.mirror.publish_content("enwiki", DATE, contents)
    second = SECOND if layout == "classic" else list(contents)[1]
    place.mirror.fail(second, *[mirror_server.status(404)] * 2)
    dump = look(place.mirror, place.client, layout)
    with pytest.raises(RunFailedError, match="no longer on the mirror"):
        place.download(dump)
    assert place.complete == []
    place.mirror.clear()
    place.mirror.requests.clear()
    (place.folder / f"{second}.part").write_bytes(there)
    place.download(dump)
    assert place.files == {file.name: part for file, part in zip(dump.files, PARTS, strict=True)}
    assert place.asked(second) == asked
    assert not place.mirror.asked(dump.files[0].name)


@pytest.mark.builds
def test_a_mirror_that_wants_to_be_left_alone_is(place: Place) -> None:
    place.mirror.fail(FIRST, place.mirror.throttle(1))
    place.download()
    assert place.files == EXPECTED
    assert len(place.asked(FIRST)) == 2
    assert place.mirror.early == 0


def test_a_file_gets_its_name_when_the_disk_has_its_content(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut leaves an empty file under the name of a complete one."""
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
    place.download()
    assert set(NAMES) <= set(named)
    assert all(named.values())


# ---- what fails


def _lose(name: str) -> Callable[[Mirror], None]:
    def act(mirror: Mirror) -> None:
        del mirror.files[f"enwiki/20260301/{name}"]

    return act


def _fail(name: str, *faults: Fault) -> Callable[[Mirror], None]:
    return lambda mirror: mirror.fail(name, *faults)


@pytest.mark.parametrize(
    ("name", "act", "error", "told", "asked"),
    [
        (
            FIRST, _fail(FIRST, *[damage] * 3), DumpChangedError,
            f"{FIRST}: its sha1 is [0-9a-f]+, and the mirror says {hashlib.sha1(PARTS[0]).hexdigest()}", 2,
        ),
        (THIRD, _lose(THIRD), RunFailedError, f"{THIRD}: this file is no longer on the mirror", 1),
        (FIRST, _fail(FIRST, cut(), mirror_server.status(404)), RunFailedError, "no longer on the mirror", 2),
        (
            FIRST, lambda mirror: publish(mirror, [content + b"x" for content in PARTS]), DumpChangedError,
            "lists 100,000 bytes and sends 100,001", 1,
        ),
        # The next start of the command goes on; cron does not wait for hours in between.
        (
            FIRST, _fail(FIRST, mirror_server.status(429, Retry_After="86400")), RunFailedError,
            r"429 Too Many Requests.*run the same command again", 1,
        ),
    ],
    ids=["wrong-checksum", "gone", "goes", "other-size", "left-alone-for-long"],
)  # fmt: skip
def test_a_file_that_cannot_come_is_one_sentence(
    place: Place, name: str, act: Callable[[Mirror], None], error: type[Exception], told: str, asked: int
) -> None:
    client = MirrorClient("data@example.org", "1.2.3")
    dump = look(place.mirror, client)
    act(place.mirror)
    with pytest.raises(error, match=told):
        place.download(dump, client=client)
    client.close()
    assert len(place.asked(name)) == asked
    assert name not in place.files
    assert place.complete == []


def test_all_checksums_count(place: Place) -> None:
    status, right = "enwiki/20260301/dumpstatus.json", hashlib.md5(PARTS[0]).hexdigest().encode()
    assert right in place.mirror.files[status]
    place.mirror.files[status] = place.mirror.files[status].replace(right, b"0" * 32)
    with pytest.raises(DumpChangedError, match=f"{FIRST}: its md5 is [0-9a-f]+, and the mirror says 0{{32}}"):
        place.download()
    assert place.complete == []


def test_a_file_that_fails_ends_the_waits_of_the_others_and_leaves_their_parts(place: Place) -> None:
    """Hours of a download are not lost because another file is gone."""
    waits = threading.Event()

    def leave_alone(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        waits.set()
        return mirror_server.status(503, Retry_After="600")(handler, content, headers)

    def wait_then_fail(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        assert waits.wait(300)
        return mirror_server.status(404)(handler, content, headers)

    place.mirror.fail(FIRST, cut(0.5), leave_alone)
    place.mirror.fail(SECOND, wait_then_fail)
    began = time.monotonic()
    with pytest.raises(RunFailedError, match="no longer on the mirror"):
        place.download(client=MirrorClient("data@example.org", "1.2.3"), connections=2)
    assert time.monotonic() < began + 500
    assert place.files[f"{FIRST}.part"] == PARTS[0][:50_000]
    place.download()
    assert place.asked(FIRST)[-1] == "50000-"


# ---- dumps that are replaced

NEW = [SAMPLE[500_000:600_000], SAMPLE[600_000:720_000], SAMPLE[720_000:860_000]]  # of the same sizes


def test_nothing_of_a_dump_that_is_replaced_gets_into_the_new_one(place: Place) -> None:
    dump = look(place.mirror, place.client)

    def replace(handler: Any, content: bytes, headers: dict[str, str]) -> bool:
        publish(place.mirror, NEW)
        return cut()(handler, content, headers)

    place.mirror.fail(SECOND, replace)
    with pytest.raises(DumpChangedError):
        place.download(dump)
    assert look(place.mirror, place.client) != dump
    place.download()
    assert place.files == dict(zip(NAMES, NEW, strict=True))


def test_a_republished_dump_replaces_the_one_that_is_here(place: Place) -> None:
    """Also where its parts have other names: none of the old ones stays."""
    place.download()
    place.mirror.files.clear()
    expected = publish(place.mirror, [SAMPLE[:90_000]])
    place.download()
    assert place.files == expected


# ---- disks


def test_a_disk_without_room_is_said_before_anything_is_downloaded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = look(place.mirror, place.client)
    usage = shutil.disk_usage(place.path)._replace(free=200_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(RunFailedError, match=r"needs 0\.4 MB, and 0\.2 MB are free; make room"):
        place.download(dump)
    assert not any(place.mirror.asked(file.name) for file in dump.files)


def test_a_disk_that_becomes_full_keeps_what_is_there(place: Place) -> None:
    """Once there is room, the download goes on."""
    place.mirror.pace = 0.001
    with full_disk(40_000), pytest.raises(RunFailedError, match=r"File too large.*Make room"):
        place.download()
    kept = len(place.files[f"{FIRST}.part"])
    assert 0 < kept <= 40_000
    place.download()
    assert place.files == EXPECTED
    assert place.asked(FIRST)[-1] == f"{kept}-"


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


@pytest.mark.parametrize("complete", [True, False])
def test_a_deletion_leaves_only_the_files_of_others(place: Place, complete: bool) -> None:
    place.download() if complete else place.interrupt()
    (place.folder / "notes.txt").write_text("mine")
    download.delete_downloaded(str(place.folder))
    assert list(place.files) == ["notes.txt"]
    (place.folder / "notes.txt").unlink()
    for _ in range(2):
        download.delete_downloaded(str(place.folder))
        assert list(place.path.iterdir()) == []


# ---- directories and buckets


def test_files_of_a_directory_or_bucket_are_used_where_they_are_if_they_fit_their_checksums(
    mirror: Mirror, client: MirrorClient, root: str
) -> None:
    contents = content_files("enwiki", DATE, PARTS)
    folder = f"{root}/{mirror.publish_content('enwiki', DATE, contents)}"
    name = next(iter(contents))
    for path, content in mirror.files.items():
        files.write_bytes(f"{root}/{path}", content)
    files.write_bytes(f"{folder}/{name}", PARTS[0][:-1])
    dump, downloads = Looks(root, client).newest, f"{root}/downloads"
    with pytest.raises(DumpChangedError, match=rf"^{folder}/{name}: its sha256 is \w+, .*; this copy is damaged"):
        download.download(dump, downloads, client=client)
    assert not download.is_downloaded(dump, downloads)
    files.write_bytes(f"{folder}/{name}", PARTS[0])
    paths = download.download(dump, downloads, client=client)
    assert paths == [f"{folder}/{name}" for name in contents]
    assert files.list_below(downloads) == [f"{downloads}/enwiki-{DATE}/dump.json"]
    files.delete([paths[1]])
    assert not download.is_downloaded(dump, downloads)


@pytest.mark.builds
def test_a_dump_is_downloaded_into_a_bucket(mirror: Mirror, client: MirrorClient, emulator: str) -> None:
    """An object appears when it is whole; a file that cannot come leaves the others."""
    downloads = f"{emulator}/dumps"
    folder = f"{downloads}/enwiki-{DATE}"
    expected, dump = publish(mirror), look(mirror, client)

    def there() -> dict[str, bytes]:
        found = {files.base_name(path): files.read_bytes(path) for path in files.list_below(downloads)}
        return {name: content for name, content in found.items() if not name.startswith("dump.")}

    mirror.fail(SECOND, cut(0.5), mirror_server.status(404))
    with pytest.raises(RunFailedError, match=SECOND):
        download.download(dump, downloads, client=client, connections=1)
    assert list(there()) == [FIRST]
    assert download.downloaded_dumps(downloads) == []
    assert download.unfinished_downloads(downloads, "enwiki") == [(folder, DATE)]
    mirror.clear()
    paths = download.download(dump, downloads, client=client)
    assert (there(), paths) == (expected, [f"{folder}/{name}" for name in expected])
    assert len(mirror.asked(FIRST)) == 1
    assert download.downloaded_dumps(downloads) == [(folder, dump)]
    download.delete_downloaded(folder)
    assert files.list_below(downloads) == []


_PROGRAM = """
import sys
from maskmill.mirrors import download, wikimedia
from maskmill.mirrors.client import MirrorClient

client = MirrorClient("data@example.org", "1.2.3")
dump = next(wikimedia.find_dumps(sys.argv[1], wiki="enwiki", client=client))
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


@pytest.mark.builds
def test_a_download_that_is_killed_again_and_again_ends_as_if_it_was_not(place: Place) -> None:
    """Each start goes on where the last one was killed: no byte comes twice but those that were on their way."""
    place.mirror.pace = 0.08
    moments = random.Random(18)
    program = [sys.executable, "-c", _PROGRAM, place.mirror.url, str(place.path)]
    for _ in range(10):
        process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        # Bytes tell the moment, not seconds, of which a busy machine needs more.
        enough = size_of(place.folder) + moments.randrange(1, max(map(len, PARTS)))
        while process.poll() is None and size_of(place.folder) < enough:
            time.sleep(0.005)
        process.kill()
        process.wait()
        for name, content in EXPECTED.items():
            part, whole = place.folder / f"{name}.part", place.folder / name
            assert not part.exists() or content.startswith(part.read_bytes())
            assert not whole.exists() or whole.read_bytes() == content
        if place.complete:
            break
    place.mirror.pace = 0.0
    subprocess.run(program, cwd=ROOT, check=True)
    assert place.files == EXPECTED
    assert any(part for name in NAMES for part in place.asked(name))
