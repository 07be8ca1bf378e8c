"""Small inputs share a batch, and the data set is what it is with a batch for each of them."""

import json
from pathlib import Path

import pytest
from command_runs.commands import digests
from made_up import dump_files

from maskmill.inputs import batches
from pipelines.commands import cli

pytestmark = pytest.mark.builds

FILES = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Small inputs of several formats, a dump of another wiki and a bad document among them."""
    path = tmp_path / "in"
    path.mkdir()
    for k in range(FILES):
        text = f"This is text {k}. It has {k} sentences.\n"
        (path / f"a{k:02}.txt").write_bytes(b"\xff" if k == 7 else f"{text}\nAnother one of {k}.\n".encode())
        page = dump_files.page(k, f"Page {k}", f"{text}\nIt is {{{{CURRENTYEAR}}}}.{{{{T|x}}}}")
        dump = dump_files.dump([page, dump_files.page(100 + k, "Template:T", f"T{k}", namespace=10)]).decode()
        (path / f"b{k:02}-20{10 + k % 2}0203.xml").write_text(dump.replace("//test.", f"//w{k % 2}."))
        (path / f"c{k:02}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    return path


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--max_documents=50",),
        ("--drop_duplicates", "--min_duplicate_words=2"),
        ("--expand_templates", "--input={}/b*"),
    ],
    ids=["plain", "limited", "without-duplicates", "with-templates"],
)
@pytest.mark.exhaustive_but("limited", "with-templates")
def test_small_inputs_give_the_same_data_set_together_and_alone(
    flags: tuple[str, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    counts = {}
    for output, small in (("together", batches._SMALL_FILE), ("alone", 0)):
        monkeypatch.setattr(batches, "_SMALL_FILE", small)
        given = [flag.format(folder) for flag in flags]
        inputs = [] if any(flag.startswith("--input=") for flag in given) else [f"--input={folder}/*"]
        command = [
            "extract",
            *inputs,
            f"--output={tmp_path / output}",
            "--shard_size_mb=0.001",
            "--num_eval_articles=5",
        ]
        assert cli.main([*command, *given]) == 0
        made[output] = digests(tmp_path / output, manifests=not flags)
        counts[output] = json.loads((tmp_path / output / "manifest.json").read_text())
    assert made["together"] == made["alone"]
    assert counts["together"] == counts["alone"]
    shards = counts["together"]["shards"]
    assert len(shards) > 2
    assert all(0 < len(shard["inputs"]) < len(counts["together"]["inputs"]) for shard in shards)
