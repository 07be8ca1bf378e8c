"""WikiExtractor's text, against what WikiExtractor itself wrote of the sample dump and of small pages."""

import gzip
import itertools
import json
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from properties import tries

from maskmill.compat.wikiextractor import WikiExtractorCompat, format_document, pack_files
from maskmill.inputs.mediawiki import Page, read_header, site_base
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import plan_units, read_unit
from maskmill.storage import files

DATA = Path(__file__).parent.parent / "data"
GOLD = DATA / "gold" / "wikiextractor"
SAMPLE = DATA / "dump" / "enwiki-sample-multistream.xml.bz2"
# The clock when WikiExtractor wrote the gold: two articles of the sample say what year it is.
EXTRACTOR = WikiExtractorCompat("2026-11-21")


def test_the_sample_dump_gives_the_very_files_of_wikiextractor() -> None:
    header = read_header(str(SAMPLE))
    documents = []
    for unit in plan_units([files.FileInfo(path=str(SAMPLE), size=SAMPLE.stat().st_size)]):
        for page in read_unit(unit, ReadOptions()):
            assert isinstance(page, Page)
            if page.namespace == 0 and not page.is_redirect:
                text = EXTRACTOR.extract(page.title, page.text)
                documents.append(format_document(page.page_id, site_base(header), page.title, text))
    packed = pack_files([len(document) for document in documents])
    expected = [gzip.decompress((GOLD / f"wiki_0{i}.gz").read_bytes()) for i in range(3)]
    left = iter(documents)
    assert [b"".join(itertools.islice(left, count)) for count in packed] == expected


def test_small_pages_of_every_kind_of_markup_give_the_very_documents_of_wikiextractor() -> None:
    pages = [json.loads(line) for line in gzip.decompress((GOLD / "pages.jsonl.gz").read_bytes()).splitlines()]
    assert len(pages) > 2500
    for page in pages:
        title = page["title"].encode()
        text = EXTRACTOR.extract(title, page["wikitext"].encode())
        assert format_document(1, "U", title, text).decode() == page["document"], page["wikitext"]


PIECES = (
    *("{{", "}}", "{|", "|}", "[[", "]]", "[http://a ", "''", "'''", "<ref", ">", "</ref>", "<div>", "</div>", "<!--"),
    *("-->", "&", "&#", ";", "\n", "== ", "*", "|", ":", "<math>", "</math>", "{{lc:", "{{#if:", "{{#expr:", "é", "x "),
    *("\x01", "\x02", "\x03", "\x00", "<syntaxhighlight ", "</syntaxhighlight>", "&nbsp;", "<br", "/", "\xa0"),
    "\u0130",
)


@hypothesis.given(pieces=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=60))
@tries(500)
def test_any_page_gives_utf8_lines(pieces: list[str]) -> None:
    text = "".join(pieces).encode("utf-8", "ignore")
    found = EXTRACTOR.extract(b"Title", text)
    found.decode("utf-8")
    assert not found or found.endswith(b"\n")


@pytest.mark.builds
@pytest.mark.parametrize(
    ("piece", "closing"),
    [
        ("{{", ""),
        ("{{", "}}"),
        ("{{lc:", "}}"),
        ("{{#if:a|", "}}"),
        ("[[", ""),
        ("[[a|", "]]"),
        ("<ref", ""),
        ("<ref>", ""),
        ("<div>", "</div>"),
        ("{|", "\n|}"),
        ("'", ""),
        ("''a ", ""),
        ("<!--", ""),
        ("<math>", ""),
        ("<syntaxhighlight ", ""),
        ("[http://a ", ""),
        ("[//a [[b]] ", ""),
        ("<br ", "/>"),
        ("<    ", ""),
        ("&#", ""),
        ("\n-", ""),
        ("\u200b", ""),
    ],
)
def test_a_megabyte_of_nothing_but_marks_ends(piece: str, closing: str) -> None:
    # Each took hours where a search for what closes is made anew at every mark.
    number = 1_000_000 // len(piece + closing)
    EXTRACTOR.extract(b"Title", (piece * number + "a" + closing * number).encode())


def test_variables_of_the_clock_give_the_date_asked_for() -> None:
    extractor = WikiExtractorCompat("2020-01-31")
    text = b"{{CURRENTYEAR}}-{{CURRENTMONTH}}-{{CURRENTDAY}} {{CURRENTHOUR}} {{CURRENTTIME}}"
    assert extractor.extract(b"Title", text) == b"2020-01-31 00 00:00:00\n"


def test_an_expression_is_calculated_but_never_run() -> None:
    for expression in ("__import__('os').getpid()", "(1).__class__", "9**9**9", "open('/etc/passwd').read()"):
        assert EXTRACTOR.extract(b"Title", f"x {{{{#expr:{expression}}}}} y".encode()) == f"x {expression} y\n".encode()


def test_a_document_keeps_the_references_of_its_title() -> None:
    document = format_document(12, "https://x.org/wiki", b'AT&T "<b>"', b"Line.\n")
    title = b"AT&amp;T &quot;&lt;b&gt;&quot;"
    assert document == (
        b'<doc id="12" url="https://x.org/wiki?curid=12" title="%b">\n%b\n\nLine.\n\n</doc>\n' % (title, title)
    )


@hypothesis.given(sizes=st.lists(st.integers(0, 300), max_size=40), limit=st.integers(1, 400))
@tries(300)
def test_documents_are_packed_as_wikiextractor_splits_its_output(sizes: list[int], limit: int) -> None:
    opened: list[list[int]] = [[]]
    for index, size in enumerate(sizes):
        if sum(sizes[i] for i in opened[-1]) + size > limit:
            opened.append([])
        opened[-1].append(index)
    assert pack_files(sizes, limit) == [len(file) for file in opened]


def test_the_first_file_stays_empty_before_a_document_too_large_for_it() -> None:
    assert pack_files([11, 5, 5, 1], 10) == [0, 1, 2, 1]
