"""Dumps: every page once and as it is, whatever the container, the schema and the cuts; bad pages are set aside."""

import bz2
import gzip
import itertools
import lzma
import random
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from made_up.dump_files import CONTAINERS, NAMESPACES, dump, header, page
from made_up.input_files import READING, SMALL, format_of, read_units, write_file
from oracles import dump as oracle_dump
from properties import WITH_FOLDER, tries

from maskmill.errors import UnusableInputError
from maskmill.inputs.items import RejectedPage
from maskmill.inputs.mediawiki import Page, read_header, site_base
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.site import Site
from maskmill.inputs.units import Unit, plan_units, read_unit
from maskmill.storage import files


@pytest.fixture(scope="module")
def sample(data: Path) -> bytes:
    return bz2.decompress((data / "dump" / "enwiki-sample-multistream.xml.bz2").read_bytes())


@pytest.mark.parametrize("schema", ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10", "0.11"])
def test_every_schema(schema: str, tmp_path: Path) -> None:
    pages = [
        page(1, "One", "text", schema=schema),
        page(2, "Talk:One", "text", schema=schema, namespace=1, older=["old", "older"]),
        page(3, "Two", "#redirect [[One]]", schema=schema, redirect="One"),
        page(4, "Cat & Co:Two", "", schema=schema, namespace=14),
        page(5, "No such space: Three", "x" * 100, schema=schema),
    ]
    xml = dump(pages, schema)
    path = write_file(tmp_path, xml)
    found = read_units(path, 40)
    assert found == oracle_dump.read_pages(xml, NAMESPACES)
    assert [p.namespace for p in found if isinstance(p, Page)] == [0, 1, 0, 14, 0]
    assert [p.is_redirect for p in found if isinstance(p, Page)] == [False, False, schema != "0.3", False, False]
    assert [p.revision_id for p in found if isinstance(p, Page)] == [1000, 2002, 3000, 4000, 5000]


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t&<>'\""), max_size=80)


@tries(60, **WITH_FOLDER)
@given(
    st.lists(st.tuples(texts, st.lists(texts, max_size=2)), max_size=6),
    st.sampled_from(["plain", "tiny blocks", "many streams", "multistream"]),
    st.integers(1, 400),
)
def test_any_cut_gives_each_page_once(
    tmp_path: Path, contents: list[tuple[str, list[str]]], container: str, unit_bytes: int
) -> None:
    xml = dump([page(k + 1, f"Page {k}", text, older=older) for k, (text, older) in enumerate(contents)])
    if not contents and container == "multistream":
        return
    path = write_file(tmp_path, CONTAINERS[container](xml))
    assert read_units(path, unit_bytes) == oracle_dump.read_pages(xml)


@pytest.mark.builds
@pytest.mark.parametrize(
    "pack",
    [bytes, bz2.compress, lambda xml: bz2.compress(xml, 1), gzip.compress, lambda xml: lzma.compress(xml, preset=0)],
)
def test_the_sample_dump(pack: object, sample: bytes, tmp_path: Path) -> None:
    expected = oracle_dump.read_pages(sample)
    assert (len(expected), sum(p.is_redirect for p in expected)) == (206, 100)
    path = write_file(tmp_path, pack(sample))  # type: ignore[operator]
    assert read_units(path) == expected
    assert read_units(path, 77_777) == expected


@pytest.mark.builds
def test_the_multistream_sample_with_and_without_its_index(sample: bytes, data: Path, tmp_path: Path) -> None:
    expected = oracle_dump.read_pages(sample)
    indexed = data / "dump" / "enwiki-sample-multistream.xml.bz2"
    assert indexed.with_name("enwiki-sample-multistream-index.txt.bz2").exists()
    lonely = write_file(tmp_path, indexed.read_bytes(), "lonely.xml.bz2")
    for unit_bytes in (1 << 22, 200_000, 50_000):
        assert read_units(str(indexed), unit_bytes) == read_units(lonely, unit_bytes) == expected


@pytest.mark.builds
@pytest.mark.long
def test_nothing_of_enwik8_is_lost(shared: Path) -> None:
    path = str(shared / "data" / "dumps" / "enwik8-pages-articles-multistream.xml.bz2")
    names = Site.parse(read_header(path)).namespaces
    expected = oracle_dump.read_pages(
        bz2.decompress(Path(path).read_bytes()), {name: number for number, some in names.items() for name in some}
    )
    for unit_bytes in (4 << 20, 700_001):
        assert read_units(path, unit_bytes) == expected
    assert len(expected) == 12_346
    articles = [p for p in expected if p.namespace == 0 and p.text[:9].lower() != b"#redirect"]
    assert len(articles) == 8_589


def test_the_header(tmp_path: Path) -> None:
    for container, pack in CONTAINERS.items():
        path = write_file(tmp_path, pack(b"\xef\xbb\xbf" + SMALL))
        assert read_header(path).decode() == header() + "  ", container
        assert site_base(read_header(path)) == "https://test.wikipedia.org/wiki"
        assert format_of(path) == "mediawiki"
    assert read_header(write_file(tmp_path, b"Just text.", "x.txt")) == b""
    assert site_base(b"") == ""


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"\xef\xbb\xbf" + SMALL)
    assert read_units(path, 30) == oracle_dump.read_pages(SMALL)


