"""`maskmill verify` finds an error in a file of which nothing can be looked at, and looks at the others."""

import gzip
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from data_sets.gold_examples import GOLD

from maskmill.errors import RunFailedError
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.verification.findings import Verification
from maskmill.verification.verifying import verify
from pipelines.commands import cli

RECORDS = gzip.decompress((GOLD / "pretraining" / "wwm128.tfrecord.gz").read_bytes())
PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head>\n<body>Not found.</body></html>\n"
PROSE = b"It was a dark night. The rain\nfell on the roofs of the town.\n" * 20
NOISE = random.Random(29).randbytes(100_000)
SUFFIXES = (".tfrecord", ".parquet", ".mds", ".txt", "")


def flipped(place: int) -> bytes:
    content = bytearray(RECORDS)
    content[place] ^= 4
    return bytes(content)


UNREADABLE: Mapping[str, bytes] = {
    **{f"noise{suffix}": NOISE for suffix in SUFFIXES},
    **{f"zeros{suffix}": bytes(100_000) for suffix in SUFFIXES},
    **{f"empty{suffix}": b"" for suffix in SUFFIXES},
    **{f"page{suffix}": PAGE for suffix in SUFFIXES},
    **{f"prose{suffix}": PROSE for suffix in SUFFIXES},
    "cut.tfrecord.gz": gzip.compress(RECORDS)[:3000],
    "head.tfrecord.gz": gzip.compress(RECORDS)[:5],
    "first_bytes.tfrecord": RECORDS[:500],
    "magic_alone.parquet": b"PAR1" + NOISE[:500] + b"PAR1",
    "wrong_head.mds": b"\x05\0\0\0" + NOISE[:500],
    "table.txt": b"id,text\n" + b"1,a\n" * 50,
}


def checks(verification: Verification) -> set[str]:
    """The checks that found an error."""
    return {finding.check for finding in verification.findings if finding.severity == "error"}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_of_which_nothing_can_be_looked_at_is_an_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(UNREADABLE[name])
    verification = verify([str(path)])
    assert not verification.is_right
    assert checks(verification) <= {"framing", "documents"}
    assert all(finding.message.startswith(str(path)) for finding in verification.findings)
    assert all(finding.message.count(str(path)) == 1 for finding in verification.findings)


def test_the_command_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "noise.parquet").write_bytes(NOISE)
    assert cli.main(["verify", str(tmp_path / "noise.parquet")]) == 1


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("part-00000-of-00002.tfrecord", "part-00001-of-00002.tfrecord"):
        (tmp_path / name).write_bytes(RECORDS)
    read = LocalRanges.read

    def may_not(ranges: LocalRanges, path: str, start: int, end: int) -> Any:
        if "00001" in path:
            raise RunFailedError(f"{path}: this file cannot be read (Permission denied).")
        return read(ranges, path, start, end)

    monkeypatch.setattr(LocalRanges, "read", may_not)
    assert "missing" in checks(verify([str(tmp_path)]))
    assert "missing" in checks(verify([str(tmp_path / "part-00001-of-00002.tfrecord")]))


def test_each_file_of_a_directory_counts(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number:05}-of-00003.tfrecord").write_bytes(NOISE[number:])
    verification = verify([str(tmp_path)])
    assert sum(finding.check == "framing" for finding in verification.findings) == 3
    (tmp_path / "part-00001-of-00003.tfrecord").write_bytes(RECORDS)
    (tmp_path / "part-00002-of-00003.tfrecord").write_bytes(b"")
    wrong = {Path(f.file).name[:10] for f in verify([str(tmp_path)]).findings if f.check == "framing"}
    assert wrong == {"part-00000", "part-00002"}


@pytest.mark.parametrize(
    ("content", "check"),
    [(flipped(-100), "crc"), (flipped(100), "framing"), (flipped(3), "framing"), (RECORDS[4096:], "framing")],
    ids=["data", "first", "length", "cut"],
)
def test_a_damaged_file_is_an_error_and_the_others_are_looked_at(content: bytes, check: str, tmp_path: Path) -> None:
    for name, written in (("a.tfrecord", content), ("b.tfrecord.gz", gzip.compress(content)), ("c.tfrecord", RECORDS)):
        (tmp_path / name).write_bytes(written)
    verification = verify([str(tmp_path)])
    assert {Path(f.file).name for f in verification.findings if f.check == check} == {"a.tfrecord", "b.tfrecord.gz"}
    assert verification.outcomes["masks"].looked_at > 1000
    assert verification.outcomes["masks"].skipped is not None
