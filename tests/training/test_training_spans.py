"""A run on spans is, step by step, the run on TFRecords of the same rows."""

import random
from pathlib import Path

import pytest
from data_sets.example_sets import setup_of, write_set
from training_helpers import BACKEND, logged, write_config

from training import command
from training.options import TrainOptions

TEXT = "the river runs past a small town where an old bridge stands and boats pass under it in summer"


@pytest.mark.skipif(BACKEND != "jax", reason="what reads is the same on every backend")
def test_the_losses_are_those_of_tfrecords(tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = [" ".join(draw.choices(TEXT.split(), k=9)) + "\n" * (1 + (n % 8 == 7)) for n in range(300)]
    losses = []
    for form in ("tfrecord", "spans"):
        setup = setup_of(format=form, dynamic_masking=True, dupe_factor=1)
        options = TrainOptions(
            input_file=(write_set(tmp_path, setup, texts={"part-00000-of-00001": "".join(lines)}, folder=form),),
            output_dir=str(tmp_path / f"run-{form}"),
            bert_config_file=write_config(tmp_path),
            train_batch_size=16,
            num_train_steps=12,
            num_warmup_steps=2,
            learning_rate=0.01,
            log_steps=1,
            backend=BACKEND,
        )
        assert command.run(options) == 0
        losses.append([line["loss"] for line in logged(tmp_path / f"run-{form}") if line["event"] == "train"])
    assert losses[0] == losses[1]
    assert len(set(losses[0])) == 12
