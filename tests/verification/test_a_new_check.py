"""A new check is one function in one file: it is made, counted, told of and listed; nothing else names it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from maskmill import verification
from maskmill.reporting import facts
from maskmill.verification import findings
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify
from pipelines.verifying import verify as command

NEW = '''"""Whether lines have tabs."""

from maskmill.reading.byte_ranges import ByteRanges
from maskmill.verification.findings import Check, Checked, finding, ran, makes_check
from maskmill.verification.work_items import WorkItem


@makes_check("file", "text", check=Check("tabs", "no line has a tab"))
def check_tabs(item: WorkItem, ranges: ByteRanges) -> Checked:
    lines = ranges.read_all(item.path).split(b"\\n")
    wrong = [number for number, line in enumerate(lines, 1) if b"\\t" in line]
    found = []
    if wrong:
        what, at = "a tab stands in this line; make the file again", ("line", wrong[0])
        found.append(finding("tabs", item.path, what, "warning", at=at, count=len(wrong)))
    return ran("tabs", *found, count=len(lines) - 1)
'''


@pytest.fixture(autouse=True)
def new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file with a check beside those of the package, for one test."""
    findings.import_checks()
    checks, made = dict(findings.CHECKS), list(findings._registered)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "tab_checks.py").write_text(NEW)
    monkeypatch.setattr(verification, "__path__", [*verification.__path__, str(tmp_path / "beside")])
    findings.import_checks.cache_clear()
    yield
    findings.import_checks.cache_clear()
    findings.CHECKS.clear()
    findings.CHECKS.update(checks)
    findings._registered[:] = made
    sys.modules.pop("maskmill.verification.tab_checks", None)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A text shard with two tabs."""
    path = tmp_path / "part-00000-of-00001"
    path.write_text("A river runs.\nIt\thas a bank.\n\nAnother one.\nIt\tis dry.\n\n")
    return path


def test_it_is_made_and_counted(text: Path) -> None:
    verification = verify([str(text)])
    (found,) = [found for found in verification.findings if found.check == "tabs"]
    assert found.message == f"{text}, line 2: a tab stands in this line; make the file again."
    assert (found.record, found.count) == (2, 2)
    assert verification.outcomes["tabs"] == findings.CheckOutcome(check="tabs", looked_at=6, findings=2)


def test_it_is_told_of(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run([str(text)], VerifyOptions(json=True)) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["warning"] == 2
    expected = {"check": "tabs", "title": "no line has a tab", "looked_at": 6, "findings": 2, "skipped": None}
    assert told["checks"][-1] == expected
    line = facts.check_lines(verify([str(text)]))["tabs"]
    assert (line.title, line.mark, line.findings) == ("no line has a tab", "warning", 2)
