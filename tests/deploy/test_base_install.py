"""What the base install can do: gs:// with credentials, without a word about missing extras; Dataflow needs [gcp]."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from command_runs import commands
from servers import cloud

pytestmark = pytest.mark.builds

BUCKET = "base-install"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables:
        yield variables


def maskmill(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(commands.ROOT / "tests" / "command_runs" / "base_install.py"), *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_objects_are_read_and_written_with_credentials(environment: Mapping[str, str]) -> None:
    cloud.upload(environment, BUCKET, "dump.xml.bz2", commands.DUMP.read_bytes())
    dump, output = f"gs://{BUCKET}/dump.xml.bz2", f"gs://{BUCKET}/text"
    done = maskmill(environment, "extract", f"--input={dump}", f"--output={output}", *commands.IN_MEMORY)
    assert done.returncode == 0, done.stderr
    assert "text/part-00000-of-00001" in cloud.objects(environment, BUCKET)
    for word in ("apitools", "google-auth", "anonymous"):
        assert word not in done.stderr


def test_dataflow_without_its_extra_is_refused_in_one_sentence(environment: Mapping[str, str]) -> None:
    flags = ("--runner=DataflowRunner", "--project=p", "--region=europe-west4", f"--temp_location=gs://{BUCKET}/tmp")
    dump = f"gs://{BUCKET}/dump.xml.bz2"
    done = maskmill(
        environment, "extract", f"--input={dump}", f"--output=gs://{BUCKET}/new", *flags, "--sdk_container_image=image"
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].endswith("install it: pip install 'maskmill[gcp]'.")
    assert not any(name.startswith("new/") for name in cloud.objects(environment, BUCKET))
