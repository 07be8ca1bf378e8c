"""Which dumps a mirror has, in both of Wikimedia's layouts: only complete ones, newest first, each page once."""

import bz2
import json
import re
from pathlib import Path

import pytest
from servers import mirror_server
from servers.mirror_server import Mirror, classic_files, content_files

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.mirrors import newest
from maskmill.mirrors.client import MirrorClient
from maskmill.mirrors.dumps import Dump
from maskmill.storage.web_client import WebClient

pytest_plugins = ("servers.mirror_fixtures",)

PAGES = [bz2.compress(f"<mediawiki>{part}</mediawiki>".encode()) for part in range(3)]
OLDER, NEWER = "2026-02-01", "2026-03-01"
CONTACT = "Jānis <data@example.org>"


class Looks:
    """What is found on a mirror, and what was said of what does not count."""

    def __init__(self, source: str, client: MirrorClient, layout: str = "auto", wiki: str | None = "enwiki") -> None:
        self.said: list[str] = []
        found = newest.dumps(source, wiki=wiki, layout=layout, pattern="*.xml*", client=client, say=self.said.append)
        self.dumps = list(found)

    def dates(self) -> list[str]:
        """The dates of the dumps."""
        return [dump.date for dump in self.dumps]


def names(dump: Dump) -> list[str]:
    """The names of a dump's pages' files."""
    return [file.name for file in dump.files if not file.is_index]


def test_the_newest_complete_classic_dump_comes_first(mirror: Mirror, client: MirrorClient) -> None:
    """All parts have the date of their folder, though the last one's range of pages looks like a date."""
    for date in (OLDER, NEWER):
        mirror.publish_classic("enwiki", date, classic_files("enwiki", date, PAGES))
    mirror.publish("enwiki/latest", {"enwiki-latest-pages-articles.xml.bz2": b""})

    found = Looks(mirror.url, client, "classic")
    assert found.dates() == [NEWER, OLDER]
    dump = found.dumps[0]
    assert names(dump) == [
        "enwiki-20260301-pages-articles-multistream1.xml-p1p41242.bz2",
        "enwiki-20260301-pages-articles-multistream2.xml-p41243p151573.bz2",
        "enwiki-20260301-pages-articles-multistream3.xml-p151574p311329.bz2",
    ]
    assert [file.name for file in dump.files if file.is_index] == [
        "enwiki-20260301-pages-articles-multistream-index1.txt-p1p41242.bz2",
        "enwiki-20260301-pages-articles-multistream-index2.txt-p41243p151573.bz2",
        "enwiki-20260301-pages-articles-multistream-index3.txt-p151574p311329.bz2",
    ]
    first = dump.files[0]
    assert (first.url, first.size, first.algorithm) == (
        f"{mirror.url}/enwiki/20260301/{first.name}",
        len(PAGES[0]),
        "sha1",
    )


def test_each_request_says_who_asks(mirror: Mirror, client: MirrorClient) -> None:
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    assert Looks(mirror.url, client).dates() == [NEWER]
    assert {request.headers["User-Agent"] for request in mirror.requests} == {"maskmill/1.2.3 (data@example.org)"}


@pytest.mark.parametrize("contact", [None, "", "a@b\r\nX-Evil: 1", CONTACT])
def test_a_contact_that_cannot_be_sent_is_refused(mirror: Mirror, contact: str | None) -> None:
    client = MirrorClient(contact, "1.2.3", WebClient(patience=1))
    with pytest.raises(UnusableInputError, match=r"watch\.contact"):
        Looks(mirror.url, client)
    assert not mirror.requests
    client.close()


@pytest.mark.parametrize(
    ("statuses", "why"),
    [
        ({"articlesmultistreamdump": "in-progress"}, "articlesmultistreamdump is not done"),
        ({"articlesmultistreamdump": "waiting"}, "articlesmultistreamdump is not done"),
        ({"articlesmultistreamdump": "failed"}, "articlesmultistreamdump is not done"),
    ],
)
def test_a_classic_dump_whose_job_is_not_done_does_not_count(
    mirror: Mirror, client: MirrorClient, statuses: dict[str, str], why: str
) -> None:
    mirror.publish_classic("enwiki", OLDER, classic_files("enwiki", OLDER, PAGES))
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES), statuses=statuses)
    found = Looks(mirror.url, client)
    assert found.dates() == [OLDER]
    assert len(found.said) == 1
    assert f"{mirror.url}/enwiki/20260301: this dump does not count" in found.said[0]
    assert why in found.said[0]


