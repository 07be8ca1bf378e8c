"""Options that do not go together, and their flags."""

import argparse
import subprocess
import sys

import pytest

from pipelines import options as option_tools
from training import launchers
from training.options import TrainOptions
from transforms.errors import UnusableInputError

GIVEN = {"output_dir": "run", "input_file": ("part-*",)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_batch_size": 0}, "--train_batch_size is 0: it must be at least 1"),
        ({"max_seq_length": 0}, "--max_seq_length is 0: it must be at least 1"),
        ({"train_batch_size": 30, "steps_per_update": 4}, "--train_batch_size 30 is not a multiple of --steps_per_up"),
        ({"bert_config_file": "x", "preset": "tiny"}, "both name the model; give one"),
        ({"watch": True}, "--watch goes with --eval_only"),
        ({"checkpoint": "x"}, "--checkpoint goes with --eval_only"),
        ({"eval_only": True}, "--eval_only needs --eval_file"),
        ({"eval_only": True, "eval_file": ("x",), "watch": True, "checkpoint": "x"}, "leave --checkpoint out"),
        ({"input_file": ()}, "--input_file is missing"),
        ({"task": "classify", "target_masked_lm_accuracy": 0.7}, "goes with --task pretrain"),
        ({"dry_run": True}, "--dry_run goes with --launcher"),
        ({"coordinator": "node0"}, "--coordinator is node0: it must be HOST:PORT"),
        ({"coordinator": "node0:x"}, "--coordinator is node0:x: it must be HOST:PORT"),
        ({"coordinator": "node0:1", "coordinator_timeout": 0}, "--coordinator_timeout is 0: it must be a number of s"),
        ({"coordinator": "node0:1", "process_id": -1}, "--process_id is -1: it must be at least 0"),
        ({"coordinator": "node0:1", "process_id": 2, "num_processes": 2}, "--process_id is 2: it must be at least 0"),
        ({"seed": -1}, "--seed is -1"),
        ({"seed": 2**31}, "--seed is 2147483648"),
    ],
)
def test_options_that_do_not_go_together(changes, message):
    with pytest.raises(UnusableInputError, match=message):
        TrainOptions(**(GIVEN | changes))


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


def test_flags_give_the_same_options_again():
    given = TrainOptions(**GIVEN, shuffle=False, learning_rate=0.00288293, start_warmup_step=-76, preset="base")
    parser = argparse.ArgumentParser()
    option_tools.add_flags(parser, TrainOptions)
    namespace, _ = option_tools.parse(parser, launchers.flags(given))
    assert option_tools.from_flags(TrainOptions, namespace) == given
