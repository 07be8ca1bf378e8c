"""A release that ends in a training: from its checkpoint back to the dump, and from the dump to its checkpoint."""

import json

import pytest
from command_runs.commands import DUMP, VOCAB
from training_helpers import BACKEND, logged, write_config

from maskmill.lineage.origins import lineage_of
from pipelines.commands import cli

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the loop is tested on both backends elsewhere")


@pytest.fixture
def build_file(tmp_path):
    build = {
        "output": str(tmp_path / "enwiki"),
        "report": "off",
        "extract": {"input": str(DUMP), "num_eval_articles": 1, "max_documents": 6},
        "examples": {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1},
        "train": {
            "bert_config_file": write_config(tmp_path),
            "train_batch_size": 8,
            "eval_batch_size": 8,
            "num_train_steps": 2,
            "num_warmup_steps": 1,
        },
        "release": {"wiki": "enwiki"},
        "on_event": f"cat > '{tmp_path}/last.json'",
    }
    path = tmp_path / "build.yaml"
    path.write_text(json.dumps(build))  # JSON is YAML
    return path


def test_a_release_is_traced_from_its_checkpoint_and_to_it(build_file, tmp_path, capsys):
    assert cli.main(["build", str(build_file), "--release"]) == 0
    (release,) = (tmp_path / "enwiki" / "releases").glob("enwiki-*")
    record = json.loads((release / "release.json").read_text())
    assert f"data: {release}, fingerprint {record['fingerprint']}" in capsys.readouterr().err
    start = logged(release / "train")[0]
    assert start["data"]["release_fingerprint"] == record["fingerprint"]

    found = lineage_of(str(release / "train"))
    assert found.checkpoint.release_fingerprint == found.fingerprint == record["fingerprint"]
    assert [stage.stage for stage in found.stages] == ["examples", "extract"]
    assert found.sources[-1].path == str(DUMP)
    assert (found.problems, found.gaps) == ((), ())

    event = json.loads((tmp_path / "last.json").read_text())
    assert (event["event"], event["run"]["stages"][-1], event["complete"]) == ("finished", "train", True)


def test_a_stage_of_the_training_alone_knows_the_release(build_file, tmp_path):
    for first, last in (("extract", "eval"), ("train", "train")):
        assert cli.main(["build", str(build_file), "--release", "--from", first, "--until", last]) == 0
    (release,) = (tmp_path / "enwiki" / "releases").glob("enwiki-*")
    found = lineage_of(str(release / "train"))
    record = json.loads((release / "release.json").read_text())
    assert found.checkpoint.release_fingerprint == record["fingerprint"]
    assert found.problems == ()
