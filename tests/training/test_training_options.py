"""Options that do not go together, the models that presets and files give, schedules, intervals, and the launchers."""

import json
import subprocess
import sys

import numpy as np
import pytest
from training_helpers import BACKEND

from training import command, config, evaluate, launchers
from training.options import TrainOptions
from transforms.errors import RunFailedError, UnusableInputError

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")

GIVEN = {"output_dir": "run", "input_file": ("part-*",)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_batch_size": 0}, "--train_batch_size is 0: it must be at least 1"),
        ({"train_batch_size": 30, "steps_per_update": 4}, "--train_batch_size 30 is not a multiple of --steps_per_up"),
        ({"bert_config_file": "x", "preset": "tiny"}, "both name the model; give one"),
        ({"watch": True}, "--watch goes with --eval_only"),
        ({"checkpoint": "x"}, "--checkpoint goes with --eval_only"),
        ({"eval_only": True}, "--eval_only needs --eval_file"),
        ({"eval_only": True, "eval_file": ("x",), "watch": True, "checkpoint": "x"}, "leave --checkpoint out"),
        ({"input_file": ()}, "--input_file is missing"),
        ({"task": "classify", "target_masked_lm_accuracy": 0.7}, "goes with --task pretrain"),
        ({"dry_run": True}, "--dry_run goes with --launcher"),
        ({"seed": -1}, "--seed is -1"),
    ],
)
def test_options_that_do_not_go_together(changes, message):
    with pytest.raises(UnusableInputError, match=message):
        TrainOptions(**(GIVEN | changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "this model configuration is not JSON"),
        ("[]", "names no vocab_size"),
        ('{"vocab_size": 9, "hidden_act": "swish"}', "hidden_act is 'swish'"),
        (
            '{"vocab_size": 9, "hidden_size": 10, "num_attention_heads": 3}',
            "10 is not a multiple of num_attention_heads",
        ),
        ('{"vocab_size": 9, "model_type": "gpt2"}', "only bert and roberta encoders"),
        ('{"vocab_size": 9, "hidden_dropout_prob": 1.5}', "hidden_dropout_prob is 1.5"),
        ('{"vocab_size": "many"}', "a size in this model configuration is not a number"),
        ('{"vocab_size": 9, "embedding_size": 128}', "factorised embeddings"),
        ('{"vocab_size": 0}', "vocab_size is 0"),
    ],
)
def test_bad_model_configurations(text, message):
    with pytest.raises(UnusableInputError, match=message):
        config.from_json(text, where="bert_config.json")


def test_presets_have_berts_sizes():
    sizes = {"tiny": (2, 128, 2), "base": (12, 768, 12), "large": (24, 1024, 16)}
    for name, (layers, width, heads) in sizes.items():
        model = config.from_preset(name)
        assert (model.num_hidden_layers, model.hidden_size, model.num_attention_heads) == (layers, width, heads)
        assert model.intermediate_size == 4 * width
    assert config.from_preset("tiny", vocab_size=1000).vocab_size == 1000
    assert config.from_preset("roberta-base").model_type == "roberta"
    with pytest.raises(UnusableInputError, match="there is no such preset"):
        config.from_preset("huge")


