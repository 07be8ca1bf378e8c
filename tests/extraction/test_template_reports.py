"""Templates without a rule: --report_templates, --template_rules, and what is proposed for a language without rules."""

import json
from pathlib import Path

import pytest
from command_runs.commands import digests
from command_runs.extract_runs import extract_all
from made_up import dump_files

from maskmill.extraction.unknown_templates import (
    REPORT,
    UnknownTemplate,
    describe_call,
    merge,
    most_frequent,
    table_text,
)

PAGES = [
    dump_files.page(1, "One", "He calls it {{xen|a word}} or {{xtwo|a|b}} there. It is {{xtwo|c|d}} so."),
    dump_files.page(2, "Two", "It is {{xtwo|e|f}} and {{Xen|other words}} here.\n\n{{infobox x|a}}\n{{note}} b."),
    dump_files.page(3, "Template:Xen", "<i>{{{1}}}</i>", namespace=10),
]


def unknown(name: str, calls: int, kept: int, title: str = "T") -> UnknownTemplate:
    return UnknownTemplate(
        name=name, calls=calls, kept=kept, holes=calls - kept, title=title, sample=f"{{{{{name}}}}} of {title}"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dump.xml").write_bytes(dump_files.dump(PAGES))
    return tmp_path


def text(output: Path) -> str:
    return (output / "part-00000-of-00001").read_text()


# ---- pieces


def test_a_call_is_described_by_its_name_and_what_stands_beside_it() -> None:
    page = b"first line\nHe calls it {{taiss:x_en|a\tword}} there.\nnext"
    start = page.index(b"{{")
    name, sample = describe_call(page, start, page.index(b"}}") + 2, ("Taiss", "Template"))
    assert (name, sample) == ("X en", "He calls it {{taiss:x_en|a word}} there.")


def test_reports_of_parts_are_merged_with_the_sample_of_the_first() -> None:
    parts = [[unknown("b", 2, 1, "P"), unknown("a", 1, 0, "P")], [unknown("b", 3, 0, "Q"), unknown("c", 3, 3, "Q")]]
    merged = merge(parts)
    assert [(t.name, t.calls, t.kept, t.holes, t.title) for t in merged] == [
        ("a", 1, 0, 1, "P"),
        ("b", 5, 1, 4, "P"),
        ("c", 3, 3, 0, "Q"),
    ]
    assert [t.name for t in most_frequent([*merged, unknown("aa", 3, 0)])] == ["b", "aa", "c", "a"]
    assert [t.name for t in most_frequent(merged, 1)] == ["b"]


def test_a_table_has_a_line_for_each_template() -> None:
    assert table_text([unknown("a", 12, 3, "A\ttitle")]).splitlines() == [
        "template\tcalls\tkept\tholes\ttitle\tsample",
        "a\t12\t3\t9\tA title\t{{a}} of A title",
    ]


# ---- commands


def test_the_report(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "text"
    assert extract_all(folder, output, "--report_templates", "--holes=keep") == 0
    assert (output / REPORT).read_text().splitlines() == [
        "template\tcalls\tkept\tholes\ttitle\tsample",
        "Xtwo\t3\t0\t3\tOne\tHe calls it {{xen|a word}} or {{xtwo|a|b}} there. It is {{xtwo|c|d}} so.",
        "Xen\t2\t2\t0\tOne\tHe calls it {{xen|a word}} or {{xtwo|a|b}} there. It is {{xtwo|c|d}} so.",
    ]
    assert f"  {output / REPORT} lists templates without a rule.\n" in capsys.readouterr().out
    assert text(output).startswith("He calls it a word or there.")
    counts = json.loads((output / "manifest.json").read_text())["counts"]["templates"]
    assert counts == {"definitions": 1, "unknown_calls": 5, "kept_arguments": 2, "known_calls": 1}


@pytest.mark.builds
def test_rules_of_the_user_replace_ours(folder: Path, tmp_path: Path) -> None:
    output, rules = tmp_path / "text", tmp_path / "my.rules"
    rules.write_text("[rules]\nxtwo = {1}+{2}\nxen = “{1}”\n")
    assert extract_all(folder, output, f"--template_rules={rules}") == 0
    assert text(output).startswith("He calls it “a word” or a+b there.")
    parameters = json.loads((output / "manifest.json").read_text())["parameters"]
    assert parameters["template_rules"] == str(rules)
    assert len(parameters["template_rules_sha256"]) == 64
    # Other rules under the same name give another text.
    rules.write_text("[rules]\nxtwo = {2}\n")
    again = tmp_path / "again"
    assert extract_all(folder, again, f"--template_rules={rules}") == 0
    assert digests(again) != digests(output)
    assert text(again).startswith("He calls it a word or b there.")


@pytest.mark.builds
@pytest.mark.parametrize(("language", "proposed"), [("en", False), ("tpi", True)])
def test_expansion_is_proposed_for_a_language_without_rules(
    language: str, *, proposed: bool, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xml = dump_files.dump(PAGES).replace(b'xml:lang="en"', f'xml:lang="{language}"'.encode())
    (folder / "dump.xml").write_bytes(xml)
    assert extract_all(folder, tmp_path / "text") == 0
    line = "maskmill has no rules for the templates of tpi; --expand_templates takes the dump's own definitions."
    assert (line in capsys.readouterr().out) == proposed
    assert extract_all(folder, tmp_path / "expanded", "--expand_templates") == 0
    assert line not in capsys.readouterr().out
