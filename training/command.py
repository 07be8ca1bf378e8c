"""`maskmill train` and `convert-checkpoint`, from options to a run. Only functions import TensorFlow, Keras and JAX."""

import contextlib
import dataclasses
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maskmill.errors import SIGNAL_EXIT, RunFailedError, UnusableInputError
from maskmill.releases import pointer
from maskmill.storage import files
from training import provenance, settings
from training.options import ConvertOptions, TrainOptions

if TYPE_CHECKING:
    from training.devices import Devices
    from training.loop import Trainer
    from training.session import Session

# Seconds between two searches of a watching process for a new checkpoint.
_WATCH_SECONDS = 2.0
# The file by which hosts find out that they share a directory, and how long (s) a network's disk may hide it.
_STARTING = "starting"
_NETWORK_SECONDS = 10.0
# What JAX's errors for a lack of memory contain, and how much of them is shown.
_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"
_REASON_LENGTH = 200
# What the backends' errors contain if another process of the run cannot be reached.
_LOST = re.compile("Gloo|NCCL|Collective ops|UNAVAILABLE|heartbeat")
_LESS_MEMORY_TO_TRAIN = (
    "raise --steps_per_update, which gives the same result, lower --eval_batch_size, give --dtype bfloat16, or lower "
    "--train_batch_size or the size of the model"
)
_LESS_MEMORY_TO_EVALUATE = "lower --eval_batch_size, or give --dtype bfloat16"


def run(options: TrainOptions) -> int:
    """Train, evaluate or launch. Return the exit code: 0, or 128 + the signal that ended the run early.

    Raises:
      UnusableInputError: options, data or checkpoints cannot be used.
      RunFailedError: the run started and could not be finished.
    """
    # One release for all processes, from the first batch to the last, even if another becomes the latest meanwhile.
    options = dataclasses.replace(
        options,
        input_file=tuple(map(pointer.resolved, options.input_file)),
        eval_file=tuple(map(pointer.resolved, options.eval_file)),
    )
    if options.launcher is not None:
        from training import launchers

        return launchers.launch(options)
    if options.program:
        from training import program

        return program.run(options)
    from training import devices

    devices.select_backend(options.backend)
    if options.backend == "tensorflow":
        devices.import_tensorflow("--backend tensorflow")
    from training.loop import Stopped
    from training.session import Session

    if not files.is_local(options.output_dir):
        # That it cannot be reached is found out before the model is built.
        files.list_folders(options.output_dir)
    with _out_of_memory_explained(_LESS_MEMORY_TO_EVALUATE if options.eval_only else _LESS_MEMORY_TO_TRAIN):
        # Examples of another release are found out before the model is built, too.
        data = {} if options.eval_only else provenance.provenance(options, files.read_if_there)
        session = Session(options)
        session.check_batches()
        with _lost_processes_explained(session.devices):
            if options.eval_only:
                return _watch(session) if options.watch else _evaluate_once(session)
            try:
                _train(session, data)
            except Stopped as stopped:
                return SIGNAL_EXIT + stopped.number
    return 0


def convert_checkpoint(options: ConvertOptions) -> int:
    """Convert a checkpoint. Return the exit code, 0.

    Raises:
      UnusableInputError: the checkpoint or its configuration cannot be used.
      RunFailedError: the output cannot be written.
    """
    from training import convert

    with _out_of_memory_explained("use a machine with more memory"):
        return convert.run(options)


@contextlib.contextmanager
def _out_of_memory_explained(advice: str) -> Iterator[None]:
    """Turn the backends' errors for a lack of memory into one sentence, which ends with advice."""
    try:
        yield
    except Exception as error:
        # JAX and TensorFlow have classes of their own for this, which both name the status of their runtime.
        text = str(error)
        out_of_memory = _OUT_OF_MEMORY in text or type(error).__name__ == "ResourceExhaustedError"
        if not out_of_memory and not isinstance(error, MemoryError):
            raise
        lines = text.strip().splitlines() or ["out of memory"]
        raise RunFailedError(f"The memory does not suffice ({lines[0][:_REASON_LENGTH]}); {advice}.") from error


@contextlib.contextmanager
def _lost_processes_explained(devices: "Devices") -> Iterator[None]:
    """Turn the backends' errors for a process that cannot be reached into one sentence."""
    try:
        yield
    except Exception as error:
        from training.devices import end_without_others

        lost = _LOST.search(str(error))
        if lost is None or devices.process_count == 1 or isinstance(error, RunFailedError | UnusableInputError):
            raise
        end_without_others()
        reason = str(error)[lost.start() :].splitlines()[0][:_REASON_LENGTH]
        raise RunFailedError(
            f"Another of the {devices.process_count} processes has ended or cannot be reached ({reason}); see what it "
            "says, and start all of them again: the run goes on from its newest checkpoint."
        ) from error


def _train(session: "Session", data: dict[str, Any]) -> None:
    """Train on `data` (training/provenance.py), from the newest checkpoint of the run or from the start."""
    from training import tokenizer_files
    from training.logs import say

    options = session.options
    trainer = _trainer(session, data)
    if session.devices.is_first and options.vocab_file is not None:
        tokenizer_files.keep_vocabulary(options.vocab_file, options.output_dir, trainer.input.data_set.duplicates)
    if session.devices.is_first and options.tokenizer_file is not None:
        tokenizer_files.keep_tokenizer(options.tokenizer_file, options.output_dir)
    _check_shared(session, trainer)
    resumed = trainer.resume()
    if trainer.is_finished():
        say(f"{options.output_dir}: this run was finished at step {trainer.step}; nothing is left to do")
        return
    if session.devices.is_first and provenance.described(data):
        say(provenance.described(data))
    if not resumed:
        _load_initial(session)
        trainer.steps.load()
    packed = trainer.input.data_set.packed or options.unpad
    start = {
        "examples": trainer.input.data_set.samples,
        "device": session.devices.kind,
        "attention": session.task.built.attention(packed=packed),
        "options": settings.given_options(options),
        "data": data,
    }
    trainer.log.event("start", trainer.step, start)
    if options.mlperf_log:
        session.log_mlperf_settings()
    trainer.train()


