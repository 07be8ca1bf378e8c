"""Beam is imported without Google's client libraries, which are there when a path needs them; help imports little."""

import subprocess
import sys

import pytest
from commands import ROOT

_SCRIPT = """
import sys
from pipelines.startup import without_cloud_libraries
with without_cloud_libraries():
    import apache_beam
assert "google.cloud.storage" not in sys.modules
import apache_beam.io.gcp.gcsfilesystem
from apache_beam.io.filesystems import FileSystems
print(FileSystems.join("gs://bucket/folder", "name"))
"""


def test_object_stores_work_in_a_process_that_began_without_their_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == "gs://bucket/folder/name\n"


_SHOWS_NOTHING = """
import sys
from pipelines import cli
assert cli.main(sys.argv[1:]) == 0
assert not {"rich", "apache_beam", "matplotlib", "jinja2"} & set(sys.modules), sorted(sys.modules)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["build", "--help"], ["verify", "--help"], ["inspect", "--help"]])
def test_help_imports_nothing_that_takes_long(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-c", _SHOWS_NOTHING, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
