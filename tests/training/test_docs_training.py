"""docs/vocabularies.md from a dump to a trained model: tests/test_docs.py runs the page, but not its training."""

from pathlib import Path

import pytest
from how_tos import run_new_language

# `make test-docs` runs the same commands without training.
pytestmark = [pytest.mark.training, pytest.mark.exhaustive]


def test_a_new_language_in_five_commands(tmp_path: Path) -> None:
    run_new_language(tmp_path)
