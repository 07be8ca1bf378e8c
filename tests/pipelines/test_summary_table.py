"""The summary on a terminal: a table of training and eval data, rows of the rest."""

import io
import re
import sys

import pytest

from maskmill.storage.outcomes import Result
from pipelines.terminal import summary
from pipelines.terminal.summary import Figure, Summary

TRAIN = {"shards": 5, "documents": 90, "bytes": 46_371_329}
EVAL = {"shards": 1, "documents": 7, "bytes": 2_512_722}
SENTENCES = ["English (the dump's language)", "Punkt's English parameters", "median line 120 characters", "longest 937"]


class Terminal(io.StringIO):
    """A terminal without a file descriptor."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, columns: int, **counts: dict[str, int]) -> list[str]:
    """The summary of a stage on a terminal of so many columns."""
    stream = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", stream)

    figures = {
        step: [Figure(name=name, value=f"{count:,}") for name, count in found.items()] for step, found in counts.items()
    }
    summary.show_table(
        Summary(
            stage="extract",
            output="demo/text",
            figures=figures,
            rows=[("sentences", SENTENCES)],
            width=9,
            notes=["  3 documents could not be processed; demo/text/rejected.jsonl lists each with its reason."],
        )
    )
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in stream.getvalue().splitlines()]


def test_training_and_eval_data_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80, extract={"read": 206, "redirects": 99}, train=TRAIN, eval=EVAL | {"picked": 3})
    assert lines == [
        "extract demo/text",
        "  extract    206 read, 99 redirects",
        "  sentences  English (the dump's language), Punkt's English parameters, median",
        "             line 120 characters, longest 937",
        "                   train        eval",
        "  ──────────────────────────────────",
        "  shards               5           1",
        "  documents           90           7",
        "  bytes       46,371,329   2,512,722",
        "  picked                           3",
        "  3 documents could not be processed; demo/text/rejected.jsonl lists each with its reason.",
        "",
    ]


def test_one_step_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80, eval={"available": 907, "picked": 300})
    assert lines[:2] == ["extract demo/text", "  eval       907 available, 300 picked"]


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_it_fits_into_any_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    *lines, note, end = shown(monkeypatch, columns, extract={"read": 206}, train=TRAIN, eval=EVAL)
    assert max(map(len, lines)) <= min(columns, 100)
    assert note.endswith("with its reason.")
    assert end == ""


def test_only_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"eval": {"available": 907, "picked": 300}}
    manifest = {"stage": "eval", "parameters": {"num_examples_to_pick": 300}, "counts": counts}
    summary.report("out", Result(made=manifest))
    assert capsys.readouterr().out == "eval: out\n  eval     907 available, 300 picked\n"
    monkeypatch.setattr(sys, "stdout", stream := Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    summary.report("out", Result(made=manifest))
    assert "eval: out" not in stream.getvalue()
    assert "907" in stream.getvalue()
