"""The pages that go from a dump to a trained model: tests/test_docs.py runs them, but not their trainings."""

from pathlib import Path

import pytest
from how_tos import run_new_language, run_page

# `make test-heavy` runs the same commands without training.
pytestmark = [pytest.mark.elsewhere, pytest.mark.exhaustive]


def test_a_new_language_in_five_commands(tmp_path: Path) -> None:
    run_new_language(tmp_path)


def test_a_dump_becomes_a_submission_to_mlperf(tmp_path: Path) -> None:
    run_page("mlperf.md", tmp_path)
