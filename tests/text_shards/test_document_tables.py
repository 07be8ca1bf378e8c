"""The tables beside text shards: which row is of which document, types, resuming, and columns that are missing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from command_runs.commands import IN_MEMORY, digests
from made_up import dump_files

import maskmill
from maskmill.text_shards import document_tables
from pipelines.commands import cli

# Documents of their own words, so that a document tells its row. Each has a paragraph that stands in others, too.
COUNT = 60
RECORDS = [
    {
        "text": f"Town {n} has {n} bridges.\nThe same sentence stands here, in all.\nIt is {n} years old.",
        "url": f"https://towns/{n}",
        "score": n / 4,
        "tags": ["town", n],
        **({"license": "cc"} if n % 3 else {}),
    }
    for n in range(COUNT)
]
COLUMNS = "--metadata_columns=url,license,score,tags"
FLAGS = (COLUMNS, "--num_eval_articles=9", "--shard_size_mb=0.001", "--drop_duplicates", "--min_duplicate_words=4")
STEP = """
def mark(article): return article._replace(metadata={**article.metadata, "length": len(article.text)})
def good(article): return article if article.metadata["score"] > 5 else None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "towns.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([{"license": None, **r, "tags": [str(t) for t in r["tags"]]} for r in RECORDS]),
        "towns.parquet",
    )
    (tmp_path / "steps.py").write_text(STEP)
    return tmp_path


def extract(path: str, output: str, *flags: str) -> int:
    return cli.main(["extract", f"--input={path}", f"--output={output}", "--language=en", *flags])


def rows_of(output: str) -> list[dict[str, Any]]:
    with maskmill.open_texts(output) as texts:
        documents = list(texts.all())
        for document in documents:
            table = pyarrow.parquet.read_table(texts.tables[document.file]).to_pylist()
            assert table[document.document - 1] == {"document": document.document, **document.metadata}
    return [{"first": document.lines[0], **document.metadata} for document in documents]


@pytest.mark.builds
@pytest.mark.parametrize("path", ["towns.jsonl", "towns.parquet"])
def test_each_row_is_of_its_document(path: str, folder: Path) -> None:
    assert extract(path, "one", *FLAGS, *IN_MEMORY) == 0
    assert extract(path, "two", *FLAGS, "--workers=2") == 0
    assert digests(Path("one"), manifests=False) == digests(Path("two"), manifests=False)
    rows = rows_of("one")
    assert len(rows) == COUNT
    for row in rows:
        n = int(row["first"].split()[1])
        assert (row["url"], row["score"], row["license"]) == (f"https://towns/{n}", n / 4, "cc" if n % 3 else None)
        assert [str(tag) for tag in json.loads(row["tags"])] == ["town", str(n)]
    made = json.loads(Path("one/manifest.json").read_text())
    assert len(made["shards"]) > 3
    assert made["decided"]["columns"]["score"] == "double"
    assert maskmill.verify("one").is_right
    # The shards' bytes are those of a build without tables.
    assert extract(path, "none", *FLAGS[1:], *IN_MEMORY) == 0
    assert {
        name: digest for name, digest in digests(Path("one"), manifests=False).items() if "documents" not in name
    } == (digests(Path("none"), manifests=False))
    assert not Path("none/documents").exists()


@pytest.mark.builds
def test_a_table_is_made_again_and_its_damage_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract("towns.jsonl", "out", *FLAGS, *IN_MEMORY) == 0
    before = digests(Path("out"))
    first, second = sorted(Path("out/documents").glob("part-*"))[:2]
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    assert sorted(finding.check for finding in maskmill.verify("out").findings) == ["index", "missing"]
    capsys.readouterr()
    assert extract("towns.jsonl", "out", *FLAGS, *IN_MEMORY) == 0
    assert f"{first.name} was gone" in capsys.readouterr().out
    assert digests(Path("out")) == before


