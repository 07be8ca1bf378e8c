"""How far a download is, on a terminal and elsewhere."""

import io
from pathlib import Path

import pytest

from maskmill.mirrors.dumps import Dump, DumpFile
from pipelines.terminal import console
from pipelines.terminal.download_progress import DownloadProgress


def dump_of(*sizes: int | None) -> Dump:
    """A dump with files of these sizes."""
    files = [DumpFile(name=f"part{n}.xml.bz2", url=f"http://mirror/part{n}", size=size) for n, size in enumerate(sizes)]
    return Dump(wiki="enwiki", date="2026-03-01", layout="classic", files=files)


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_each_tenth_is_a_line_where_nobody_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with DownloadProgress(dump_of(600, 400), str(tmp_path)) as progress:
        for name, done in (
            ("part0.xml.bz2", 50),
            ("part0.xml.bz2", 120),
            ("part1.xml.bz2", 90),
            ("part1.xml.bz2", 400),
        ):
            progress.show(name, done, None)
        progress.show("part0.xml.bz2", 600, 600)
    assert capsys.readouterr().err.splitlines() == [
        f"download: enwiki-2026-03-01, 2 files, 0.00 GB, into {tmp_path}",
        "download: 12%",
        "download: 21%",
        "download: 52%",
    ]


def test_files_that_are_there_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "part0.xml.bz2").write_bytes(b"")
    with DownloadProgress(dump_of(600, 400), str(tmp_path)) as progress:
        progress.show("part1.xml.bz2", 200, 400)
    assert capsys.readouterr().err.splitlines() == [
        f"download: enwiki-2026-03-01, 1 file, 0.00 GB, into {tmp_path}",
        "download: 50%",
    ]


def test_without_sizes_nothing_is_said_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with DownloadProgress(dump_of(None, 400), str(tmp_path)) as progress:
        progress.show("part1.xml.bz2", 200, None)
    assert capsys.readouterr().err == f"download: enwiki-2026-03-01, 2 files, into {tmp_path}\n"


def test_a_terminal_has_one_line_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, now = Terminal(), [0.0]
    monkeypatch.setattr("sys.stderr", console.Stream(terminal))
    with DownloadProgress(dump_of(1000), str(tmp_path), clock=lambda: now[0]) as progress:
        for done in (100, 200, 300):
            progress.show("part0.xml.bz2", done, 1000)
            now[0] += 0.3
    # The first is too early, and the second too soon after it.
    assert [share for share in ("10%", "20%", "30%") if share in terminal.getvalue()] == ["30%"]
