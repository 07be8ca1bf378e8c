"""What several test modules share: the paths of the test data."""

import importlib.util
import os
import re
from collections.abc import Generator
from pathlib import Path

import hypothesis
import properties
import pytest
import skips

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = Path(os.environ.get("MASKMILL_SHARED", ROOT.parent / "shared"))

# What these import, or run with the Python that a variable names, has environments of its own: `make test-training` and
# `make test-torch` run them.
_NEEDS = {
    "vocabularies/test_transform_fn*.py": "tensorflow",
    "records/test_readers.py": "MASKMILL_READERS_PYTHON",
    "vocabularies/test_transformers.py": "MASKMILL_READERS_PYTHON",
    "training/test_torch.py": "MASKMILL_TORCH_PYTHON",
    "loading/test_loaders_grain.py": "grain",
    "loading/test_loaders_jax.py": "jax",
    "loading/test_loaders_tf.py": "tensorflow",
    "loading/test_loaders_torch*.py": "torch",
    "training/test_tutorial.py": "nbclient",
}
# A file's marks, on one line or on several.
_MARKS_OF_FILE = re.compile(r"^pytestmark = (?:\[\n(?: .*\n)+\]|.*)", re.MULTILINE)
collect_ignore_glob = [
    f for f, need in _NEEDS.items() if need not in os.environ and importlib.util.find_spec(need) is None
]


# No deadline: a busy machine takes its time. A property without `tries` has 10 or 25 of Hypothesis's 100 examples
# in the smaller profiles.
hypothesis.settings.register_profile(properties.FULL, deadline=None, derandomize=True)
hypothesis.settings.register_profile(properties.FAST, deadline=None, derandomize=True, max_examples=10)
hypothesis.settings.register_profile(properties.PART, deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.load_profile(properties.FULL)  # unless --hypothesis-profile names another


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files in which -m selects no test, unread: each process imports all others, with what they test.

    Its own `pytestmark` may be one that -m rules out; or neither it nor its conftest.py has a mark that -m asks for.
    """
    chosen = config.option.markexpr
    if not chosen or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    beside = collection_path.with_name("conftest.py")  # which may mark the files of its folder
    text = collection_path.read_text() + (beside.read_text() if beside.exists() else "")
    outside = re.sub(r"\([^()]*\)", "", chosen)  # of brackets, in which there is an `or`
    ruled_out = set() if " or " in outside else set(re.findall(r"\bnot (\w+)", outside))
    wanted = set(re.findall(r"\w+", chosen)) - ruled_out - {"and", "or", "not"}
    of_file = _MARKS_OF_FILE.search(text)
    marks = set(re.findall(r"mark\.(\w+)", of_file[0])) if of_file else set()
    if marks & ruled_out or (wanted and not any(word in text for word in wanted)):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases that a test's `exhaustive_but` does not name as `exhaustive`."""
    cases: dict[tuple[str, ...], set[str]] = {}
    for item in items:
        mark = item.get_closest_marker("exhaustive_but")
        if mark is None or not isinstance(item, pytest.Function):
            continue
        cases.setdefault((str(item.path), item.originalname, *mark.args), set()).add(item.callspec.id)
        if item.callspec.id not in mark.args:
            item.add_marker(pytest.mark.exhaustive)
    for (path, test, *named), found in cases.items():
        if len(found) > 1 and (unknown := set(named) - found):
            raise pytest.UsageError(f"{path}: {test} has no case {', '.join(sorted(unknown))}, which it names.")


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