def test_a_dump_waits_for_its_multistream_files(mirror: Mirror, client: MirrorClient) -> None:
    """The job of the plain files is done days before: a build of both would be made of the same pages twice."""
    plain = {"enwiki-20260301-pages-articles1.xml-p1p41242.bz2": PAGES[0]}
    mirror.publish_classic(
        "enwiki", NEWER, plain, job="articlesdump", statuses={"articlesmultistreamdump": "in-progress"}
    )
    assert Looks(mirror.url, client).dates() == []


@pytest.mark.parametrize("status", [None, "failed", "skipped"])
def test_plain_files_count_where_there_will_be_no_multistream_files(
    mirror: Mirror, client: MirrorClient, status: str | None
) -> None:
    plain = {"enwiki-20260301-pages-articles1.xml-p1p41242.bz2": PAGES[0]}
    statuses = {} if status is None else {"articlesmultistreamdump": status}
    mirror.publish_classic("enwiki", NEWER, plain, job="articlesdump", statuses=statuses)
    assert names(Looks(mirror.url, client).dumps[0]) == list(plain)


def test_a_classic_dump_whose_sums_differ_does_not_count(mirror: Mirror, client: MirrorClient) -> None:
    """dumpstatus.json is of a dump that was made again, the list of sums not yet."""
    files = classic_files("enwiki", NEWER, PAGES)
    folder = mirror.publish_classic("enwiki", NEWER, files)
    path = f"{folder}/enwiki-20260301-sha1sums.txt"
    sum_of_first = mirror.files[path][:40]
    mirror.files[path] = mirror.files[path].replace(sum_of_first, b"0" * 40)
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert "differ about enwiki-20260301-pages-articles-multistream1.xml-p1p41242.bz2" in found.said[0]


PARTS = [f"enwiki-20260301-pages-articles-multistream{k}.xml-{pages}.bz2" for k, pages in enumerate(
    ("p1p41242", "p41243p151573", "p151574p311329"), 1
)]  # fmt: skip


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        (PARTS[0], "the part with the pages 1 to 41242 is missing, in front of "),
        (PARTS[1], "the part with the pages 41243 to 151573 is missing, in front of "),
        (PARTS[2], r"the part that belongs to .*-index3\.txt-p151574p311329\.bz2 is missing"),
    ],
)
def test_a_classic_dump_with_a_part_missing_does_not_count(
    mirror: Mirror, client: MirrorClient, left_out: str, why: str
) -> None:
    files = classic_files("enwiki", NEWER, PAGES)
    del files[left_out]
    mirror.publish_classic("enwiki", NEWER, files)
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert re.search(f"this dump does not count: {why}", found.said[0])


@pytest.mark.parametrize("layout", ["classic", "content", "listing"])
def test_a_part_with_the_content_of_another_does_not_count(mirror: Mirror, client: MirrorClient, layout: str) -> None:
    """Its checksum is right, but its own pages are lost."""
    pages = [PAGES[0], PAGES[0], PAGES[2]]
    files = (content_files if layout == "content" else classic_files)("enwiki", NEWER, pages)
    if layout == "content":
        mirror.publish_content("enwiki", NEWER, files)
    elif layout == "classic":
        mirror.publish_classic("enwiki", NEWER, files)
    else:
        mirror.publish("", {**files, "SHA256SUMS": mirror_server.sha256_sums(files)})
    found = Looks(mirror.url, client, layout)
    assert found.dates() == []
    first, second = [name for name in files if "index" not in name][:2]
    assert f"does not count: {second} has the same checksum as {first}" in found.said[0]