def test_a_dump_without_pages(tmp_path: Path) -> None:
    path = write_file(tmp_path, dump([]))
    assert read_units(path, 30) == []
    assert read_header(path).decode() == header()


GOOD = page(1, "Good", "text")


@pytest.mark.parametrize(
    ("bad", "title", "reason"),
    [
        (page(2, "Bad", "x").replace("<title>Bad</title>", ""), "(no title)", "no title"),
        (page(2, "", "x"), "", "no title"),
        (page(2, "Bad", "x").replace("<id>2</id>", ""), "Bad", "the page's id"),
        (page(2, "Bad", "x").replace("<id>2</id>", "<id>two</id>"), "Bad", "the page's id"),
        (page(2, "Bad", "x").replace("<id>2</id>", f"<id>{10**30}</id>"), "Bad", "the page's id"),
        (page(2, "Bad", "x").replace("<id>2000</id>", "<id></id>"), "Bad", "the revision's id"),
        (page(2, "Bad", "x").replace("<ns>0</ns>", "<ns>main</ns>"), "Bad", "the namespace"),
        (page(2, "Bad", "x").replace("revision>", "rev>"), "Bad", "no revision"),
        (page(2, "Bad", "").replace('<text xml:space="preserve" />', ""), "Bad", "no text"),
        (page(2, "Bad", "").replace("<text ", '<text deleted="deleted" '), "Bad", "deleted from the wiki"),
        (page(2, "Bad", "x").replace("</text>", ""), "Bad", "markup of XML in it"),
        (page(2, "Bad", "x").replace(">x<", "><b>x</b><"), "Bad", "markup of XML in it"),
        (page(2, "Bad", "x").replace(">x<", "><![CDATA[x]]><b>x</b><"), "Bad", "markup of XML in it"),
        (page(2, "Bad", "x").replace(">x<", "><![CDATA[x<"), "Bad", "not closed"),
        (page(2, "Bad", "x").replace(">x<", "><!-- x<"), "Bad", "not closed"),
        (page(2, "Bad", "x").replace(">x<", ">&lol;<!-- x --><"), "Bad", "a reference"),
        (page(2, "Bad", "x").replace(">x<", ">&lol;<"), "Bad", "a reference"),
        (page(2, "Bad", "x").replace(">x<", ">AT&T<"), "Bad", "a reference"),
        (page(2, "Bad", "x").replace(">x<", ">&#0;<"), "Bad", "a reference"),
        (page(2, "Bad", "x").replace(">x<", ">&#xD800;<"), "Bad", "a reference"),
        (page(2, "Bad", "x").replace(">x<", ">&#1114112;<"), "Bad", "a reference"),
        (page(2, "Bad &", "x").replace("&amp;", "&nbsp;"), "Bad &nbsp;", "no title"),
        (page(2, "Bad", "x").replace(">x<", ">\udc80<"), "Bad", "not valid UTF-8"),
        (page(2, "B\udcffd", "x"), "B\ufffdd", "not valid UTF-8"),
        pytest.param(
            page(2, "Bad", "x").replace(">x<", ">x" + "\0" * 512 + "<"), "Bad", "hole of zero bytes", id="hole-in-text"
        ),
        pytest.param(
            page(2, "Bad", "x").replace("<model>", "\0" * 512), "Bad", "hole of zero bytes", id="hole-before-text"
        ),
        (page(2, "Bad", "x").replace("  </page>\n", ""), "Bad", "not closed"),
        (page(2, "Bad", "x").split("</title>")[0], "Bad", "not closed"),
    ],
)
def test_a_bad_page_is_set_aside(bad: str, title: str, reason: str, tmp_path: Path) -> None:
    xml = (header() + GOOD + bad + GOOD + "</mediawiki>").encode("utf-8", "surrogateescape")
    for unit_bytes in (1 << 20, 10):
        first, rejected, last = read_units(write_file(tmp_path, xml), unit_bytes)
        assert first == last == oracle_dump.read_pages(dump([GOOD]))[0]
        assert isinstance(rejected, RejectedPage)
        assert rejected.title == title
        assert reason in rejected.reason


