"""MLPerf's own checker (mlcommons/logging, mlperf-logging on PyPI) passes the log of real runs, under each ruleset with
BERT from 3.1.0 on."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from training_helpers import BACKEND, write_config

from maskmill.errors import RunFailedError
from training import checkpoints, command, evaluate
from training.options import TrainOptions

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the log is the same on both backends")

FIRST_RULESET = (3, 1, 0)
LENGTH, PREDICTIONS, VOCABULARY = 16, 4, 50
# Nine in ten masked tokens are this one, so an accuracy between MLPerf's 0.720 and the checker's limit of 1 is soon
# reached, and is not passed.
USUAL_TOKEN = 7


def rulesets():
    """The versions of MLPerf's rules that have BERT."""
    checker = pytest.importorskip("mlperf_logging.compliance_checker", reason="mlperf-logging (of [dev]) is missing")
    folder = Path(checker.__file__).parent
    versions = []
    for rules in folder.glob("training_*/closed_common.yaml"):
        version = re.fullmatch(r"training_(\d+)\.(\d+)\.(\d+)", rules.parent.name)
        if version and "'bert'" in rules.read_text():
            versions.append(tuple(map(int, version.groups())))
    return [".".join(map(str, v)) for v in sorted(versions) if v >= FIRST_RULESET]


def check(log, tmp_path):
    """The versions of the rules whose checker finds something in a log, warnings too, with what it says."""
    failed = {}
    for version in rulesets():
        checker = [sys.executable, "-m", "mlperf_logging.compliance_checker", "--werror", "--ruleset", version]
        run = subprocess.run([*checker, str(log)], cwd=tmp_path, capture_output=True, text=True, check=False)
        if run.returncode or "SUCCESS" not in run.stderr:
            failed[version] = run.stderr
    return failed


