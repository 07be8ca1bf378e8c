"""`maskmill train` and `convert-checkpoint`, from options to a run. Only functions import TensorFlow, Keras and JAX."""

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from training.config import ModelConfig, from_json, from_preset
from training.options import ConvertOptions, TrainOptions
from transforms.errors import UnusableInputError
from transforms.storage import files

if TYPE_CHECKING:
    from training.inputs import Arrays, Feature

# How often a watching process looks for a new checkpoint.
_WATCH_SECONDS = 2.0


def run(options: TrainOptions) -> int:
    """Trains, evaluates or launches. Returns the exit code: 0, or 128 + the signal that ended the run early.

    Raises:
      UnusableInputError: options, data or checkpoints that cannot be used.
      RunFailedError: the run started and could not be finished.
    """
    if options.launcher is not None:
        from training import launchers

        return launchers.launch(options)
    from training import devices

    devices.select_backend(options.backend)
    _import_quietly()
    return _Session(options).run()


def convert_checkpoint(options: ConvertOptions) -> int:
    """Converts a checkpoint. Returns the exit code, 0.

    Raises:
      UnusableInputError: the checkpoint or its configuration cannot be used.
    """
    _import_quietly()
    from training import convert

    return convert.run(options)


def _import_quietly() -> None:
    """Imports TensorFlow without its notes on the terminal: some are written before its log level is read."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    terminal = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            import tensorflow  # noqa: F401
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


class _Session:
    """What the modes share: the devices, the task and its data."""

    def __init__(self, options: TrainOptions) -> None:
        from training import devices

        self.options = options
        self.devices = devices.start(
            devices.DeviceOptions(
                backend=options.backend,
                num_devices=options.num_devices,
                dtype="mixed_bfloat16" if options.dtype == "bfloat16" else "float32",
                coordinator=options.coordinator,
                num_processes=options.num_processes,
                process_id=options.process_id,
                deterministic=options.deterministic,
            )
        )
        self.config = self._config()
        from training.logs import MlperfLog

        enabled = options.mlperf_log and self.devices.is_first and not options.eval_only
        self.mlperf = MlperfLog(files.join(options.output_dir, "mlperf.log"), enabled=enabled)
        self.mlperf.start("init_start")

    def run(self) -> int:
        from training.loop import Stopped

        self._check_batches()
        if self.options.eval_only:
            return self._watch() if self.options.watch else self._evaluate_once()
        try:
            self._train()
        except Stopped as stopped:
            return 128 + stopped.number
        return 0

    # What the run is made of

    def _config(self) -> ModelConfig:
        options = self.options
        size = None
        if options.vocab_file is not None:
            from transforms.tokenization.vocabulary import load_vocabulary

            size = load_vocabulary(options.vocab_file).size
        if options.preset is not None:
            return from_preset(options.preset, vocab_size=options.vocab_size or size)
        config = self._named_config()
        if size is not None and size > config.vocab_size:
            raise UnusableInputError(
                f"{options.vocab_file}: this vocabulary has {size} tokens, and the model {config.vocab_size} "
                "(vocab_size): it is another model's."
            )
        return config

    def _named_config(self) -> ModelConfig:
        from training import checkpoints, convert, storage

        options = self.options
        if options.bert_config_file is not None:
            return from_json(storage.read_bytes(options.bert_config_file), where=options.bert_config_file)
        source = options.checkpoint or options.init_checkpoint
        if source is None and options.eval_only:
            source = next(reversed(checkpoints.list_checkpoints(options.output_dir)), None)
        found = None if source is None else convert.find_config(source)
        if found is None:
            raise UnusableInputError("No model was named: give --bert_config_file or --preset.")
        return found

    def _strategy_scope(self) -> contextlib.AbstractContextManager[Any]:
        strategy = self.devices.strategy
        return contextlib.nullcontext() if strategy is None else strategy.scope()

    @functools.cached_property
    def _next_sentence(self) -> bool:
        chosen = self.options.next_sentence_prediction
        return self.config.model_type == "bert" if chosen is None else chosen

    @functools.cached_property
    def _inputs(self) -> Any:
        """The training and evaluation files, and the features both have."""
        if self.options.task == "classify":
            from training import finetune

            return finetune.find_examples(self.options, self.config)
        return _pretraining_examples(self.options, self.config, self._next_sentence)

    @functools.cached_property
    def task(self) -> Any:
        from training import tasks
        from training.model import classification_model, pretraining_model

        options = self.options
        with self._strategy_scope():
            if options.task == "classify":
                built = classification_model(self.config, num_labels=options.num_labels, seed=options.seed)
                from training import finetune

                return finetune.ClassificationTask(built, num_labels=options.num_labels)
            built = pretraining_model(self.config, next_sentence=self._next_sentence, seed=options.seed)
            return tasks.PretrainingTask(built)

    def _steps(self) -> Any:
        from training import optimizers, schedule, steps

        options = self.options
        rate = schedule.WarmupPolynomialDecay(
            learning_rate=options.learning_rate,
            num_train_steps=options.num_train_steps,
            num_warmup_steps=options.num_warmup_steps,
            start_warmup_step=options.start_warmup_step,
            poly_power=options.poly_power,
        )
        after = options.clip_by_global_norm_after_gradient_allreduce
        clip = ("after" if after else "before") if options.clip_gradients else "none"
        with self._strategy_scope():
            if options.optimizer == "lamb":
                optimizer: Any = optimizers.Lamb(
                    rate,
                    weight_decay_rate=options.lamb_weight_decay_rate,
                    beta_1=options.lamb_beta_1,
                    beta_2=options.lamb_beta_2,
                    epsilon=10.0**options.log_epsilon,
                )
            else:
                optimizer = optimizers.AdamW(rate, weight_decay_rate=options.weight_decay_rate)
            step_options = steps.StepOptions(clip=clip, seed=options.seed)  # type: ignore[arg-type]
            return steps.make_steps(self.task, optimizer, self.devices, step_options)

    def _check_batches(self) -> None:
        options, count = self.options, self.devices.count
        part = options.train_batch_size // options.steps_per_update
        for name, size in (("train_batch_size / steps_per_update", part), ("eval_batch_size", options.eval_batch_size)):
            if size % count:
                raise UnusableInputError(
                    f"--{name} is {size}: it must be a multiple of the number of devices, {count}."
                )

    def _load_initial(self) -> None:
        from training import convert
        from training.logs import say

        options = self.options
        if options.init_checkpoint is None:
            return
        values = convert.read(options.init_checkpoint, self.config)
        missing = self.task.built.load(values, where=options.init_checkpoint)
        loaded = len(self.task.built.weights) - len(missing)
        drawn = f"; newly drawn: {', '.join(missing)}" if missing else ""
        say(f"initial weights: {loaded} from {options.init_checkpoint}{drawn}")

    def _evaluation(self) -> Callable[[], Iterator["Arrays"]] | None:
        from training import inputs

        found, options = self._inputs, self.options
        if not found.evaluation:
            return None
        steps = options.max_eval_steps
        return lambda: inputs.evaluation_batches(
            found.evaluation,
            found.features,
            batch=options.eval_batch_size,
            limit=None if steps is None else steps * options.eval_batch_size,
            host=self.devices.process_index,
            hosts=self.devices.process_count,
        )

    # Modes

    def _train(self) -> None:
        from training import evaluate, inputs, loop
        from training.logs import RunLog

        options = self.options
        found = self._inputs
        blocks = inputs.find_blocks(found.training)
        training_input = inputs.TrainingInput(
            blocks=blocks,
            features=found.features,
            batch=options.train_batch_size,
            seed=options.seed,
            shuffle=options.shuffle,
            shuffle_buffer=options.shuffle_buffer,
            host=self.devices.process_index,
            hosts=self.devices.process_count,
        )
        first = self.devices.is_first
        log = RunLog(options.output_dir, "log", writes=first, tensorboard=options.tensorboard)
        interval = options.eval_every_samples or evaluate.default_interval(options.train_batch_size)
        plan = loop.Run(
            directory=options.output_dir,
            settings=self._settings(inputs.fingerprint(blocks)),
            num_train_steps=options.num_train_steps,
            parts=options.steps_per_update,
            save_steps=options.save_checkpoints_steps,
            keep=options.keep_checkpoint_max,
            log_steps=options.log_steps,
            eval_interval=interval,
            tokens_of_example=found.features["input_ids"].length,
            target=options.target_masked_lm_accuracy,
            expected_initial=evaluate.expected_initial_accuracy(
                options.init_checkpoint, options.expected_initial_masked_lm_accuracy
            ),
        )
        trainer = loop.Trainer(plan, self._steps(), training_input, self._evaluation(), log, self.mlperf)
        if not trainer.resume():
            self._load_initial()
            trainer.steps.load()
        log.event("start", trainer.step, {"examples": blocks.total, "device": self.devices.kind, **_jsonable(options)})
        self._mlperf_settings()
        self.mlperf.end("init_stop")
        trainer.train()

    def _settings(self, data: str) -> dict[str, Any]:
        """What a run's result depends on: it may be resumed only with the same."""
        options = self.options
        names = [
            "task", "train_batch_size", "num_train_steps", "seed", "shuffle", "shuffle_buffer", "optimizer",
            "learning_rate", "num_warmup_steps", "start_warmup_step", "poly_power", "clip_gradients",
            "clip_by_global_norm_after_gradient_allreduce", "dtype",
        ]  # fmt: skip
        names += ["num_labels"] if options.task == "classify" else []
        if options.optimizer == "lamb":
            names += ["lamb_weight_decay_rate", "lamb_beta_1", "lamb_beta_2", "log_epsilon"]
        else:
            names += ["weight_decay_rate"]
        if not options.clip_by_global_norm_after_gradient_allreduce:
            # Clipped device by device and part by part, the gradient depends on both numbers.
            names.append("steps_per_update")
        settings = {name: getattr(options, name) for name in names}
        return settings | {"model": dataclasses.asdict(self.config), "training_data": data}

    def _evaluate_once(self) -> int:
        from training import checkpoints, convert, evaluate
        from training.logs import RunLog, say

        options = self.options
        evaluation = self._evaluation()
        steps = self._steps()
        source = options.checkpoint
        if source is None:
            newest = checkpoints.list_checkpoints(options.output_dir)
            source = newest[-1] if newest else options.init_checkpoint
        if source is None:
            raise UnusableInputError(f"{options.output_dir}: there is no checkpoint in it; name one with --checkpoint.")
        step, values = convert.read_any(source, self.config)
        missing = self.task.built.load(values, where=source)
        if missing:
            raise UnusableInputError(f"{source}: this checkpoint lacks {missing[0]}, which the evaluation needs.")
        steps.load()
        metrics = evaluate.evaluate(steps, evaluation)  # type: ignore[arg-type]
        expected = evaluate.expected_initial_accuracy(source, options.expected_initial_masked_lm_accuracy)
        log = RunLog(options.output_dir, "eval", writes=self.devices.is_first, tensorboard=options.tensorboard)
        log.event("eval", step, {"checkpoint": source, **metrics})
        log.flush()
        say(f"evaluation of {source}: {evaluate.describe(metrics, expected)}")
        return 0

    def _watch(self) -> int:
        """Evaluates each new checkpoint until the training ends or the target is reached."""
        from training import checkpoints, convert, evaluate, loop, storage
        from training.logs import RunLog, say

        options = self.options
        evaluation, steps = self._evaluation(), self._steps()
        log = RunLog(options.output_dir, "eval", writes=self.devices.is_first, tensorboard=options.tensorboard)
        done = -1
        while True:
            # Read before the list: a checkpoint that comes in between is then seen in the next round.
            finished = storage.exists(files.join(options.output_dir, loop.FINISHED_FILE))
            fresh = [p for p in checkpoints.list_checkpoints(options.output_dir) if checkpoints.step_of(p) > done]
            for path in fresh:
                try:
                    done, values = convert.read_any(path, self.config)
                except UnusableInputError:
                    if storage.exists(path):
                        raise
                    say(f"{path} was deleted before it was evaluated; keep more with --keep_checkpoint_max")
                    continue
                self.task.built.load(values, where=path)
                steps.load()
                metrics = evaluate.evaluate(steps, evaluation)  # type: ignore[arg-type]
                log.event("eval", done, {"checkpoint": path, **metrics})
                log.flush()
                say(f"evaluation at step {done}: {evaluate.describe(metrics)}")
                target = options.target_masked_lm_accuracy
                if target is not None and metrics["masked_lm_accuracy"] >= target:
                    loop.write_target(options.output_dir, done, metrics)
                    say(f"masked_lm_accuracy {target} was reached at step {done}")
                    return 0
            if finished and not fresh:
                return 0
            time.sleep(_WATCH_SECONDS)

    def _mlperf_settings(self) -> None:
        """Logs the settings under MLPerf's names."""
        options, features = self.options, self._inputs.features
        settings: dict[str, Any] = {
            "submission_benchmark": "bert",
            "global_batch_size": options.train_batch_size,
            "max_sequence_length": features["input_ids"].length,
            "opt_name": options.optimizer,
            "opt_base_learning_rate": options.learning_rate,
            "opt_learning_rate_warmup_steps": options.num_warmup_steps,
            "start_warmup_step": options.start_warmup_step,
            "opt_learning_rate_training_steps": options.num_train_steps,
            "gradient_accumulation_steps": options.steps_per_update,
            "train_samples": options.num_train_steps * options.train_batch_size,
            "seed": options.seed,
        }
        if "masked_lm_positions" in features:
            settings["max_predictions_per_seq"] = features["masked_lm_positions"].length
        if options.optimizer == "lamb":
            settings |= {
                "opt_weight_decay": options.lamb_weight_decay_rate,
                "opt_lamb_beta_1": options.lamb_beta_1,
                "opt_lamb_beta_2": options.lamb_beta_2,
                "opt_lamb_learning_rate_decay_poly_power": options.poly_power,
                "opt_epsilon": 10.0**options.log_epsilon,
            }
        for key, value in settings.items():
            self.mlperf.event(key, value)


