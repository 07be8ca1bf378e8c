"""Paths as users write them: what they mean, and the sentence for each that names no file that can be read."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from maskmill.errors import UnusableInputError
from maskmill.storage import files, paths

NOBODY = 65534


def matched(*patterns: str) -> list[str]:
    return [file.path for file in files.match(patterns)]


def socket_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "https://dumps.wikimedia.org/x.xml.bz2",
            "web addresses are neither read nor written; download the file first",
        ),
        ("FTP://host/x", "web addresses"),
        ("file:///tmp/x", "without file://"),
        ("s4://bucket/x", "s4:// is unknown; give a local path, or one of gs://"),
        ("gs:///x", "names no bucket; write gs://BUCKET/NAME"),
        ("gs://", "names no bucket"),
        ("gs://My-Bucket/x", "the bucket in lower case"),
        ("hdfs://host/x", r"hdfs:// needs Beam's extra \[hadoop\]; install it: pip install 'apache-beam\[hadoop\]'"),
    ],
)
def test_a_scheme_that_cannot_be_used_is_one_sentence(path: str, message: str) -> None:
    for attempt in (files.match, files.exists, lambda path: files.write_bytes(path, b"")):
        with pytest.raises(UnusableInputError, match=message):
            attempt(path)


def test_a_slash_that_is_missing_is_named_before_a_folder_of_that_name_is_made() -> None:
    with pytest.raises(UnusableInputError, match="a slash is missing; write gs://bucket/x"):
        paths.as_written("gs:/bucket/x")


def test_the_home_directory_stands_for_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert paths.as_written("~/x") == "/home/me/x"
    assert paths.as_written(("~", "a~", "gs://b/~")) == ("/home/me", "a~", "gs://b/~")
    assert paths.as_written(None) is None


def test_a_user_without_a_home_directory_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~nobody", "/nonexistent"))
    with pytest.raises(UnusableInputError, match=r"^~nobody/x: the home directory that ~nobody means \(/nonexistent\)"):
        paths.as_written("~nobody/x")


@pytest.mark.parametrize("name", [os.fsdecode(b"a\xff.txt"), "a\0.txt"])
def test_a_name_that_no_manifest_can_hold_is_refused(name: str) -> None:
    with pytest.raises(UnusableInputError, match=r"^'?a\\x..\.txt'?: this name"):
        paths.as_written(name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is a pipe, and an input is read more than once; write it to a file first"),
        (socket_at, "is a socket"),
        (lambda path: path.symlink_to("/dev/null"), "is a device"),
        (lambda path: path.symlink_to("nowhere"), "is a link to nowhere, which does not exist; fix or delete it"),
        (lambda path: path.symlink_to("x.txt"), "cannot be read"),
    ],
    ids=["pipe", "socket", "device", "dangling", "loop"],
)
def test_what_is_no_file_is_named_also_where_a_glob_matches_it(
    make: Callable[[Path], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.txt").touch()
    make(tmp_path / "x.txt")
    for pattern in ("x.txt", "*.txt"):
        with pytest.raises(UnusableInputError, match=rf"^x\.txt: this .*{message}"):
            files.match(pattern)


def test_a_glob_passes_over_directories(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert matched(f"{tmp_path}/*") == [f"{tmp_path}/file"]


def test_directories_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="is an empty directory"):
        files.match(str(tmp_path))
    (tmp_path / "below").mkdir()
    with pytest.raises(UnusableInputError, match=r"is a directory of directories; .* as in .*/\*/\*"):
        files.match(str(tmp_path))


def test_a_file_that_may_not_be_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Paths from the current directory: another user may not be let through those above it.
    monkeypatch.chdir(tmp_path)
    os.chmod(tmp_path, 0o755)
    Path("secret").touch()
    Path("closed").mkdir()
    for path in (Path("secret"), Path("closed")):
        path.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:  # who may read everything
        os.seteuid(NOBODY)
    try:
        for name, message in (
            ("secret", r"this input cannot be read \(Permission denied\)"),
            ("closed", r"is a directory that cannot be read \(Permission denied\)"),
            ("closed/x", r"this input cannot be read \(Permission denied\)"),
        ):
            with pytest.raises(UnusableInputError, match=message):
                files.match(name)
    finally:
        if is_root:
            os.seteuid(0)
        Path("closed").chmod(0o700)


def test_a_name_with_commas_is_one_file_unless_its_first_piece_is(tmp_path: Path) -> None:
    for name in ("a,b.txt", "c, d.txt", "z.txt"):
        (tmp_path / name).touch()
    assert matched(*f"{tmp_path}/z.txt,{tmp_path}/a,b.txt".split(",")) == [f"{tmp_path}/z.txt", f"{tmp_path}/a,b.txt"]
    assert matched(*f"{tmp_path}/a,b.txt,{tmp_path}/z.txt".split(",")) == [f"{tmp_path}/a,b.txt", f"{tmp_path}/z.txt"]
    assert matched(f"{tmp_path}/c", "d.txt") == [f"{tmp_path}/c, d.txt"]
    (tmp_path / "a").touch()
    with pytest.raises(UnusableInputError, match=r"^b\.txt: this input does not exist"):
        files.match(f"{tmp_path}/a,b.txt")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("-", "^-: standard input is not read"),
        ("/no/such/file", "does not exist, nor does the directory /no/such"),
        ("part{1,2}.xml", r"^part\{1: .* expands braces only outside quotes"),
    ],
)
def test_a_path_that_is_missing_says_why_where_it_can(pattern: str, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        files.match(pattern)


MAY_MATCH = [
    ("corpus/**", "corpus/out/a.txt", True),
    ("corpus/**/*.txt", "corpus/a.txt", True),
    ("corpus/**/*.txt", "corpus/b/c/a.txt", True),
    ("corpus/**/*.txt", "corpus/b/c/a.json", False),
    ("corpus/*.txt", "corpus/out/a.txt", False),
    ("corpus/*/*.txt", "corpus/out/a.txt", True),
    ("corpus/../corpus/*/a.*", "./corpus/out//a.txt", True),
    ("**/a.txt", "out/a.txt", True),
    ("corpus/[ab]/*", "corpus/a/x", True),
    ("corpus/**", "corpus/.out/a.txt", False),
    ("corpus/**", "corpora/a.txt", False),
    ("link/**", "corpus/out/a.txt", True),
    ("corpus/**", "link/out/a.txt", True),
    ("odd[1]/**", "odd[1]/out/a.txt", True),
    ("corpus/**", "gs://bucket/corpus/a.txt", False),
    ("gs://bucket/**", "bucket/a.txt", False),
    ("gs://bucket/a/**", "gs://bucket/a/b/c", True),
    ("gs://bucket/a/*", "gs://bucket/a/b/c", False),
    ("gs://bucket/a/b", "gs://bucket/a/b", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MAY_MATCH)
def test_a_pattern_is_known_to_match_what_is_not_there_yet(
    pattern: str, path: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("corpus", "odd[1]"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to("corpus")
    assert files.may_match(pattern, path) is expected
    if files.is_local(path):
        made = Path(path)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(b"")
        if "[1]" not in pattern:
            names = {os.path.realpath(name) for name in matched(pattern)} if expected else set()
            assert (os.path.realpath(path) in names) is expected
