"""Completion records of finished pieces."""

from pathlib import Path

import pytest

from transforms.storage import completions


def test_a_record_comes_back(tmp_path: Path) -> None:
    completions.store(str(tmp_path), "text", "key", {"size": 3})
    assert completions.finished(str(tmp_path), "text", "key") == {"size": 3}


def test_a_missing_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"\.maskmill/text/key\.json: this completion record is missing"):
        completions.finished(str(tmp_path), "text", "key")
