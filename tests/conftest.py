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

# What these import has environments of its own; `make test-training` and `make test-torch` run them.
_NEEDS = {
    "vocabularies/test_transform_fn*.py": "tensorflow",
    "loading/test_loaders_dali.py": "nvidia",
    "loading/test_loaders_grain.py": "grain",
    "loading/test_loaders_jax.py": "jax",
    "loading/test_loaders_tf.py": "tensorflow",
    "loading/test_loaders_torch*.py": "torch",
}
collect_ignore_glob = [files for files, package in _NEEDS.items() if importlib.util.find_spec(package) is None]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
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