@pytest.mark.parametrize("layout", ["classic", "content"])
def test_a_file_of_another_wiki_is_no_part(mirror: Mirror, client: MirrorClient, layout: str) -> None:
    make, publish = {
        "classic": (classic_files, mirror.publish_classic),
        "content": (content_files, mirror.publish_content),
    }[layout]
    files = make("enwiki", NEWER, PAGES)
    other = list(files)[-1].replace("enwiki", "dewiki")
    publish("enwiki", NEWER, {**files, other.replace("-p", "-p9").replace("p9ages", "pages"): b"pages"})
    found = Looks(mirror.url, client, layout)
    assert found.dates() == []
    assert " is not of enwiki." in found.said[0]


def test_a_part_that_only_the_sums_name_is_missing(mirror: Mirror, client: MirrorClient) -> None:
    files = classic_files("enwiki", NEWER, PAGES)
    folder = mirror.publish_classic("enwiki", NEWER, files)
    path = f"{folder}/dumpstatus.json"
    status = json.loads(mirror.files[path])
    listed = status["jobs"]["articlesmultistreamdump"]["files"]
    mirror.files[f"{folder}/enwiki-20260301-sha1sums.txt"] += b"0" * 40 + b"  enwiki-20260301-pages-articles1.xml.bz2\n"
    assert Looks(mirror.url, client).dates() == [NEWER]  # other jobs' files are in the list, too
    for name in [name for name in listed if "p151574p311329" in name]:
        del listed[name]
    mirror.files[path] = json.dumps(status).encode()
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert f"{PARTS[2]} is in the list of checksums, but dumpstatus.json does not list it" in found.said[0]


@pytest.mark.parametrize("pages", [("p1p100", "p201p9000"), ("p1p100", "p90p200"), ("p900p1000",)])
def test_a_dump_of_the_new_layout_with_a_gap_or_an_overlap_does_not_count(
    mirror: Mirror, client: MirrorClient, pages: tuple[str, ...]
) -> None:
    names = [f"enwiki-2026-03-01-{of_part}.xml.bz2" for of_part in pages]
    mirror.publish_content("enwiki", NEWER, dict.fromkeys(names, PAGES[0]))
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert names[-1] in found.said[0]
    assert ("is missing" in found.said[0]) != ("have pages in common" in found.said[0])


def test_ids_without_a_page_may_lie_between_parts(mirror: Mirror, client: MirrorClient) -> None:
    names = [f"lvwiki-2026-03-01-{pages}.xml.bz2" for pages in ("p20p9000", "p9400p20000", "p20040p20041")]
    mirror.publish_content("lvwiki", NEWER, dict(zip(names, PAGES, strict=True)))
    assert Looks(mirror.url, client, wiki="lvwiki").dates() == [NEWER]


def test_a_half_written_dumpstatus_does_not_count(mirror: Mirror, client: MirrorClient) -> None:
    folder = mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    whole = mirror.files[f"{folder}/dumpstatus.json"]
    for content in (whole[: len(whole) // 2], b"", b"[]", b'{"jobs": null}', b"\xff"):
        mirror.files[f"{folder}/dumpstatus.json"] = content
        assert Looks(mirror.url, client).dates() == []


def test_a_file_without_a_size_or_sum_does_not_count(mirror: Mirror, client: MirrorClient) -> None:
    """dumpstatus.json lists a file before it has its sums."""
    folder = mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES), sums=False)
    status = json.loads(mirror.files[f"{folder}/dumpstatus.json"])
    listed = status["jobs"]["articlesmultistreamdump"]["files"]
    for missing in ({"size"}, {"sha1", "md5"}):
        changed = {name: {k: v for k, v in entry.items() if k not in missing} for name, entry in listed.items()}
        status["jobs"]["articlesmultistreamdump"]["files"] = changed
        mirror.files[f"{folder}/dumpstatus.json"] = json.dumps(status).encode()
        assert Looks(mirror.url, client).dates() == []


