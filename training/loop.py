"""The training loop: steps, log, evaluations and checkpoints, and the ends of a run."""

import contextlib
import dataclasses
import json
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import files
from training import checkpoints, evaluate, flops, profiling
from training.backend_ops import to_numpy
from training.inputs import Arrays, TrainingBatches, TrainingInput
from training.logs import MlperfLog, RunLog, say
from training.model import Weight
from training.options import TrainOptions
from training.steps import Steps

# Written when an evaluation reaches the target, by the training or by a process beside it. It ends the training.
TARGET_FILE = "target_reached.json"
# Written by a finished training. A watching process ends after evaluating the last checkpoint.
FINISHED_FILE = "finished.json"
# The metric that a target is for.
_TARGET_METRIC = "masked_lm_accuracy"
# The share of time waiting for batches that causes a warning, and the seconds over which it is measured.
_MOST_WAITED = 0.1
_MEASURED_SECONDS = 10.0


class InputMeter:
    """Measures how long devices wait for batches: `waited` (s) so far, by a `clock` that returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.waited = 0.0
        self._clock = clock
        self._window_seconds = self._window_waited = 0.0
        self._has_told = False

    def take(self, batches: TrainingBatches, finish: Callable[[], None]) -> Arrays:
        """Return the next batch.

        `finish` waits until the devices have finished their work. It is called if the batch is not ready: while they
        compute, they do not miss it.
        """
        if batches.is_ready:
            return next(batches)
        finish()
        start = self._clock()
        batch = next(batches)
        self.waited += self._clock() - start
        return batch

    def told(self, seconds: float, waited: float) -> float | None:
        """Add seconds that went by, and those for which devices waited.

        Return the share of waiting the first time that it exceeds a tenth for ten seconds; else None.
        """
        self._window_seconds += seconds
        self._window_waited += waited
        if self._window_seconds < _MEASURED_SECONDS:
            return None
        share = self._window_waited / self._window_seconds
        self._window_seconds = self._window_waited = 0.0
        if share <= _MOST_WAITED or self._has_told:
            return None
        self._has_told = True
        return share


class _Clock(NamedTuple):
    """A point in a run: the time (s), its progress, and the seconds for which devices have waited so far."""

    time: float
    done: "_Done"
    waited: float


class _Done(NamedTuple):
    """The steps of a run so far, and the tokens, without padding, and floating-point operations in them."""

    step: int = 0
    tokens: int = 0
    flops: float = 0.0


class Stopped(Exception):
    """A signal, `number` (SIGTERM or SIGINT), ended the run; a checkpoint was written first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclasses.dataclass(kw_only=True)