def keys(log):
    return [json.loads(x.removeprefix(":::MLLOG "))["key"] for x in Path(log).read_text().splitlines()]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Examples that a model of one layer learns within some 30 steps."""
    path = tmp_path_factory.mktemp("mlperf") / "examples.tfrecord"
    draw = np.random.default_rng(0)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(256):
            usual = draw.random(PREDICTIONS) < 0.9
            integers = {
                "input_ids": draw.integers(10, VOCABULARY, LENGTH),
                "input_mask": np.ones(LENGTH, int),
                "segment_ids": np.zeros(LENGTH, int),
                "masked_lm_positions": np.arange(1, 1 + PREDICTIONS),
                "masked_lm_ids": np.where(usual, USUAL_TOKEN, draw.integers(10, VOCABULARY, PREDICTIONS)),
                "next_sentence_labels": draw.integers(0, 2, 1),
            }
            features = {n: tf.train.Feature(int64_list=tf.train.Int64List(value=v)) for n, v in integers.items()}
            ones = tf.train.FloatList(value=[1.0] * PREDICTIONS)
            features["masked_lm_weights"] = tf.train.Feature(float_list=ones)
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return str(path)


@pytest.fixture
def given(tmp_path, data):
    return {
        "output_dir": str(tmp_path / "run"),
        "input_file": (data,),
        "eval_file": (data,),
        "bert_config_file": write_config(tmp_path, vocab_size=VOCABULARY, max_position_embeddings=LENGTH),
        "train_batch_size": 32,
        "eval_batch_size": 64,
        "num_train_steps": 40,
        "num_warmup_steps": 2,
        "learning_rate": 0.05,
        "optimizer": "lamb",
        "eval_every_samples": 320,
        "target_masked_lm_accuracy": 0.72,
        "mlperf_log": True,
        "tensorboard": False,
        "backend": BACKEND,
    }


def train(given, **changes):
    return command.run(TrainOptions(**(given | changes)))


def test_the_rulesets_with_bert_are_found():
    assert rulesets()[:4] == ["3.1.0", "4.0.0", "4.1.0", "5.0.0"]


def test_mlperfs_checker_passes_a_run_that_reached_the_target_and_a_second_start_adds_nothing(given, tmp_path, capfd):
    log = tmp_path / "run" / "mlperf.log"
    named = {"submission_org": "Example", "submission_platform": "one_cpu", "submission_status": "onprem"}
    assert train(given, **named) == 0
    printed = capfd.readouterr().out
    assert [x for x in printed.splitlines(keepends=True) if x.startswith(":::MLLOG ")] == log.read_text().splitlines(
        keepends=True
    )
    assert check(log, tmp_path) == {}
    lines = [json.loads(x.removeprefix(":::MLLOG ")) for x in log.read_text().splitlines()]
    values = {x["key"]: x["value"] for x in lines if x["event_type"] == "POINT_IN_TIME"}
    assert values["submission_org"] == "Example"
    assert values["submission_platform"] == "one_cpu"
    assert values["submission_division"] == "closed"
    assert values["submission_status"] == "onprem"
    assert values["eval_samples"] == 256
    assert values["cache_clear"] is True
    assert [x["metadata"]["status"] for x in lines if x["key"] == "run_stop"] == ["success"]
    # A block goes from one evaluation to the next, and an epoch is an example.
    blocks = [x for x in lines if x["key"] == "block_start"]
    assert [x["metadata"]["first_epoch_num"] for x in blocks] == [320 * i for i in range(len(blocks))]
    assert {x["metadata"]["epoch_count"] for x in blocks} == {320}

    before = {p: p.read_bytes() for p in sorted((tmp_path / "run").rglob("*")) if p.is_file()}
    assert train(given, **named) == 0
    again = capfd.readouterr()
    assert ":::MLLOG" not in again.out
    assert "this run was finished at step" in again.err
    assert {p: p.read_bytes() for p in sorted((tmp_path / "run").rglob("*")) if p.is_file()} == before


def test_a_run_with_adamw_is_of_the_open_division(given, tmp_path):
    assert train(given, optimizer="adamw", num_train_steps=3, max_eval_steps=2) == 0
    assert check(tmp_path / "run" / "mlperf.log", tmp_path) == {}


def test_the_log_of_a_run_that_was_killed_and_resumed_is_that_of_one_run(given, tmp_path, monkeypatch, capfd):
    log = tmp_path / "run" / "mlperf.log"
    given = given | {"eval_every_samples": 96, "save_checkpoints_steps": 2, "learning_rate": 0.02}
    assert train(given, output_dir=str(tmp_path / "undisturbed")) == 0

    class Killed(Exception):
        pass

    def die(*_):
        raise Killed

    # The first command ends in its third evaluation, after step 6, before the checkpoint of that step.
    evaluations = iter([evaluate.evaluate, evaluate.evaluate, die])
    with monkeypatch.context() as patched:
        patched.setattr(evaluate, "evaluate", lambda *arguments: next(evaluations)(*arguments))
        with pytest.raises(Killed):
            train(given)
    assert checkpoints.step_of(checkpoints.list_checkpoints(str(tmp_path / "run"))[-1]) == 4
    with log.open("a") as file:
        file.write(':::MLLOG {"namespace": ""')
    capfd.readouterr()
    assert train(given) == 0
    assert check(log, tmp_path) == {}
    assert keys(log) == keys(tmp_path / "undisturbed" / "mlperf.log")
    # What the first command has printed is not printed again.
    assert "run_start" not in capfd.readouterr().out


def test_a_higher_target_continues_the_log(given, tmp_path):
    log = tmp_path / "run" / "mlperf.log"
    assert train(given, target_masked_lm_accuracy=0.01) == 0
    assert train(given) == 0
    assert keys(log).count("run_stop") == keys(log).count("run_start") == 1
    assert check(log, tmp_path) == {}


def test_a_run_that_fails_is_aborted_in_the_log(given, tmp_path):
    with pytest.raises(RunFailedError, match=r"the last good checkpoint|there is no checkpoint yet"):
        train(given, optimizer="adamw", learning_rate=1e18, target_masked_lm_accuracy=None)
    last = json.loads((tmp_path / "run" / "mlperf.log").read_text().splitlines()[-1].removeprefix(":::MLLOG "))
    assert last["key"] == "run_stop"
    assert last["metadata"]["status"] == "aborted"
