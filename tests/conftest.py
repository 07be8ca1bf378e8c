"""What several test modules share: where the data lies."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = Path(os.environ.get("MASKMILL_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The data that is committed with the tests."""
    return DATA


@pytest.fixture(scope="session")
def shared() -> Path:
    """The larger data beside the checkout; tests that need it are skipped where it is missing."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"{SHARED} is not here: this test needs the large data that lies beside a developer's checkout")
    return SHARED
