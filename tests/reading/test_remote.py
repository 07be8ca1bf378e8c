"""Ranges of files on web servers: the right bytes whatever the server does, or one sentence."""

import datetime
import ipaddress
import multiprocessing
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries
from servers import file_server
from servers.file_server import Fault, FileServer

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.disk_cache import DiskCache
from maskmill.reading.remote import RemoteRanges, open_ranges
from maskmill.storage import web_store
from maskmill.storage.web_store import WebStore

CONTENT = bytes(range(256)) * 40


@pytest.fixture(name="server")
def fixture_server() -> Iterator[FileServer]:
    """Runs a server that has a file."""
    with file_server.serve() as server:
        server.files["a b/file"] = server.files["file"] = CONTENT
        yield server


def web(cache: Path | None = None) -> RemoteRanges:
    """Reads from web servers."""
    return RemoteRanges(DiskCache(str(cache), 1 << 20) if cache else None, WebStore())


@pytest.fixture(name="impatient")
def fixture_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes waits short."""
    monkeypatch.setattr(web_store, "_SILENCE", 0.2)
    for name in ("_RETRIES", "_FIRST_RETRIES"):
        monkeypatch.setattr(web_store, name, getattr(web_store, name).new(total=2))


@tries(60, **SEEDED)
@given(bounds=st.lists(st.tuples(st.integers(0, 10_240), st.integers(0, 10_240)), max_size=5))
def test_reads_what_a_slice_has(server: FileServer, bounds: list[tuple[int, int]]) -> None:
    ranges = web()
    before = server.connections
    for start, end in map(sorted, bounds):
        data = ranges.read(f"{server.url}/file", start, end)
        assert data.tobytes() == CONTENT[start:end]
        assert data.flags.writeable
    assert server.connections - before <= 1
    ranges.close()


def test_small_files_are_read_whole(server: FileServer) -> None:
    server.files["empty"] = b""
    ranges = web()
    contents = {f"{server.url}/{name}": content for name, content in server.files.items()}
    assert {path: ranges.read_all(path) for path in contents} == contents
    assert ranges.sizes(list(contents)) == [len(content) for content in contents.values()]


FAULTS: dict[str, Fault] = {
    "cut": file_server.cut,
    "hang_up": file_server.hang_up,
    "wrong_part": file_server.wrong_part,
    "short_part": file_server.short_part,
    "nonsense": file_server.nonsense,
    "stall": file_server.stall(0.4),
    **{str(code): file_server.status(code) for code in (408, 425, 429, 500, 502, 503, 504)},
    "retry_after": file_server.status(429, Retry_After="0"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", FAULTS)
def test_what_may_pass_is_tried_again(server: FileServer, fault: str) -> None:
    ranges = web()
    ranges.size(f"{server.url}/file")
    server.faults.extend([FAULTS[fault], file_server.no_fault, FAULTS[fault]])
    for _ in range(2):
        assert ranges.read(f"{server.url}/file", 100, 1100).tobytes() == CONTENT[100:1100]
    assert len(server.parts("file")) == 4


def test_a_server_may_say_when_to_ask_again(server: FileServer) -> None:
    path, ranges = f"{server.url}/file", web()
    ranges.size(path)
    server.faults.append(file_server.status(429, Retry_After="1"))
    start = time.monotonic()
    assert ranges.read(path, 0, 5).tobytes() == CONTENT[:5]
    assert time.monotonic() - start >= 1


def test_what_has_arrived_is_not_fetched_again(server: FileServer) -> None:
    ranges = web()
    server.faults.extend([file_server.cut, file_server.short_part])
    assert ranges.read(f"{server.url}/file", 0, 1000).tobytes() == CONTENT[:1000]
    assert server.parts("file") == ["0-999", "500-999", "750-999"]
    assert ranges.stats() == {"bytes_read": 1000, "bytes_fetched": 1000}


CAUSES = {
    "hang_up": "Remote end closed connection without response",
    "wrong_part": "it sends other bytes than were asked for",
    "nonsense": "220 mail.example.org ESMTP",
    "stall": "no answer in time",
    "503": "503 Service Unavailable",
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", CAUSES)
def test_a_server_that_fails_for_too_long_is_named(server: FileServer, fault: str) -> None:
    path, ranges = f"{server.url}/file", web()
    ranges.size(path)
    server.always = FAULTS[fault]
    if fault == "stall":  # before the first byte
        server.always = lambda handler, content, headers: FAULTS[fault](handler, b"", headers)
    with pytest.raises(RunFailedError) as raised:
        ranges.read(path, 0, 1000)
    assert str(raised.value) == (
        f"{path}: 127.0.0.1 does not deliver this file ({CAUSES[fault]}); check the network, and once the server "
        "answers, run the same command again."
    )


@pytest.mark.usefixtures("impatient")
def test_no_server() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        path = f"http://127.0.0.1:{probe.getsockname()[1]}/file"
    with pytest.raises(
        RunFailedError, match=r"file: 127.0.0.1 does not deliver this file \(Connection refused\); check"
    ):
        web().size(path)


@pytest.mark.usefixtures("impatient")
def test_of_two_servers_the_one_that_fails_is_named(server: FileServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))
        port = probe.getsockname()[1]
    ranges = web()
    ranges.size(f"{server.url}/file")
    server.always = file_server.status(302, Location=f"http://127.0.0.2:{port}/file")
    with pytest.raises(RunFailedError, match=r"127\.0\.0\.2 does not deliver this file \(Connection refused\)"):
        ranges.read(f"{server.url}/file", 0, 5)


def test_a_slow_server_is_asked_for_much_at_a_time(server: FileServer) -> None:
    server.delay, count = 0.05, 100
    server.files = {str(n): bytes(n) for n in range(count)}
    ranges = web()
    assert ranges.sizes([f"{server.url}/{n}" for n in range(count)]) == list(range(count))
    assert 8 <= server.most_at_once <= ranges.parallel_reads


def test_what_may_be_another_version_is_not_kept(server: FileServer, tmp_path: Path) -> None:
    server.has_etags = False
    for content in (CONTENT, CONTENT[::-1]):
        server.files["file"] = content
        assert web(tmp_path).read(f"{server.url}/file", 0, 9).tobytes() == content[:9]


def test_missing_file(server: FileServer) -> None:
    path = f"{server.url}/none"
    for ask in (web().size, web().read_all, lambda path: web().sizes([path])):
        with pytest.raises(MissingFileError) as raised:
            ask(path)
        assert str(raised.value) == f"{path}: there is no such file; check the address."


def test_a_file_that_is_too_short(server: FileServer) -> None:
    path = f"{server.url}/file"
    with pytest.raises(UnusableInputError) as raised:
        web().read(path, 10_000, 10_241)
    assert str(raised.value) == f"{path}: this file ends before byte 10,241 (it has 10,240); make or fetch it again."


@pytest.mark.parametrize("has_etags", [True, False])
def test_a_file_that_changes_while_it_is_read(server: FileServer, has_etags: bool) -> None:
    server.has_etags = has_etags
    path, ranges = f"{server.url}/file", web()
    ranges.read(path, 0, 10)
    server.files["file"] = b"longer" + CONTENT
    with pytest.raises(UnusableInputError) as raised:
        ranges.read(path, 10, 20)
    assert str(raised.value) == f"{path}: this file was changed while it was read; open the data set again."


@pytest.mark.parametrize("code", [401, 403])
def test_refused_access(server: FileServer, code: int) -> None:
    server.always = file_server.status(code)
    with pytest.raises(
        UnusableInputError, match=rf"/file: the server refuses access to this file \({code} \w+\); check"
    ):
        web().read(f"{server.url}/file", 0, 5)


def test_a_request_that_the_server_does_not_take(server: FileServer) -> None:
    server.always = file_server.status(400)
    with pytest.raises(UnusableInputError, match=r"/file: 127.0.0.1 refuses to deliver this file \(400 Bad Request\);"):
        web().read(f"{server.url}/file", 0, 5)


def test_a_server_without_ranges(server: FileServer) -> None:
    server.knows_ranges = False
    path = f"{server.url}/file"
    assert web().read_all(path) == CONTENT
    with pytest.raises(UnusableInputError) as raised:
        web().read(path, 5, 10)
    assert str(raised.value) == (
        f"{path}: the server sends whole files where parts are asked for; use one that knows Range requests (nginx, "
        "Caddy, any object store), or copy the data set here."
    )


def test_a_server_that_packs(server: FileServer) -> None:
    path, ranges = f"{server.url}/file", web()
    ranges.size(path)
    server.always = file_server.status(200, Content_Encoding="gzip")
    with pytest.raises(UnusableInputError, match=r"packs what it sends \(Content-Encoding: gzip\)"):
        ranges.read_all(path)


def test_redirects_are_followed(server: FileServer) -> None:
    with file_server.serve() as other:
        other.files["file"] = CONTENT
        other.always = file_server.status(302, Location=f"{server.url}/file")
        ranges = web()
        assert ranges.read(f"{other.url}/file", 3, 7).tobytes() == CONTENT[3:7]
        assert server.parts("file")[-1] == other.parts("file")[-1] == "3-6"
        other.always = file_server.status(302, Location="file")
        with pytest.raises(UnusableInputError, match=r"/file: this address leads nowhere \(too many redirects\)"):
            ranges.read(f"{other.url}/file", 7, 8)


def test_a_certificate_that_nobody_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = tmp_path / "certificate.pem"
    certificate.write_bytes(make_certificate())
    with file_server.serve(certificate) as server:
        server.files["file"] = CONTENT
        with pytest.raises(UnusableInputError) as raised:
            web().size(f"{server.url}/file")
        assert str(raised.value) == (
            f"{server.url}/file: the certificate of 127.0.0.1 is not trusted (self-signed certificate); check the "
            "address."
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert web().read(f"{server.url}/file", 5, 9).tobytes() == CONTENT[5:9]


def make_certificate() -> bytes:
    """A key and a certificate for 127.0.0.1 that it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "maskmill test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(encoding)


