"""Amazon S3 on this machine: moto's server in a thread, which notes each request."""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@dataclasses.dataclass(frozen=True)
class Service:
    """A server of S3.

    environment: in which botocore finds it. requests: the method and the path of each that was made.
    """

    environment: dict[str, str]
    requests: list[tuple[str, str]]


@contextlib.contextmanager
def service(directory: Path, *buckets: str) -> Iterator[Service]:
    """Runs a server with these empty buckets. It answers one request after the other, as a condition needs."""
    pytest.importorskip("moto", reason="moto is missing")
    import boto3
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application, requests = DomainDispatcherApplication(create_backend_app), list[tuple[str, str]]()

    def note(environment: dict[str, Any], begin: Any) -> Any:
        requests.append((environment["REQUEST_METHOD"], environment["PATH_INFO"]))
        return application(environment, begin)

    server = make_server("127.0.0.1", 0, note, threaded=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    account = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_REGION": "us-east-1"}
    nothing = {name: str(directory / "none") for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")}
    try:
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="made-up",
                              aws_secret_access_key="made-up")  # fmt: skip
        for bucket in buckets:
            client.create_bucket(Bucket=bucket)
        yield Service(environment=account | nothing | {"AWS_ENDPOINT_URL": url}, requests=requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