def test_a_page_too_large_is_set_aside(tmp_path: Path) -> None:
    xml = dump([GOOD, page(2, "Large", "x" * 10_000_000), GOOD])
    good = oracle_dump.read_pages(dump([GOOD]))[0]
    found = read_units(write_file(tmp_path, xml), reading=ReadOptions(largest_page=5_000_000))
    assert found == [good, RejectedPage(title="Large", reason="the page is larger than 5,000,000 bytes"), good]


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("&amp;nbsp;&amp;amp;&amp;lt;", "&nbsp;&amp;&lt;"),
        ("&#65;&#x42;&#xe9;&#8364;&#x1F600;", "ABé€\U0001f600"),
        ("a\r\nb\rc\r\n&#13;d\r", "a\nb\nc\n\rd\n"),
        ("]]&gt;", "]]>"),
        ("&lt;" * 1000, "<" * 1000),
    ],
)
def test_references_and_line_ends(escaped: str, text: str, tmp_path: Path) -> None:
    for before in range(9):  # wherever it stands in the eight bytes that are looked at in one step
        xml = dump([page(1, "A", "MARK")]).replace(b"MARK", b"." * before + escaped.encode())
        found = read_units(write_file(tmp_path, xml))
        assert isinstance(found[0], Page)
        assert found[0].text.decode() == "." * before + text
        assert found == oracle_dump.read_pages(xml)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<![CDATA[a < b & c <ref>d</ref>\r\ne]]>", "a < b & c <ref>d</ref>\ne"),
        ("<![CDATA[]]>", ""),
        ("<![CDATA[a [[b]]]]>", "a [[b]]"),
        ("<![CDATA[</text></page> é]]>", "</text></page> é"),
        ("a &lt; <![CDATA[b < c]]> &gt; <![CDATA[d]]]]><![CDATA[>]]>", "a < b < c > d]]>"),
        ("a<!-- b </text> -->c<?d </text>?>e", "ace"),
        ("<!---->a<?b?>", "a"),
    ],
)
@pytest.mark.parametrize("unit_bytes", [7, 1 << 20])
def test_sections_are_read_and_comments_passed_over(written: str, text: str, unit_bytes: int, tmp_path: Path) -> None:
    pages = [
        page(1, "A", "TEXT"),
        page(2, "TITLE", "x").replace("<revision>", "<!-- <title>B</title> --><?b <id>9</id>?><revision>"),
        page(3, "C", "x"),
    ]
    title = written if text else "<![CDATA[a]]>"
    xml = dump(pages).replace(b"TEXT", written.encode()).replace(b"TITLE", title.encode()) + b"<!-- the end -->\n"
    found = read_units(write_file(tmp_path, xml), unit_bytes)
    assert isinstance(found[0], Page)
    assert found[0].text.decode() == text
    assert found == oracle_dump.read_pages(xml)


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    lol = "".join(f'<!ENTITY lol{k} "{f"&lol{k - 1};" * 10}">' for k in range(1, 10))
    doctype = f'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol0 "lol">{lol}]>\n'
    xml = doctype.encode() + dump([GOOD, page(2, "Laughs", "MARK"), GOOD]).replace(b"MARK", b"&lol9;")
    _, rejected, _ = read_units(write_file(tmp_path, xml))
    assert rejected == RejectedPage(title="Laughs", reason="the text has a reference (&…;) that XML does not know")


