"""What several test modules share: the paths of the test data."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = Path(os.environ.get("MASKMILL_SHARED", ROOT.parent / "shared"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests of a file in one process, which shares what its fixtures make, unless they name a group."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(ROOT).as_posix()))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the data that is committed with the tests."""
    return DATA


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the large data beside the checkout; tests that need it are skipped where it is missing."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"{SHARED} is missing: this test needs the large data that is kept beside a developer's checkout")
    return SHARED
