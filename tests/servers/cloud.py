"""Google Cloud Storage on this machine: an emulator in a process of its own, and credentials that need no network."""

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from servers.serving import QuietServer, served

PROJECT = "maskmill-test"

# With preconditions, which the emulator alone ignores.
EMULATOR = Path(__file__).with_name("storage_emulator.py")

Handler = Callable[[http.server.BaseHTTPRequestHandler, bytes], tuple[int, Mapping[str, str], bytes]]


@contextlib.contextmanager
def server(handle: Handler) -> Iterator[str]:
    """Runs an HTTP server on loopback and gives its URL. `handle` answers a request with (status, headers, body)."""

    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait for the client's word that it has the headers

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, content = handle(self, body)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

        def log_message(self, *_: object) -> None:
            pass

    httpd = QuietServer(("127.0.0.1", 0), Answer)
    with served(httpd):
        yield f"http://127.0.0.1:{httpd.server_address[1]}"


def json_answer(value: object, status: int = 200) -> tuple[int, Mapping[str, str], bytes]:
    """A handler's answer that contains a JSON value."""
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def forward(request: http.server.BaseHTTPRequestHandler, body: bytes, url: str) -> tuple[int, Mapping[str, str], bytes]:
    """Passes a request on to the server at `url` and returns that server's answer."""
    forwarded = urllib.request.Request(
        url + request.path, data=body or None, headers=dict(request.headers), method=request.command
    )
    try:
        answer = urllib.request.urlopen(forwarded)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        headers = {n: v for n, v in answer.headers.items() if n.lower() not in ("connection", "transfer-encoding")}
        return answer.status, headers, answer.read()


@contextlib.contextmanager
def credentials(directory: Path) -> Iterator[dict[str, str]]:
    """Makes up a service account whose token comes from a local server. Gives the environment that names the account.

    Without an account, Google's libraries look for a metadata server for 14 to 25 s, in every process.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    token = {"access_token": "made-up", "token_type": "Bearer", "expires_in": 3600}
    with server(lambda request, body: json_answer(token)) as url:
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "1",
            "private_key": key.decode(),
            "client_email": f"test@{PROJECT}.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{url}/token",
        }
        path = directory / "credentials.json"
        path.write_text(json.dumps(account))
        yield {"GOOGLE_APPLICATION_CREDENTIALS": str(path), "GOOGLE_CLOUD_PROJECT": PROJECT}


@contextlib.contextmanager
def storage(directory: Path, *buckets: str) -> Iterator[dict[str, str]]:
    """Runs a Cloud Storage emulator with these empty buckets. Gives the environment in which Beam finds it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, str(EMULATOR), "start", "--host=127.0.0.1", f"--port={port}"]
    log = directory / "emulator.log"
    with open(log, "wb") as output, credentials(directory) as environment:
        process = subprocess.Popen([*command, "--in-memory"], stdout=output, stderr=output)
        try:
            _wait_until_it_answers(url, process, log)
            for bucket in buckets:
                body = json.dumps({"name": bucket}).encode()
                request = urllib.request.Request(
                    f"{url}/storage/v1/b?project={PROJECT}", body, {"Content-Type": "application/json"}
                )
                urllib.request.urlopen(request).close()
            yield environment | {"STORAGE_EMULATOR_HOST": url}
        finally:
            process.terminate()
            process.wait()


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(url).close()
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"the storage emulator did not come up: {log.read_text()}")


def objects(environment: Mapping[str, str], bucket: str) -> dict[str, dict[str, str]]:
    """The metadata of the objects in a bucket, by name."""
    with urllib.request.urlopen(f"{environment['STORAGE_EMULATOR_HOST']}/storage/v1/b/{bucket}/o") as answer:
        return {item["name"]: item for item in json.load(answer).get("items", [])}


def content(environment: Mapping[str, str], bucket: str, name: str) -> bytes:
    """The bytes of an object."""
    with urllib.request.urlopen(f"{environment['STORAGE_EMULATOR_HOST']}/{bucket}/{name}") as answer:
        data: bytes = answer.read()
        return data


def upload(environment: Mapping[str, str], bucket: str, name: str, data: bytes) -> None:
    """Puts an object into a bucket."""
    url = f"{environment['STORAGE_EMULATOR_HOST']}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
    headers = {"Content-Type": "application/octet-stream"}
    urllib.request.urlopen(urllib.request.Request(url, data, headers, method="POST")).close()


@contextlib.contextmanager
def set_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables of this process and restores them at the end."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
