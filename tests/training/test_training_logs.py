"""The log of a run, TensorBoard's files and MLPerf's lines, by a clock that stands still unless it is moved."""

import json

import pytest
import tensorflow as tf
from training_helpers import BACKEND

from training.logs import MlperfLog, RunLog

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def lines(path):
    with tf.io.gfile.GFile(str(path)) as file:
        return [json.loads(line) for line in file.read().splitlines()]


def board_values(directory):
    """(tag, value) by step, in the event files of a directory."""
    values = {}
    for path in directory.iterdir():
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                values.setdefault(event.step, []).append((value.tag, value.simple_value))
    return values


def test_an_event_is_a_line_and_its_numbers_are_on_the_board(tmp_path):
    log = RunLog(str(tmp_path), "log", clock=Clock())
    log.event("train", 3, {"loss": 0.5, "samples": 96, "done": True, "reason": "none"})
    log.flush()
    expected = {"event": "train", "step": 3, "time": 1000.0, "loss": 0.5, "samples": 96, "done": True, "reason": "none"}
    assert lines(tmp_path / "log.jsonl") == [expected]
    # Neither the truth value nor the text is a number.
    assert board_values(tmp_path / "tensorboard" / "log") == {3: [("train/loss", 0.5), ("train/samples", 96.0)]}


def test_a_process_that_is_not_the_first_writes_nothing(tmp_path):
    log = RunLog(str(tmp_path), "log", writes=False)
    log.event("train", 1, {"loss": 0.5})
    log.flush()
    log.resume(0)
    assert list(tmp_path.iterdir()) == []


def test_tensorboards_files_may_be_left_out(tmp_path):
    log = RunLog(str(tmp_path), "log", tensorboard=False)
    log.event("train", 1, {"loss": 0.5})
    assert [p.name for p in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_resumed_log_loses_the_later_steps_and_a_line_that_was_cut_off(tmp_path):
    path = tmp_path / "log.jsonl"
    log = RunLog(str(tmp_path), "log", tensorboard=False)
    for step in (1, 2, 3):
        log.event("train", step, {})
    path.write_text(path.read_text() + '{"event": "train", "st')
    RunLog(str(tmp_path), "log", tensorboard=False).resume(2)
    assert [line["step"] for line in lines(path)] == [1, 2]


def test_a_remote_log_is_written_once_a_minute(tmp_path):
    clock, directory = Clock(), f"ram://{tmp_path.name}-log"
    log = RunLog(directory, "log", tensorboard=False, clock=clock)
    log.event("train", 1, {})
    assert not tf.io.gfile.exists(f"{directory}/log.jsonl")
    clock.now += 61
    log.event("train", 2, {})
    assert [line["step"] for line in lines(f"{directory}/log.jsonl")] == [1, 2]
    log.event("train", 3, {})
    log.flush()
    assert [line["step"] for line in lines(f"{directory}/log.jsonl")] == [1, 2, 3]


def test_mlperfs_lines_go_to_the_terminal_and_to_a_file(tmp_path, capsys):
    log = MlperfLog(str(tmp_path / "run" / "mlperf.log"), enabled=True, clock=Clock())
    log.start("eval_start", epoch_num=96)
    log.event("eval_accuracy", 0.5, epoch_num=96)
    log.end("eval_stop", epoch_num=96)
    printed = capsys.readouterr().out
    assert (tmp_path / "run" / "mlperf.log").read_text() == printed
    events = [json.loads(line.removeprefix(":::MLLOG ")) for line in printed.splitlines()]
    assert [(e["event_type"], e["key"], e["value"]) for e in events] == [
        ("INTERVAL_START", "eval_start", None),
        ("POINT_IN_TIME", "eval_accuracy", 0.5),
        ("INTERVAL_END", "eval_stop", None),
    ]
    assert {e["time_ms"] for e in events} == {1_000_000}
    # The metadata says where the line was logged.
    assert {e["metadata"]["file"] for e in events} == {"test_training_logs.py"}
    assert events[1]["metadata"]["epoch_num"] == 96
    assert events[0]["metadata"]["lineno"] + 1 == events[1]["metadata"]["lineno"]


def test_a_log_that_is_not_enabled_says_nothing(tmp_path, capsys):
    MlperfLog(str(tmp_path / "mlperf.log"), enabled=False).event("seed", 1)
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []
