"""The report at the end of a build, and docs/report.md."""

import re
from pathlib import Path

import pytest
from command_runs.commands import maskmill
from conftest import ROOT
from how_tos import run_page
from read_pages import ReadPage

_DEMO = ROOT / "examples" / "demo.yaml"


@pytest.mark.docs
def test_the_page_prints_what_the_commands_print(tmp_path: Path) -> None:
    run_page("report.md", tmp_path)


@pytest.mark.docs
def test_readers_questions_are_answered_by_the_report_alone(tmp_path: Path) -> None:
    output = tmp_path / "demo"
    made = maskmill("build", _DEMO, "--output", output)
    assert made.returncode == 0, made.stderr
    assert re.search(r"^report:  .*report\.html \(\d+ checks, nothing wrong\)$", made.stdout, re.MULTILINE)
    page = ReadPage((output / "report.html").read_text())
    table = (ROOT / "docs" / "report.md").read_text().partition("## Find the first answers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+\?) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) == 8
    for question, answer in rows:
        assert question in page.text
        assert answer in page.text
