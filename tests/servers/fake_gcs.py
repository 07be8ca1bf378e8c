"""fsouza's fake-gcs-server, a Cloud Storage that nobody here wrote (`make test-gcs` builds it)."""

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from servers import cloud

PROGRAM = Path(os.environ.get("MASKMILL_TOOLS", Path(__file__).parents[2] / ".tools")) / "fake-gcs-server"


@contextlib.contextmanager
def storage(directory: Path, bucket: str) -> Iterator[dict[str, str]]:
    """Runs the server with an empty bucket. Gives the environment in which it is found."""
    assert PROGRAM.exists(), f"{PROGRAM} is missing; run `make test-gcs`, which builds it"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [str(PROGRAM), "-scheme=http", "-host=127.0.0.1", f"-port={port}", "-backend=memory",
               f"-external-url={url}", f"-public-host=127.0.0.1:{port}", "-log-level=error"]  # fmt: skip
    with cloud.credentials(directory) as account, subprocess.Popen(command) as process:
        try:
            _make_bucket(url, bucket)
            yield account | {"STORAGE_EMULATOR_HOST": url}
        finally:
            process.terminate()


def _make_bucket(url: str, bucket: str) -> None:
    request = urllib.request.Request(
        f"{url}/storage/v1/b?project=test", json.dumps({"name": bucket}).encode(), {"Content-Type": "application/json"}
    )
    for _ in range(600):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(request).close()
            return
        time.sleep(0.1)
    raise RuntimeError("fake-gcs-server did not come up")
