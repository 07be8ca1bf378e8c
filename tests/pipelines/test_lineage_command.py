"""`maskmill lineage`: what it prints, and its exit codes."""

import json
import shutil
from pathlib import Path

import pytest
from command_runs.commands import DUMP
from data_sets.whole_builds import Made, extract_text, make_build

from pipelines.commands import cli


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("whole")
    text = extract_text(folder / "text", documents=6, eval_articles=1, shard_mb=0.1)
    return make_build(folder / "build", text, random_seed=7)


def test_a_build_goes_back_to_the_dump(whole: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lineage", str(whole.root)]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == f"examples     {whole.root}/examples: all 4 shards"
    assert any(line.startswith(f"dump         {DUMP}, ") for line in lines)
    assert lines[-1] == "links        all that is there fits"
    # Only what is not at its default.
    assert "random_seed 7" in said
    assert "masked_lm_prob" not in said


def test_a_link_that_does_not_fit_is_exit_code_1(
    whole: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = whole.copy(tmp_path / "build").root
    (build / "text" / "eval.txt").write_bytes(b"")
    assert cli.main(["lineage", str(build)]) == 1
    said = capsys.readouterr()
    assert said.out.endswith("links        1 does not fit\n")
    assert said.err.startswith(f"maskmill lineage: does not fit: {build}/text/eval.txt: this shard has 0 bytes")


def test_json_has_the_whole_chain(whole: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lineage", str(whole.root / "text" / "part-00000-of-00003"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema_version"], found["kind"]) == (1, "shard")
    assert found["stages"][0]["shards"][0]["inputs"] == [str(DUMP)]
    assert found["made"][0]["stages"][0]["names"] == ["part-00000-of-00003.tfrecord"]
    assert found["problems"] == []


def test_from_a_dump_forward(whole: Made, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(whole.root)
    assert cli.main(["lineage", str(DUMP), "--root", root]) == 0
    assert "text: 4 of 4 shards (part-00000-of-00003, part-00001-of-00003, part-00002-of-00003, …)" in (
        capsys.readouterr().out
    )
    # A dump whose file was deleted is known by its name.
    assert cli.main(["lineage", DUMP.name, "--root", root, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["made"][0]["read"] == [str(DUMP)]


def test_another_file_of_the_dumps_name_does_not_fit_by_its_checksum(
    whole: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(shutil.copyfile(DUMP, tmp_path / DUMP.name))
    assert cli.main(["lineage", str(other), "--root", str(whole.root), "--checksums"]) == 0
    other.write_bytes(b"another dump")
    assert cli.main(["lineage", str(other), "--root", str(whole.root)]) == 0
    assert cli.main(["lineage", str(other), "--root", str(whole.root), "--checksums"]) == 1
    assert "it was made of a file of this name, but its content was another one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "PATH is missing; name one checkpoint, shard, release or build"),
        (["a", "b"], "b: this is a second path"),
        (["nothing"], "nothing: this is not a checkpoint, shard, release or build"),
        ([DUMP.name, "--root", "."], "nothing below"),
    ],
)
def test_what_cannot_be_followed_is_one_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["lineage", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