def test_a_proxy_is_used(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//user:p%40ss@"))
    monkeypatch.setenv("no_proxy", "")
    server.files["http://data.invalid/file"] = CONTENT
    assert web().read("http://data.invalid/file", 5, 9).tobytes() == CONTENT[5:9]
    assert server.requests[-1].headers["proxy-authorization"] == "Basic dXNlcjpwQHNz"


def test_a_forked_process_has_connections_of_its_own(server: FileServer) -> None:
    path, ranges = f"{server.url}/file", web()
    ranges.read(path, 0, 10)
    processes = multiprocessing.get_context("fork")
    children = [processes.Process(target=_read_often, args=(ranges, path)) for _ in range(2)]
    for child in children:
        child.start()
    _read_often(ranges, path)
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert server.connections == 3


def _read_often(ranges: RemoteRanges, path: str) -> None:
    for n in range(50):
        assert ranges.read(path, 7 * n, 7 * n + 7).tobytes() == CONTENT[7 * n : 7 * n + 7]


def test_what_was_fetched_is_kept(server: FileServer, tmp_path: Path) -> None:
    path = f"{server.url}/file"
    for hits in (0, 1):
        ranges = web(tmp_path)
        assert ranges.read(path, 5, 9).tobytes() == CONTENT[5:9]
        assert ranges.stats() == {
            "bytes_read": 4,
            "bytes_fetched": 4 * (1 - hits),
            "cache_hits": hits,
            "cache_misses": 1 - hits,
        }
    assert server.parts("file") == ["5-8"]
    server.files["file"] = CONTENT[::-1]
    assert web(tmp_path).read(path, 5, 9).tobytes() == CONTENT[::-1][5:9]


def test_what_is_forgotten_is_fetched_from_the_server_itself(server: FileServer, tmp_path: Path) -> None:
    path, ranges = f"{server.url}/file", web(tmp_path)
    server.faults.append(file_server.damage)
    assert ranges.read(path, 5, 9).tobytes() != CONTENT[5:9]
    assert ranges.forget(path)
    assert ranges.read(path, 5, 9).tobytes() == CONTENT[5:9]
    assert server.parts("file") == ["5-8"] * 2
    assert [request.headers.get("Cache-Control") for request in server.requests] == [None, None, *["no-cache"] * 2]


def test_paths_are_told_apart(tmp_path: Path) -> None:
    assert isinstance(open_ranges(str(tmp_path)), LocalRanges)
    assert isinstance(open_ranges("HTTPS://example.org/data"), RemoteRanges)
    for path, text in {
        "https:///data": "this address names no server; write https://SERVER/FOLDER.",
        "hdfs://data": (
            "data sets are read from local directories, gs://, s3://, http:// and https://; copy this one there."
        ),
        "gs://B/data": "this names no bucket; write gs://BUCKET/NAME, the bucket in lower case.",
        "file:///data": "write the path alone, without file://.",
    }.items():
        with pytest.raises(UnusableInputError) as raised:
            open_ranges(path)
        assert str(raised.value) == f"{path}: {text}"


def test_web_servers_list_nothing() -> None:
    assert web().glob("https://example.org/a?b") == ["https://example.org/a?b"]
    with pytest.raises(UnusableInputError, match="web servers do not list files"):
        web().glob("https://example.org/*")