def test_mlperfs_evaluation_intervals():
    # The table in MLPerf's README.
    table = {256: 150, 1024: 150, 1536: 150, 2048: 150, 3072: 175, 4096: 175, 8192: 225}
    assert {batch: evaluate.default_interval(batch) // 1000 for batch in table} == table


def test_an_evaluation_is_due_when_its_samples_are_passed():
    assert [s for s in range(1, 21) if evaluate.is_due(s, 32, 100)] == [4, 7, 10, 13, 16, 19]


def test_the_warm_up_may_begin_before_step_0():
    from training.schedule import WarmupPolynomialDecay

    # MLPerf's published run: 287 steps of warm-up from step -76, 600 steps.
    rate = 0.00288293
    made = WarmupPolynomialDecay(
        learning_rate=rate, num_train_steps=600, num_warmup_steps=287, start_warmup_step=-76, poly_power=1.0
    )
    for step, wanted in ((0, rate * 76 / 287), (210, rate * 286 / 287), (211, rate * (1 - 211 / 600)), (600, 0.0)):
        assert float(made(step)) == pytest.approx(wanted, rel=1e-6)
    square = WarmupPolynomialDecay(learning_rate=1.0, num_train_steps=10, poly_power=2.0)
    np.testing.assert_allclose([float(square(s)) for s in (0, 5, 10)], [1.0, 0.25, 0.0])


def test_what_is_expected_of_an_initial_checkpoint():
    assert evaluate.expected_initial_accuracy("gs://bucket/tf1_ckpt/model.ckpt-28252", None) == 0.34085
    assert evaluate.expected_initial_accuracy("model.ckpt-28252", 0.5) == 0.5
    assert evaluate.expected_initial_accuracy("bert_model.ckpt", None) is None
    assert "; as expected" in evaluate.describe({"masked_lm_accuracy": 0.3409}, 0.34085)


@pytest.mark.parametrize("arguments", [["train", "--help"], ["convert-checkpoint", "--help"]])
def test_help_imports_no_tensorflow(arguments):
    code = f"""
import contextlib, sys
from pipelines import cli
with contextlib.suppress(SystemExit):
    cli.main({arguments})
heavy = [m for m in ("tensorflow", "keras", "jax", "apache_beam") if m in sys.modules]
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--bert_config_file" in done.stdout


def planned(launcher, **changes):
    return launchers.plan(TrainOptions(**(GIVEN | {"launcher": launcher, "shuffle": False} | changes)))


FLAGS = ["--output_dir=run", "--input_file=part-*", "--shuffle=False"]


def test_launchers_carry_every_flag():
    yaml = pytest.importorskip("yaml")
    for name, program in (("local", "bash"), ("slurm", "sbatch")):
        made = planned(name)
        assert made.command[0] == program
        assert list(made.command[2:]) == FLAGS
    vertex = planned("vertex")
    assert vertex.command[:4] == ("gcloud", "ai", "custom-jobs", "create")
    container = yaml.safe_load(vertex.content)["workerPoolSpecs"][0]["containerSpec"]
    assert container["args"] == FLAGS
    gke = planned("gke")
    assert gke.command[:2] == ("kubectl", "apply")
    pod = yaml.safe_load(gke.content)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == [*FLAGS, "--coordinator=auto"]


def test_a_dry_run_prints_and_runs_nothing(capsys):
    options = TrainOptions(**GIVEN, launcher="local", dry_run=True)
    assert command.run(options) == 0
    assert capsys.readouterr().out.split()[0] == "bash"


def test_flags_give_the_same_options_again():
    from pipelines import options as option_tools

    chosen = TrainOptions(**GIVEN, shuffle=False, learning_rate=0.00288293, start_warmup_step=-76, preset="base")
    import argparse

    parser = argparse.ArgumentParser()
    option_tools.add_flags(parser, TrainOptions)
    namespace, _ = option_tools.parse(parser, launchers.flags(chosen))
    assert option_tools.from_flags(TrainOptions, namespace) == chosen


def test_a_launcher_runs_its_file(tmp_path):
    script = tmp_path / "mine.sh"
    script.write_text(f'printf "%s\\n" "$@" > {tmp_path}/flags\n')
    assert launchers.launch(TrainOptions(**GIVEN, launcher="local", launcher_file=str(script))) == 0
    assert (tmp_path / "flags").read_text().splitlines() == FLAGS[:2]
    script.write_text("exit 3\n")
    with pytest.raises(RunFailedError, match="bash ended with code 3"):
        launchers.launch(TrainOptions(**GIVEN, launcher="local", launcher_file=str(script)))


def test_bad_launchers_are_said_in_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(UnusableInputError, match="this file does not exist"):
        planned("gke", launcher_file="nothing.yaml")
    (tmp_path / "mine.yaml").write_text("kind: JobSet\n")
    with pytest.raises(UnusableInputError, match=r"there is no \$ARGUMENTS in it"):
        planned("gke", launcher_file=str(tmp_path / "mine.yaml"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnusableInputError, match="needs sbatch, and it is not installed here"):
        launchers.launch(TrainOptions(**GIVEN, launcher="slurm"))


def test_shown_commands_can_be_pasted_into_a_shell():
    shown = planned("vertex").shown()
    assert shown.splitlines()[0].endswith("--config=/dev/stdin <<'END'")
    assert json.dumps(FLAGS) in shown
