"""Which dumps a mirror has, in both of Wikimedia's layouts: only complete ones, newest first, each page once."""

import bz2
import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers import mirror_server
from servers.mirror_server import Looks, Mirror, classic_files, content_files

from maskmill.errors import UnusableInputError
from maskmill.mirrors import wikimedia
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import choose_pages_files
from maskmill.storage import files

pytest_plugins = ("servers.mirror_fixtures", "release_runs.fixtures")

PAGES = [bz2.compress(f"<mediawiki>{part}</mediawiki>".encode()) for part in range(3)]
OLDER, NEWER = "2026-02-01", "2026-03-01"
JOB = "articlesmultistreamdump"
STATUS, SUMS = "dumpstatus.json", "enwiki-20260301-sha1sums.txt"
PARTS = [
    f"enwiki-20260301-pages-articles-multistream{part}.bz2"
    for part in ("1.xml-p1p41242", "2.xml-p41243p151573", "3.xml-p151574p311329")
]
CONTENT_PARTS = [
    f"enwiki-2026-03-01-{part}.xml.bz2" for part in ("p10p1147431", "p1147435p20110389", "p20110420p21500133")
]
PLAIN = "enwiki-20260301-pages-articles1.xml-p1p41242.bz2"

Files = dict[str, bytes]


def publish(mirror: Mirror, layout: str, date: str, files: Files | None = None, **how: Any) -> str:
    """Puts a dump on a mirror; returns its folder."""
    if layout == "content":
        return mirror.publish_content("enwiki", date, files or content_files("enwiki", date, PAGES), **how)
    return mirror.publish_classic("enwiki", date, files or classic_files("enwiki", date, PAGES), **how)


def test_the_newest_complete_dump_comes_first(mirror: Mirror, client: MirrorClient) -> None:
    """Files are in the order of their pages and have the date of their folder, whatever ranges of pages look like."""
    for date in (OLDER, NEWER):
        publish(mirror, "classic", date)
        publish(mirror, "content", date)
    mirror.publish("enwiki/latest", {"enwiki-latest-pages-articles.xml.bz2": b""})
    for layout, names, folder, sizes, algorithms in (
        ("classic", PARTS, "enwiki/20260301", list(map(len, PAGES)), ["md5", "sha1"]),
        ("content", CONTENT_PARTS, f"other/mediawiki_content_current/enwiki/{NEWER}/xml/bzip2", [None] * 3, ["sha256"]),
    ):
        found = Looks(mirror.url, client, layout)
        assert (found.dates, found.names[0], found.said) == ([NEWER, OLDER], names, [])
        assert [file.url for file in found.newest.files] == [f"{mirror.url}/{folder}/{name}" for name in names]
        assert [file.size for file in found.newest.files] == sizes
        assert all(sorted(file.sums) == algorithms for file in found.newest.files)
    assert {request.headers["User-Agent"] for request in mirror.requests} == {"maskmill/1.2.3 (data@example.org)"}
    both = [("content", NEWER), ("classic", NEWER), ("content", OLDER), ("classic", OLDER)]
    assert [(dump.layout, dump.date) for dump in Looks(mirror.url, client).dumps] == both


@pytest.mark.parametrize("contact", [None, "", "a@b\r\nX-Evil: 1", "Jānis <data@example.org>"])
def test_a_contact_that_cannot_be_sent_is_refused(mirror: Mirror, contact: str | None) -> None:
    with pytest.raises(UnusableInputError, match=r"watch\.contact"):
        Looks(mirror.url, MirrorClient(contact, "1.2.3", patience=1))
    assert not mirror.requests


# ---- what does not count: what is published, what is done to it then, and what is said

Change = Callable[[Mirror, str], None]  # of a mirror that has the dump in a folder


def without(name: str) -> Callable[[Files], Files]:
    """Leaves out a file."""
    return lambda files: {other: content for other, content in files.items() if other != name}


def with_file(name: str, content: bytes = b"pages") -> Callable[[Files], Files]:
    """Adds a file."""
    return lambda files: files | {name: content}


def of_names(*names: str) -> Callable[[Files], Files]:
    """Has other names."""
    return lambda files: dict.fromkeys(names, PAGES[0])


def twice(files: Files) -> Files:
    """The second file of pages has the content of the first."""
    first, second = [name for name in files if "index" not in name][:2]
    return files | {second: files[first]}


def rewritten(name: str, change: Callable[[bytes], bytes | None]) -> Change:
    """Changes a file, or takes it away."""

    def act(mirror: Mirror, folder: str) -> None:
        content = change(mirror.files.pop(f"{folder}/{name}"))
        if content is not None:
            mirror.files[f"{folder}/{name}"] = content

    return act


