"""What several test modules share: the paths of the test data."""

import importlib.util
import os
from collections.abc import Generator
from pathlib import Path

import pytest
import skips

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = Path(os.environ.get("MASKMILL_SHARED", ROOT.parent / "shared"))

# `make test` has no TensorFlow, which these import; `make test-training` runs them.
if importlib.util.find_spec("tensorflow") is None:
    collect_ignore_glob = ["vocabularies/test_transform_fn*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the tests of a file in one process, which shares what its fixtures make, unless they name a group."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(ROOT).as_posix()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Makes a skip in CI a failure, unless its reason is one of skips.py."""
    report = yield
    if report.skipped and skips.must_not_skip() and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not skips.is_allowed(reason) and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"CI must not skip this test ({reason})"
    return report


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the data that is committed with the tests."""
    return DATA


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the large data beside the checkout; tests that need it are skipped where it is missing."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"{skips.SHARED_IS_MISSING}: {SHARED}")
    return SHARED