@pytest.mark.parametrize(
    "name", ["../../x/enwiki-20260301-pages-articles.xml.bz2", "/tmp/enwiki-20260301-pages-articles.xml"]
)
def test_a_name_that_leads_out_of_its_folder_does_not_count(mirror: Mirror, client: MirrorClient, name: str) -> None:
    mirror.publish_classic("enwiki", NEWER, {name: PAGES[0]})
    assert Looks(mirror.url, client).dates() == []
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES) | {name: PAGES[0]})
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert f"dumpstatus.json lists '{name}', which is no name of a file in this folder" in found.said[0]


def test_a_small_wiki_has_one_file(mirror: Mirror, client: MirrorClient) -> None:
    mirror.publish_classic("lvwiki", NEWER, classic_files("lvwiki", NEWER, PAGES[:1]))
    dump = Looks(mirror.url, client, wiki="lvwiki").dumps[0]
    assert names(dump) == ["lvwiki-20260301-pages-articles-multistream.xml.bz2"]


def test_a_mirror_may_lie_in_a_folder_of_its_server(mirror: Mirror, client: MirrorClient) -> None:
    """As mirror.accum.se/mirror/wikimedia.org/dumps/ does: the addresses in dumpstatus.json are Wikimedia's own."""
    files = classic_files("enwiki", NEWER, PAGES)
    mirror.publish_classic("enwiki", NEWER, files)
    mirror.files = {f"mirror/wikimedia.org/dumps/{path}": content for path, content in mirror.files.items()}
    dump = Looks(f"{mirror.url}/mirror/wikimedia.org/dumps/", client).dumps[0]
    assert dump.files[0].url.startswith(f"{mirror.url}/mirror/wikimedia.org/dumps/enwiki/20260301/enwiki-")


def test_the_newest_complete_dump_of_the_new_layout_comes_first(mirror: Mirror, client: MirrorClient) -> None:
    """Files are in the order of their pages; no range of pages is a date."""
    for date in (OLDER, NEWER):
        mirror.publish_content("enwiki", date, content_files("enwiki", date, PAGES))
    found = Looks(mirror.url, client, "content")
    assert found.dates() == [NEWER, OLDER]
    assert names(found.dumps[0]) == [
        "enwiki-2026-03-01-p10p1147431.xml.bz2",
        "enwiki-2026-03-01-p1147435p20110389.xml.bz2",
        "enwiki-2026-03-01-p20110420p21500133.xml.bz2",
    ]
    assert {file.algorithm for file in found.dumps[0].files} == {"sha256"}


def test_a_dump_of_the_new_layout_waits_for_its_success(mirror: Mirror, client: MirrorClient) -> None:
    mirror.publish_content("enwiki", OLDER, content_files("enwiki", OLDER, PAGES))
    mirror.publish_content("enwiki", NEWER, content_files("enwiki", NEWER, PAGES), success=False)
    found = Looks(mirror.url, client)
    assert found.dates() == [OLDER]
    assert "_SUCCESS is not there yet" in found.said[0]


def test_a_dump_of_the_new_layout_waits_for_its_sums(mirror: Mirror, client: MirrorClient) -> None:
    folder = mirror.publish_content("enwiki", NEWER, content_files("enwiki", NEWER, PAGES))
    del mirror.files[f"{folder}/SHA256SUMS"]
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert "SHA256SUMS is not there yet" in found.said[0]


def test_a_part_that_the_sums_do_not_list_is_missing(mirror: Mirror, client: MirrorClient) -> None:
    """SHA256SUMS is cut off behind its first line, so no gap shows between the parts that it lists."""
    folder = mirror.publish_content("enwiki", NEWER, content_files("enwiki", NEWER, PAGES))
    mirror.files[f"{folder}/SHA256SUMS"] = mirror.files[f"{folder}/SHA256SUMS"].split(b"\n")[0] + b"\n"
    found = Looks(mirror.url, client)
    assert found.dates() == []
    assert "enwiki-2026-03-01-p1147435p20110389.xml.bz2 is not in SHA256SUMS" in found.said[0]


def test_sums_that_list_no_dump_do_not_count(mirror: Mirror, client: MirrorClient) -> None:
    folder = mirror.publish_content("enwiki", NEWER, content_files("enwiki", NEWER, PAGES))
    for content in (b"", b"<html>502</html>", b"0" * 64 + b"  enwiki-2026-02-01-p1p2.xml.bz2\n"):
        mirror.files[f"{folder}/SHA256SUMS"] = content
        assert Looks(mirror.url, client).dates() == []


