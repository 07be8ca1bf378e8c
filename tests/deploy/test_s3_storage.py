"""s3:// paths on moto's server: what test_stores.py does not have."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs import commands, store_builds
from servers import cloud, s3

from maskmill.storage import files

pytestmark = pytest.mark.long

BUCKET = "maskmill-bucket"
ROOT = f"s3://{BUCKET}"
MOST_REQUESTS = 40  # of a finished build that is run again


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Service]:
    """Runs the server with one bucket. This process and those that it starts find it by the environment."""
    with s3.service(tmp_path_factory.mktemp("s3"), BUCKET) as running, cloud.set_environment(running.environment):
        yield running


def test_without_the_extra_the_path_is_refused() -> None:
    code = (
        "import sys; sys.modules['botocore'] = None\n"
        "from maskmill.storage import files\n"
        "try: files.exists('s3://bucket/x')\n"
        "except files.UnusableInputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=commands.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "s3://bucket/x: s3:// needs maskmill's extra [aws]; install it: pip install 'maskmill[aws]'.\n"
    )


@pytest.mark.builds
def test_a_finished_build_is_known_by_few_requests(service: s3.Service, tmp_path: Path) -> None:
    config = store_builds.write_demo_config(tmp_path, ROOT)
    store_builds.build_demo(config, ROOT)
    service.requests.clear()
    store_builds.build_demo(config, ROOT)
    assert {method for method, _ in service.requests} == {"GET", "HEAD"}
    assert len(service.requests) <= MOST_REQUESTS


def test_an_answer_that_does_not_fit_its_checksum_is_asked_for_again(
    service: s3.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import FlexibleChecksumError

    path = f"{ROOT}/checksum"
    files.write_bytes(path, b"one")
    client = files.store_of(path)._client()  # type: ignore[attr-defined]
    get, failures = client.get_object, [0, 1]

    def damaged(**given: Any) -> Any:
        if failures:
            failures.pop()
            raise FlexibleChecksumError(error_msg="Expected checksum a did not match calculated checksum: b")
        return get(**given)

    monkeypatch.setattr(client, "get_object", damaged)
    assert files.read_bytes(path) == b"one"
    assert not failures
