"""What a run is resumed by, and what MLPerf's log says of it."""

import json
from types import SimpleNamespace

import pytest

from training import settings
from training.config import ModelConfig
from training.options import TrainOptions, deciding_options

CONFIG = ModelConfig(vocab_size=9)


def options(**changes):
    return TrainOptions(**({"output_dir": "run", "input_file": ("part-*",)} | changes))


def resume_settings(**changes):
    return settings.resume_settings(options(**changes), CONFIG, "0123")


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 1.0},
        {"weight_decay_rate": 0.1},
        {"task": "classify"},
        {"next_sentence_prediction": False},
        {"init_checkpoint": "model.ckpt-1"},
        {"unpad": True},
    ],
)
def test_a_run_is_not_resumed_with_another_value(change):
    assert resume_settings(**change) != resume_settings()


@pytest.mark.parametrize(
    "change",
    [
        {"output_dir": "other"},
        {"input_file": ("copies/part-*",)},
        {"log_steps": 7},
        {"num_devices": 4},
        {"steps_per_update": 4},
        {"lamb_beta_1": 0.5},  # AdamW does not read it
        {"num_labels": 5},  # nor does pre-training
        {"next_sentence_prediction": True},  # BERT's default
        {"do_lower_case": False},
        {"eval_file": ("eval",)},
        {"save_checkpoints_steps": 7},
        {"backend": "tensorflow"},
    ],
)
def test_a_run_may_be_resumed_with_another_value(change):
    assert resume_settings(**change) == resume_settings()


def test_the_number_of_parts_matters_where_each_is_clipped():
    clipped = {"clip_by_global_norm_after_gradient_allreduce": False}
    assert resume_settings(**clipped, steps_per_update=4) != resume_settings(**clipped)


def test_an_option_says_itself_that_it_decides():
    """What is added to these lists changes which runs can be resumed."""
    everything = options(
        task="classify", input_file=("x.tsv",), optimizer="lamb", clip_by_global_norm_after_gradient_allreduce=False
    )
    always = {
        "task", "init_checkpoint", "train_batch_size", "num_train_steps", "seed", "shuffle", "shuffle_buffer",
        "optimizer", "learning_rate", "num_warmup_steps", "start_warmup_step", "poly_power", "clip_gradients",
        "clip_by_global_norm_after_gradient_allreduce", "dtype", "reduce_dtype",
    }  # fmt: skip
    assert set(deciding_options(options())) == always | {"weight_decay_rate"}
    assert set(deciding_options(everything)) == always | {
        "steps_per_update", "num_labels", "do_lower_case", "max_query_length", "max_document_length", "lamb_beta_1",
        "lamb_beta_2", "lamb_weight_decay_rate", "log_epsilon",
    }  # fmt: skip
    assert "shuffle_buffer" not in deciding_options(options(shuffle=False))


def test_the_devices_matter_where_each_is_clipped():
    clipped = options(clip_by_global_norm_after_gradient_allreduce=False)
    one, four = (settings.resume_settings(clipped, CONFIG, "0123", device_count=n) for n in (1, 4))
    assert one != four
    one, four = (settings.resume_settings(options(), CONFIG, "0123", device_count=n) for n in (1, 4))
    assert one == four


def test_the_model_and_the_data_matter():
    base = resume_settings()
    assert settings.resume_settings(options(), CONFIG, "4567") != base
    assert settings.resume_settings(options(), ModelConfig(vocab_size=10), "0123") != base
    # No weight depends on where Hugging Face's tables begin.
    assert settings.resume_settings(options(), ModelConfig(vocab_size=9, position_offset=5), "0123") == base
    assert json.loads(json.dumps(base)) == base


def test_mlperfs_names_of_the_settings():
    features = {"input_ids": SimpleNamespace(length=512), "masked_lm_positions": SimpleNamespace(length=76)}
    named = settings.mlperf_settings(
        options(
            optimizer="lamb",
            train_batch_size=8192,
            num_train_steps=600,
            num_warmup_steps=0,
            lamb_beta_2=0.88,
            log_epsilon=-6,
        ),
        features,
        eval_samples=10_000,
        platform="8x TPU v5",
    )
    assert named["global_batch_size"] == 8192
    assert named["train_samples"] == 600 * 8192
    assert named["max_sequence_length"] == 512
    assert named["max_predictions_per_seq"] == 76
    assert named["opt_lamb_beta_2"] == 0.88
    assert named["opt_lamb_epsilon"] == pytest.approx(1e-6)
    assert named["eval_samples"] == 10_000
    assert named["opt_learning_rate_warmup_steps"] == named["num_warmup_steps"]
    assert (named["submission_division"], named["submission_platform"]) == ("closed", "8x TPU v5")
    adamw = settings.mlperf_settings(
        options(submission_platform="mine"),
        {"input_ids": SimpleNamespace(length=128)},
        eval_samples=1,
        platform="1x cpu",
    )
    assert (adamw["submission_division"], adamw["submission_platform"]) == ("open", "mine")
    assert adamw["opt_name"] == "adamw"
    assert not [name for name in adamw if "lamb" in name or name == "max_predictions_per_seq"]


def test_options_that_were_not_given_are_not_logged():
    given = settings.given_options(options(seed=3))
    assert given["seed"] == 3
    assert "preset" not in given
    assert json.loads(json.dumps(given))["input_file"] == ["part-*"]