def _pretraining_examples(options: TrainOptions, config: ModelConfig, next_sentence: bool) -> Any:
    from training import inputs

    training = inputs.find_files(",".join(options.input_file)) if options.input_file and not options.eval_only else []
    evaluation = inputs.find_files(",".join(options.eval_file)) if options.eval_file else []
    paths = [*training, *evaluation]
    lengths: Mapping[str, int] = next((found for found in map(inputs.example_lengths, paths) if found), {})
    if not lengths:
        raise UnusableInputError(f"{paths[0]}: there is no example in these files.")
    sequence = options.max_seq_length or lengths.get("input_ids", 0)
    predictions = options.max_predictions_per_seq or lengths.get("masked_lm_positions", 0)
    if sequence > config.max_position_embeddings:
        raise UnusableInputError(
            f"{paths[0]}: the sequences are {sequence} tokens long, and the model has "
            f"{config.max_position_embeddings} positions (max_position_embeddings)."
        )
    features: dict[str, Feature] = inputs.pretraining_features(
        sequence, predictions, segments=config.model_type == "bert", next_sentence=next_sentence
    )
    inputs.check_features(paths, features)
    return inputs.Examples(training=training, evaluation=evaluation, features=features)


def _jsonable(options: TrainOptions) -> dict[str, Any]:
    return {"options": {k: v for k, v in dataclasses.asdict(options).items() if v is not None}}
