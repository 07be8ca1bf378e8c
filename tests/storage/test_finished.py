"""Completion records of finished pieces."""

from pathlib import Path

import pytest

from maskmill.errors import RunFailedError
from maskmill.storage import completions


def test_a_record_comes_back(tmp_path: Path) -> None:
    completions.store(str(tmp_path), "text", "key", {"size": 3})
    assert completions.finished(str(tmp_path), "text", "key") == {"size": 3}


def test_a_missing_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=r"text/key\.json: this working file was deleted or damaged while"):
        completions.finished(str(tmp_path), "text", "key")
