"""A directory for releases, on this machine's disk and on the storage emulator.

A test module that says `pytest_plugins = ("release_runs.fixtures",)` has these fixtures.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import cloud

BUCKET = "maskmill-releases"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Runs the storage emulator with one bucket; this process and those that it starts find it by the environment."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables, cloud.set_environment(variables):
        yield f"gs://{BUCKET}"


@pytest.fixture(params=["disk", pytest.param("cloud", marks=pytest.mark.builds)])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new directory above releases."""
    if request.param == "disk":
        return str(tmp_path / "root")
    return f"{request.getfixturevalue('emulator')}/root-{next(_numbers)}"