def test_auto_takes_whichever_layout_has_the_newer_dump(mirror: Mirror, client: MirrorClient) -> None:
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    mirror.publish_content("enwiki", OLDER, content_files("enwiki", OLDER, PAGES))
    assert [(dump.layout, dump.date) for dump in Looks(mirror.url, client).dumps] == [
        ("classic", NEWER),
        ("content", OLDER),
    ]


def test_a_wiki_that_the_mirror_does_not_have_is_said(mirror: Mirror, client: MirrorClient) -> None:
    """With a name misspelt, "nothing new" would be said for ever."""
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    for layout in ("auto", "classic", "content"):
        with pytest.raises(UnusableInputError, match=r"no dumps of enwki here; check watch\.source, watch\.wiki"):
            Looks(mirror.url, client, layout, wiki="enwki")


@pytest.mark.parametrize("wiki", ["../private", "EnWiki", "en wiki", "enwiki/20260301"])
def test_a_wiki_that_is_no_name_is_refused(mirror: Mirror, client: MirrorClient, wiki: str) -> None:
    with pytest.raises(UnusableInputError, match=r"watch\.wiki"):
        Looks(mirror.url, client, wiki=wiki)
    assert not mirror.requests


def test_a_wiki_must_be_named_for_wikimedias_layouts(mirror: Mirror, client: MirrorClient) -> None:
    with pytest.raises(UnusableInputError, match=r"watch\.wiki is missing"):
        Looks(mirror.url, client, "classic", wiki=None)


def test_dumps_are_looked_at_only_when_they_are_asked_for(mirror: Mirror, client: MirrorClient) -> None:
    for month in range(1, 4):
        mirror.publish_classic("enwiki", f"2026-0{month}-01", classic_files("enwiki", f"2026-0{month}-01", PAGES))
    found = next(newest.dumps(mirror.url, wiki="enwiki", layout="classic", pattern="*.xml*", client=client), None)
    assert found is not None
    assert found.date == NEWER
    assert len(mirror.asked("dumpstatus.json")) == 1


def test_a_mirror_that_fails_for_a_while_is_asked_again(mirror: Mirror, client: MirrorClient) -> None:
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    mirror.fail("dumpstatus.json", mirror_server.status(503), mirror_server.cut())
    assert Looks(mirror.url, client, "classic").dates() == [NEWER]
    assert len(mirror.asked("dumpstatus.json")) == 3


def test_a_mirror_that_is_not_there_is_one_sentence() -> None:
    client = MirrorClient("data@example.org", "1.2.3", WebClient(patience=0.1))
    with pytest.raises(RunFailedError, match=r"127\.0\.0\.1 does not deliver this file"):
        Looks("http://127.0.0.1:9/", client)
    client.close()


def test_a_mirror_that_denies_access_is_one_sentence(mirror: Mirror, client: MirrorClient) -> None:
    """Wikimedia answers so where a User-Agent does not say who asks."""
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    mirror.fail("dumpstatus.json", mirror_server.status(403))
    with pytest.raises(UnusableInputError, match=r"access is refused \(403 Forbidden\).*watch\.contact"):
        Looks(mirror.url, client, "classic")


def test_both_layouts_are_found_in_a_directory(mirror: Mirror, client: MirrorClient, tmp_path: Path) -> None:
    """As on machines that have Wikimedia's public dumps mounted."""
    mirror.publish_classic("enwiki", NEWER, classic_files("enwiki", NEWER, PAGES))
    mirror.publish_content("enwiki", OLDER, content_files("enwiki", OLDER, PAGES))
    for path, content in mirror.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    found = Looks(str(tmp_path), client)
    assert [(dump.layout, dump.date) for dump in found.dumps] == [("classic", NEWER), ("content", OLDER)]
    assert all(Path(file.url).is_file() for dump in found.dumps for file in dump.files)
    assert not mirror.requests