@pytest.mark.builds
def test_what_a_step_puts_into_metadata_is_kept(folder: Path) -> None:
    dump = dump_files.dump([dump_files.page(n, f"Town {n}", f"Town {n} has bridges.") for n in (1, 2)])
    Path("dump.xml").write_bytes(dump)
    flags = ["--steps=steps.py:mark", "--metadata_columns=length,url,date", "--dump_date=2020-01-02", *IN_MEMORY]
    assert extract("dump.xml", "dumped", "--num_eval_articles=0", *flags) == 0
    row = {"title": "Town 1", "id": "1", "length": 19, "url": "https://test.wikipedia.org/wiki?curid=1"}
    assert rows_of("dumped")[0] == {"first": "Town 1 has bridges.", "date": "2020-01-02", **row}
    for path in ("towns.jsonl", "towns.parquet"):
        output = f"good-{path}"
        assert extract(path, output, "--steps=steps.py:good", "--metadata_columns=score", *IN_MEMORY) == 0
        assert sorted(row["score"] for row in rows_of(output)) == [n / 4 for n in range(21, COUNT)]


@pytest.mark.builds
def test_sources_of_a_mix_keep_their_own_columns(folder: Path) -> None:
    Path("plain.txt").write_text("A text without columns.\n")
    sources = """
  towns: {input: [towns.jsonl], metadata_columns: [url]}
  plain: {input: [plain.txt]}
"""
    Path("mix.yaml").write_text(
        f"output: mixed\nextract: {{num_eval_articles: 2}}\nvocabulary: {{size: 200}}\nsources: {sources}"
    )
    assert cli.main(["build", "mix.yaml", "--until=extract", *IN_MEMORY]) == 0
    urls = {row["first"]: row["url"] for row in rows_of("mixed/text")}
    assert urls.pop("A text without columns.") is None
    assert urls == {f"Town {n} has {n} bridges.": f"https://towns/{n}" for n in range(COUNT)}


@pytest.mark.parametrize(
    ("path", "columns", "said"),
    [
        ("towns.jsonl", "licence", 'there is no column "licence" (--metadata_columns); did you mean license?'),
        ("towns.parquet", "urls", 'there is no column "urls" (--metadata_columns); did you mean url?'),
        ("towns.parquet", "x", "there are license, text, url, score, tags."),
        ("text.txt", "url", "there are id, title."),
        ("towns.jsonl", "document", "rename this column"),
    ],
)
def test_a_column_that_no_record_has_is_refused(
    path: str, columns: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("text.txt").write_text("A text.\n")
    assert extract(path, "out", f"--metadata_columns={columns}") == 2
    assert said in capsys.readouterr().err


@pytest.mark.builds
def test_a_column_that_no_step_gives_is_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract("towns.jsonl", "out", "--steps=steps.py:mark", "--metadata_columns=lenght", *IN_MEMORY) == 0
    assert 'no document has the column "lenght" of --metadata_columns' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        (["a", None, ""], "string", ["a", None, ""]),
        ([True, None, False], "bool", [True, None, False]),
        ([1, -(1 << 63)], "int64", [1, -(1 << 63)]),
        ([1, 0.5, 1 << 60], "double", [1.0, 0.5, float(1 << 60)]),
        ([1 << 63, 1], "string", [str(1 << 63), "1"]),
        ([True, 1], "string", ["true", "1"]),
        ([[1, "é"], {"a": None}], "string", ['[1, "é"]', '{"a": null}']),
        (["half \ud800"], "string", ["half ?"]),
        ([None], "null", [None]),
        ([np.int64(3)], "string", ["3"]),
    ],
)
def test_a_column_has_the_type_that_fits_all_its_values(
    values: list[Any], kind: str, kept: list[Any], tmp_path: Path
) -> None:
    rows: list[Mapping[str, Any]] = [{"z": value} for value in values]
    columns = document_tables.joined(*map(document_tables.types_of, rows), {"id": "string"})
    assert list(columns.items()) == [("id", "string"), ("z", kind)]
    lines = b"".join(map(document_tables.packed, rows))
    path = str(tmp_path / "t.parquet")
    document_tables.write_table(path, columns, document_tables.unpacked(lines, np.arange(len(rows))))
    table = pyarrow.parquet.read_table(path).to_pylist()
    assert table == [{"document": n, "id": None, "z": value} for n, value in enumerate(kept, 1)]