class Trainer:
    """Runs the steps of a training and keeps its state.

    Attributes:
      options: what to do.
      input: the batches, from any step on.
      evaluation: reads the evaluation set from its beginning; None for a run without evaluations.
      steps: the steps of the task; they hold the weights.
      settings: with which the run may be resumed (training/settings.py).
      data: what the run trains on (training/provenance.py).
      log: the run's log.
      mlperf: MLPerf's log.
      step: the updates so far.
    """

    options: TrainOptions
    input: TrainingInput
    evaluation: Callable[[], Iterator[Arrays]] | None
    steps: Steps
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    log: RunLog
    mlperf: MlperfLog
    step: int = 0

    def __post_init__(self) -> None:
        self._done = _Done()
        # What was done up to the last step, and its losses, while they are not read from the device yet.
        self._unread_losses: tuple[_Done, Mapping[str, Any]] | None = None
        self._saved_step = -1
        # The checkpoint being written while the devices continue: its step, its fields in the log, and its path.
        self._saving: tuple[int, dict[str, int], Future[str]] | None = None
        # The start of the throughput's measurement, which excludes evaluations and checkpoints.
        self._clock = _Clock(time=0.0, done=self._done, waited=0.0)
        self._meter = InputMeter()

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The model's weights."""
        return self.steps.task.built.weights

    def is_finished(self) -> bool:
        """Return whether an earlier command finished the resumed run, so that there is nothing left to do."""
        if self._saved_step < 0 or not files.exists(files.join(self.options.output_dir, FINISHED_FILE)):
            return False
        return self.step >= self.options.num_train_steps or self._target_file_says_reached()

    def resume(self) -> bool:
        """Load the newest checkpoint in the run's directory. Return whether there was one.

        Raises:
          UnusableInputError: it belongs to a run with other settings.
        """
        files.delete_abandoned(self.options.output_dir)
        paths = checkpoints.list_checkpoints(self.options.output_dir)
        if not paths:
            self.log.resume(-1)
            return False
        newest = paths[-1]
        checkpoint = checkpoints.read(newest)
        checkpoints.check_same_run(newest, checkpoint.run, self.settings)
        moments = list(self._moments())
        names = [weight.name for weight in self.weights] + [name for name, _ in moments]
        checkpoints.check_complete(newest, checkpoint.arrays, names)
        self.steps.task.built.load(checkpoint.arrays, where=newest)
        for name, moment in moments:
            moment.assign(checkpoint.arrays[name])
        self.steps.optimizer.iterations.assign(checkpoint.step)
        self.steps.load()
        self.step = self._saved_step = checkpoint.step
        self._done = _Done(step=self.step)
        self.log.resume(self.step)
        say(f"resumed at step {self.step} from {newest}")
        return True

    def save(self) -> None:
        """Start writing a checkpoint of this step, unless one exists, after finishing that of an earlier step.

        Raises:
          RunFailedError: the loss is not finite, or the earlier checkpoint cannot be written.
        """
        self._read_losses()
        if self._saved_step == self.step:
            return
        self._finish_saving()
        # The log must be complete up to a checkpoint: a resumed run does not write these lines again.
        self.log.flush()
        self.steps.store()
        # If hosts share the state, each contributes its part; otherwise the first one has all of it.
        is_first = self.steps.devices.is_first
        checkpoint = self._checkpoint() if is_first or self.steps.how.sharding != "data" else None
        if checkpoint is not None and is_first:
            self.mlperf.start("checkpoint_start", **self._progress())
            options = self.options
            writing = self._writer.submit(
                checkpoints.write, options.output_dir, checkpoint, keep=options.keep_checkpoint_max
            )
            self._saving = self.step, self._progress(), writing
            if options.mlperf_log:
                self._finish_saving()  # this log has what happens in its order
        self._saved_step = self.step

    def _finish_saving(self) -> None:
        """Wait until the checkpoint that is being written is complete.

        Raises:
          RunFailedError: it cannot be written.
        """
        if self._saving is None:
            return
        step, progress, writing = self._saving
        self._saving = None
        path = writing.result()
        self.mlperf.end("checkpoint_stop", **progress)
        self.log.event("checkpoint", step, {"path": path})

    def train(self) -> dict[str, float]:
        """Train to the last step or the target. Return the metrics of the last evaluation.

        Raises:
          Stopped: a signal ended the run; its state is saved.
          UnusableInputError: the file that tells whether the target is reached, or MLPerf's log, is damaged.
          RunFailedError: the loss is not finite; the last good checkpoint is kept.
        """
        options, target = self.options, self.options.target_masked_lm_accuracy
        metrics: dict[str, float] = {}
        reached = self._target_file_says_reached()
        if self.steps.devices.is_first:
            files.delete([files.join(options.output_dir, FINISHED_FILE)])
        self.mlperf.begin(self._progress(), resumed=self._saved_step >= 0)
        if self.step == 0 and not reached:
            metrics, reached = self._evaluate()
        profile = profiling.Profile(files.join(options.output_dir, "profile"), options.profile or 0)
        with (
            contextlib.closing(self.input(self.step)) as batches,
            _signals() as received,
            contextlib.closing(profile),
            ThreadPoolExecutor(1, "maskmill-checkpoints") as self._writer,
        ):
            self._restart_clock()
            while self.step < options.num_train_steps and not reached:
                self.mlperf.block_start(self._progress(), samples=self._samples_to_evaluation())
                profile.before_step()
                self._train_step(self._meter.take(batches, self._read_losses))
                profile.after_step(self._read_losses)
                evaluates, saves = self._evaluation_is_due(), self.step % options.save_checkpoints_steps == 0
                # The checkpoint comes last: after an earlier kill, the run repeats this step's evaluation.
                if evaluates:
                    self._read_losses()
                    metrics, reached = self._evaluate()
                if self._on_any_host(bool(received)):
                    self._stop(received[0] if received else signal.SIGTERM)
                if saves:
                    self.save()
                if evaluates or saves:
                    self._restart_clock()
                if target is not None and self.step % options.log_steps == 0:
                    reached = self._on_any_host(reached or self._target_file_says_reached())
            self.save()
            self._finish_saving()
        self._finish(reached, metrics)
        return metrics

    def _train_step(self, batch: Arrays) -> None:
        """Update the weights once, and meanwhile read the losses of the step before."""
        parts = {
            name: array.reshape(self.options.steps_per_update, -1, *array.shape[1:]) for name, array in batch.items()
        }
        losses = self.steps.train(parts)
        self._read_losses()
        self.step += 1
        lengths, hosts = flops.sequence_lengths(batch), self.steps.devices.process_count
        masks = float(batch["masked_lm_weights"].sum()) if "masked_lm_weights" in batch else 0.0
        self._done = _Done(
            self.step,
            self._done.tokens + int(lengths.sum()) * hosts,
            self._done.flops + flops.of_step(self.steps.built.config, lengths, masks) * hosts,
        )
        self._unread_losses = self._done, losses

    @property
    def _eval_interval(self) -> int:
        """Return the examples between evaluations."""
        return self.options.eval_every_samples or evaluate.default_interval(self.input.batch)

    def _evaluation_is_due(self) -> bool:
        last = self.step == self.options.num_train_steps
        return last or evaluate.is_due(self.step, self.input.batch, self._eval_interval)

    def _progress(self) -> dict[str, int]:
        """Return the run's progress, under the names of MLPerf's rules. BERT's epochs are examples."""
        samples = self.step * self.input.batch
        return {"samples_count": samples, "epoch_num": samples, "step_num": self.step}

    def _samples_to_evaluation(self) -> int:
        """Return the number of examples from here to the next evaluation or the end of the run."""
        samples, interval = self.step * self.input.batch, self._eval_interval
        return min(interval - samples % interval, self.options.num_train_steps * self.input.batch - samples)

    def _stop(self, signal_number: int) -> NoReturn:
        """Save the state and end the run."""
        self.save()
        self._finish_saving()
        self.log.event("stopped", self.step, {})
        self.log.flush()
        raise Stopped(signal_number)

    def _moments(self) -> Iterator[tuple[str, Any]]:
        """Yield (name in a checkpoint, variable) of each of the optimizer's moments."""
        optimizer = self.steps.optimizer
        for weight, *moments in zip(self.weights, optimizer.m, optimizer.v, strict=True):
            for suffix, moment in zip(checkpoints.MOMENTS, moments, strict=True):
                yield f"{weight.name}{suffix}", moment

    def _checkpoint(self) -> checkpoints.Checkpoint:
        """Return a copy of the state in the Keras variables. All hosts that share it must call this."""
        arrays = {weight.name: np.array(weight.read()) for weight in self.weights}
        arrays |= {name: np.array(to_numpy(moment)) for name, moment in self._moments()}
        return checkpoints.Checkpoint(step=self.step, run=self.settings, arrays=arrays, data=self.data)

    def _read_losses(self) -> None:
        """Read the losses that are still on the device, check that they are finite, and log them."""
        if self._unread_losses is None:
            return
        done, device_losses = self._unread_losses
        step, self._unread_losses = done.step, None
        losses = {name: float(to_numpy(value)) for name, value in device_losses.items()}
        for name, value in losses.items():
            if not math.isfinite(value):
                self._fail(step, name, value)
        if step % self.options.log_steps == 0 or step == self.options.num_train_steps:
            self._log_losses(done, losses)
            self._restart_clock(done)

    def _fail(self, step: int, name: str, value: float) -> NoReturn:
        """End the run because a loss is not finite."""
        self.log.event("failed", step, {"reason": f"{name} is {value}"})
        self.log.flush()
        self.mlperf.block_stop(self._progress())
        self.mlperf.end("run_stop", status="aborted", **self._progress())
        paths = checkpoints.list_checkpoints(self.options.output_dir)
        state = f"the last good checkpoint is {paths[-1]}" if paths else "there is no checkpoint yet"
        raise RunFailedError(
            f"{self.options.output_dir}: the {name} of step {step} is {value}, so the run was stopped; {state}. Lower "
            "the learning rate, or lengthen the warm-up."
        )

    def _log_losses(self, done: _Done, losses: Mapping[str, float]) -> None:
        """Write the losses of a step, the throughput up to it and the waiting to the log and the terminal."""
        clock, step, devices = self._clock, done.step, self.steps.devices
        seconds, waited = time.monotonic() - clock.time, self._meter.waited - clock.waited
        tokens_per_second = (done.tokens - clock.done.tokens) / seconds
        throughput = {
            "examples_per_second": round((step - clock.done.step) * self.input.batch / seconds, 2),
            "tokens_per_second": round(tokens_per_second, 1),
            "input_wait_share": round(waited / seconds, 4),
        }
        peak = flops.peak(devices.kind)
        if peak is not None and self.options.dtype == "bfloat16":
            done_per_second = (done.flops - clock.done.flops) / seconds
            throughput["peak_share"] = round(done_per_second / (peak * devices.count), 4)
        if (memory := devices.peak_memory()) is not None:
            throughput["peak_memory_bytes"] = memory
        self.log.event("train", step, {"samples": step * self.input.batch, **losses, **throughput})
        if self.steps.devices.is_first:
            say(
                f"step {step}/{self.options.num_train_steps}: loss {losses['loss']:.4f}, learning rate "
                f"{losses['learning_rate']:.3g}, {tokens_per_second:,.0f} tokens/s"
            )
        starved = self._meter.told(seconds, waited)
        if starved is not None:
            say(
                f"warning: up to step {step}, the devices waited for examples {starved:.0%} of the time; put the "
                "examples on a faster disk, or give this machine more cores"
            )

    def _restart_clock(self, done: _Done | None = None) -> None:
        """Restart the measurement of the throughput, from a step or from now."""
        self._clock = _Clock(time=time.monotonic(), done=done or self._done, waited=self._meter.waited)

    def _evaluate(self) -> tuple[dict[str, float], bool]:
        """Evaluate and log. Return the metrics, and whether the target is reached."""
        if self.evaluation is None:
            return {}, False
        samples = self.step * self.input.batch
        self.mlperf.block_stop(self._progress())
        self.mlperf.start("eval_start", **self._progress())
        metrics = evaluate.evaluate(self.steps, self.evaluation)
        self.mlperf.end("eval_stop", **self._progress())
        options, expected = self.options, None
        if self.step == 0:
            given = options.expected_initial_masked_lm_accuracy
            expected = evaluate.expected_initial_accuracy(options.init_checkpoint, given)
        expectation = {} if expected is None else {"expected_masked_lm_accuracy": expected}
        self.log.event("eval", self.step, {"samples": samples, **metrics, **expectation})
        value = metrics.get(_TARGET_METRIC)
        if value is not None:
            self.mlperf.event("eval_accuracy", value, **self._progress())
        if self.steps.devices.is_first:
            say(f"evaluation at step {self.step}: {evaluate.describe(metrics, expected)}")
        target = options.target_masked_lm_accuracy
        reached = target is not None and value is not None and value >= target
        if reached and self.steps.devices.is_first:
            write_target(self.options.output_dir, self.step, metrics)
        return metrics, reached

    def _on_any_host(self, value: bool) -> bool:
        """Return whether `value` is true on any host, so that all hosts end after the same step.

        Several hosts communicate only when they log; in between this is False.
        """
        if self.steps.devices.process_count == 1:
            return value
        return self.step % self.options.log_steps == 0 and self.steps.any_host(value)

    def _target_file_says_reached(self) -> bool:
        """Return whether an evaluation of this run, in this or another process, has reached the target."""
        path, target = files.join(self.options.output_dir, TARGET_FILE), self.options.target_masked_lm_accuracy
        if target is None or not files.exists(path):
            return False
        try:
            reached = json.loads(files.read_bytes(path))[_TARGET_METRIC]
            # The file may be left by an earlier command with a lower target.
            return bool(reached >= target)
        except (ValueError, KeyError, TypeError):
            raise UnusableInputError(
                f"{path}: this file is damaged; delete it, and the training goes on to its own evaluations."
            ) from None

    def _finish(self, reached: bool, metrics: Mapping[str, float]) -> None:
        """Log the end of the run, and write the file that ends a watching process."""
        samples, target = self.step * self.input.batch, self.options.target_masked_lm_accuracy
        status = "success" if reached or target is None else "aborted"
        self.mlperf.block_stop(self._progress())
        self.mlperf.end("run_stop", status=status, **self._progress())
        self.log.event("end", self.step, {"samples": samples, "target_reached": reached, **metrics})
        self.log.flush()
        if not self.steps.devices.is_first:
            return
        files.write_bytes(files.join(self.options.output_dir, FINISHED_FILE), b'{"step": %d}\n' % self.step)
        if target is None:
            say(f"done: {self.step} steps, {samples:,} examples")
        else:
            outcome = "reached" if reached else "not reached"
            say(f"done: {_TARGET_METRIC} {target} was {outcome} after {samples:,} examples")


def write_target(directory: str, step: int, metrics: Mapping[str, float]) -> None:
    """Write the file that tells the training in a directory that the target is reached, and at which step.

    Raises:
      RunFailedError: it cannot be written.
    """
    content = json.dumps({"step": step, **metrics}) + "\n"
    files.write_bytes(files.join(directory, TARGET_FILE), content.encode())


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect SIGTERM and SIGINT in a list, so that the current step is finished. A second one ends the process."""
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)
        # Not the handler from before: the thread of pipelines/running/interruption.py may look only now who hears this
        # signal.
        signal.signal(number, signal.SIG_DFL)
        say("told to stop: a checkpoint will be written after this step")

    handlers_before: dict[int, Any] = {n: signal.signal(n, note) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in handlers_before.items():
            signal.signal(number, handler)
