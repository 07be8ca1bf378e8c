"""What a run says of the data that it trains on, and which data it refuses."""

import dataclasses
import hashlib
import shutil
from pathlib import Path

import pytest
from command_runs.commands import VOCAB
from data_sets.whole_builds import extract_text, make_build
from training_helpers import BACKEND, logged, write_config

from maskmill.errors import UnusableInputError
from maskmill.lineage.origins import lineage_of, trained_on
from maskmill.releases import fingerprints
from maskmill.storage import files
from pipelines.commands import cli
from training import checkpoints, provenance
from training.options import TrainOptions

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")

NAME = "enwiki-2016-05-01-0123abcd"


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    text = extract_text(folder / "text", documents=4, eval_articles=1, shard_mb=0.05)
    return make_build(folder / "releases" / NAME, text).root


def options(**values):
    return TrainOptions(output_dir="run", **values)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def found(**values):
    return provenance.provenance(options(**values), files.read_if_there)


@pytest.mark.parametrize("given", ["examples", "examples/", "examples/part-*.tfrecord", "examples/eval.txt.tfrecord"])
def test_the_release_of_examples_is_found(release, given):
    data = found(input_file=(f"{release}/{given}",))
    assert data["release"] == str(release)
    assert data["release_fingerprint"] == fingerprints.fingerprint_of(fingerprints.manifest_digests(str(release)))
    (made,) = data["manifests"]
    assert (made["directory"], made["stage"]) == (f"{release}/examples", "examples")
    assert made["sha256"] == sha256(release / "examples" / "manifest.json")
    assert str(release) in provenance.described(data)


def test_a_plain_data_set_is_known_by_its_manifest(release, tmp_path):
    shutil.copytree(release / "examples", tmp_path / "examples")
    data = found(input_file=(str(tmp_path / "examples"),))
    assert (data["release"], data["release_fingerprint"]) == (None, None)
    assert data["manifests"][0]["sha256"] in provenance.described(data)


def test_files_without_a_manifest_are_named(tmp_path):
    (tmp_path / "data.tfrecord").write_bytes(b"")
    (tmp_path / "manifest.json").write_text("[]")  # of something else
    data = found(input_file=(f"{tmp_path}/data.tfrecord,https://host/other.tfrecord",))
    assert data["input"] == [f"{tmp_path}/data.tfrecord", "https://host/other.tfrecord"]
    assert data["manifests"] == []
    assert provenance.described(data) == ""


def test_a_copy_of_the_examples_may_be_of_the_release_that_is_named(release, tmp_path):
    shutil.copytree(release / "examples", tmp_path / "examples")
    data = found(input_file=(str(tmp_path / "examples"),), release=str(release))
    assert data["release"] == str(release)


def test_a_release_that_is_not_here_is_recorded_as_it_is_named(release, tmp_path):
    shutil.copytree(release / "examples", tmp_path / "examples")
    named = {"release": f"/elsewhere/releases/{NAME}", "release_fingerprint": "ab"}
    data = found(input_file=(str(tmp_path / "examples"),), **named)
    assert {name: data[name] for name in named} == named


def test_another_fingerprint_is_refused(release):
    with pytest.raises(UnusableInputError, match=rf"{NAME}: this release has the fingerprint .*, not ab; name"):
        found(input_file=(f"{release}/examples",), release_fingerprint="ab")


def test_examples_of_another_release_are_refused(release, tmp_path):
    shutil.copytree(release / "examples", tmp_path / "examples")
    path = tmp_path / "examples" / "manifest.json"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(UnusableInputError, match=r"these examples are none of the release .*; name its own"):
        found(input_file=(str(tmp_path / "examples"),), release=str(release))


def train(folder, examples, **flags):
    """Trains a small model into `folder`/run."""
    flags |= {
        "output_dir": folder / "run",
        "input_file": examples,
        "bert_config_file": write_config(folder),
        "train_batch_size": 4,
        "num_warmup_steps": 1,
    }
    return cli.main(["train", *(f"--{name}={value}" for name, value in flags.items())])


def test_a_run_writes_its_data_into_log_and_checkpoints_and_resumes_elsewhere(release, tmp_path, capsys):
    steps = {"num_train_steps": 4, "save_checkpoints_steps": 2, "keep_checkpoint_max": 9}
    assert train(tmp_path, release / "examples", **steps) == 0
    fingerprint = fingerprints.fingerprint_of(fingerprints.manifest_digests(str(release)))
    assert f"data: {release}, fingerprint {fingerprint}" in capsys.readouterr().err
    start, *_ = logged(tmp_path / "run")
    assert start["data"]["release_fingerprint"] == fingerprint
    paths = checkpoints.list_checkpoints(str(tmp_path / "run"))
    assert len(paths) == 2
    assert all(checkpoints.read(path).data == start["data"] for path in paths)

    # The same examples lie somewhere else now, and the last checkpoint is gone.
    shutil.copytree(release / "examples", tmp_path / "moved")
    weights = checkpoints.read(paths[1])
    Path(paths[1]).unlink()
    assert train(tmp_path, tmp_path / "moved", **steps) == 0
    again = checkpoints.read(paths[1])
    assert again.data["release"] is None
    assert again.data["manifests"][0]["directory"] == str(tmp_path / "moved")
    assert again.run == weights.run
    assert all((again.arrays[name] == array).all() for name, array in weights.arrays.items())


def test_copies_of_weights_say_what_they_were_trained_on(release, tmp_path):
    """From a run over Hugging Face's format and ours, and back to the release."""
    assert train(tmp_path, release / "examples", vocab_file=VOCAB, num_train_steps=1) == 0
    source = str(tmp_path / "run")
    first = trained_on(source)
    assert first.release == str(release)
    for target, format in (("bert", "huggingface"), ("bert.safetensors", "maskmill")):
        asked = ["convert-checkpoint", f"--input={source}", f"--output={tmp_path / target}", f"--format={format}"]
        assert cli.main([*asked, f"--vocab_file={VOCAB}"] if format == "huggingface" else asked) == 0
        source = str(tmp_path / target)
        copy = trained_on(source)
        assert (copy.step, copy.release, copy.manifests) == (1, first.release, first.manifests)
        assert copy.release_fingerprint == first.release_fingerprint
        found = lineage_of(source)
        assert found.kind == "checkpoint"
        assert [stage.stage for stage in found.stages] == ["examples", "extract"]
        assert found.problems == ()


def test_checkpoints_of_older_versions_are_read(tmp_path):
    import numpy as np
    import safetensors.numpy

    made = checkpoints.Checkpoint(step=1, run={"seed": 3, "model": {}}, arrays={"a": np.zeros(1, np.float32)})
    path = checkpoints.write(str(tmp_path), dataclasses.replace(made, data={"release": "x"}), keep=1)
    metadata = checkpoints.read_metadata(path)
    for content, expected in ((None, {}), ('{"release": "x"}', {"release": "x"})):
        kept = {n: v for n, v in metadata.items() if n != "data"} | ({} if content is None else {"data": content})
        safetensors.numpy.save_file(dict(made.arrays), path, kept)
        assert checkpoints.read(path).data == expected
    safetensors.numpy.save_file(dict(made.arrays), path, metadata | {"data": "[1"})
    with pytest.raises(UnusableInputError, match="what this checkpoint says of its data is damaged"):
        checkpoints.read(path)


def test_a_launcher_passes_the_release_on():
    from training import launchers

    given = options(input_file=("x",), release="/data/releases/r", release_fingerprint="ab", launcher="local")
    assert "--release=/data/releases/r" in launchers.flags(given)
    assert "--release_fingerprint=ab" in launchers.flags(given)
