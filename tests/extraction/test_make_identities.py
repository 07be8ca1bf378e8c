"""The table of local names from a dump of Wikidata's sitelinks."""

import gzip
from pathlib import Path

import pytest

from tools.make_identities import english_items, local_names, main, read_sitelinks

# As the dump has them: a quote has a backslash before it.
SITELINKS = [
    r"(1,64,'enwiki','Berlin')",
    r"(2,64,'dewiki','Berlin')",
    r"(3,700,'enwiki','Template:Convert')",
    r"(4,700,'bnwiki','টেমপ্লেট:রূপান্তর')",
    r"(5,700,'rowiki','Format:Conversie')",
    r"(6,700,'idwiki','Templat:Convert')",
    r"(7,700,'commonswiki','Template:Convert')",
    r"(8,700,'enwikibooks','Template:Convert')",
    r"(9,701,'zh_yuewiki','Template:大細')",
    r"(10,701,'enwiki','Template:Small')",
    r"(11,702,'enwiki','Template:\'s')",
    r"(12,702,'cawiki','Plantilla:L\'s (a, b)')",
    r"(13,703,'enwiki','Template:Lang-de')",
    r"(14,703,'fiwiki','Malline:K-de')",
    r"(15,703,'bgwiki','Шаблон:Немски')",
    r"(16,704,'enwiki','Template:No such rule')",
    r"(17,704,'frwiki','Modèle:Rien')",
    r"(18,701,'dewiki','Seite ohne Namensraum')",
]
DUMP = (
    "-- MySQL dump 10.19\nCREATE TABLE `wb_items_per_site` (\n  `ips_row_id` bigint(20) unsigned NOT NULL\n);\n"
    f"INSERT INTO `wb_items_per_site` VALUES {','.join(SITELINKS[:9])};\n"
    f"INSERT INTO `wb_items_per_site` VALUES {','.join(SITELINKS[9:])};\n"
)

ROWS = [
    ("'s", "ca", "L's (a, b)"),
    ("convert", "bn", "রূপান্তর"),
    ("convert", "ro", "Conversie"),
    ("lang-{@language}", "fi", "K-{@language}"),
    ("small", "yue", "大細"),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "wb_items_per_site.sql.gz"
    path.write_bytes(gzip.compress(DUMP.encode()))
    return path


def test_rows_of_a_dump() -> None:
    links = list(read_sitelinks(line.encode() for line in DUMP.splitlines()))
    assert len(links) == 18
    assert links[3] == (700, "bnwiki", "টেমপ্লেট:রূপান্তর")
    assert links[11] == (702, "cawiki", "Plantilla:L's (a, b)")


def test_no_rules_no_names() -> None:
    links = [(1, "enwiki", "Template:Convert"), (1, "rowiki", "Format:Conversie")]
    assert english_items(links, []) == {}
    assert local_names(links, {}) == []


def test_names_that_differ_are_written(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(str(dump))
    lines = capsys.readouterr().out.splitlines()
    assert [tuple(line.split("\t")) for line in lines if not line.startswith("#")] == ROWS
