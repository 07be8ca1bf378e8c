"""Files appear whole or not at all."""

import gzip
import hashlib
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from servers import cloud

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.storage import files


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "file")
    with files.new_file(path) as file:
        file.write(b"one")
        assert not os.path.exists(path)
        file.write(b"two")
    assert files.read_bytes(path) == b"onetwo"
    assert (file.size, file.sha256) == (6, hashlib.sha256(b"onetwo").hexdigest())
    assert os.listdir(tmp_path / "new") == ["file"]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    for before in ([], ["file"]):
        with pytest.raises(ZeroDivisionError), files.new_file(path) as file:
            file.write(b"half")
            raise ZeroDivisionError
        assert os.listdir(tmp_path) == before
        files.write_bytes(path, b"old")
    assert files.read_bytes(path) == b"old"


def test_a_file_gets_its_name_when_the_disk_has_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a power cut leaves an empty file under the name of a complete one."""
    done: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        done.append(("on disk", os.fstat(descriptor).st_size))
        fsync(descriptor)

    def noted_replace(source: str, target: str) -> None:
        done.append(("named", os.path.getsize(source)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    files.write_bytes(str(tmp_path / "file"), b"content")
    assert done == [("on disk", 7), ("named", 7)]


def test_packed_files_have_the_same_bytes_each_time(tmp_path: Path) -> None:
    written = []
    for name in ("a.gz", "b.gz"):
        with files.new_file(str(tmp_path / name), packed=True) as file:
            file.write(b"text " * 1000)
        written.append((tmp_path / name).read_bytes())
        assert file.sha256 == hashlib.sha256(written[-1]).hexdigest()
    assert written[0] == written[1]
    assert gzip.decompress(written[0]) == b"text " * 1000


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with (
            pytest.raises(RunFailedError, match="this file cannot be written"),
            files.new_file(str(tmp_path / "file")) as file,
        ):
            file.write(b"x" * 10000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a file that cannot be read")
def test_a_disk_that_fails_is_one_sentence() -> None:
    path = "/proc/self/mem"  # nothing is mapped at its beginning
    sentence = rf"{path}: this input cannot be read on \(Input/output error\); run the same command again\."
    for read in (files.read_bytes, files.sha256_of, lambda path: files.read_range(path, 0, 9)):
        with pytest.raises(RunFailedError, match=sentence):
            read(path)


def test_an_input_is_read_like_any_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)) * 100)
    with files.open_input(str(tmp_path / "x")) as file:
        assert file.read(3) == bytes([0, 1, 2])
        assert file.seek(-3, os.SEEK_END) == file.tell() == 25597
        assert file.read() == bytes([253, 254, 255])
        assert file.seek(10) == 10
        assert len(file.read()) == 25590
    assert file.closed


def test_a_sweep_takes_only_what_nobody_writes(tmp_path: Path) -> None:
    killed = (
        "import os, sys; from maskmill.storage import files\n"
        "context = files.new_file(sys.argv[1]); file = context.__enter__(); file.write(b'half'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path / "dead")], check=False).returncode == 9
    assert len(os.listdir(tmp_path)) == 1
    with files.new_file(str(tmp_path / "alive")) as file:
        file.write(b"half")
        files.delete_abandoned(str(tmp_path))
        assert [n.split(".")[0] for n in os.listdir(tmp_path)] == ["alive"]
    assert os.listdir(tmp_path) == ["alive"]


def test_the_disk_is_given_a_large_file_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(files, "_SENT_AT_ONCE", 1000)
    monkeypatch.setattr(os, "posix_fadvise", lambda file, start, size, advice: sent.append((start, size)))
    blocks = [bytes([number]) * 300 * number for number in range(6)]
    with files.new_file(str(tmp_path / "file")) as file:
        for block in blocks:
            file.write(block)
    assert sent == [(0, 1800), (1800, 1200), (3000, 1500)]
    assert (tmp_path / "file").read_bytes() == b"".join(blocks)


def test_a_fork_can_write_though_another_thread_began_a_file_at_that_moment(tmp_path: Path) -> None:
    holds = threading.Event()

    def hold() -> None:
        with files._beginning_a_file:
            holds.set()
            time.sleep(0.2)

    threading.Thread(target=hold).start()
    holds.wait()
    fork = multiprocessing.get_context("fork").Process(target=files.write_bytes, args=(f"{tmp_path}/file", b"x"))
    fork.start()
    fork.join(30)
    fork.kill()
    assert fork.exitcode == 0


def test_patterns_keep_their_order_and_name_a_file_once(tmp_path: Path) -> None:
    for name in ("b1", "b0", "a0"):
        (tmp_path / name).write_bytes(name.encode())
    found = files.match(f"{tmp_path}/b*,{tmp_path}/a0,{tmp_path}/b0")
    assert [(os.path.basename(f.path), f.size) for f in found] == [("b0", 2), ("b1", 2), ("a0", 2)]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("[ab]/*", ["[ab]/x"]),
        ("[ab]/x", ["[ab]/x"]),
        ("[ab]/y", []),
        ("[b]/*", ["b/[x]", "b/x", "b/y"]),
        ("[!a]*/x", ["[ab]/x", "b/x", "q?/x", "qq/x"]),
        ("**/[x]", ["[ab]/x", "b/x", "q?/x", "qq/x"]),  # after a pattern all is one
        ("b/[x]", ["b/[x]"]),
        ("b/[y]", ["b/y"]),
        ("q?/*", ["q?/x"]),
        ("?[?q]/x", ["q?/x", "qq/x"]),
    ],
)
def test_what_has_a_pattern_for_its_name_comes_before_what_it_matches(
    pattern: str, names: list[str], tmp_path: Path
) -> None:
    for name in ("[ab]/x", "b/x", "b/y", "b/[x]", "q?/x", "qq/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = files.match([f"{tmp_path}/{pattern}"], may_be_missing=True)
    assert [os.path.relpath(file.path, tmp_path) for file in found] == names
    assert LocalRanges().glob(f"{tmp_path}/{pattern}") == [file.path for file in found]


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (files.match, "no-such-file", "does not exist"),
        (files.match, "no-such-*", "matches no file"),
        (files.match, "", r"is a directory; name its files, as in .*/\*"),
        (lambda path: files.match(""), "", "No input was named"),
        (files.open_input, "none", "does not exist"),
        (
            lambda path: files.make_directory(f"{path}/below"),
            "file",
            r"cannot be made \(.*file is a file\); name",
        ),
    ],
)
def test_what_is_not_there_is_one_sentence(find: Any, name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableInputError, match=message):
        find(f"{tmp_path}/{name}".rstrip("/"))


@pytest.mark.parametrize(
    ("directory", "name", "joined"),
    [
        ("a/b", "c", "a/b/c"),
        ("a/", "c", "a/c"),
        ("/", "c", "/c"),
        ("gs://b", "c", "gs://b/c"),
        ("gs://b/d/", "c", "gs://b/d/c"),
    ],
)
def test_paths_are_joined_and_taken_apart(directory: str, name: str, joined: str) -> None:
    assert files.join(directory, name) == joined
    assert files.base_name(joined) == name
    assert files.parent(joined) == (directory.rstrip("/") or "/")
    assert files.is_local(joined) == (not joined.startswith("gs:"))


def test_nothing_is_above_a_root_a_bucket_a_server_or_a_bare_name() -> None:
    for top in ("/", "gs://bucket", "http://server:80"):
        assert files.parent(files.parent(files.join(top, "name"))) == top
    assert files.parent("name") == "."
    assert files.base_name("dir/name/") == "name"


def test_ranges_end_at_the_end_of_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    files.write_bytes(path, b"0123456789")
    assert [files.read_range(path, *pair) for pair in ((0, 3), (8, 20), (10, 12))] == [b"012", b"89", b""]
    assert files.size(path) == 10
    assert files.stored_checksum(path) is None


def test_a_directory_lists_its_files_alone_and_sorted(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md", "below/d.txt"):
        files.write_bytes(str(tmp_path / name), b"")
    assert [files.base_name(p) for p in files.list_directory(str(tmp_path))] == ["a.txt", "b.txt", "c.md"]
    assert [files.base_name(p) for p in files.list_directory(str(tmp_path), "*.txt")] == ["a.txt", "b.txt"]
    assert files.list_directory(str(tmp_path / "none")) == []


def test_deleting_takes_what_is_there(tmp_path: Path) -> None:
    files.write_bytes(str(tmp_path / "a"), b"")
    files.write_bytes(str(tmp_path / "b"), b"")
    files.delete([])
    files.delete([str(tmp_path / "none"), str(tmp_path / "a")])
    assert os.listdir(tmp_path) == ["b"]


def test_a_file_written_without_checksum_has_none(tmp_path: Path) -> None:
    with files.new_file(str(tmp_path / "file"), checksum=False) as file:
        file.write(memoryview(b"abc"))
    assert file.size == 3
    with pytest.raises(ValueError, match="written without a checksum"):
        _ = file.sha256


@pytest.mark.parametrize("output", ["gs://bucket/a/b", "gs://bucket//a/./b", "gs://bucket/a/c/../b"])
def test_an_object_that_is_an_input_is_no_output_by_any_of_its_names(output: str) -> None:
    with pytest.raises(UnusableInputError, match="this output is also the input gs://bucket/a/b"):
        files.check_outputs(["gs://bucket/a/b"], ["gs://bucket/other", output])


@pytest.mark.parametrize(
    ("status", "headers", "content"),
    [(206, {"Content-Range": "bytes 2-5/10"}, b"23"), (200, {}, b"0123456789")],
)
def test_an_answer_that_is_not_the_range_that_was_asked_for_is_asked_for_again(
    status: int, headers: Mapping[str, str], content: bytes
) -> None:
    asked = []

    def answer(request: Any, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        if "maxResults" in request.path:
            return cloud.json_answer({})
        if "alt=media" not in request.path:
            return cloud.json_answer({"size": "10", "updated": "2026-01-01T00:00:00Z", "generation": "1"})
        asked.append(request.headers["Range"])
        return (status, headers, content) if len(asked) == 1 else (206, {"Content-Range": "bytes 2-5/10"}, b"2345")

    with cloud.server(answer) as url, cloud.set_environment({"STORAGE_EMULATOR_HOST": url}):
        assert files.read_range("gs://bucket/object", 2, 6) == b"2345"
    assert asked == ["bytes=2-5"] * 2
