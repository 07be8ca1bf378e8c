"""The training loop: steps, log, evaluations, checkpoints, and the ways it may end."""

import contextlib
import dataclasses
import json
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np

from training import checkpoints, evaluate, storage
from training.inputs import Arrays, TrainingInput
from training.logs import MlperfLog, RunLog, say
from transforms.errors import RunFailedError
from transforms.storage import files

# Whoever evaluates, the training or a process beside it, writes this when the target is reached; the training ends.
TARGET_FILE = "target_reached.json"
# A finished training writes this one, and the evaluating process ends after the last checkpoint.
FINISHED_FILE = "finished.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A training run: what it does, when, and under which settings it may be resumed."""

    directory: str
    settings: Mapping[str, Any]
    num_train_steps: int
    parts: int
    save_steps: int
    keep: int
    log_steps: int
    eval_interval: int
    tokens_of_example: int
    target_metric: str = "masked_lm_accuracy"
    target: float | None = None
    expected_initial: float | None = None


class Stopped(Exception):
    """The process was told to end (SIGTERM, SIGINT); a checkpoint was written."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Trainer:
    """Runs the steps of a `Run` and keeps its state. `steps` is from `training.steps`."""

    def __init__(
        self,
        run: Run,
        steps: Any,
        training_input: TrainingInput,
        evaluation: Callable[[], Iterator[Arrays]] | None,
        log: RunLog,
        mlperf: MlperfLog,
    ) -> None:
        self.run = run
        self.steps = steps
        self.input = training_input
        self.evaluation = evaluation
        self.log = log
        self.mlperf = mlperf
        self.step = 0
        self._pending: tuple[int, Mapping[str, Any]] | None = None
        self._saved = -1
        # Computing time alone: what evaluations and checkpoints take does not count for the throughput.
        self._started, self._counted = 0.0, 0

    @property
    def weights(self) -> Any:
        """The model's weights."""
        return self.steps.task.built.weights

    def resume(self) -> bool:
        """Takes up the newest checkpoint in the run's directory. Returns whether there was one.

        Raises:
          UnusableInputError: it belongs to a run with other settings.
        """
        files.delete_abandoned(self.run.directory)
        found = checkpoints.list_checkpoints(self.run.directory)
        if not found:
            self.log.resume(-1)
            return False
        checkpoint = checkpoints.read(found[-1])
        checkpoints.check_same_run(found[-1], checkpoint.run, self.run.settings)
        self.steps.task.built.load(checkpoint.arrays, where=found[-1])
        optimizer = self.steps.optimizer
        for weight, m, v in zip(self.weights, optimizer.m, optimizer.v, strict=True):
            for name, slot in (("m", m), ("v", v)):
                slot.assign(weight.from_reference(checkpoint.arrays[f"{weight.name}/{name}"]))
        optimizer.iterations.assign(checkpoint.step)
        self.steps.load()
        self.step = self._saved = checkpoint.step
        self.log.resume(self.step)
        say(f"resumed at step {self.step} from {found[-1]}")
        return True

    def save(self) -> None:
        """Writes a checkpoint of this step, where there is none yet."""
        self._settle()
        if self._saved == self.step:
            return
        # The log must not lack what lies before a checkpoint.
        self.log.flush()
        self.steps.store()
        if self.steps.devices.is_first:
            optimizer = self.steps.optimizer
            arrays = {weight.name: weight.read() for weight in self.weights}
            for weight, m, v in zip(self.weights, optimizer.m, optimizer.v, strict=True):
                for name, slot in (("m", m), ("v", v)):
                    arrays[f"{weight.name}/{name}"] = weight.to_reference(_numpy(slot))
            checkpoint = checkpoints.Checkpoint(step=self.step, run=self.run.settings, arrays=arrays)
            self.mlperf.start("checkpoint_start", step_num=self.step)
            path = checkpoints.write(self.run.directory, checkpoint, keep=self.run.keep)
            self.mlperf.end("checkpoint_stop", step_num=self.step)
            self.log.event("checkpoint", self.step, {"path": path})
        self._saved = self.step

    def train(self) -> dict[str, float]:
        """Trains to the last step or the target. Returns the last evaluation's metrics.

        Raises:
          Stopped: the process was told to end; the state is saved.
          RunFailedError: the loss is not finite; the last good checkpoint is kept.
        """
        run, batch = self.run, self.input.batch
        metrics: dict[str, float] = {}
        reached = self._told_of_target()
        if self.steps.devices.is_first:
            storage.delete(files.join(run.directory, FINISHED_FILE))
        self.mlperf.start("run_start")
        if self.step == 0 and not reached:
            metrics, reached = self._evaluate()
        batches = self.input(self.step)
        with _signals() as told:
            self._restart_clock()
            while self.step < run.num_train_steps and not reached:
                arrays = next(batches)
                self.steps.task.check(arrays)
                parts = {n: v.reshape(run.parts, -1, *v.shape[1:]) for n, v in arrays.items()}
                losses = self.steps.train(parts)
                # The losses of the step before are read while the device works on this one.
                self._settle()
                self.step += 1
                self._pending = self.step, losses
                last = self.step == run.num_train_steps
                due = last or evaluate.is_due(self.step, batch, run.eval_interval)
                # The checkpoint comes last: a run that is killed before it does this step's evaluation again.
                if due:
                    self._settle()
                    metrics, reached = self._evaluate()
                if self._agreed(bool(told)):
                    self.save()
                    self.log.event("stopped", self.step, {})
                    self.log.flush()
                    raise Stopped(told[0] if told else signal.SIGTERM)
                saves = self.step % run.save_steps == 0
                if saves:
                    self.save()
                if due or saves:
                    self._restart_clock()
                if run.target is not None and self.step % run.log_steps == 0:
                    reached = self._agreed(reached or self._told_of_target())
            self.save()
        status = "success" if reached or run.target is None else "aborted"
        self.mlperf.end("run_stop", samples_count=self.step * batch, status=status)
        self._finish(reached, metrics)
        return metrics

    def _settle(self) -> None:
        """Reads the pending step's losses, sees that they are finite, and logs them."""
        if self._pending is None:
            return
        step, pending = self._pending
        self._pending = None
        losses = {name: float(_numpy(value)) for name, value in pending.items()}
        bad = [name for name, value in losses.items() if not math.isfinite(value)]
        if bad:
            self.log.event("failed", step, {"reason": f"{bad[0]} is {losses[bad[0]]}"})
            self.log.flush()
            kept = checkpoints.list_checkpoints(self.run.directory)
            rest = f"the last good checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"
            raise RunFailedError(
                f"{self.run.directory}: the {bad[0]} of step {step} is {losses[bad[0]]}, and the run was stopped; "
                f"{rest}. Lower the learning rate, or lengthen the warm-up."
            )
        if step % self.run.log_steps == 0 or step == self.run.num_train_steps:
            done = step - self._counted
            seconds = time.monotonic() - self._started
            examples = done * self.input.batch / seconds if done > 0 else 0.0
            speed = {
                "examples_per_second": round(examples, 2),
                "tokens_per_second": round(examples * self.run.tokens_of_example, 1),
            }
            self.log.event("train", step, {"samples": step * self.input.batch, **losses, **speed})
            if self.steps.devices.is_first:
                say(
                    f"step {step}/{self.run.num_train_steps}: loss {losses['loss']:.4f}, learning rate "
                    f"{losses['learning_rate']:.3g}, {examples * self.run.tokens_of_example:,.0f} tokens/s"
                )
            self._restart_clock(step)

    def _restart_clock(self, step: int | None = None) -> None:
        self._started, self._counted = time.monotonic(), self.step if step is None else step

    def _evaluate(self) -> tuple[dict[str, float], bool]:
        """Evaluates, logs, and tells whether the target is reached."""
        if self.evaluation is None:
            return {}, False
        samples = self.step * self.input.batch
        self.mlperf.start("eval_start", epoch_num=samples)
        metrics = evaluate.evaluate(self.steps, self.evaluation)
        self.mlperf.end("eval_stop", epoch_num=samples)
        expected = self.run.expected_initial if self.step == 0 else None
        more = {} if expected is None else {"expected_masked_lm_accuracy": expected}
        self.log.event("eval", self.step, {"samples": samples, **metrics, **more})
        value = metrics.get(self.run.target_metric)
        if value is not None:
            self.mlperf.event("eval_accuracy", value, epoch_num=samples)
        if self.steps.devices.is_first:
            say(f"evaluation at step {self.step}: {evaluate.describe(metrics, expected)}")
        reached = self.run.target is not None and value is not None and value >= self.run.target
        if reached and self.steps.devices.is_first:
            write_target(self.run.directory, self.step, metrics)
        return metrics, reached

    def _agreed(self, value: bool) -> bool:
        """Whether it is so on any host. All hosts end after the same step; they ask each other at the log's pace."""
        if self.steps.devices.process_count == 1:
            return value
        return self.step % self.run.log_steps == 0 and bool(self.steps.any_host(value))

    def _told_of_target(self) -> bool:
        """Whether an evaluation of this run, here or in another process, has reached the target."""
        path = files.join(self.run.directory, TARGET_FILE)
        if self.run.target is None or not storage.exists(path):
            return False
        # It may have reached a lower target, of an earlier command.
        return bool(json.loads(storage.read_bytes(path))[self.run.target_metric] >= self.run.target)

    def _finish(self, reached: bool, metrics: dict[str, float]) -> None:
        self.log.event(
            "end", self.step, {"samples": self.step * self.input.batch, "target_reached": reached, **metrics}
        )
        self.log.flush()
        if not self.steps.devices.is_first:
            return
        storage.write_bytes(files.join(self.run.directory, FINISHED_FILE), b'{"step": %d}\n' % self.step)
        target = self.run.target
        if target is None:
            say(f"done: {self.step} steps, {self.step * self.input.batch:,} examples")
        else:
            outcome = "reached" if reached else "not reached"
            say(
                f"done: {self.run.target_metric} {target} was {outcome} after {self.step * self.input.batch:,} examples"
            )


def write_target(directory: str, step: int, metrics: Mapping[str, float]) -> None:
    """Tells the training in a directory, and those who look later, that the target is reached."""
    content = json.dumps({"step": step, **metrics}) + "\n"
    storage.write_bytes(files.join(directory, TARGET_FILE), content.encode())


def _numpy(value: Any) -> np.ndarray:
    return np.asarray(getattr(value, "value", value))


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Collects SIGTERM and SIGINT, so that a step ends before the run does. A second one ends it at once."""
    told: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        told.append(number)
        signal.signal(number, before[number])
        say("told to end: writing a checkpoint after this step")

    before: dict[int, Any] = {n: signal.signal(n, note) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
