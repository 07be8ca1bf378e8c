"""A dump's date: in its name or its directory's, else of its newest revision; one for all its parts."""

from pathlib import Path

import pytest
from made_up.dump_files import dump, page
from made_up.input_files import write_file

from maskmill.errors import UnusableInputError
from maskmill.inputs.found_inputs import DateEvidence, date_in_name, decide_dates, read_evidence, refuse_two_dates
from maskmill.inputs.mediawiki import read_header


def evidence_of(path: str) -> DateEvidence | None:
    return read_evidence(path)[1]


def dump_date(path: str) -> str | None:
    """The date of a dump of one file; None for inputs that are no dump."""
    return decide_dates([(path, evidence_of(path))])[0] or None


WIKI = "https://test.wikipedia.org/wiki"


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("enwiki-20200131-pages-articles.xml", "2020-01-31"),
        ("enwiki-20200131-pages-articles1.xml-p1p41242", "2020-01-31"),
        ("x-99999999-20060303.xml", "2006-03-03"),
        ("x-20201301.xml", "2012-01-02"),
        ("x-120200131.xml", "2012-01-02"),
        ("x.xml", "2012-01-02"),
    ],
)
def test_the_dumps_date(name: str, date: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, dump([page(1, "A", "x"), page(2, "B", "x", older=["", ""]), page(3, "C", "x")]), name)
    assert dump_date(path) == date


def test_only_the_first_pages_count_for_the_date(tmp_path: Path) -> None:
    pages = [page(k, f"P{k}", "x") for k in range(1, 201)]
    assert dump_date(write_file(tmp_path, dump([*pages, page(201, "Z", "x", older=["", ""])]))) == "2010-01-02"


def test_no_date(tmp_path: Path) -> None:
    assert dump_date(write_file(tmp_path, b"Just text.", "x.txt")) is None
    with pytest.raises(UnusableInputError, match=r"x\.xml: neither its name nor its first pages .* --dump_date"):
        dump_date(write_file(tmp_path, dump([]), "x.xml"))


@pytest.mark.parametrize(
    ("path", "date"),
    [
        ("enwiki-20260301-pages-articles-multistream1.xml-p1p41242.bz2", "2026-03-01"),
        ("enwiki-20260301-pages-articles27.xml-p20110420p21500133.bz2", "2026-03-01"),
        ("enwiki-2026-03-01-p10p1147431.xml.bz2", "2026-03-01"),
        ("enwiki-2026-03-01-p20110420p21500133.xml.bz2", "2026-03-01"),
        ("enwiki-latest-pages-articles27.xml-p20110420p21500133.bz2", ""),
        ("enwiki-latest-pages-articles.xml.bz2", ""),
        ("enwiki-20261350-pages-articles.xml", ""),
        ("enwiki-2026-02-30-p1p2.xml", ""),
        ("enwiki-19991231-pages.xml", ""),
        ("dump20200131.xml", "2020-01-31"),
        ("/dumps/enwiki/20260301/enwiki-latest-pages-articles1.xml-p20110420p21500133.bz2", "2026-03-01"),
        ("gs://b/mediawiki_content_current/enwiki/2026-03-01/xml/bzip2/enwiki-p10p11.xml.bz2", "2026-03-01"),
        ("/dumps/enwiki/20260301/enwiki-20260401-pages-articles.xml", "2026-04-01"),
        ("/backup/20260301/pages.xml", ""),
        ("/enwiki/20261301/pages.xml", ""),
    ],
)
def test_the_date_in_a_name(path: str, date: str) -> None:
    assert date_in_name(path) == date


def parts(*dates: str, wiki: str = WIKI, kind: str = "newest") -> list[tuple[str, DateEvidence | None]]:
    return [(f"{kind}-{date}", DateEvidence(wiki=wiki, **{kind: date})) for date in dates]


def test_parts_without_a_date_in_their_names_have_the_newest_one_of_all() -> None:
    assert decide_dates(parts("2010-01-02", "", "2010-03-01")) == ["2010-03-01"] * 3
    named = parts("2010-02-01", kind="named")
    assert decide_dates([*parts("2010-01-02", "2010-03-01"), *named]) == ["2010-02-01"] * 3


def test_wikis_have_dates_of_their_own() -> None:
    found = [*parts("2010-01-02"), ("text", None), *parts("2011-01-01", wiki="other", kind="named")]
    assert decide_dates(found) == ["2010-01-02", "", "2011-01-01"]


def test_two_dates_in_the_names_of_a_wikis_files_are_unusable() -> None:
    with pytest.raises(
        UnusableInputError,
        match=r"named-2010-01-01 is of 2010-01-01 and named-2010-02-01 of 2010-02-01, and both are of .* --dump_date",
    ):
        decide_dates(parts("2010-02-01", "2010-01-01", kind="named"))
    assert decide_dates(parts("2010-02-01", "2010-01-01", wiki="", kind="named")) == ["2010-02-01", "2010-01-01"]


def test_two_dates_are_seen_in_the_names_before_the_files_are_read(tmp_path: Path) -> None:
    paths = [write_file(tmp_path, dump([]), name) for name in ("x-20100101.xml", "x-20100201.xml", "x.xml")]
    refuse_two_dates(paths[1:])
    with pytest.raises(UnusableInputError, match="both are of"):
        refuse_two_dates(paths)


def test_what_is_taken_as_text_has_no_date(tmp_path: Path) -> None:
    table = b"id,title,text\n" + b'1,A,"Some text, and more."\n' * 9
    path = write_file(tmp_path, table, "enwiki-20200131.csv")
    assert evidence_of(path) is None
    assert read_header(path) == b""
    refuse_two_dates([path])


def test_the_evidence_of_a_file(tmp_path: Path) -> None:
    content = dump([page(1, "A", "x")])
    assert evidence_of(write_file(tmp_path, content, "x-20200131.xml")) == DateEvidence(wiki=WIKI, named="2020-01-31")
    assert evidence_of(write_file(tmp_path, content, "x.xml")) == DateEvidence(wiki=WIKI, newest="2010-01-02")
    assert evidence_of(write_file(tmp_path, dump([]), "x.xml")) == DateEvidence(wiki=WIKI)
