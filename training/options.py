"""The options of `maskmill train` and `maskmill convert-checkpoint`. This imports neither TensorFlow nor Keras.

Options of the reference's run_pretraining.py have the same name, meaning and default here, with three exceptions.
Lengths are taken from the data by default. Gradients are clipped after they are averaged
(`clip_by_global_norm_after_gradient_allreduce`). A step is an update, also with `steps_per_update` above 1, where the
reference counts each part as a step.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from maskmill.errors import UnusableInputError
from maskmill.options import HELP, option
from training.config import from_preset

# The key in an option's metadata for when the result of a run depends on it.
_DECIDES = "decides"
# 10^-38 is the smallest power of ten that is a normal float32.
_SMALLEST_EXPONENT = -38


def deciding(
    default: Any = dataclasses.MISSING, *, help: str, when: Callable[["TrainOptions"], bool] = lambda _: True
) -> Any:
    """Return an option (see `maskmill.options.option`) that affects the weights of a run if `when` is true.

    Checkpoints record its value, and a run cannot be resumed with another one. All other options may change at a
    resume: places of files, ways of reading, logging, evaluation, the end of a run, or the computation of the same
    batch. The files of the examples, the model's sizes and the head for next sentences are recorded by their result
    (training/settings.py).
    """
    return dataclasses.field(default=default, metadata={HELP: help, _DECIDES: when})


def _classifies(options: "TrainOptions") -> bool:
    return options.task == "classify"


def _reads_tsv(options: "TrainOptions") -> bool:
    return _classifies(options) and any(path.endswith(".tsv") for path in options.input_file)


def _uses_lamb(options: "TrainOptions") -> bool:
    return options.optimizer == "lamb"


def _clips_each_part(options: "TrainOptions") -> bool:
    return options.clip_gradients and not options.clip_by_global_norm_after_gradient_allreduce


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `maskmill train`.

    Raises:
      UnusableInputError: options are out of range or do not go together.
    """

    GROUPS: ClassVar[Mapping[str, str]] = {
        "bert_config_file": "the model",
        "max_seq_length": "batches and steps",
        "optimizer": "the optimizer",
        "save_checkpoints_steps": "checkpoints, evaluation and logs",
        "backend": "devices and hosts",
        "num_labels": "classification",
        "launcher": "launchers",
    }

    output_dir: str = option(help="directory of the checkpoints and logs; a run in it is resumed")
    input_file: tuple[str, ...] = option(
        (), help="training examples: a data set's directory, TFRecords, globs or comma lists; for classify also TSV"
    )
    eval_file: tuple[str, ...] = option((), help="evaluation examples, in the same forms as input_file")
    release: str | None = option(
        None, help="the release that the examples are of, for the log and the checkpoints (default: that of input_file)"
    )
    release_fingerprint: str | None = option(
        None, help="the fingerprint that this release has; the run refuses another one"
    )
    program: tuple[str, ...] = option((), help="a command that trains in maskmill's place, as a list: python, train.py")
    task: Literal["pretrain", "classify"] = deciding("pretrain", help="what to train")

    bert_config_file: str | None = option(None, help="the model: bert_config.json, or Hugging Face's config.json")
    preset: str | None = option(
        None, help="the model: tiny to large (BERT), roberta-, albert- or modernbert-base or -large"
    )
    vocab_size: int | None = option(None, help="vocabulary size of a preset's model, if not the preset's own")
    vocab_file: str | None = option(None, help="vocabulary: sets a preset's vocabulary size, and tokenizes TSV")
    tokenizer_file: str | None = option(
        None, help="tokenizer.json of the examples, instead of a vocabulary: sets a preset's vocabulary size"
    )
    next_sentence_prediction: bool | None = option(None, help="train the next-sentence head (default: True for BERT)")
    init_checkpoint: str | None = deciding(
        None, help="initial weights: TF1 or TF2 checkpoint, Hugging Face directory, safetensors or PyTorch file"
    )

    max_seq_length: int | None = option(None, help="sequence length; except for TSV it must be the data's, the default")
    max_predictions_per_seq: int | None = option(
        None, help="masked positions of an example; must be the data's, the default"
    )
    train_batch_size: int = deciding(32, help="examples in an update, over all devices and hosts")
    eval_batch_size: int = option(32, help="examples in a step of evaluation, over all devices and hosts")
    steps_per_update: int = deciding(
        1, help="parts in which a batch is computed, one after the other, to save memory", when=_clips_each_part
    )
    unpad: bool = deciding(
        False, help="put several examples into a row, so that nothing is computed of padding", when=lambda o: o.unpad
    )
    num_train_steps: int = deciding(100000, help="number of updates")
    seed: int = deciding(0, help="seed of the initial weights, the order of examples and dropout")
    shuffle: bool = deciding(True, help="shuffle the training examples; False: file order")
    shuffle_buffer: int = deciding(
        16384, help="examples that are shuffled among each other at a time", when=lambda o: o.shuffle
    )

    optimizer: Literal["adamw", "lamb"] = deciding("adamw", help="optimizer")
    learning_rate: float = deciding(5e-5, help="learning rate after the warm-up")
    num_warmup_steps: int = deciding(10000, help="steps of the linear warm-up")
    start_warmup_step: int = deciding(
        0, help="step at which the warm-up begins; may be negative", when=lambda o: o.num_warmup_steps > 0
    )
    poly_power: float = deciding(1.0, help="power of the polynomial decay, which ends at 0 at the last step")
    weight_decay_rate: float = deciding(0.01, help="AdamW's weight decay", when=lambda o: not _uses_lamb(o))
    lamb_weight_decay_rate: float = deciding(0.01, help="LAMB's weight decay", when=_uses_lamb)
    lamb_beta_1: float = deciding(0.9, help="LAMB's first beta", when=_uses_lamb)
    lamb_beta_2: float = deciding(0.999, help="LAMB's second beta", when=_uses_lamb)
    log_epsilon: int = deciding(-6, help="decimal logarithm of LAMB's epsilon", when=_uses_lamb)
    clip_gradients: bool = deciding(True, help="clip gradients to norm 1")
    clip_by_global_norm_after_gradient_allreduce: bool = deciding(
        True,
        help="clip the average over devices and parts; False: clip each device's part first, the reference's default",
        when=lambda o: o.clip_gradients,
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
    watched: bool = option(False, help="another process evaluates, with --watch, and ends this one at the target")
    checkpoint: str | None = option(None, help="with --eval_only: the checkpoint to evaluate, of any kind")
    log_steps: int = option(10, help="steps between lines of the log")
    tensorboard: bool = option(True, help="write TensorBoard's event files below output_dir")
    mlperf_log: bool = option(False, help="print MLPerf's :::MLLOG lines, and write them to output_dir/mlperf.log")
    submission_org: str = option("unspecified", help="MLPerf's log: who submits the result")
    submission_platform: str | None = option(None, help="MLPerf's log: name of the system (default: its devices)")
    submission_division: Literal["closed", "open"] | None = option(
        None, help="MLPerf's log: division (default: closed with LAMB, which its rules ask for; else open)"
    )
    submission_status: Literal["cloud", "onprem", "preview", "research"] = option(
        "research", help="MLPerf's log: availability of the system"
    )

    backend: Literal["jax", "tensorflow"] = option("jax", help="library that computes")
    num_devices: int | None = option(None, help="devices of this host (default: all; on a CPU 1, and more are virtual)")
    dtype: Literal["float32", "bfloat16"] = deciding(
        "float32", help="dtype of the computation; weights and losses are always float32"
    )
    sharding: Literal["data", "zero1", "fsdp"] = option(
        "data", help="JAX: what devices share: nothing, the optimizer's moments, or between steps the weights, too"
    )
    reduce_dtype: Literal["float32", "bfloat16"] = deciding(
        "float32", help="JAX: dtype in which devices add up their gradients"
    )
    rematerialize: bool = option(
        False, help="JAX: keep less in memory, and compute it again for the gradients: about a third more work"
    )
    profile: int | None = option(
        None, help="record this many steps, after the first few, for TensorBoard's profiler, in output_dir/profile"
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

    num_labels: int = deciding(2, help="classify: number of labels", when=_classifies)
    do_lower_case: bool = deciding(True, help="classify from TSV: lower-case the text", when=_reads_tsv)
    max_query_length: int | None = deciding(
        None, help="classify: tokens of the first text at most, with [CLS] and [SEP]", when=_reads_tsv
    )
    max_document_length: int | None = deciding(
        None, help="classify: tokens of the second text at most, with [SEP]", when=_reads_tsv
    )

    launcher: Literal["local", "vertex", "gke", "slurm"] | None = option(
        None, help="where to start the training, instead of in this process"
    )
    launcher_file: str | None = option(
        None, help="the launcher's file, a copy of the one that --dry_run names or shows"
    )
    dry_run: bool = option(False, help="with --launcher: print the command instead of running it")

    def __post_init__(self) -> None:
        _check_not_empty(self)
        self._check_ranges()
        self._check_model()
        self._check_lengths()
        self._check_what_runs()
        if not self.eval_only:
            self._check_schedule()
        if self.target_masked_lm_accuracy is not None:
            self._check_target()
        if self.unpad:
            self._check_unpad()
        self._check_hosts()
        self._check_backend()
        self._check_mlperf()

    def _check_ranges(self) -> None:
        """Compare each number with its allowed range."""
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UnusableInputError(f"--{name} is {value}: it must be at least 1.")
        if not 0 <= self.seed < 2**31:
            raise UnusableInputError(f"--seed is {self.seed}: it must be at least 0 and below 2^31.")
        for name, (is_allowed, meaning) in _RANGES.items():
            value = getattr(self, name)
            # Neither NaN nor infinity is in any range.
            if value is not None and not (math.isfinite(value) and is_allowed(value)):
                raise UnusableInputError(f"--{name} is {value}: it must be {meaning}.")
        if self.train_batch_size % self.steps_per_update:
            raise UnusableInputError(
                f"--train_batch_size {self.train_batch_size} is not a multiple of --steps_per_update "
                f"{self.steps_per_update}; choose one that is."
            )

    def _check_unpad(self) -> None:
        """Check that the assignment of examples to rows makes no difference."""
        if self.task != "pretrain":
            raise UnusableInputError("--unpad goes with --task pretrain; leave it out.")
        if _clips_each_part(self):
            raise UnusableInputError(
                "--unpad goes with gradients that are clipped after the average; leave "
                "--clip_by_global_norm_after_gradient_allreduce out."
            )
        if self.coordinator is not None:
            raise UnusableInputError(
                "--unpad goes with one host, because others would have other numbers of rows; make the examples with "
                "--pack instead."
            )

    def _check_model(self) -> None:
        """Check that at most one model is named."""
        if self.preset is not None:
            from_preset(self.preset)  # raises if no preset has this name
        if self.bert_config_file is not None and self.preset is not None:
            raise UnusableInputError("--bert_config_file and --preset both name the model; give one.")
        if self.vocab_size is not None and self.preset is None:
            raise UnusableInputError("--vocab_size goes with --preset; a configuration has a vocab_size of its own.")
        _check_one_vocabulary(self)

    def _check_lengths(self) -> None:
        """Check that the content of an example fits into its length."""
        length, predictions = self.max_seq_length, self.max_predictions_per_seq
        if length is not None and predictions is not None and predictions > length:
            raise UnusableInputError(
                f"--max_predictions_per_seq {predictions} exceeds --max_seq_length {length}; lower it."
            )
        first, second = self.max_query_length, self.max_document_length
        if length is not None and (first or 0) + (second or 0) > length:
            raise UnusableInputError(
                f"--max_query_length {first} and --max_document_length {second} together exceed --max_seq_length "
                f"{length}; lower one of them."
            )

    def _check_what_runs(self) -> None:
        """Check that the options of training, evaluating, watching and launching go together."""
        if self.watch and not self.eval_only:
            raise UnusableInputError("--watch goes with --eval_only: it evaluates the checkpoints of another process.")
        if self.watch and self.checkpoint is not None:
            raise UnusableInputError("--watch evaluates every new checkpoint; leave --checkpoint out.")
        if self.watched and (self.eval_only or self.target_masked_lm_accuracy is None):
            raise UnusableInputError(
                "--watched goes with a training and its --target_masked_lm_accuracy; leave it out."
            )
        if self.checkpoint is not None and not self.eval_only:
            raise UnusableInputError("--checkpoint goes with --eval_only; --init_checkpoint gives initial weights.")
        if self.eval_only and not self.eval_file:
            raise UnusableInputError("--eval_only needs --eval_file: name the evaluation examples.")
        if not self.eval_only and not self.input_file:
            raise UnusableInputError("--input_file is missing: name the training examples.")
        for name in ("launcher", "eval_only"):
            if self.program and getattr(self, name):
                raise UnusableInputError(f"--{name} is of maskmill's own trainer, not of a --program; leave it out.")
        for name in ("dry_run", "launcher_file"):
            if getattr(self, name) and self.launcher is None:
                raise UnusableInputError(f"--{name} goes with --launcher, which is missing.")

    def _check_schedule(self) -> None:
        """Check that the warm-up ends within the run; otherwise the rate would never be the learning rate."""
        end = self.start_warmup_step + self.num_warmup_steps
        if end > self.num_train_steps:
            raise UnusableInputError(
                f"The warm-up ends at step {end} (--num_warmup_steps {self.num_warmup_steps}), but the run at step "
                f"{self.num_train_steps} (--num_train_steps); shorten the warm-up or lengthen the run."
            )

    def _check_target(self) -> None:
        if self.task != "pretrain":
            raise UnusableInputError("--target_masked_lm_accuracy goes with --task pretrain; leave it out.")
        if not self.eval_file and not self.watched:
            raise UnusableInputError(
                "--target_masked_lm_accuracy needs --eval_file, because without evaluations no target is reached; give "
                "it, or --watched if a process with --watch evaluates."
            )

    def _check_hosts(self) -> None:
        """Check the options that tell which of several processes this is."""
        if not 0 < self.coordinator_timeout < math.inf:
            raise UnusableInputError(
                f"--coordinator_timeout is {self.coordinator_timeout:g}: it must be a number of seconds above 0."
            )
        if self.process_id is not None and self.num_processes is not None and self.process_id >= self.num_processes:
            raise UnusableInputError(
                f"--process_id is {self.process_id}: it must be at least 0 and below --num_processes, "
                f"{self.num_processes}."
            )
        if self.coordinator is None:
            for name in ("num_processes", "process_id"):
                if getattr(self, name) is not None:
                    raise UnusableInputError(f"--{name} goes with --coordinator, which is missing.")
            return
        host, _, port = self.coordinator.rpartition(":")
        if self.coordinator != "auto" and not (host and port.isdecimal() and 0 < int(port) < 2**16):
            raise UnusableInputError(
                f"--coordinator is {self.coordinator}: it must be HOST:PORT, as in node0:1234, or auto."
            )

    def _check_backend(self) -> None:
        """Check that the backend supports the options."""
        given = {name: getattr(self, name) for name in ("sharding", "reduce_dtype", "rematerialize")}
        for field in dataclasses.fields(self):
            if self.backend == "tensorflow" and field.name in given and given[field.name] != field.default:
                raise UnusableInputError(f"--{field.name} needs --backend jax; leave it out, or change the backend.")

    def _check_mlperf(self) -> None:
        """Check that MLPerf's log can pass MLPerf's checker."""
        if not self.mlperf_log:
            return
        if self.task != "pretrain" or self.eval_only:
            raise UnusableInputError("--mlperf_log goes with pre-training: leave it out here.")
        if not self.eval_file:
            raise UnusableInputError("--mlperf_log needs --eval_file: MLPerf's log must have the accuracy.")
        if self.submission_division == "closed" and self.optimizer != "lamb":
            raise UnusableInputError(
                "--submission_division closed needs --optimizer lamb, as MLPerf's rules ask; use it, or give open."
            )


_COUNTS = (
    "train_batch_size", "eval_batch_size", "steps_per_update", "num_train_steps", "save_checkpoints_steps",
    "keep_checkpoint_max", "log_steps", "shuffle_buffer", "num_labels", "vocab_size", "max_seq_length",
    "max_predictions_per_seq", "eval_every_samples", "max_eval_steps", "num_devices", "num_processes",
    "max_query_length", "max_document_length", "profile",
)  # fmt: skip
# For each number that is not a count: the check of a finite value, and the range in words.
_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "learning_rate": (lambda value: value > 0, "above 0"),
    "num_warmup_steps": (lambda value: value >= 0, "at least 0"),
    "start_warmup_step": (lambda value: value <= 0, "at most 0, because the rates before it would be negative"),
    "poly_power": (lambda value: value >= 0, "at least 0"),
    "weight_decay_rate": (lambda value: value >= 0, "at least 0"),
    "lamb_weight_decay_rate": (lambda value: value >= 0, "at least 0"),
    "lamb_beta_1": (lambda value: 0 <= value < 1, "at least 0 and below 1"),
    "lamb_beta_2": (lambda value: 0 <= value < 1, "at least 0 and below 1"),
    "log_epsilon": (lambda value: _SMALLEST_EXPONENT <= value <= 0, f"from {_SMALLEST_EXPONENT} to 0"),
    "target_masked_lm_accuracy": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "expected_initial_masked_lm_accuracy": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "process_id": (lambda value: value >= 0, "at least 0"),
}


def _check_not_empty(options: Any) -> None:
    """Check that no path or name is an empty text, which an unset variable of a shell gives."""
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        texts = value if isinstance(value, tuple) else (value,)
        if any(isinstance(text, str) and not text.strip() for text in texts):
            raise UnusableInputError(f"--{field.name} is empty; give a value, or leave the option out.")


def _check_one_vocabulary(options: "TrainOptions | ConvertOptions") -> None:
    """Check that at most one vocabulary is named."""
    if options.vocab_file is not None and options.tokenizer_file is not None:
        raise UnusableInputError("--vocab_file and --tokenizer_file both name the vocabulary; give one.")


def deciding_options(options: TrainOptions) -> dict[str, Any]:
    """Return the options that the result of this run depends on, and their values."""
    return {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(options)
        if _DECIDES in field.metadata and field.metadata[_DECIDES](options)
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    """The options of `maskmill convert-checkpoint`.

    Raises:
      UnusableInputError: options are empty or do not go together.
    """

    input: str = option(
        help="TF1 or TF2 checkpoint, Hugging Face directory, safetensors or PyTorch file, or maskmill's checkpoint"
    )
    output: str = option(
        help="prefix of the TF1 or TF2 checkpoint, directory of the Hugging Face model, or .safetensors file"
    )
    format: Literal["tf1", "tf2", "huggingface", "maskmill"] = option(help="format to write")
    bert_config_file: str | None = option(None, help="the model's configuration, if there is none beside the input")
    vocab_file: str | None = option(
        None, help="huggingface: the vocabulary for the tokenizer's files (default: vocab.txt beside the input)"
    )
    tokenizer_file: str | None = option(
        None,
        help="huggingface: the model's tokenizer.json, instead of a vocabulary (default: the one beside the input)",
    )
    do_lower_case: bool | None = option(
        None, help="huggingface: the tokenizer lower-cases (default: as beside the input, or if no token has a capital)"
    )
    labels: tuple[str, ...] = option((), help="huggingface: the names of a classifier's labels, in their order")

    def __post_init__(self) -> None:
        _check_not_empty(self)
        if self.format == "maskmill" and not self.output.endswith(".safetensors"):
            raise UnusableInputError(f"--output {self.output}: for --format maskmill, name a file *.safetensors.")
        _check_one_vocabulary(self)
        if self.tokenizer_file is not None and self.do_lower_case is not None:
            raise UnusableInputError("--do_lower_case goes with --vocab_file: a tokenizer.json says it; leave it out.")
        for name in ("vocab_file", "tokenizer_file", "do_lower_case", "labels"):
            if getattr(self, name) not in (None, ()) and self.format != "huggingface":
                raise UnusableInputError(f"--{name} goes with --format huggingface; leave it out.")
        if len(set(self.labels)) < len(self.labels):
            raise UnusableInputError(f"--labels {','.join(self.labels)}: a name comes twice; give each label its own.")
