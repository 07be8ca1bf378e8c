"""The progress of verify: in this process, and on Beam, where each worker notes the files that it has looked at."""

import json
from pathlib import Path

import pytest
from command_runs.commands import TWO_PROCESSES

from pipelines.commands import cli

pytestmark = pytest.mark.long


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Three text shards without a manifest."""
    folder = tmp_path / "text"
    folder.mkdir()
    for shard in range(3):
        (folder / f"part-{shard:05d}-of-00003").write_text(f"Sentence {shard} of it.\nAnother one of {shard}.\n\n")
    return folder


@pytest.mark.builds
def test_on_beam_each_file_counts(text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    cli.main(["verify", str(text), f"--scratch={scratch}", "--log_format=json", *TWO_PROCESSES])
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    *_, last = [event for event in events if "step" in event]  # a warning of any library is an event, too
    assert (last["step"], last["done"], last["pieces"]) == ("verify", 3, 3)
    assert list(scratch.glob("progress-*")) == []


def test_a_short_verification_in_this_process_says_nothing(text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cli.main(["verify", str(text)])
    assert capfd.readouterr().err == ""
