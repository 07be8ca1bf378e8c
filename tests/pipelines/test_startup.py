"""Beam is imported without Google's client libraries, and they are there when a path needs them."""

import subprocess
import sys

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
