"""Dumps in any place that can be listed: a directory, a web server's index as Apache and nginx write it."""

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.mirror_server import LONG_AGO, Mirror, sha256_sums

from maskmill.errors import UnusableInputError
from maskmill.mirrors import newest
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump, choose_pages_files, is_index
from maskmill.storage.web_client import WebClient

pytest_plugins = ("servers.mirror_fixtures",)

ARTICLES = "enwiki-20260301-pages-articles.xml.bz2"
OLDER = "enwiki-20260201-pages-articles.xml.bz2"


def write(folder: Path, contents: Mapping[str, bytes], modified: float = LONG_AGO) -> str:
    """Writes files that were last changed at a time; returns the folder's path."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (modified, modified))
    return str(folder)


def find(
    source: str, client: MirrorClient, wiki: str | None = None, pattern: str = "*.xml*"
) -> tuple[list[Dump], list[str]]:
    """The dumps of a listing, and what was said of those that do not count."""
    said: list[str] = []
    found = newest.dumps(source, wiki=wiki, layout="listing", pattern=pattern, client=client, say=said.append)
    return list(found), said


def names(dump: Dump) -> list[str]:
    """The names of a dump's pages' files."""
    return [file.name for file in dump.files if not file.is_index]


@pytest.mark.parametrize("style", ["nginx", "apache"])
def test_an_index_of_a_web_server_is_read(mirror: Mirror, client: MirrorClient, style: str) -> None:
    """Long names are cut in what it shows, sizes are rounded, and it links to its parent and to itself, sorted."""
    mirror.style = style
    long = "enwiki-20260301-pages-articles-multistream11.xml-p6899367p7054859.bz2"
    mirror.publish("my dumps", {ARTICLES: b"1234", long: b"12345", OLDER: b"123"})
    found, said = find(f"{mirror.url}/my%20dumps/", client)
    assert not said
    assert [(dump.wiki, dump.date, names(dump)) for dump in found] == [
        ("enwiki", "2026-03-01", [long]),
        ("enwiki", "2026-02-01", [OLDER]),
    ]
    assert [file.size for file in found[0].files] == [5]


def test_an_index_that_leads_elsewhere_is_not_followed(mirror: Mirror, client: MirrorClient) -> None:
    """Neither to another server, nor to another folder, nor to a file behind a query."""
    mirror.publish("dumps", {ARTICLES: b"1234"})
    mirror.files["dumps/"] = (
        f'<a href="{ARTICLES}">x</a> <a href="http://example.org/dumps/{OLDER}">x</a> <a href="../{OLDER}">x</a>'
        f'<a href="/dumps/a/{OLDER}">x</a> <a href="{OLDER}?x=1">x</a> <a href="http://[">x</a> <a name="here">x</a>'
    ).encode()
    found, _ = find(f"{mirror.url}/dumps", client)
    assert [names(dump) for dump in found] == [[ARTICLES]]


def test_a_name_with_spaces_and_letters_is_asked_for_as_it_is(mirror: Mirror, client: MirrorClient) -> None:
    name = "lvwiki-20260301-pages-articles (jauna, 100 % pilnā) #2.xml.bz2"
    mirror.publish("dumps", {name: b"1234"})
    found, _ = find(f"{mirror.url}/dumps", client, "lvwiki")
    assert [names(dump) for dump in found] == [[name]]
    assert found[0].size == 4


def test_a_listing_with_sums_is_complete_when_all_of_them_are_there(client: MirrorClient, tmp_path: Path) -> None:
    """Then it does not matter how new the files are."""
    parts = {f"enwiki-2026-03-01-p{n}p{n + 9}.xml.bz2": b"%d" % n for n in (1, 11, 21)}
    source = write(tmp_path, {**parts, "SHA256SUMS": sha256_sums(parts)}, time.time())
    found, said = find(source, client)
    assert [names(dump) for dump in found] == [list(parts)]
    assert {file.algorithm for file in found[0].files} == {"sha256"}
    assert not said

    os.unlink(tmp_path / "enwiki-2026-03-01-p11p20.xml.bz2")
    found, said = find(source, client)
    assert found == []
    assert "enwiki-2026-03-01-p11p20.xml.bz2 is in the list of checksums but not there yet" in said[0]


def test_a_file_that_the_sums_do_not_list_is_not_there_yet(client: MirrorClient, tmp_path: Path) -> None:
    parts = {f"enwiki-2026-03-01-p{n}p{n + 9}.xml.bz2": b"%d" % n for n in (1, 11)}
    source = write(tmp_path, {**parts, "SHA256SUMS": sha256_sums(parts), "enwiki-2026-03-01-p21p30.xml.bz2": b"3"})
    found, said = find(source, client)
    assert found == []
    assert "enwiki-2026-03-01-p21p30.xml.bz2 is not in the list of checksums" in said[0]


@pytest.mark.parametrize(
    ("name", "digits", "algorithm"),
    [("enwiki-20260301-sha1sums.txt", 40, "sha1"), ("MD5SUMS", 32, "md5"), ("sha256sums.txt", 64, "sha256")],
)
def test_lists_of_sums_have_several_names(
    client: MirrorClient, tmp_path: Path, name: str, digits: int, algorithm: str
) -> None:
    source = write(tmp_path, {ARTICLES: b"1", name: f"{'AB' * (digits // 2)} *./{ARTICLES}\n".encode()}, time.time())
    found, _ = find(source, client)
    assert [(file.algorithm, file.checksum) for file in found[0].files] == [(algorithm, "ab" * (digits // 2))]


def test_the_best_list_of_sums_counts(client: MirrorClient, tmp_path: Path) -> None:
    lists = {"md5sums.txt": b"0" * 32, "sha1sums.txt": b"1" * 40, "SHA256SUMS": b"2" * 64}
    lines = {name: checksum + b"  " + ARTICLES.encode() + b"\n" for name, checksum in lists.items()}
    found, _ = find(write(tmp_path, {ARTICLES: b"1", **lines}), client)
    assert found[0].files[0].algorithm == "sha256"


def test_a_file_that_changes_still_is_waited_for(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Without sums: somebody may be copying it."""
    mirror.publish("dumps", {OLDER: b"1"})
    mirror.publish("dumps", {ARTICLES: b"1"}, time.time() - 60)
    write(tmp_path, {OLDER: b"1"})
    write(tmp_path, {ARTICLES: b"1"}, time.time() - 60)
    for source in (f"{mirror.url}/dumps", str(tmp_path)):
        found, said = find(source, client)
        assert [dump.date for dump in found] == ["2026-02-01"]
        assert f"{ARTICLES} changed less than ten minutes ago" in said[0]


