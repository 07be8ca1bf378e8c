"""`extract --keep_truncated`: what stands before the cut of each input, counted, for any number of workers."""

import bz2
import gzip
import json
import lzma
from pathlib import Path

import pytest
from command_runs.commands import DUMP, IN_MEMORY, TWO_PROCESSES, digests, maskmill

from pipelines.commands import cli

pytestmark = pytest.mark.builds


def test_every_container_gives_what_stands_before_its_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = DUMP.read_bytes()
    xml = bz2.decompress(packed)
    # The cut of each lies in the 90th page; bzip2 gives whole blocks only, so that more is given up there.
    place = [k for k in range(len(xml)) if xml.startswith(b"<page>", k)][89] + 300
    for name, content in {
        "a.xml": xml[:place],
        "b.xml.gz": gzip.compress(xml[:place], mtime=0)[:-8],
        "c.xml.xz": lzma.compress(xml[:place])[:-40],
        "d.xml.bz2": packed[: len(packed) * 4 // 5],
        "e.xml": xml,
    }.items():
        (tmp_path / name).write_bytes(content)
    command = ["extract", f"--input={tmp_path}/?.xml*", "--num_eval_articles=5", "--dump_date=2026-01-01"]
    assert cli.main([*command, f"--output={tmp_path}/refused", *IN_MEMORY]) == 2
    assert "--keep_truncated" in capsys.readouterr().err
    assert cli.main([*command, f"--output={tmp_path}/one", "--keep_truncated", *IN_MEMORY]) == 0
    printed = capsys.readouterr().out
    assert "4 inputs are cut off: what stands before the cut was taken; pages given up: 4." in printed
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
    counts = manifest["counts"]["extract"]
    assert (counts["cut_off_files"], counts["cut_off_pages"], manifest["parameters"]["keep_truncated"]) == (4, 4, True)
    rows = [json.loads(line) for line in (tmp_path / "one" / "rejected.jsonl").read_text().splitlines()]
    assert {row["reason"] for row in rows} == {"the file is cut off in it"}
    assert [Path(row["input"]).name for row in rows] == ["a.xml", "b.xml.gz", "c.xml.xz", "d.xml.bz2"]
    done = maskmill(*command, f"--output={tmp_path}/two", "--keep_truncated", *TWO_PROCESSES)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "two") == digests(tmp_path / "one")
