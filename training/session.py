"""The common objects of training and evaluation: the devices, the model with its task, the examples and the steps."""

import contextlib
import functools
from typing import Any

import keras

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from training import (
    checkpoints,
    convert,
    devices,
    finetune,
    inputs,
    model,
    optimizers,
    preflight,
    settings,
    steps,
    storage,
    tasks,
)
from training.config import ModelConfig, from_json
from training.inputs import Examples
from training.logs import MlperfLog, RunLog
from training.options import TrainOptions


class Session:
    """The devices, model, task, examples and steps of one command, made from its options on first use.

    Raises:
      UnusableInputError: the model's configuration or the devices are missing or unusable.
    """

    def __init__(self, options: TrainOptions) -> None:
        self.options = options
        self.devices = devices.start(options)
        self.config = _model_config(options)
        enabled = options.mlperf_log and self.devices.is_first
        self.mlperf = MlperfLog(files.join(options.output_dir, "mlperf.log"), enabled=enabled)
        self.mlperf.start("init_start")

    def check_batches(self) -> None:
        """Check that the batches can be split evenly among the devices.

        Raises:
          UnusableInputError: they cannot.
        """
        options, count = self.options, self.devices.count
        part_size = options.train_batch_size // options.steps_per_update
        sizes = {"train_batch_size / steps_per_update": part_size, "eval_batch_size": options.eval_batch_size}
        for name, size in sizes.items():
            if size % count:
                raise UnusableInputError(
                    f"--{name} is {size}: it must be a multiple of the number of devices, {count}."
                )

    @functools.cached_property
    def examples(self) -> Examples:
        """The training and evaluation examples, and their features."""
        if self.options.task == "classify":
            return finetune.find_examples(self.options, self.config)
        return inputs.find_pretraining_examples(self.options, self.config, next_sentence=self._next_sentence)

    @functools.cached_property
    def task(self) -> tasks.Task:
        """The task, with a model of initial weights."""
        options = self.options
        with self._strategy_scope():
            if options.task == "classify":
                built = model.classification_model(
                    self.config, num_labels=options.num_labels, seed=options.seed, rematerialize=options.rematerialize
                )
                return finetune.ClassificationTask(built, num_labels=options.num_labels)
            built = model.pretraining_model(
                self.config, next_sentence=self._next_sentence, seed=options.seed, rematerialize=options.rematerialize
            )
            return tasks.PretrainingTask(built)

    def make_steps(self) -> steps.Steps:
        """Return the steps of the task with a new optimizer."""
        with self._strategy_scope():
            options, optimizer = self.options, _optimizer(self.options)
            how = steps.StepOptions(_clip(options), options.sharding, options.reduce_dtype)
            return steps.make_steps(self.task, optimizer, self.devices, how, seed=options.seed)

    def training_batches(self) -> inputs.TrainingInput:
        """Return this host's batches of the training examples."""
        options = self.options
        return inputs.TrainingInput(
            data_set=self.examples.data_sets["training"],
            features=self.examples.features,
            batch=options.train_batch_size,
            seed=options.seed,
            shuffle=options.shuffle,
            shuffle_buffer=options.shuffle_buffer,
            host=self.devices.process_index,
            hosts=self.devices.process_count,
            unpad=options.steps_per_update * self.devices.count if options.unpad else None,
        )

    def evaluation_batches(self) -> inputs.EvaluationInput:
        """Return this host's batches of the evaluation examples."""
        options = self.options
        return inputs.EvaluationInput(
            self.examples.data_sets["evaluation"],
            self.examples.features,
            batch=options.eval_batch_size,
            max_batches=options.max_eval_steps,
            host=self.devices.process_index,
            hosts=self.devices.process_count,
        )

    def run_log(self, name: str) -> RunLog:
        """Return the log `NAME.jsonl` of the run, which the first process writes."""
        options = self.options
        return RunLog(options.output_dir, name, writes=self.devices.is_first, tensorboard=options.tensorboard)

    def log_mlperf_settings(self) -> None:
        """End the preparation of a run in MLPerf's log: its settings, and that examples are no longer in memory."""
        options, examples = self.options, self.examples
        evaluation = examples.data_sets.get("evaluation")
        eval_samples = 0 if evaluation is None else evaluation.samples
        if options.max_eval_steps is not None:
            eval_samples = min(eval_samples, options.max_eval_steps * options.eval_batch_size)
        platform = f"{self.devices.count}x {self.devices.kind}"
        named = settings.mlperf_settings(options, examples.features, eval_samples=eval_samples, platform=platform)
        for key, value in named.items():
            self.mlperf.event(key, value)
        self.mlperf.event("cache_clear", storage.drop_cached(examples.paths))
        self.mlperf.end("init_stop")

    def _strategy_scope(self) -> contextlib.AbstractContextManager[Any]:
        """Return the scope in which TensorFlow's variables must be made; a null context on JAX."""
        strategy = self.devices.strategy
        return contextlib.nullcontext() if strategy is None else strategy.scope()

    @functools.cached_property
    def _next_sentence(self) -> bool:
        """True if the model has a next-sentence head."""
        return settings.predicts_next_sentence(self.options, self.config)


def _model_config(options: TrainOptions) -> ModelConfig:
    """Return the model's configuration, from the options or from their checkpoint."""
    config = preflight.named_model(options)
    if config is not None:
        return config
    config = _named_config(options)
    preflight.check_vocabulary_size(
        options.vocab_file or options.tokenizer_file, preflight.vocabulary_size(options), config
    )
    return config


def _named_config(options: TrainOptions) -> ModelConfig:
    """Return the configuration in --bert_config_file or of the checkpoint in the options."""
    if options.bert_config_file is not None:
        return from_json(files.read_bytes(options.bert_config_file), where=options.bert_config_file)
    checkpoint = options.checkpoint or options.init_checkpoint
    if checkpoint is None and options.eval_only:
        checkpoint = next(reversed(checkpoints.list_checkpoints(options.output_dir)), None)
    config = None if checkpoint is None else convert.find_config(checkpoint)
    if config is None:
        raise UnusableInputError("No model was named: give --bert_config_file or --preset.")
    return config


def _clip(options: TrainOptions) -> steps.Clip:
    if not options.clip_gradients:
        return "none"
    return "after" if options.clip_by_global_norm_after_gradient_allreduce else "before"


def _optimizer(options: TrainOptions) -> keras.optimizers.Optimizer:
    rate = optimizers.WarmupPolynomialDecay(
        learning_rate=options.learning_rate,
        num_train_steps=options.num_train_steps,
        num_warmup_steps=options.num_warmup_steps,
        start_warmup_step=options.start_warmup_step,
        poly_power=options.poly_power,
    )
    if options.optimizer == "lamb":
        return optimizers.Lamb(
            rate,
            weight_decay_rate=options.lamb_weight_decay_rate,
            beta_1=options.lamb_beta_1,
            beta_2=options.lamb_beta_2,
            epsilon=10.0**options.log_epsilon,
        )
    return optimizers.AdamW(rate, weight_decay_rate=options.weight_decay_rate)
