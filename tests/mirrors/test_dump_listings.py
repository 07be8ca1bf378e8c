"""Dumps in any place that can be listed: a directory, a web server's index as Apache and nginx write it."""

import errno
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.mirror_looks import Looks
from servers.mirror_server import LONG_AGO, Mirror, sha256_sums

from maskmill.errors import UnusableInputError
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import choose_pages_files, is_index

pytest_plugins = ("servers.mirror_fixtures",)

ARTICLES = "enwiki-20260301-pages-articles.xml.bz2"
OLDER = "enwiki-20260201-pages-articles.xml.bz2"


def part(pages: str) -> str:
    """The name of a part, by its range of pages."""
    return f"enwiki-2026-03-01-{pages}.xml.bz2"


def write(folder: Path, contents: Mapping[str, bytes], modified: float = LONG_AGO) -> str:
    """Writes files that were last changed at a time; returns the folder's path."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (modified, modified))
    return str(folder)


def find(source: str, client: MirrorClient, wiki: str | None = None, pattern: str = "*.xml*") -> Looks:
    """The dumps of a listing, and what was said of those that do not count."""
    return Looks(source, client, "listing", wiki, pattern)


# ---- web servers


@pytest.mark.parametrize("style", ["nginx", "apache"])
def test_an_index_of_a_web_server_is_read(mirror: Mirror, client: MirrorClient, style: str) -> None:
    """Long names are cut in what it shows, sizes are rounded, and it links to its parent and to itself, sorted."""
    mirror.style = style
    long = "enwiki-20260301-pages-articles-multistream11.xml-p6899367p7054859.bz2"
    mirror.publish("my dumps", {ARTICLES: b"1234", long: b"12345", OLDER: b"123"})
    found = find(f"{mirror.url}/my%20dumps/", client)
    assert (found.dates, found.names, found.said) == (["2026-03-01", "2026-02-01"], [[long], [OLDER]], [])
    assert [(dump.wiki, dump.size) for dump in found.dumps] == [("enwiki", 5), ("enwiki", 3)]


def test_an_index_that_leads_elsewhere_is_not_followed(mirror: Mirror, client: MirrorClient) -> None:
    """Neither to another server, nor to another folder, nor to a file behind a query."""
    mirror.publish("dumps", {ARTICLES: b"1234"})
    links = [
        ARTICLES,
        f"http://example.org/dumps/{OLDER}",
        f"../{OLDER}",
        f"/dumps/a/{OLDER}",
        f"{OLDER}?x=1",
        "http://[",
    ]
    mirror.files["dumps/"] = "".join(f'<a href="{link}">x</a>' for link in links).encode() + b'<a name="here">x</a>'
    assert find(f"{mirror.url}/dumps", client).names == [[ARTICLES]]


def test_a_name_with_spaces_and_letters_is_asked_for_as_it_is(mirror: Mirror, client: MirrorClient) -> None:
    name = "lvwiki-20260301-pages-articles (jauna, 100 % pilnā) #2.xml.bz2"
    mirror.publish("dumps", {name: b"1234"})
    found = find(f"{mirror.url}/dumps", client, "lvwiki")
    assert (found.names, found.newest.size) == ([[name]], 4)


# ---- which files are a dump's


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        # The whole and its parts, packed and unpacked, multistream or not, beside dumps of other things.
        (
            [
                "enwiki-20260301-pages-articles-multistream.xml.bz2",
                "enwiki-20260301-pages-articles1.xml-p1p9.bz2",
                ARTICLES,
                "enwiki-20260301-pages-meta-current.xml.bz2",
                "enwiki-20260301-stub-articles.xml.gz",
                "enwiki-20260301-abstract.xml.gz",
                "enwiki-20260301-pages-articles-multistream1.xml-p1p9",
                "enwiki-20260301-pages-articles-multistream-index1.txt-p1p9.bz2",
                "enwiki-20260301-pages-articles-multistream1.xml-p1p9.bz2",
                "enwiki-20260301-pages-articles-multistream2.xml-p10p19.bz2",
            ],
            [8, 9],
        ),
        # A range of pages is no date.
        ([part("p20110420p21500133"), part("p1p20110419")], [1, 0]),
        *[
            ([f"enwiki-20260301-{name}" for name in names], [1])
            for names in (
                ("pages-articles.xml", "pages-articles.xml.bz2"),
                ("pages-articles.xml.gz", "pages-articles.xml"),
                ("pages-articles.xml.7z", "pages-articles.xml.gz"),
                ("pages-meta-history.xml.bz2", "pages-meta-current.xml.bz2"),
                ("stub-articles.xml.gz", "pages-meta-current.xml.bz2"),
                ("p1p9.xml", "p1p9.xml.bz2"),
            )
        ],
    ],
)
def test_a_listing_has_each_page_once(
    client: MirrorClient, tmp_path: Path, there: list[str], chosen: list[int]
) -> None:
    found = find(write(tmp_path, dict.fromkeys(there, b"1")), client)
    assert (found.dates, found.names) == (["2026-03-01"], [[there[index] for index in chosen]])


@given(st.permutations(["1.xml-p1p41242", "2.xml-p41243p151573", "10.xml-p4045403p5399366", "11.xml-p6899367p7054859"]))
def test_parts_are_in_the_order_of_their_pages(parts: list[str]) -> None:
    """Names sort 10 before 2, and p10 before p9."""
    start = "enwiki-20260301-pages-articles-multistream"
    listed = [f"{start}{part}.bz2" for part in parts] + [f"{start}-index{parts[0].replace('.xml', '.txt')}.bz2"]
    chosen = [name for name in choose_pages_files(listed) if not is_index(name)]
    assert [name.partition("multistream")[2].partition(".")[0] for name in chosen] == ["1", "2", "10", "11"]


def test_folders_that_are_dates_are_looked_into(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    contents = {f"20260301/{ARTICLES}": b"1", f"2026-02-01/{OLDER}": b"1", f"old/{OLDER}": b"2", "readme.xml": b""}
    mirror.publish("dumps", contents)
    for source in (f"{mirror.url}/dumps", write(tmp_path, contents)):
        found = find(source, client)
        assert [(dump.date, dump.files[0].url) for dump in found.dumps] == [
            ("2026-03-01", f"{source}/20260301/{ARTICLES}"),
            ("2026-02-01", f"{source}/2026-02-01/{OLDER}"),
        ]


def test_a_listing_of_two_wikis_needs_the_name_of_one(client: MirrorClient, tmp_path: Path) -> None:
    source = write(tmp_path, {ARTICLES: b"1", ARTICLES.replace("enwiki", "lvwiki"): b"2"})
    with pytest.raises(UnusableInputError, match=r"dumps of several wikis \(enwiki, lvwiki\).*watch\.wiki"):
        find(source, client)
    assert [dump.wiki for dump in find(source, client, "lvwiki").dumps] == ["lvwiki"]


def test_a_pattern_chooses_files(client: MirrorClient, tmp_path: Path) -> None:
    source = write(tmp_path, {"enwiki-20260301-a.jsonl": b"1", "enwiki-20260301-b.xml": b"2"})
    assert find(source, client, pattern="*.jsonl").names == [["enwiki-20260301-a.jsonl"]]


# ---- lists of checksums


@pytest.mark.parametrize(
    ("lists", "sums"),
    [
        ({"enwiki-20260301-sha1sums.txt": "AB" * 20 + " *./"}, {"sha1": "ab" * 20}),
        ({"MD5SUMS": "AB" * 16 + "  "}, {"md5": "ab" * 16}),
        ({"sha256sums.txt": "AB" * 32 + "  "}, {"sha256": "ab" * 32}),
        (
            {"md5sums.txt": "0" * 32 + "  ", "sha1sums.txt": "1" * 40 + "  ", "SHA256SUMS": "2" * 64 + "  "},
            {"sha256": "2" * 64, "sha1": "1" * 40, "md5": "0" * 32},
        ),
    ],
)
def test_lists_of_sums_have_several_names(
    client: MirrorClient, tmp_path: Path, lists: dict[str, str], sums: dict[str, str]
) -> None:
    """The best one tells a file from others. Files in them may be as new as they like."""
    lines = {name: f"{line}{ARTICLES}\n".encode() for name, line in lists.items()}
    found = find(write(tmp_path, {ARTICLES: b"1", **lines}, time.time()), client)
    (file,) = found.newest.files
    assert (file.sums, file.checksum) == (sums, next(iter(sums.values())))


THREE = {part(f"p{n}p{n + 9}"): b"%d" % n for n in (1, 11, 21)}
SUMS = {"SHA256SUMS": sha256_sums(THREE)}
LAST = part("p21p30")
GAP = {part(pages): b"1" for pages in ("p1p100", "p201p9000")}


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        ({**THREE, **SUMS}, None),
        (
            {**{n: c for n, c in THREE.items() if n != LAST}, **SUMS},
            f"{LAST} is in the list of checksums but not there",
        ),
        ({**THREE, **SUMS, part("p31p40"): b"3"}, f"{part('p31p40')} is not in the list of checksums"),
        ({part("p1p9"): b"1", f"{part('p10p19')}.part": b"1"}, "is still being written"),
        ({part("p1p9"): b"1", f"{part('p10p19')}.tmp": b"1"}, "is still being written"),
        ({part("p1p9"): b"1", f"{part('p10p19')}.inprog": b"1"}, "is still being written"),
        (GAP, f"the part with the pages 101 to 200 is missing, in front of {part('p201p9000')}"),
        ({**GAP, part("p101p200"): b"2"}, None),
    ],
)
def test_a_listing_is_complete_when_all_is_there(
    client: MirrorClient, tmp_path: Path, contents: dict[str, bytes], why: str | None
) -> None:
    found = find(write(tmp_path, contents), client)
    if why is None:
        assert [sorted(names) for names in found.names] == [sorted(n for n in contents if ".xml" in n)]
    else:
        assert found.dumps == []
        assert re.search(f"does not count: .*{re.escape(why)}", found.said[0])


def test_a_pattern_may_choose_some_parts_of_a_dump_that_is_whole(client: MirrorClient, tmp_path: Path) -> None:
    source = write(tmp_path, {**GAP, part("p101p200"): b"2"})
    assert find(source, client, pattern="*p[12]*p[19]0*.xml.bz2").names == [list(GAP)]


def test_a_file_that_changes_still_is_waited_for(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """Without sums: somebody may be copying it."""
    for name, modified in ((OLDER, LONG_AGO), (ARTICLES, time.time() - 60)):
        mirror.publish("dumps", {name: b"1"}, modified)
        write(tmp_path, {name: b"1"}, modified)
    for source in (f"{mirror.url}/dumps", str(tmp_path)):
        found = find(source, client)
        assert found.dates == ["2026-02-01"]
        assert f"{ARTICLES} changed less than ten minutes ago" in found.said[0]


# ---- sources


def test_an_empty_listing_has_no_dump_yet(client: MirrorClient, tmp_path: Path) -> None:
    found = find(str(tmp_path), client)
    assert (found.dumps, found.said) == ([], [])


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("/nowhere", "there are no dumps of a wiki here"),
        ("nowhere/at/all", "there are no dumps of a wiki here"),
        ("http://127.0.0.1:9/x", "does not deliver this file"),
        ("hdfs://host/dumps", r"watch\.source is .*; it must be a directory, gs://"),
        ("http://", r"watch\.source is .* must be the address of a folder"),
        ("http://example.org/?x=1", r"watch\.source is .* must be the address of a folder"),
        ("https:///dumps", r"watch\.source is .* must be the address of a folder"),
    ],
)
def test_a_source_that_is_none_is_one_sentence(source: str, told: str) -> None:
    with pytest.raises(Exception, match=rf"^[^\n]*{told}[^\n]*\.$") as error:
        find(source, MirrorClient("data@example.org", "1.2.3", patience=0.1))
    assert type(error.value).__module__ == "maskmill.errors"


def test_a_directory_that_may_not_be_read_is_one_sentence(
    client: MirrorClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "scandir", refuse)  # who may do all, as in a container, is refused nothing
    with pytest.raises(UnusableInputError, match=f"{tmp_path}/: this directory cannot be read \\(Permission denied"):
        find(str(tmp_path), client)
