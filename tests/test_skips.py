"""In CI a skipped test fails, unless the machine lacks what it needs: shared data, a registry that answers."""

import collections
import os
import socket
import subprocess
import sys
from pathlib import Path

import conftest
import pytest
import skips


def test_files_of_tests_have_names_of_their_own() -> None:
    """pytest collects none of two: a plain `pytest` ends there, while targets leave out files that they do not need."""
    names = collections.Counter(path.name for path in (conftest.ROOT / "tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.builds
@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("no Java here", "1 failed"),
        (f"{skips.SHARED_IS_MISSING}: x", "1 skipped"),
        (f"{skips.NO_ANSWER}: x", "1 skipped"),
    ],
)
def test_a_skip_in_ci(reason: str, outcome: str, tmp_path: Path) -> None:
    module = tmp_path / "test_it.py"
    module.write_text(f"import pytest\ndef test_it():\n    pytest.skip({reason!r})\n")
    (tmp_path / "conftest.py").write_text(Path(conftest.__file__).read_text())
    # Tests of trainings may have set a backend in this process.
    inherited = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(module)],
        env={**inherited, "MASKMILL_CI": "1", "PYTHONPATH": str(Path(skips.__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout


def test_a_registry_that_answers_is_no_reason_to_skip() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        skips.skip_if_unreachable(f"Could not transfer a:b:1 from/to mirror (http://127.0.0.1:{port}/m): timed out")
    with pytest.raises(pytest.skip.Exception, match=skips.NO_ANSWER):
        skips.skip_if_unreachable(f"HTTPConnectionPool(host='127.0.0.1', port={port}): NewConnectionError")
    skips.skip_if_unreachable("java is not on the PATH")