def listed(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    """Changes what dumpstatus.json lists."""

    def act(content: bytes) -> bytes:
        status = json.loads(content)
        status["jobs"][JOB]["files"] = change(status["jobs"][JOB]["files"])
        return json.dumps(status).encode()

    return rewritten(STATUS, act)


def without_keys(*keys: str) -> Change:
    """dumpstatus.json lists a file before it has its sums."""
    return listed(lambda files: {n: {k: v for k, v in e.items() if k not in keys} for n, e in files.items()})


def to(content: bytes | None) -> Callable[[bytes], bytes | None]:
    return lambda _: content


NOT_COMPLETE: list[tuple[str, Callable[[Files], Files] | None, dict[str, Any], Change | None, str]] = [
    *[("classic", None, {"statuses": {JOB: state}}, None, f"{JOB} is not done") for state in ("in-progress", "failed")],
    # The job of the plain files is done days before: a build of both would be made of the same pages twice.
    ("classic", of_names(PLAIN), {"job": "articlesdump", "statuses": {JOB: "in-progress"}}, None, "is not done"),
    # dumpstatus.json is of a dump that was made again, the list of sums not yet.
    ("classic", None, {}, rewritten(SUMS, lambda c: b"0" * 40 + c[40:]), f"differ about {PARTS[0]}"),
    ("classic", without(PARTS[0]), {}, None, "the part with the pages 1 to 41242 is missing, in front of "),
    ("classic", without(PARTS[1]), {}, None, "the part with the pages 41243 to 151573 is missing, in front of "),
    ("classic", without(PARTS[2]), {}, None, r"the part that belongs to .*-index3\.txt-p151574p311329\.bz2 is missing"),
    (
        "classic", None, {}, listed(lambda files: {n: e for n, e in files.items() if "p151574p311329" not in n}),
        f"{PARTS[2]} is in the list of checksums, but dumpstatus.json does not list it",
    ),
    *[
        ("classic", None, {}, rewritten(STATUS, to(content)), "its dumpstatus.json cannot be read")
        for content in (b'{"jobs": {"art', b"", b"[]", b'{"jobs": null}', b"\xff")
    ],
    ("classic", None, {}, rewritten(STATUS, to(None)), "it has no dumpstatus.json"),
    ("classic", None, {"sums": False}, without_keys("size"), "has no checksum or no size yet"),
    ("classic", None, {"sums": False}, without_keys("sha1", "md5"), "has no checksum or no size yet"),
    *[
        ("classic", change(name), {}, None, f"lists '{name}', which is no name of a file in this folder")
        for name in ("../../x/enwiki-20260301-pages-articles.xml.bz2", "/tmp/enwiki-20260301-pages-articles.xml")
        for change in (with_file, of_names)
    ],
    ("classic", twice, {}, None, f"{PARTS[1]} has the same checksum as {PARTS[0]}"),
    ("content", twice, {}, None, f"{CONTENT_PARTS[1]} has the same checksum as {CONTENT_PARTS[0]}"),
    ("classic", with_file(PARTS[2].replace("enwiki", "dewiki").replace("p15", "p95")), {}, None, "is not of enwiki"),
    ("content", with_file("dewiki-2026-03-01-p92p93.xml.bz2"), {}, None, "is not of enwiki"),
    ("content", of_names(*[f"enwiki-2026-03-01-{p}.xml.bz2" for p in ("p1p100", "p201p9000")]), {}, None, "is missing"),
    ("content", of_names("enwiki-2026-03-01-p900p1000.xml.bz2"), {}, None, "pages 1 to 899 is missing"),
    ("content", of_names(*[f"enwiki-2026-03-01-{p}.xml.bz2" for p in ("p1p9", "p9p20")]), {}, None, "pages in common"),
    ("content", None, {"success": False}, None, "_SUCCESS is not there yet"),
    ("content", None, {}, rewritten("SHA256SUMS", to(None)), "SHA256SUMS is not there yet"),
    # The list is cut off after its first line, so no gap shows between the parts that it lists.
    (
        "content", None, {}, rewritten("SHA256SUMS", lambda content: content.split(b"\n")[0] + b"\n"),
        f"{CONTENT_PARTS[1]} is not in SHA256SUMS",
    ),
    ("content", None, {}, rewritten("SHA256SUMS", to(b"<html>502</html>")), "is not in SHA256SUMS"),
    (
        "content", None, {}, rewritten("SHA256SUMS", to(b"0" * 64 + b"  enwiki-2026-02-01-p1p2.xml.bz2\n")),
        "is not of 2026-03-01",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "change", "how", "then", "why"), NOT_COMPLETE)
def test_a_dump_that_is_not_complete_does_not_count(
    mirror: Mirror,
    client: MirrorClient,
    layout: str,
    change: Callable[[Files], Files] | None,
    how: dict[str, Any],
    then: Change | None,
    why: str,
) -> None:
    publish(mirror, layout, OLDER)
    make = content_files if layout == "content" else classic_files
    files = make("enwiki", NEWER, PAGES)
    folder = publish(mirror, layout, NEWER, change(files) if change is not None else files, **how)
    if then is not None:
        then(mirror, folder)
    found = Looks(mirror.url, client)
    assert found.dates == [OLDER]
    (line,) = found.said
    assert line.startswith(f"{mirror.url}/{folder}: this dump does not count: ")
    assert re.search(why, line), line


# ---- what counts


def listed_too(*lines: str) -> Change:
    """The list of sums has files of other jobs, too."""
    return rewritten(SUMS, lambda content: content + "".join(f"{'0' * 40}  {line}\n" for line in lines).encode())


START = "enwiki-20260301-pages-articles"
# Ids without a page may lie between parts.
SPARSE = [f"enwiki-2026-03-01-{pages}.xml.bz2" for pages in ("p20p9000", "p9400p20000", "p20040p20041")]


@pytest.mark.parametrize(
    ("layout", "files", "how", "then", "names"),
    [
        # Plain files count where there will be no multistream files.
        *[
            ("classic", {PLAIN: PAGES[0]}, {"job": "articlesdump", "statuses": statuses}, None, [PLAIN])
            for statuses in ({}, {JOB: "failed"}, {JOB: "skipped"})
        ],
        # The whole beside its parts, as the job that joins them lists it; plain files, other containers, stubs.
        (
            "classic", None, {},
            listed_too(
                *[f"{START}-multistream{end}" for end in (".xml.bz2", "-index.txt.bz2", ".xml.7z")],
                f"{START}1.xml.bz2", "enwiki-20260301-stub-articles.xml.gz",
            ),
            PARTS,
        ),
        ("classic", classic_files("enwiki", NEWER, PAGES[:1]), {}, None, [f"{START}-multistream.xml.bz2"]),
        ("content", dict(zip(SPARSE, PAGES, strict=True)), {}, None, SPARSE),
    ],
)  # fmt: skip
def test_each_page_counts_once(
    mirror: Mirror,
    client: MirrorClient,
    layout: str,
    files: Files | None,
    how: dict[str, Any],
    then: Change | None,
    names: list[str],
) -> None:
    folder = publish(mirror, layout, NEWER, files, **how)
    if then is not None:
        then(mirror, folder)
    assert Looks(mirror.url, client).names == [names]


@given(st.permutations(["1.xml-p1p41242", "2.xml-p41243p151573", "10.xml-p4045403p5399366", "11.xml-p6899367p7054859"]))
def test_parts_are_in_the_order_of_their_pages(parts: list[str]) -> None:
    """Names sort 10 before 2, and p10 before p9."""
    start = "enwiki-20260301-pages-articles-multistream"
    listed = [f"{start}{part}.bz2" for part in parts] + [f"{start}-index{parts[0].replace('.xml', '.txt')}.bz2"]
    chosen = choose_pages_files([*listed, f"{start}.xml.bz2"])
    assert [name.partition("multistream")[2].partition(".")[0] for name in chosen[:4]] == ["1", "2", "10", "11"]
    assert chosen[4:] == listed[4:]


def test_a_mirror_may_lie_in_a_folder_of_its_server(mirror: Mirror, client: MirrorClient) -> None:
    """As mirror.accum.se/mirror/wikimedia.org/dumps/ does: the addresses in dumpstatus.json are Wikimedia's own."""
    publish(mirror, "classic", NEWER)
    mirror.files = {f"my dumps/of/{path}": content for path, content in mirror.files.items()}
    dump = Looks(f"{mirror.url}/my%20dumps/of/", client).newest
    assert dump.files[0].url.startswith(f"{mirror.url}/my%20dumps/of/enwiki/20260301/enwiki-")


def test_both_layouts_are_found_in_a_directory_and_in_a_bucket(mirror: Mirror, client: MirrorClient, root: str) -> None:
    """As on machines that have Wikimedia's public dumps mounted; the newer dump of either layout comes first."""
    publish(mirror, "classic", NEWER)
    publish(mirror, "content", OLDER)
    for path, content in mirror.files.items():
        files.write_bytes(f"{root}/{path}", content)
    found = Looks(f"{root}/", client)
    assert [(dump.layout, dump.date) for dump in found.dumps] == [("classic", NEWER), ("content", OLDER)]
    assert all(files.exists(file.url) for dump in found.dumps for file in dump.files)
    assert not mirror.requests


def test_an_index_that_leads_elsewhere_is_not_followed(mirror: Mirror, client: MirrorClient) -> None:
    """Neither to another server, nor to another folder, nor to what a query gives."""
    folder = publish(mirror, "classic", NEWER).rpartition("/")[0]
    links = ["20260301/", f"/{folder}/20260302/", "20260303/?x=1", "../20260304/", "a/20260305/", "http://["]
    links.append("http://example.org/enwiki/20260306/")
    mirror.files[f"{folder}/"] = "".join(f'<a href="{link}">x</a>' for link in links).encode() + b'<a name="here">x</a>'
    found = Looks(mirror.url, client)
    assert (found.dates, len(found.said)) == ([NEWER], 1)
    assert "20260302: this dump does not count" in found.said[0]


# ---- which mirror, which wiki


@pytest.mark.parametrize("layout", ["auto", "classic", "content"])
def test_a_wiki_that_the_mirror_does_not_have_is_said(mirror: Mirror, client: MirrorClient, layout: str) -> None:
    """With a name misspelt, "nothing new" would be said for ever."""
    publish(mirror, "classic", NEWER)
    with pytest.raises(UnusableInputError, match=r"no dumps of enwki here; check watch\.source, watch\.wiki"):
        Looks(mirror.url, client, layout, wiki="enwki")


@pytest.mark.parametrize("wiki", ["../private", "EnWiki", "en wiki", "enwiki/20260301", None])
def test_a_wiki_that_is_no_name_is_refused(mirror: Mirror, client: MirrorClient, wiki: str | None) -> None:
    with pytest.raises(UnusableInputError, match=r"watch\.wiki is"):
        Looks(mirror.url, client, "classic", wiki=wiki)
    assert not mirror.requests


def test_dumps_are_looked_at_only_when_they_are_asked_for(mirror: Mirror, client: MirrorClient) -> None:
    for date in ("2026-01-01", OLDER, NEWER):
        publish(mirror, "classic", date)
    found = next(wikimedia.find_dumps(mirror.url, wiki="enwiki", layout="classic", client=client), None)
    assert found is not None
    assert found.date == NEWER
    assert len(mirror.asked(STATUS)) == 1


def test_a_mirror_that_fails_for_a_while_is_asked_again(mirror: Mirror, client: MirrorClient) -> None:
    publish(mirror, "classic", NEWER)
    mirror.fail(STATUS, mirror_server.status(503), mirror_server.cut())
    assert Looks(mirror.url, client, "classic").dates == [NEWER]
    assert len(mirror.asked(STATUS)) == 3


def test_a_redirect_is_followed_and_one_without_end_is_not(mirror: Mirror, client: MirrorClient) -> None:
    publish(mirror, "classic", NEWER)
    moved = mirror_server.status(302, Location=f"{mirror.url}/enwiki/20260301/{STATUS}")
    mirror.fail(STATUS, moved)
    assert Looks(mirror.url, client, "classic").dates == [NEWER]
    mirror.fail(STATUS, *[moved] * 20)
    with pytest.raises(UnusableInputError, match=f"{STATUS}: this address leads nowhere"):
        Looks(mirror.url, client, "classic")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("/nowhere", "there are no dumps of enwiki here"),
        ("nowhere/at/all", "there are no dumps of enwiki here"),
        ("http://127.0.0.1:9/x", r"127\.0\.0\.1 does not deliver this file \(Connection refused\)"),
        ("hdfs://host/dumps", r"watch\.source is .*; it must be a directory, gs://"),
        ("http://", r"watch\.source is .* must be the address of a folder"),
        ("http://example.org/?x=1", r"watch\.source is .* must be the address of a folder"),
        ("https:///dumps", r"watch\.source is .* must be the address of a folder"),
    ],
)
def test_a_source_that_is_none_is_one_sentence(source: str, told: str) -> None:
    with pytest.raises(Exception, match=rf"^[^\n]*{told}[^\n]*\.$") as error:
        Looks(source, MirrorClient("data@example.org", "1.2.3", patience=0.1))
    assert type(error.value).__module__ == "maskmill.errors"


def test_a_directory_that_may_not_be_read_is_one_sentence(
    client: MirrorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    (tmp_path / "enwiki").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)  # who may do all, as in a container, is refused nothing
    with pytest.raises(UnusableInputError, match=f"{tmp_path}/enwiki: this directory cannot be read \\(Permission"):
        Looks(str(tmp_path), client)


def test_a_mirror_that_denies_access_is_one_sentence(mirror: Mirror, client: MirrorClient) -> None:
    """Wikimedia answers so where a User-Agent does not say who asks."""
    publish(mirror, "classic", NEWER)
    mirror.fail(STATUS, mirror_server.status(403))
    with pytest.raises(UnusableInputError, match=r"access is refused \(403 Forbidden\).*watch\.contact"):
        Looks(mirror.url, client, "classic")
