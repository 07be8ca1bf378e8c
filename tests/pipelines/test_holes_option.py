"""--holes: what extract drops, counts and lists, and where it is off."""

import json
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY
from made_up import dump_files

from maskmill.extraction.options import WikitextOptions
from maskmill.text_shards.options import ExtractionOptions
from pipelines.commands import cli
from pipelines.settings.stage_options import ExtractOptions

PAGES = [
    dump_files.page(
        1, "One", "It is old. It rose to {{xa|b|c}} million.\n\nIt is {{xa|b|c}} long. It is {{xb|d|e}} high."
    ),
    dump_files.page(2, "Two", "It is a town.{{xa|b|c}}"),
    dump_files.page(3, "Three", "It has {{xa|b|c}} people."),
]


@pytest.mark.parametrize("more", [(), ("--drop_duplicates",)])
def test_sentences_with_holes_are_dropped_and_counted(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dump.xml").write_bytes(dump_files.dump(PAGES))
    command = ["extract", f"--input={tmp_path}/dump.xml", "--num_eval_articles=0", "--report_templates", *IN_MEMORY]
    assert cli.main([*command, *more, f"--output={tmp_path}/text"]) == 0
    assert (tmp_path / "text" / "part-00000-of-00001").read_text() == "It is old.\n\nIt is a town.\n\n"
    manifest = json.loads((tmp_path / "text" / "manifest.json").read_text())
    assert manifest["counts"]["holes"] == {"documents": 2, "sentences": 4, "words": 13}
    assert manifest["counts"]["extract"] == {"read": 3, "documents": 2, "empty": 1}
    assert "2 documents, 4 sentences, 13 words" in capsys.readouterr().out
    rows = (tmp_path / "text" / "unknown_templates.tsv").read_text().splitlines()
    assert [row.split("\t")[:4] for row in rows] == [
        ["template", "calls", "kept", "holes"],
        ["Xa", "4", "0", "3"],
        ["Xb", "1", "0", "1"],
    ]
    assert cli.main([*command, f"--output={tmp_path}/kept", "--holes=keep"]) == 0
    assert (tmp_path / "kept" / "part-00000-of-00001").read_text().startswith("It is old.\nIt rose to million.\n")
    assert "holes" not in json.loads((tmp_path / "kept" / "manifest.json").read_text())["counts"]


@pytest.mark.parametrize(
    ("given", "decided"),
    [
        ({}, "drop"),
        ({"compat": "google"}, "keep"),
        ({"compat": "mlperf"}, "keep"),
        ({"extraction": ExtractionOptions(extractor="wikiextractor")}, "keep"),
        ({"extraction": ExtractionOptions(wikitext=WikitextOptions(holes="keep"))}, "keep"),
    ],
)
def test_holes_are_kept_where_the_reference_keeps_them(given: dict[str, object], decided: str) -> None:
    options = ExtractOptions(input=("dump.xml",), output="text", **given)  # type: ignore[arg-type]
    assert options.decided_extraction.wikitext.holes == decided
