"""The log of a run, TensorBoard's files and MLPerf's lines, by a clock that stands still unless it is moved."""

import json

import pytest
import tensorflow as tf
from training_helpers import BACKEND

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training.logs import MlperfLog, RunLog

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def lines(path):
    return [json.loads(line) for line in files.read_bytes(str(path)).splitlines()]


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


def test_a_remote_log_is_written_once_a_minute(bucket):
    clock, directory = Clock(), f"{bucket}/a-log"
    log = RunLog(directory, "log", tensorboard=False, clock=clock)
    log.event("train", 1, {})
    assert not files.exists(f"{directory}/log.jsonl")
    clock.now += 61
    log.event("train", 2, {})
    assert [line["step"] for line in lines(f"{directory}/log.jsonl")] == [1, 2]
    log.event("train", 3, {})
    log.flush()
    assert [line["step"] for line in lines(f"{directory}/log.jsonl")] == [1, 2, 3]


def events(text):
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in text.splitlines()]


def progress(samples):
    return {"samples_count": samples, "epoch_num": samples, "step_num": samples // 32}


def test_mlperfs_lines_go_to_the_terminal_and_to_a_file(tmp_path, capsys):
    path, clock = tmp_path / "run" / "mlperf.log", Clock()
    log = MlperfLog(str(path), enabled=True, clock=clock)
    log.start("init_start")
    # Until it is known whether a run is resumed, nothing is written.
    assert not path.exists()
    assert capsys.readouterr().out == ""
    clock.now += 1
    log.begin(progress(0), resumed=False)
    log.start("eval_start", **progress(0))
    log.event("eval_accuracy", 0.5, **progress(0))
    printed = capsys.readouterr().out
    assert path.read_text() == printed
    assert [(e["event_type"], e["key"], e["value"], e["time_ms"]) for e in events(printed)] == [
        ("INTERVAL_START", "init_start", None, 1_000_000),
        ("INTERVAL_START", "run_start", None, 1_001_000),
        ("INTERVAL_START", "eval_start", None, 1_001_000),
        ("POINT_IN_TIME", "eval_accuracy", 0.5, 1_001_000),
    ]
    # The metadata says where the line was logged.
    *_, start, accuracy = (e["metadata"] for e in events(printed))
    assert start["file"] == accuracy["file"] == "test_training_logs.py"
    assert start["lineno"] + 1 == accuracy["lineno"]
    assert accuracy["epoch_num"] == 0


def test_mlperfs_log_of_a_resumed_run_goes_on_after_the_checkpoint(tmp_path):
    path = tmp_path / "mlperf.log"
    log = MlperfLog(str(path), enabled=True, clock=Clock())
    log.start("init_start")
    log.begin(progress(0), resumed=False)
    log.block_start(progress(0), samples=64)
    log.block_start(progress(32), samples=32)
    log.block_stop(progress(64))
    log.block_stop(progress(64))
    log.end("run_stop", status="aborted", **progress(64))
    path.write_text(path.read_text() + ':::MLLOG {"names')

    # The block was not over at the checkpoint.
    log = MlperfLog(str(path), enabled=True, clock=Clock())
    log.start("init_start")
    log.begin(progress(32), resumed=True)
    log.block_start(progress(32), samples=32)
    log.block_stop(progress(64))
    block = ["block_start", "epoch_start", "epoch_stop", "block_stop"]
    assert [e["key"] for e in events(path.read_text())] == ["init_start", "run_start", *block]

    # At this checkpoint it was.
    log = MlperfLog(str(path), enabled=True, clock=Clock())
    log.begin(progress(64), resumed=True)
    log.block_start(progress(64), samples=32)
    assert [e["key"] for e in events(path.read_text())] == ["init_start", "run_start", *block, *block[:2]]


def test_a_resumed_run_that_had_no_log_gets_one_from_there_on(tmp_path):
    path = tmp_path / "mlperf.log"
    log = MlperfLog(str(path), enabled=True, clock=Clock())
    log.start("init_start")
    log.begin(progress(64), resumed=True)
    assert [e["key"] for e in events(path.read_text())] == ["init_start", "run_start"]
    assert events(path.read_text())[1]["metadata"]["samples_count"] == 64


@pytest.mark.parametrize("line", ["noise", '{"event": "train"}', "5", "\x80"])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "log.jsonl"
    RunLog(str(tmp_path), "log", tensorboard=False).event("train", 1, {})
    path.write_bytes(path.read_bytes() + line.encode("latin-1") + b"\n")
    with pytest.raises(UnusableInputError, match=r"log.jsonl: line 2 of this log is damaged"):
        RunLog(str(tmp_path), "log").resume(1)


def test_a_log_without_an_event_is_no_file(tmp_path):
    RunLog(str(tmp_path), "log").flush()
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_not_enabled_says_nothing(tmp_path, capsys):
    log = MlperfLog(str(tmp_path / "mlperf.log"), enabled=False)
    log.event("seed", 1)
    log.begin(progress(0), resumed=False)
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []
