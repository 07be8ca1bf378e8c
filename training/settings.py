"""The options of a run in the forms that other programs and later runs need. Imports neither TensorFlow nor Keras."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maskmill.errors import UnusableInputError
from maskmill.loading import states
from training.config import ModelConfig
from training.options import TrainOptions, deciding_options

if TYPE_CHECKING:
    from training.inputs import Feature

# Settings that are derived from options and data.
MODEL, DATA, NEXT_SENTENCE, DEVICES = "model", "training_data", "next_sentence_prediction", "devices"
# Which order of the examples a seed gives. Checkpoints of runs that read by tf.data do not name it.
ORDER = "order_of_examples"


def predicts_next_sentence(options: TrainOptions, config: ModelConfig) -> bool:
    """Return whether pre-training trains the next-sentence head: the option, by default True for BERT and ALBERT.

    Raises:
      UnusableInputError: the model has no such head.
    """
    given = options.next_sentence_prediction
    if given and config.model_type == "modernbert":
        raise UnusableInputError("--next_sentence_prediction: ModernBERT has no head for it; leave it out.")
    return config.has_segments if given is None else given


def resume_settings(
    options: TrainOptions, config: ModelConfig, training_data: str, *, device_count: int = 1
) -> dict[str, Any]:
    """Return the settings that a run's result depends on, by name. A run may only be resumed with the same settings.

    They are the options that are declared as `deciding` (training/options.py), and values derived from others.
    `training_data` is the fingerprint of the training examples, `device_count` the number of devices of all hosts.
    """
    model = config.to_settings()
    settings = deciding_options(options) | {MODEL: model, DATA: training_data, ORDER: states.VERSION}
    if options.task == "pretrain":
        settings[NEXT_SENTENCE] = predicts_next_sentence(options, config)
    if "steps_per_update" in settings:
        # The gradient of each part on each device is clipped, so the number of devices matters, too.
        settings[DEVICES] = device_count
    return settings


def mlperf_settings(
    options: TrainOptions, features: "Mapping[str, Feature]", *, eval_samples: int, platform: str
) -> dict[str, Any]:
    """Return the settings of a run under the names of MLPerf's log, in the order in which they are logged.

    `eval_samples` is the number of examples of an evaluation, `platform` the hardware if the options do not name it.
    """
    division = options.submission_division or ("closed" if options.optimizer == "lamb" else "open")
    settings: dict[str, Any] = {
        "submission_benchmark": "bert",
        "submission_org": options.submission_org,
        "submission_division": division,
        "submission_status": options.submission_status,
        "submission_platform": options.submission_platform or platform,
        "global_batch_size": options.train_batch_size,
        "max_sequence_length": features["input_ids"].length,
        "opt_name": options.optimizer,
        "opt_base_learning_rate": options.learning_rate,
        # The rules require the warm-up under both names.
        "opt_learning_rate_warmup_steps": options.num_warmup_steps,
        "num_warmup_steps": options.num_warmup_steps,
        "start_warmup_step": options.start_warmup_step,
        "opt_learning_rate_training_steps": options.num_train_steps,
        "gradient_accumulation_steps": options.steps_per_update,
        "train_samples": options.num_train_steps * options.train_batch_size,
        "eval_samples": eval_samples,
        "seed": options.seed,
    }
    if "masked_lm_positions" in features:
        settings["max_predictions_per_seq"] = features["masked_lm_positions"].length
    if options.optimizer == "lamb":
        settings |= {
            "opt_lamb_weight_decay_rate": options.lamb_weight_decay_rate,
            "opt_lamb_beta_1": options.lamb_beta_1,
            "opt_lamb_beta_2": options.lamb_beta_2,
            "opt_lamb_learning_rate_decay_poly_power": options.poly_power,
            "opt_lamb_epsilon": 10.0**options.log_epsilon,
        }
    return settings


def given_options(options: TrainOptions) -> dict[str, Any]:
    """Return the options that are not None, by name, in values that JSON can hold."""
    return {name: value for name, value in dataclasses.asdict(options).items() if value is not None}