def _check_shared(session: "Session", trainer: "Trainer") -> None:
    """Check that all hosts have the same output directory: one without the checkpoints would wait for ever.

    Raises:
      UnusableInputError: a host does not see the first host's files.
    """
    if session.devices.process_count == 1:
        return
    directory = session.options.output_dir
    marker = files.join(directory, _STARTING)
    if session.devices.is_first:
        files.write_bytes(marker, b"")
    trainer.steps.any_host(False)  # from here on it is written
    until = time.monotonic() + _NETWORK_SECONDS
    while not (is_there := files.exists(marker)) and time.monotonic() < until:
        time.sleep(_WATCH_SECONDS)
    is_missing = trainer.steps.any_host(not is_there)
    if session.devices.is_first:
        files.delete([marker])
    if is_missing:
        raise UnusableInputError(
            f"--output_dir {directory}: not all {session.devices.process_count} processes see the same directory "
            "there; give one that all hosts share, or one on gs:// or s3://."
        )


def _trainer(session: "Session", data: dict[str, Any]) -> "Trainer":
    from training import loop

    options, batches = session.options, session.training_batches()
    return loop.Trainer(
        options=options,
        input=batches,
        evaluation=session.evaluation_batches() if options.eval_file else None,
        steps=session.make_steps(),
        settings=settings.resume_settings(
            options, session.config, batches.data_set.fingerprint, device_count=session.devices.count
        ),
        data=data,
        log=session.run_log("log"),
        mlperf=session.mlperf,
    )


def _load_initial(session: "Session") -> None:
    """Load the initial checkpoint, if one is named, and report the weights that it lacks."""
    from training import convert
    from training.logs import say

    checkpoint, built = session.options.init_checkpoint, session.task.built
    if checkpoint is None:
        return
    missing = built.load(convert.read(checkpoint, session.config), where=checkpoint)
    newly_drawn = f"; newly drawn: {', '.join(missing)}" if missing else ""
    say(f"initial weights: {len(built.weights) - len(missing)} from {checkpoint}{newly_drawn}")


def _evaluate_once(session: "Session") -> int:
    """Evaluate --checkpoint, the newest checkpoint of the run or the initial one. Return the exit code, 0."""
    from training import checkpoints, convert, evaluate
    from training.logs import say

    options = session.options
    evaluation, steps = session.evaluation_batches(), session.make_steps()
    checkpoint = options.checkpoint
    if checkpoint is None:
        run_checkpoints = checkpoints.list_checkpoints(options.output_dir)
        checkpoint = run_checkpoints[-1] if run_checkpoints else options.init_checkpoint
    if checkpoint is None:
        raise UnusableInputError(f"{options.output_dir}: there is no checkpoint in it; name one with --checkpoint.")
    step, values = convert.read_any(checkpoint, session.config)
    missing = session.task.built.load(values, where=checkpoint)
    if missing:
        raise UnusableInputError(f"{checkpoint}: this checkpoint lacks {missing[0]}, which the evaluation needs.")
    steps.load()
    metrics = evaluate.evaluate(steps, evaluation)
    expected = evaluate.expected_initial_accuracy(checkpoint, options.expected_initial_masked_lm_accuracy)
    log = session.run_log("eval")
    log.event("eval", step, {"checkpoint": checkpoint, **metrics})
    log.flush()
    say(f"evaluation of {checkpoint}: {evaluate.describe(metrics, expected)}")
    return 0


def _watch(session: "Session") -> int:
    """Evaluate each new checkpoint until the training ends or the target is reached. Return the exit code, 0."""
    from training import checkpoints, convert, evaluate, loop
    from training.logs import say

    options, built = session.options, session.task.built
    evaluation, steps = session.evaluation_batches(), session.make_steps()
    log = session.run_log("eval")
    step = -1
    while True:
        # This is read before the list, so that a checkpoint written in between is seen in the next round.
        finished = files.exists(files.join(options.output_dir, loop.FINISHED_FILE))
        new_paths = [p for p in checkpoints.list_checkpoints(options.output_dir) if checkpoints.step_of(p) > step]
        for path in new_paths:
            try:
                step, values = convert.read_any(path, session.config)
            except UnusableInputError:
                if files.exists(path):
                    raise
                say(f"{path} was deleted before it could be evaluated; keep more with --keep_checkpoint_max")
                continue
            built.load(values, where=path)
            steps.load()
            metrics = evaluate.evaluate(steps, evaluation)
            log.event("eval", step, {"checkpoint": path, **metrics})
            log.flush()
            say(f"evaluation at step {step}: {evaluate.describe(metrics)}")
            target = options.target_masked_lm_accuracy
            if target is not None and metrics["masked_lm_accuracy"] >= target:
                loop.write_target(options.output_dir, step, metrics)
                say(f"masked_lm_accuracy {target} was reached at step {step}")
                return 0
        if finished and not new_paths:
            return 0
        time.sleep(_WATCH_SECONDS)
