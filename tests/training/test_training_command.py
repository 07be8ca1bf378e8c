"""Whole commands: a build that ends in a training, an object store, and one sentence for unusable input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from training_helpers import BACKEND, device_options, logged, write_config

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.commands import cli
from training import checkpoints, devices

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the loop is tested on both backends elsewhere")

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture
def flags(tmp_path, small_examples):
    """Flags of a run of four steps."""
    return {
        "output_dir": str(tmp_path / "run"),
        "input_file": small_examples,
        "eval_file": small_examples,
        "bert_config_file": write_config(tmp_path),
        "train_batch_size": 8,
        "num_train_steps": 4,
        "num_warmup_steps": 1,
        "save_checkpoints_steps": 2,
        "max_eval_steps": 1,
        "log_steps": 1,
    }


def maskmill_train(flags):
    return cli.main(["train", *(f"--{name}={value}" for name, value in flags.items())])


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"format": "parquet", "feature_names": "v2", "objective": "mlm", "dynamic_masking": True, "bins": 2},
        {"format": "mds", "objective": "sop", "pack": True, "max_predictions_per_seq": 6},
    ],
    ids=["google", "all-else", "packed"],
)
def test_a_build_ends_in_a_training(tmp_path, kind):
    words = ["anarchism", "is", "a", "political", "philosophy", "and", "movement", "of", "the", "people"]
    documents = "\n\n".join(
        "\n".join(" ".join(words[(d + s + i) % len(words)] for i in range(8)) + "." for s in range(12))
        for d in range(40)
    )
    (tmp_path / "corpus.txt").write_text(documents + "\n")
    build = {
        "output": str(tmp_path / "out"),
        "report": "off",
        "extract": {"input": str(tmp_path / "corpus.txt"), "num_eval_articles": 4},
        "examples": {"vocab_file": str(DATA / "vocab.txt"), "max_seq_length": 32, "max_predictions_per_seq": 5} | kind,
        "train": {
            "bert_config_file": write_config(tmp_path),
            "train_batch_size": 8,
            "eval_batch_size": 8,
            "num_train_steps": 3,
            "num_warmup_steps": 1,
        },
    }
    (tmp_path / "build.yaml").write_text(json.dumps(build))  # JSON is YAML
    assert cli.main(["build", str(tmp_path / "build.yaml")]) == 0
    events = logged(tmp_path / "out/train")
    assert [x["step"] for x in events if x["event"] == "eval"] == [0, 3]
    assert events[-1]["event"] == "end"
    assert checkpoints.list_checkpoints(str(tmp_path / "out/train"))[-1].endswith("step-0000000003.safetensors")


def test_a_run_on_an_object_store(flags, tmp_path, bucket, capfd):
    there = f"{bucket}/run"
    assert maskmill_train(flags | {"output_dir": there}) == 0
    assert [checkpoints.step_of(p) for p in checkpoints.list_checkpoints(there)] == [2, 4]
    first = files.read_bytes(f"{there}/log.jsonl").splitlines()
    assert [json.loads(x)["event"] for x in first].count("train") == 4
    # The run is found again, and its weights are written where a TF1 program can read them.
    assert maskmill_train(flags | {"output_dir": there}) == 0
    assert f"resumed at step 4 from {there}/step-0000000004.safetensors" in capfd.readouterr().err
    arguments = ["--input", there, "--output", f"{bucket}/tf1/model.ckpt-4", "--format", "tf1"]
    assert cli.main(["convert-checkpoint", *arguments]) == 0
    assert maskmill_train(flags | {"init_checkpoint": f"{bucket}/tf1"}) == 0
    remote = [json.loads(x) for x in first]
    before, after = (
        [x["masked_lm_loss"] for x in log if x["event"] == "eval"] for log in (logged(tmp_path / "run"), remote)
    )
    assert before[0] == pytest.approx(after[-1], rel=1e-6)


def test_unusable_input_is_one_sentence(flags, tmp_path, capfd):
    """The mistakes table has further ones."""
    cases = [
        (
            {"bert_config_file": write_config(tmp_path, "few.json", vocab_size=500)},
            "the model's vocabulary has only 500 tokens",
        ),
        ({"backend": "tensorflow"}, "--backend tensorflow: Keras runs on jax in this process already"),
        ({"num_devices": 99}, "--num_devices 99: there are only 4 cpu devices"),
    ]
    for changes, sentence in cases:
        assert maskmill_train(flags | changes) == 2, changes
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 1, said
        assert said[0].startswith("maskmill train: ")
        assert sentence in said[0]


def test_tensorflow_needs_the_addresses_of_the_other_hosts(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(UnusableInputError, match="from TF_CONFIG, which is not set; set it on each host"):
        devices.start(device_options(backend="tensorflow", coordinator="auto"))


def test_a_run_on_jax_needs_no_tensorflow(flags, tmp_path):
    # Without the package, as in a process that has only the extra [jax].
    blocked = "import sys; sys.modules.update({'tensorflow': None, 'tensorflow_transform': None})"
    run = "from pipelines.commands import cli; sys.exit(cli.main(sys.argv[1:]))"

    def command(*arguments):
        return subprocess.run([sys.executable, "-c", f"{blocked}; {run}", *arguments], capture_output=True, text=True)

    result = command("train", *(f"--{name}={value}" for name, value in flags.items()))
    assert result.returncode == 0, result.stderr
    assert list((tmp_path / "run" / "tensorboard" / "log").iterdir())
    converted = ["convert-checkpoint", "--input", str(tmp_path / "run"), "--output", str(tmp_path / "to"), "--format"]
    assert command(*converted, "huggingface", "--vocab_file", str(DATA / "vocab.txt")).returncode == 0
    result = command(*converted[:-2], str(tmp_path / "model.ckpt"), "--format", "tf1")
    assert result.returncode == 2
    assert result.stderr.endswith("needs TensorFlow; install it: pip install 'maskmill[tensorflow]'.\n")
