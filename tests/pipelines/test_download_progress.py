"""How far a download is."""

from pathlib import Path

import pytest

from maskmill.mirrors.dumps import Dump, DumpFile
from pipelines.terminal.download_progress import DownloadProgress


def dump_of(*sizes: int | None) -> Dump:
    """A dump with files of these sizes."""
    files = [DumpFile(name=f"part{n}.xml.bz2", url=f"http://mirror/part{n}", size=size) for n, size in enumerate(sizes)]
    return Dump(wiki="enwiki", date="2026-03-01", layout="classic", files=files)


@pytest.mark.parametrize(
    ("sizes", "there", "lines"),
    [
        ((600_000_000, 400_000_000), (), ["2 files, 1 GB", "download, MB 210/1,000"]),
        ((600_000_000, 400_000_000), ("part0.xml.bz2",), ["1 file, 400 MB", "download, MB 210/400"]),
        ((None, 400_000_000), (), ["2 files"]),
    ],
)
def test_a_download_is_a_step(
    sizes: tuple[int | None, ...],
    there: tuple[str, ...],
    lines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in there:
        (tmp_path / name).write_bytes(b"")
    with DownloadProgress(dump_of(*sizes), str(tmp_path)) as progress:
        for name, done in (
            ("part1.xml.bz2", 50_000_000),
            ("part2.xml.bz2", 90_000_000),
            ("part1.xml.bz2", 120_000_000),
        ):
            progress.show(name, done, None)
    heading, *rest = capsys.readouterr().err.splitlines()
    assert heading == f"download: enwiki-2026-03-01, {lines[0]}, into {tmp_path}"
    assert [line.split(", ", 2)[:2] for line in rest] == [line.split(", ") for line in lines[1:]]
