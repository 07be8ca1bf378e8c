"""A stand-in for Dataflow's service under its own name, so that Google's clients reach it as they are.

The clients trust a certificate made here and go through a proxy on this machine, which passes what is meant for
dataflow.googleapis.com on to two servers: REST launches templates and describes jobs, gRPC tells a job's state. It
refuses all other hosts.
"""

import contextlib
import dataclasses
import datetime
import http.server
import json
import re
import select
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.cloud.dataflow_v1beta3.types import GetJobRequest, Job, JobState, JobType
from servers.serving import served

HOST = "dataflow.googleapis.com"
_LAUNCH = re.compile(r"/v1b3/projects/([^/]+)/locations/([^/]+)/flexTemplates:launch")
_JOB = re.compile(r"/v1b3/projects/([^/]+)/locations/([^/]+)/jobs/([^/?]+)")
# What a client says in TLS's first message if it wants HTTP/2, as gRPC does.
_WANTS_HTTP2 = b"\x02h2"


@dataclasses.dataclass
class Service:
    """What the stand-in was asked for.

    Attributes:
      work: makes what a launched job makes, of the body of its launch; what it raises fails the job.
      launched: the bodies of the launches, in order.
      polls: how often a job's state was asked for by gRPC.
      failures: why jobs failed, in order.
    """

    work: Callable[[Mapping[str, Any]], None]
    launched: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    polls: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    _states: dict[str, JobState] = dataclasses.field(default_factory=dict)

    def launch(self, project: str, location: str, body: dict[str, Any]) -> dict[str, Any]:
        """Starts a job in a thread."""
        self.launched.append(body)
        job = f"2026-11-01_00_00_00-{len(self.launched)}"
        self._states[job] = JobState.JOB_STATE_PENDING
        threading.Thread(target=self._run, args=(job, body), daemon=True).start()
        return {"job": self.describe(project, location, job)}

    def _run(self, job: str, body: Mapping[str, Any]) -> None:
        self._states[job] = JobState.JOB_STATE_RUNNING
        try:
            self.work(body)
        except Exception as error:  # noqa: BLE001 a job fails for any reason, and the test sees which
            self.failures.append(str(error))
            self._states[job] = JobState.JOB_STATE_FAILED
            return
        self._states[job] = JobState.JOB_STATE_DONE

    def describe(self, project: str, location: str, job: str) -> dict[str, Any]:
        """A job in REST's words."""
        state = self._states[job].name
        return {
            "id": job,
            "projectId": project,
            "location": location,
            "name": "job",
            "type": "JOB_TYPE_BATCH",
            "currentState": state,
        }

    def get(self, request: GetJobRequest) -> Job:
        """A job in gRPC's words."""
        self.polls += 1
        return Job(
            id=request.job_id,
            project_id=request.project_id,
            location=request.location,
            type_=JobType.JOB_TYPE_BATCH,
            current_state=self._states[request.job_id],
        )


@contextlib.contextmanager
def running(directory: Path, service: Service) -> Iterator[dict[str, str]]:
    """Runs the stand-in. Gives the environment in which Google's clients find it."""
    key, certificate = _make_certificate(directory)
    with (
        _rest(service, key, certificate) as rest,
        _grpc(service, key, certificate) as remote_calls,
        _proxy(rest, remote_calls) as proxy,
    ):
        address = f"http://127.0.0.1:{proxy}"
        local = "127.0.0.1,localhost"
        yield {
            "HTTPS_PROXY": address,
            "https_proxy": address,
            "grpc_proxy": address,
            "NO_PROXY": local,
            "no_proxy": local,
            "no_grpc_proxy": local,
            "HTTPLIB2_CA_CERTS": str(certificate),
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate),
        }


def _make_certificate(directory: Path) -> tuple[Path, Path]:
    """Writes a private key, and a certificate of the service's name that vouches for itself."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_file, certificate_file = directory / "dataflow.key", directory / "dataflow.pem"
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return key_file, certificate_file


@contextlib.contextmanager
def _rest(service: Service, key: Path, certificate: Path) -> Iterator[int]:
    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = _LAUNCH.match(self.path)
            self._answer(service.launch(*found.groups(), json.loads(body)) if found else None)

        def do_GET(self) -> None:
            found = _JOB.match(self.path)
            self._answer(service.describe(*found.groups()) if found else None)

        def _answer(self, content: Any) -> None:
            text = json.dumps(content or {"error": {"message": f"nothing is at {self.path}"}}).encode()
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with served(server):
        yield server.server_address[1]


@contextlib.contextmanager
def _grpc(service: Service, key: Path, certificate: Path) -> Iterator[int]:
    get_job = grpc.unary_unary_rpc_method_handler(
        lambda request, context: service.get(request),
        request_deserializer=GetJobRequest.deserialize,
        response_serializer=Job.serialize,
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("google.dataflow.v1beta3.JobsV1Beta3", {"GetJob": get_job})]
    )
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


@contextlib.contextmanager
def _proxy(rest: int, remote_calls: int) -> Iterator[int]:
    """Runs a proxy that passes connections to the service's host on to one of its two servers, and refuses others."""

    class Connect(socketserver.StreamRequestHandler):
        rbufsize = 0  # what follows the request is TLS, which is not to be read ahead

        def handle(self) -> None:
            target = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            if target != f"{HOST}:443":
                self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                return
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            client: socket.socket = self.request
            hello = client.recv(65536)
            port = remote_calls if _WANTS_HTTP2 in hello else rest
            with socket.create_connection(("127.0.0.1", port)) as server:
                server.sendall(hello)
                _pass_on(client, server)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Connect)
    with served(server):
        yield server.server_address[1]


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    while True:
        ready, _, _ = select.select([one, other], [], [])
        for source in ready:
            data = source.recv(65536)
            if not data:
                return
            (other if source is one else one).sendall(data)
