"""Runs of characters: written and read back, with the neighbours joined."""

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.characters import runs
from maskmill.characters.runs import Run

answers = st.lists(st.sampled_from([("", 0), ("a", 0), ("al", 1), ("", 32), ("d", 0)]), max_size=30)


@given(answers)
def test_runs_hold_every_answer_once(given_answers: list[tuple[str, int]]) -> None:
    found = list(runs.runs(given_answers))
    spread = {code: (run.letters, run.delta) for run in found for code in range(run.first, run.last + 1)}
    assert spread == {code: answer for code, answer in enumerate(given_answers) if answer != ("", 0)}
    for before, after in itertools.pairwise(found):
        assert before.last + 1 < after.first or before[2:] != after[2:]


def test_lines_are_read_back() -> None:
    text = "# a comment\n41\t5a\taulc\t32\n10ffff\t10ffff\t\t-7\n"
    assert list(runs.read_runs(text)) == [Run(0x41, 0x5A, "aulc", 32), Run(0x10FFFF, 0x10FFFF, "", -7)]


@pytest.mark.parametrize("name", ["nltk-3.4", "nltk-3.10.4"])
def test_the_pinned_runs_are_in_order(name: str) -> None:
    pinned = list(runs.read_runs((Path(runs.__file__).parent / "data" / f"{name}.tsv").read_text(encoding="utf-8")))
    assert all(before.last < after.first for before, after in itertools.pairwise(pinned))
    assert pinned[0] == Run(ord("'"), ord("'"), "i", 0)
    assert {run.letters for run in pinned if run.first <= ord("A") <= run.last} == {"auc"}
    assert all(run.first <= run.last and set(run.letters) <= set(runs.PROPERTIES) for run in pinned)


def test_the_running_pythons_table_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["runs", "re"])
    monkeypatch.setattr(runs, "NUM_CODE_POINTS", 0x250)
    runs.main()
    printed = capsys.readouterr().out
    assert printed.startswith(f"# Python {sys.version.split()[0]} (Unicode ")
    found = list(runs.read_runs(printed))
    assert Run(ord("A"), ord("Z"), "auc", 32) in found
    assert Run(ord("0"), ord("9"), "d", 0) in found
