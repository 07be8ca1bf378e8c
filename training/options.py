"""The options of `maskmill train` and `maskmill convert-checkpoint`. This imports neither TensorFlow nor Keras.

Options of the reference's run_pretraining.py have the same name, meaning and default here, with three exceptions.
Lengths that are not given are taken from the data. Gradients are clipped after they are averaged
(`clip_by_global_norm_after_gradient_allreduce`). A step is an update, also with `steps_per_update` above 1, where the
reference counts each part as a step.
"""

import dataclasses
import math
from typing import Literal

from transforms.errors import UnusableInputError
from transforms.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `maskmill train`.

    Raises:
      UnusableInputError: options are out of range or do not go together.
    """

    output_dir: str = option(help="directory of the checkpoints and logs; a run in it is resumed")
    input_file: tuple[str, ...] = option(
        (), help="training examples: TFRecords, globs or comma lists; for classify also TSV"
    )
    eval_file: tuple[str, ...] = option((), help="evaluation examples, in the same forms as input_file")
    task: Literal["pretrain", "classify"] = option("pretrain", help="what to train")

    bert_config_file: str | None = option(None, help="the model: bert_config.json, or Hugging Face's config.json")
    preset: str | None = option(
        None, help="the model: tiny, mini, small, medium, base, large, roberta-base, roberta-large"
    )
    vocab_size: int | None = option(None, help="vocabulary size of a preset's model, if not the preset's own")
    vocab_file: str | None = option(None, help="vocabulary: sets a preset's vocabulary size, and tokenizes TSV")
    next_sentence_prediction: bool | None = option(None, help="train the next-sentence head (default: True for BERT)")
    init_checkpoint: str | None = option(
        None, help="initial weights: TF1 or TF2 checkpoint, Hugging Face directory or safetensors file"
    )

    max_seq_length: int | None = option(None, help="sequence length; except for TSV it must be the data's, the default")
    max_predictions_per_seq: int | None = option(
        None, help="masked positions of an example; must be the data's, the default"
    )
    train_batch_size: int = option(32, help="examples in an update, over all devices and hosts")
    eval_batch_size: int = option(32, help="examples in a step of evaluation, over all devices and hosts")
    steps_per_update: int = option(1, help="parts in which a batch is computed, one after the other, to save memory")
    num_train_steps: int = option(100000, help="number of updates")
    seed: int = option(0, help="seed of the initial weights, the order of examples and dropout")
    shuffle: bool = option(True, help="shuffle the training examples; False: file order")
    shuffle_buffer: int = option(16384, help="examples that are held in memory and shuffled together")

    optimizer: Literal["adamw", "lamb"] = option("adamw", help="optimizer")
    learning_rate: float = option(5e-5, help="learning rate after the warm-up")
    num_warmup_steps: int = option(10000, help="steps of the linear warm-up")
    start_warmup_step: int = option(0, help="step at which the warm-up begins; may be negative")
    poly_power: float = option(1.0, help="power of the polynomial decay, which ends at 0 at the last step")
    weight_decay_rate: float = option(0.01, help="AdamW's weight decay")
    lamb_weight_decay_rate: float = option(0.01, help="LAMB's weight decay")
    lamb_beta_1: float = option(0.9, help="LAMB's first beta")
    lamb_beta_2: float = option(0.999, help="LAMB's second beta")
    log_epsilon: int = option(-6, help="decimal logarithm of LAMB's epsilon")
    clip_gradients: bool = option(True, help="clip gradients to norm 1")
    clip_by_global_norm_after_gradient_allreduce: bool = option(
        True,
        help="clip the average over devices and parts; False: clip each device's part first, the reference's default",
    )

    save_checkpoints_steps: int = option(1000, help="steps between checkpoints")
    keep_checkpoint_max: int = option(5, help="checkpoints to keep; older ones are deleted")
    eval_every_samples: int | None = option(None, help="examples between evaluations (default: MLPerf's rule)")
    max_eval_steps: int | None = option(None, help="batches of an evaluation at most (default: the whole set)")
    target_masked_lm_accuracy: float | None = option(None, help="accuracy at which an evaluation ends the run")
    expected_initial_masked_lm_accuracy: float | None = option(
        None, help="accuracy expected of the first evaluation (default: 0.34085 for MLPerf's model.ckpt-28252)"
    )
    eval_only: bool = option(False, help="evaluate the newest checkpoint, or --checkpoint, instead of training")
    watch: bool = option(False, help="with --eval_only: evaluate each new checkpoint until the training ends")
    checkpoint: str | None = option(None, help="with --eval_only: the checkpoint to evaluate, of any kind")
    log_steps: int = option(10, help="steps between lines of the log")
    tensorboard: bool = option(True, help="write TensorBoard's event files below output_dir")
    mlperf_log: bool = option(False, help="print MLPerf's :::MLLOG lines, and write them to output_dir/mlperf.log")

    backend: Literal["jax", "tensorflow"] = option("jax", help="library that computes")
    num_devices: int | None = option(None, help="devices of this host (default: all; on a CPU 1, and more are virtual)")
    dtype: Literal["float32", "bfloat16"] = option(
        "float32", help="dtype of the computation; weights and losses are always float32"
    )
    deterministic: bool = option(
        False, help="TensorFlow: use deterministic kernels only (JAX always does on CPU and TPU)"
    )
    coordinator: str | None = option(
        None, help="several hosts: HOST:PORT of the first, or `auto` on Slurm, GKE and Cloud TPU"
    )
    coordinator_timeout: float = option(
        300.0, help="several hosts: how many seconds the processes wait for each other at the start"
    )
    num_processes: int | None = option(None, help="several hosts: number of processes")
    process_id: int | None = option(None, help="several hosts: the number of this process, from 0")

    num_labels: int = option(2, help="classify: number of labels")
    do_lower_case: bool = option(True, help="classify from TSV: lower-case the text")
    max_query_length: int | None = option(None, help="classify: tokens of the first text at most, with [CLS] and [SEP]")
    max_document_length: int | None = option(None, help="classify: tokens of the second text at most, with [SEP]")

    launcher: Literal["local", "vertex", "gke", "slurm"] | None = option(
        None, help="where to start the training, instead of in this process"
    )
    launcher_file: str | None = option(None, help="the launcher's file (default: deploy/training/LAUNCHER.*)")
    dry_run: bool = option(False, help="with --launcher: print the command instead of running it")

    def __post_init__(self) -> None:
        positive = (
            "train_batch_size", "eval_batch_size", "steps_per_update", "num_train_steps", "save_checkpoints_steps",
            "keep_checkpoint_max", "log_steps", "shuffle_buffer", "num_labels",
        )  # fmt: skip
        optional = (
            "vocab_size", "max_seq_length", "max_predictions_per_seq", "eval_every_samples", "max_eval_steps",
            "num_devices", "num_processes", "max_query_length", "max_document_length",
        )  # fmt: skip
        for name in positive + optional:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UnusableInputError(f"--{name} is {value}: it must be at least 1.")
        if not 0 <= self.seed < 2**31:
            raise UnusableInputError(f"--seed is {self.seed}: it must be at least 0 and below 2^31.")
        if self.train_batch_size % self.steps_per_update:
            raise UnusableInputError(
                f"--train_batch_size {self.train_batch_size} is not a multiple of --steps_per_update "
                f"{self.steps_per_update}; choose one that is."
            )
        if self.bert_config_file is not None and self.preset is not None:
            raise UnusableInputError("--bert_config_file and --preset both name the model; give one.")
        if self.watch and not self.eval_only:
            raise UnusableInputError("--watch goes with --eval_only: it evaluates the checkpoints of another process.")
        if self.watch and self.checkpoint is not None:
            raise UnusableInputError("--watch evaluates every new checkpoint; leave --checkpoint out.")
        if self.checkpoint is not None and not self.eval_only:
            raise UnusableInputError("--checkpoint goes with --eval_only; --init_checkpoint gives initial weights.")
        if self.eval_only and not self.eval_file:
            raise UnusableInputError("--eval_only needs --eval_file: name the evaluation examples.")
        if not self.eval_only and not self.input_file:
            raise UnusableInputError("--input_file is missing: name the training examples.")
        if self.target_masked_lm_accuracy is not None and self.task != "pretrain":
            raise UnusableInputError("--target_masked_lm_accuracy goes with --task pretrain; leave it out.")
        if self.dry_run and self.launcher is None:
            raise UnusableInputError("--dry_run goes with --launcher: it prints the launcher's command.")
        self._check_hosts()

    def _check_hosts(self) -> None:
        host, _, port = (self.coordinator or "").rpartition(":")
        if self.coordinator not in (None, "auto") and not (host and port.isascii() and port.isdigit()):
            raise UnusableInputError(
                f"--coordinator is {self.coordinator}: it must be HOST:PORT, as in node0:1234, or `auto`."
            )
        if not 0 < self.coordinator_timeout < math.inf:
            raise UnusableInputError(
                f"--coordinator_timeout is {self.coordinator_timeout:g}: it must be a number of seconds above 0."
            )
        if self.process_id is not None and not 0 <= self.process_id < (self.num_processes or math.inf):
            raise UnusableInputError(
                f"--process_id is {self.process_id}: it must be at least 0, and below --num_processes."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of `maskmill convert-checkpoint`."""

    input: str = option(
        help="TF1 or TF2 checkpoint, Hugging Face directory or safetensors file, or maskmill's checkpoint"
    )
    output: str = option(
        help="prefix of the TF1 or TF2 checkpoint, directory of the Hugging Face model, or .safetensors file"
    )
    format: Literal["tf1", "tf2", "huggingface", "maskmill"] = option(help="format to write")
    bert_config_file: str | None = option(None, help="the model's configuration, if there is none beside the input")
