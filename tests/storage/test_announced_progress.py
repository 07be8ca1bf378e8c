"""Progress: the pieces that a step announces, and those that are finished."""

import os
from pathlib import Path

from maskmill.storage import completions, progress


def test_a_step_announces_its_work(tmp_path: Path) -> None:
    output = str(tmp_path)
    assert progress.announced(output, "extract") is None
    progress.announce(output, "extract", pieces=7, size=1 << 40)
    progress.announce(output, "templates", pieces=0, size=0)
    assert progress.announced(output, "extract") == progress.Announced(pieces=7, bytes=1 << 40)
    assert progress.announced(output, "templates") == progress.Announced(pieces=0, bytes=0)
    progress.announce(output, "extract", pieces=8, size=5)
    assert progress.announced(output, "extract") == progress.Announced(pieces=8, bytes=5)


def test_records_count_from_the_time_at_which_the_run_began(tmp_path: Path) -> None:
    output = str(tmp_path)
    assert progress.finished_since(output, "text", 0) == progress.Finished(made=0, found=0)
    for name, finished in (("a", 5000), ("b", 6000), ("c", 7000)):
        completions.store(output, "text", name, {})
        os.utime(tmp_path / ".maskmill" / "text" / f"{name}.json", (finished + 0.5, finished + 0.5))
    # Tables and the files that are being written are no records.
    (tmp_path / ".maskmill" / "text" / "a.npy").write_bytes(b"")
    (tmp_path / ".maskmill" / "text" / "d.json.0.maskmill-tmp").write_bytes(b"")
    completions.store(output, "extract", "a", {})
    assert [progress.finished_since(output, "text", began).made for began in (0, 6000, 6002, 8002)] == [3, 2, 1, 0]
    completions.renew(output, "text", "a")
    assert progress.finished_since(output, "text", 8002) == progress.Finished(made=0, found=1)


def test_a_damaged_announcement_is_none(tmp_path: Path) -> None:
    progress.announce(str(tmp_path), "extract", pieces=7, size=1)
    (path,) = (tmp_path / ".maskmill" / "plan").iterdir()
    path.write_bytes(path.read_bytes().replace(b"7", b"8"))
    assert progress.announced(str(tmp_path), "extract") is None


def test_an_announcement_bears_its_time(tmp_path: Path) -> None:
    progress.announce(str(tmp_path), "text", pieces=1, size=1)
    os.utime(tmp_path / ".maskmill" / "plan" / "text.json", (5000, 5000))
    announced = progress.announced(str(tmp_path), "text")
    assert announced is not None
    assert announced.time == 5000


def test_the_parts_of_a_step_are_added_up(tmp_path: Path) -> None:
    output = str(tmp_path)
    progress.announce(output, "extract", pieces=7, size=100, part="wiki")
    progress.announce(output, "extract", pieces=2, size=30, part="books-2")
    progress.announce(output, "text", pieces=9, size=9)
    os.utime(tmp_path / ".maskmill" / "plan" / "extract-wiki.json", (5000, 5000))
    announced = progress.announced(output, "extract")
    assert announced is not None
    assert (announced.pieces, announced.bytes, announced.time) == (9, 130, 5000)