@pytest.mark.parametrize("end", [".part", ".tmp", ".inprog"])
def test_a_file_under_way_is_waited_for(client: MirrorClient, tmp_path: Path, end: str) -> None:
    parts = {"enwiki-2026-03-01-p1p9.xml.bz2": b"1", f"enwiki-2026-03-01-p10p19.xml.bz2{end}": b"1"}
    found, said = find(write(tmp_path, parts), client)
    assert found == []
    assert "is still being written" in said[0]


def test_folders_that_are_dates_are_looked_into(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    contents = {f"20260301/{ARTICLES}": b"1", f"2026-02-01/{OLDER}": b"1", f"old/{OLDER}": b"2", "readme.xml": b""}
    for path, content in contents.items():
        mirror.publish(f"dumps/{path}".rpartition("/")[0], {path.rpartition("/")[2]: content})
    for source in (f"{mirror.url}/dumps", write(tmp_path, contents)):
        found, _ = find(source, client)
        assert [(dump.date, dump.files[0].url) for dump in found] == [
            ("2026-03-01", f"{source}/20260301/{ARTICLES}"),
            ("2026-02-01", f"{source}/2026-02-01/{OLDER}"),
        ]


def test_a_listing_has_each_page_once(client: MirrorClient, tmp_path: Path) -> None:
    """The whole and its parts, packed and unpacked, multistream or not, beside dumps of other things."""
    kept = [
        "enwiki-20260301-pages-articles-multistream1.xml-p1p9.bz2",
        "enwiki-20260301-pages-articles-multistream2.xml-p10p19.bz2",
    ]
    others = [
        "enwiki-20260301-pages-articles-multistream.xml.bz2",
        "enwiki-20260301-pages-articles1.xml-p1p9.bz2",
        "enwiki-20260301-pages-articles.xml.bz2",
        "enwiki-20260301-pages-meta-current.xml.bz2",
        "enwiki-20260301-stub-articles.xml.gz",
        "enwiki-20260301-abstract.xml.gz",
        "enwiki-20260301-pages-articles-multistream1.xml-p1p9",
        "enwiki-20260301-pages-articles-multistream-index1.txt-p1p9.bz2",
    ]
    found, _ = find(write(tmp_path, dict.fromkeys(kept + others, b"1")), client)
    assert [names(dump) for dump in found] == [kept]


@pytest.mark.parametrize(
    ("there", "kept"),
    [
        (["lvwiki-20260301-pages-articles.xml", "lvwiki-20260301-pages-articles.xml.bz2"], [1]),
        (["lvwiki-20260301-pages-articles.xml.gz", "lvwiki-20260301-pages-articles.xml"], [1]),
        (["lvwiki-20260301-pages-articles.xml.7z", "lvwiki-20260301-pages-articles.xml.gz"], [1]),
        (["lvwiki-20260301-pages-meta-history.xml.bz2", "lvwiki-20260301-pages-meta-current.xml.bz2"], [1]),
        (["lvwiki-20260301-stub-articles.xml.gz", "lvwiki-20260301-pages-meta-current.xml.bz2"], [1]),
        (["lvwiki-2026-03-01-p1p9.xml.bz2", "lvwiki-2026-03-01-p1p9.xml"], [0]),
    ],
)
def test_of_two_forms_the_one_that_is_read_best_counts(there: list[str], kept: list[int]) -> None:
    assert choose_pages_files(there) == [there[index] for index in kept]


@given(st.permutations(["1.xml-p1p41242", "2.xml-p41243p151573", "10.xml-p4045403p5399366", "11.xml-p6899367p7054859"]))
def test_parts_are_in_the_order_of_their_pages(parts: list[str]) -> None:
    """Names sort 10 before 2, and p10 before p9."""
    start = "enwiki-20260301-pages-articles-multistream"
    listed = [f"{start}{part}.bz2" for part in parts] + [f"{start}-index{parts[0].replace('.xml', '.txt')}.bz2"]
    chosen = [name for name in choose_pages_files(listed) if not is_index(name)]
    assert [name.partition("multistream")[2].partition(".")[0] for name in chosen] == ["1", "2", "10", "11"]


def test_a_listing_of_two_wikis_needs_the_name_of_one(client: MirrorClient, tmp_path: Path) -> None:
    source = write(tmp_path, {ARTICLES: b"1", ARTICLES.replace("enwiki", "lvwiki"): b"2"})
    with pytest.raises(UnusableInputError, match=r"dumps of several wikis \(enwiki, lvwiki\).*watch\.wiki"):
        find(source, client)
    found, _ = find(source, client, "lvwiki")
    assert [dump.wiki for dump in found] == ["lvwiki"]


def test_a_pattern_chooses_files(client: MirrorClient, tmp_path: Path) -> None:
    source = write(tmp_path, {"enwiki-20260301-a.jsonl": b"1", "enwiki-20260301-b.xml": b"2"})
    found, _ = find(source, client, pattern="*.jsonl")
    assert [names(dump) for dump in found] == [["enwiki-20260301-a.jsonl"]]


def test_a_range_of_pages_is_no_date(client: MirrorClient, tmp_path: Path) -> None:
    files = ["enwiki-2026-03-01-p20110420p21500133.xml.bz2", "enwiki-2026-03-01-p1p20110419.xml.bz2"]
    found, _ = find(write(tmp_path, dict.fromkeys(files, b"1")), client)
    assert [(dump.date, names(dump)) for dump in found] == [("2026-03-01", files[::-1])]


def test_a_listing_with_a_gap_is_not_complete(client: MirrorClient, tmp_path: Path) -> None:
    files = [f"enwiki-2026-03-01-{pages}.xml.bz2" for pages in ("p1p100", "p101p200", "p201p9000")]
    source = write(tmp_path, dict.fromkeys(files, b"1"))
    found, _ = find(source, client, pattern="*p[12]*p[19]0*.xml.bz2")  # a pattern may choose parts
    assert [names(dump) for dump in found] == [[files[0], files[2]]]
    (tmp_path / files[1]).unlink()
    found, said = find(source, client)
    assert found == []
    assert f"does not count: the part with the pages 101 to 200 is missing, in front of {files[2]}" in said[0]


def test_an_empty_listing_has_no_dump_yet(client: MirrorClient, tmp_path: Path) -> None:
    assert find(str(tmp_path), client) == ([], [])


@pytest.mark.parametrize("source", ["/nowhere", "nowhere/at/all", "http://127.0.0.1:9/x", "hdfs://host/dumps"])
def test_a_source_that_is_not_there_is_one_sentence(source: str) -> None:
    client = MirrorClient("data@example.org", "1.2.3", WebClient(patience=0.1))
    with pytest.raises(Exception, match=r"^[^\n]+\.$") as error:
        find(source, client)
    assert type(error.value).__module__ == "maskmill.errors"
    client.close()


def test_a_directory_that_may_not_be_read_is_one_sentence(
    client: MirrorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "scandir", refuse)  # who may do all, as in a container, is refused nothing
    with pytest.raises(UnusableInputError, match=f"{tmp_path}/: this directory cannot be read \\(Permission denied"):
        find(str(tmp_path), client)


@pytest.mark.parametrize("source", ["http://", "http://example.org/?x=1", "https:///dumps"])
def test_an_address_of_no_folder_is_refused(client: MirrorClient, source: str) -> None:
    with pytest.raises(UnusableInputError, match=r"watch\.source is .* must be the address of a folder"):
        find(source, client)


def test_a_file_url_is_a_directory(client: MirrorClient, tmp_path: Path) -> None:
    source = write(tmp_path / "my dumps", {ARTICLES: b"1"})
    found, _ = find(f"file://{source.replace(' ', '%20')}", client)
    assert [file.url for file in found[0].files] == [f"{source}/{ARTICLES}"]
