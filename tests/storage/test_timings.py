"""Timings: how long the steps of a stage took in the last run that made something."""

from pathlib import Path

from maskmill.storage import completions, timings
from maskmill.storage.timings import Timing

EXTRACT = Timing(label="extract", pieces=12, bytes=29_386_698, seconds=5.25)
TEXT = Timing(label="text shards", pieces=5, bytes=2_735_247, seconds=0.5)


def test_timings_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert timings.read(str(tmp_path)) == ()
    timings.write(str(tmp_path), [EXTRACT, TEXT])
    assert timings.read(str(tmp_path)) == (EXTRACT, TEXT)


def test_a_run_that_found_everything_keeps_what_is_known(tmp_path: Path) -> None:
    timings.write(str(tmp_path), [EXTRACT, TEXT])
    found = Timing(label="extract", pieces=0, bytes=0, seconds=0.1)
    again = Timing(label="text shards", pieces=6, bytes=2_735_247, seconds=0.6)
    timings.write(str(tmp_path), [found, again])
    assert timings.read(str(tmp_path)) == (EXTRACT, again)


def test_a_step_that_never_made_anything_has_no_timing(tmp_path: Path) -> None:
    timings.write(str(tmp_path), [Timing(label="templates", pieces=0, bytes=0, seconds=1), TEXT])
    assert timings.read(str(tmp_path)) == (TEXT,)


def test_a_damaged_record_counts_as_missing(tmp_path: Path) -> None:
    timings.write(str(tmp_path), [EXTRACT])
    path = Path(completions.work_path(str(tmp_path), "run", "timings.json"))
    path.write_bytes(path.read_bytes().replace(b"12", b"13", 1))
    assert timings.read(str(tmp_path)) == ()