def test_a_page_with_its_whole_history_takes_little_memory(tmp_path: Path) -> None:
    older = ["revision " * 200_000] * 20  # 36 MB
    path = write_file(tmp_path, dump([GOOD, page(2, "History", "the last one", older=older), GOOD]))
    _, found, _ = read_units(path, reading=ReadOptions(largest_page=20 << 20))
    assert isinstance(found, Page)
    assert (found.revision_id, found.text) == (2020, b"the last one")


PIECES = [
    "<page>", "</page>", "<title>", "</title>", "<id>", "</id>", "<ns>", "<revision>", "</revision>", "<text>",
    "<text ", "</text>", "<text/>", "</mediawiki>", "<redirect/>", "&", "&lt;", "&#", "&#x", ";", "<", ">", "\r", "\0",
    "\udc80", "é", "<timestamp>", "<model>", "-", "0", "<!--", "-->", "<![CDATA[",
]  # fmt: skip


HIDDEN_PAGE = re.compile(rb"<!--(?:(?!-->).)*<page>|<!\[CDATA\[(?:(?!\]\]>).)*<page>", re.DOTALL)


@tries(300, **WITH_FOLDER)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(20, 2000))
@example(870744, 21, 20)
def test_noise_never_crashes_and_never_depends_on_the_cuts(
    tmp_path: Path, seed: int, changes: int, unit_bytes: int
) -> None:
    rng = random.Random(seed)
    body = SMALL.decode()
    for _ in range(changes):
        start = rng.randrange(len(header()), len(body))
        body = body[:start] + rng.choice(PIECES) + body[start + rng.choice([0, 0, 1, 3, 50]) :]
    xml = body.encode("utf-8", "surrogateescape")
    # A unit that begins inside of a comment or a CDATA section cannot know that a <page> there is none.
    assume(not HIDDEN_PAGE.search(xml))
    path = write_file(tmp_path, xml)
    bounds = [*range(0, len(xml), unit_bytes), len(xml)]
    outcomes = []
    for cuts in ([0, len(xml)], bounds):
        found: list[object] = []
        for start, end in itertools.pairwise(cuts):
            unit = Unit(path=path, start=start, end=end, format="mediawiki", container="plain")
            try:
                found += read_unit(unit, READING)
            except UnusableInputError as error:
                found.append(str(error))
                break
        outcomes.append(found)
    # Whether the closing tag is there is looked at by the whole file's reader, or else when units are planned.
    whole, parts = outcomes
    if whole and isinstance(whole[-1], str):
        assert parts in (whole, whole[:-1])
    else:
        assert parts == whole


@pytest.mark.builds
@pytest.mark.long
def test_reading_in_order_holds_one_page_at_a_time(tmp_path: Path) -> None:
    xml = dump([page(k, f"Page {k}", "word " * 100_000) for k in range(1, 49)])
    path = write_file(tmp_path, bz2.compress(xml, 1))
    tracemalloc.start()
    try:
        sizes = [
            len(item.text)
            for unit in plan_units(files.match(path))
            for item in read_unit(unit, READING)
            if isinstance(item, Page)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sizes == [500_000] * 48
    assert peak < 24 << 20  # of which 13 MB are the decoder's tables; the XML has 24 MB
