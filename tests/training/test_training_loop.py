"""Whole runs: killed, told to stop, resumed, ended by the target, watched, and stopped by a loss that is not finite."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from training_helpers import BACKEND, logged, write_config

import maskmill
from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from training import checkpoints, command, loop
from training.options import TrainOptions

ROOT = Path(__file__).resolve().parents[2]
TIMES = ("time", "examples_per_second", "tokens_per_second", "input_wait_share")


@pytest.fixture
def settings(tmp_path, small_examples):
    """Options of a short run with dropout on a small model."""
    return {
        "output_dir": str(tmp_path / "run"),
        "input_file": (small_examples,),
        "bert_config_file": write_config(tmp_path, hidden_dropout_prob=0.1),
        "train_batch_size": 8,
        "eval_batch_size": 32,
        "max_eval_steps": 2,
        "num_train_steps": 8,
        "num_warmup_steps": 2,
        "learning_rate": 0.01,
        "optimizer": "lamb",
        "save_checkpoints_steps": 2,
        "log_steps": 1,
        "backend": BACKEND,
    }


def train(settings, **changes):
    return command.run(TrainOptions(**(settings | changes)))


def lines(directory, event, name="log"):
    found = [json.loads(x) for x in (Path(directory) / f"{name}.jsonl").read_text().splitlines()]
    return [{k: v for k, v in x.items() if k not in TIMES} for x in found if x["event"] == event]


def started(settings, environment=None, **changes):
    """Starts the same run in a process of its own."""
    options = {k: ",".join(v) if isinstance(v, tuple) else v for k, v in (settings | changes).items()}
    flags = [f"--{k}={v}" for k, v in options.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "maskmill", "train", *flags],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | (environment or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(directory, step, process):
    """Waits until a process has written the checkpoint of a step."""
    path = checkpoints.path_of(directory, step)
    deadline = time.monotonic() + 300
    while not os.path.exists(path):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def undisturbed(settings, tmp_path):
    directory = str(tmp_path / "undisturbed")
    assert train(settings, output_dir=directory, num_train_steps=40) == 0
    return directory


def assert_same_run(directory, undisturbed):
    assert lines(directory, "train") == lines(undisturbed, "train")
    one, other = (checkpoints.read(checkpoints.list_checkpoints(d)[-1]) for d in (directory, undisturbed))
    assert one.step == other.step == 40
    for name, array in one.arrays.items():
        assert array.tobytes() == other.arrays[name].tobytes(), name


def test_the_throughput_counts_no_padding(settings, small_examples):
    batches = {"train_batch_size": 64, "num_train_steps": 4, "log_steps": 4, "num_warmup_steps": 0}
    assert train(settings, **batches, tensorboard=False) == 0
    (throughput,) = (x for x in logged(settings["output_dir"]) if x["event"] == "train")
    with maskmill.open(small_examples, batch_size=256, shuffle=False) as examples:
        lengths = next(iter(examples))["input_mask"].sum(axis=1)
    assert lengths.min() < 128
    assert throughput["tokens_per_second"] / throughput["examples_per_second"] == pytest.approx(
        lengths.mean(), rel=0.01
    )


def test_a_run_without_padding_has_the_losses_of_one_with_it(settings, tmp_path):
    # Without dropout: which values are dropped depends on the row.
    write_config(tmp_path)
    losses = []
    for unpad in (False, True):
        directory = str(tmp_path / f"run-{unpad}")
        batches = {"train_batch_size": 64, "steps_per_update": 2, "num_train_steps": 3, "tensorboard": False}
        assert train(settings, output_dir=directory, **batches, unpad=unpad) == 0
        names = ("loss", "next_sentence_loss", "gradient_norm")
        losses.append([line[name] for line in lines(directory, "train") for name in names])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_killed_and_told_to_end_the_run_goes_on_bit_equal(settings, undisturbed):
    directory = settings["output_dir"]
    settings = settings | {"num_train_steps": 40}
    process = started(settings)
    wait_for(directory, 4, process)
    process.kill()
    process.wait()
    # A process that is killed while it writes leaves a file like this.
    abandoned = Path(directory) / f"step-0000000006.safetensors.0{files.TEMPORARY_SUFFIX}"
    abandoned.write_bytes(b"half")
    after = checkpoints.step_of(checkpoints.list_checkpoints(directory)[-1])
    assert after < 40, "the run was over before it was killed: make it longer"

    process = started(settings)
    wait_for(directory, after + 4, process)
    process.terminate()
    said = process.communicate()[1]
    assert process.returncode == 128 + signal.SIGTERM, said
    stopped = lines(directory, "stopped")[-1]["step"]
    assert checkpoints.step_of(checkpoints.list_checkpoints(directory)[-1]) == stopped < 40

    assert train(settings) == 0
    assert_same_run(directory, undisturbed)
    # No temporary file is left, and only the newest checkpoints are kept.
    names = sorted(p.name for p in Path(directory).iterdir())
    assert [n for n in names if n.startswith("step")] == [f"step-{s:010d}.safetensors" for s in range(32, 41, 2)]
    assert not [n for n in names if n.endswith(files.TEMPORARY_SUFFIX)]


def test_the_first_evaluation_comes_before_any_step(settings, small_examples, capfd):
    train(settings, eval_file=(small_examples,), eval_every_samples=32, expected_initial_masked_lm_accuracy=0.34085)
    evaluations = lines(settings["output_dir"], "eval")
    assert [e["step"] for e in evaluations] == [0, 4, 8]
    assert evaluations[0]["expected_masked_lm_accuracy"] == 0.34085
    events = [x["event"] for x in logged(settings["output_dir"])]
    assert events.index("eval") < events.index("train")
    assert "NOT as expected of this initial checkpoint: masked lm accuracy 0.34085" in capfd.readouterr().err


def test_the_target_ends_the_run(settings, small_examples):
    # Any accuracy reaches 0, so the first evaluation ends the run.
    assert train(settings, eval_file=(small_examples,), target_masked_lm_accuracy=0.0) == 0
    assert lines(settings["output_dir"], "end")[0]["target_reached"]
    assert lines(settings["output_dir"], "end")[0]["step"] == 0


@pytest.mark.exhaustive
def test_a_watching_process_evaluates_each_checkpoint(settings, small_examples):
    train(settings, num_train_steps=4)
    assert train(settings, eval_file=(small_examples,), eval_only=True, watch=True) == 0
    assert [e["step"] for e in lines(settings["output_dir"], "eval", "eval")] == [2, 4]


@pytest.mark.exhaustive
def test_a_watching_process_ends_the_training_beside_it(settings, small_examples):
    # Any accuracy reaches 0. Only the watching process evaluates.
    goal = {"target_masked_lm_accuracy": 0.0}
    training = started(settings, num_train_steps=100_000, save_checkpoints_steps=50, watched=True, **goal)
    assert train(settings, eval_file=(small_examples,), eval_only=True, watch=True, **goal) == 0
    said = training.communicate(timeout=600)[1]
    assert training.returncode == 0, said
    (end,) = lines(settings["output_dir"], "end")
    assert end["target_reached"]
    assert 50 <= end["step"] < 100_000


def test_a_target_file_ends_the_training(settings):
    directory = Path(settings["output_dir"])
    directory.mkdir()
    (directory / loop.TARGET_FILE).write_text('{"step": 0, "masked_lm_accuracy": 0.95}\n')
    assert train(settings, target_masked_lm_accuracy=0.9, watched=True) == 0
    assert lines(directory, "end")[0]["step"] == 0
    # A file that says a lower target was reached does not end a run with a higher one.
    assert train(settings, target_masked_lm_accuracy=0.99, watched=True) == 0
    assert [x["target_reached"] for x in lines(directory, "end")] == [True, False]
    assert lines(directory, "end")[1]["step"] == 8


@pytest.mark.parametrize("content", ["", "{", "[]", '{"step": 3}', '{"step": 0, "masked_lm_accuracy": "high"}'])
def test_a_damaged_target_file_is_one_sentence(settings, content):
    directory = Path(settings["output_dir"])
    directory.mkdir()
    (directory / loop.TARGET_FILE).write_text(content)
    with pytest.raises(UnusableInputError, match=r"target_reached.json: this file is damaged; delete it"):
        train(settings, target_masked_lm_accuracy=0.9, watched=True)


def test_any_past_checkpoint_is_evaluated(settings, small_examples):
    train(settings, eval_file=(small_examples,), num_train_steps=4, eval_every_samples=16)
    path = checkpoints.path_of(settings["output_dir"], 2)
    train(settings, eval_file=(small_examples,), eval_only=True, checkpoint=path)
    during, after = lines(settings["output_dir"], "eval"), lines(settings["output_dir"], "eval", "eval")
    assert after[0]["step"] == 2
    assert after[0]["masked_lm_loss"] == pytest.approx(during[1]["masked_lm_loss"], rel=1e-6)


def test_nan_stops_the_run_and_keeps_the_last_good_checkpoint(settings):
    # The learning rate is so high that the loss overflows within a few steps.
    with pytest.raises(RunFailedError, match=r"the .* of step \d+ is (nan|inf), .* the last good checkpoint"):
        train(settings, optimizer="adamw", learning_rate=1e18, num_train_steps=40, num_warmup_steps=4)
    for path in checkpoints.list_checkpoints(settings["output_dir"]):
        assert all(np.isfinite(a).all() for a in checkpoints.read(path).arrays.values())
    assert lines(settings["output_dir"], "failed")


def free_address():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return f"localhost:{free.getsockname()[1]}"


def started_hosts(settings, changes_of):
    """Two processes of one run, as on two hosts, each with options of its own."""
    addresses = [free_address(), free_address()]
    for i in range(2):
        # JAX reads the flags, TensorFlow this variable.
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
        environment = {"XLA_FLAGS": "", "TF_CONFIG": json.dumps(config)}
        named = {"coordinator": addresses[0], "num_processes": 2, "process_id": i}
        yield started(settings, environment=environment, **named, **changes_of(i))


@pytest.mark.exhaustive
def test_hosts_that_do_not_share_a_directory_end_at_once(settings):
    directory = settings["output_dir"]
    for host in list(started_hosts(settings, lambda i: {"output_dir": f"{directory}-{i}"})):
        said = host.communicate(timeout=600)[1]
        assert host.returncode == 2, said
        assert "not all 2 processes see the same directory there; give one that all hosts share" in said
    assert [names for i in range(2) for *_, names in os.walk(f"{directory}-{i}") if names] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("killed", [0, 1])
def test_a_host_ends_when_another_is_killed(settings, killed):
    hosts = list(started_hosts(settings, lambda _: {"num_train_steps": 100_000}))
    wait_for(settings["output_dir"], 2, hosts[0])
    hosts[killed].kill()
    said = hosts[1 - killed].communicate(timeout=300)[1]
    assert hosts[1 - killed].returncode == 1, said
    (sentence,) = (line for line in said.splitlines() if "maskmill" in line)
    assert sentence.startswith("maskmill train: Another of the 2 processes has ended or cannot be reached (")
    assert sentence.endswith("start all of them again: the run goes on from its newest checkpoint.")
    assert "Traceback" not in said


@pytest.mark.exhaustive
def test_two_hosts_are_one(settings, small_examples, tmp_path):
    if BACKEND == "tensorflow":
        # On TensorFlow each device draws its own dropout; JAX draws it for the whole batch. So there is none here.
        write_config(tmp_path)
    changes = {"num_train_steps": 4, "eval_file": (small_examples,), "eval_every_samples": 16}
    shared = changes | ({"sharding": "fsdp"} if BACKEND == "jax" else {})
    for host in list(started_hosts(settings, lambda _: shared)):
        said = host.communicate(timeout=600)[1]
        assert host.returncode == 0, said
    one, both = str(tmp_path / "one"), settings["output_dir"]
    train(settings, output_dir=one, **changes)
    assert_almost_same_run(both, one, 4)
    # One host, which has the whole state, goes on where both would have gone on.
    os.remove(checkpoints.path_of(both, 4))
    train(settings, **changes)
    assert_almost_same_run(both, one, 4)


def assert_almost_same_run(directory, other, last):
    """The two runs' losses at each step, their evaluations, and their weights and moments after the last step."""
    for event, names in (("train", ("loss", "gradient_norm")), ("eval", ("masked_lm_loss", "next_sentence_loss"))):
        first, second = ({x["step"]: [x[n] for n in names] for x in lines(d, event)} for d in (directory, other))
        assert first.keys() == second.keys()
        for step, values in first.items():
            assert values == pytest.approx(second[step], rel=1e-5), (event, step)
    first, second = (checkpoints.read(checkpoints.path_of(d, last)).arrays for d in (directory, other))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_allclose(array, second[name], atol=1e-5, err_msg=name)


def test_some_steps_are_recorded(settings):
    assert train(settings, profile=2) == 0
    (trace,) = (Path(settings["output_dir"]) / "profile").rglob("*.xplane.pb")
    assert trace.stat().st_size > 0
    # What is compiled is there for the next run.
    if BACKEND == "jax":
        import jax

        assert os.listdir(jax.config.jax_compilation_cache_dir)
