"""The learning rate: linear warm-up, then polynomial decay."""

from typing import Any

import keras
from keras import ops


class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """The reference's schedule, in float32 (mlcommons/training retired_benchmarks/bert/optimization.py).

    The decay runs over all steps, including those of the warm-up:
    `learning_rate * (1 - step / num_train_steps)^poly_power`. While `step - start_warmup_step < num_warmup_steps`, the
    rate is `learning_rate * (step - start_warmup_step) / num_warmup_steps` instead. `start_warmup_step` may be
    negative.
    """

    def __init__(
        self,
        *,
        learning_rate: float,
        num_train_steps: int,
        num_warmup_steps: int = 0,
        start_warmup_step: int = 0,
        poly_power: float = 1.0,
    ) -> None:
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.start_warmup_step = start_warmup_step
        self.poly_power = poly_power

    def __call__(self, step: Any) -> Any:
        """The learning rate (float32 scalar) of the update that follows `step` updates (an integer scalar)."""
        fraction_done = ops.cast(ops.minimum(step, self.num_train_steps), "float32") / float(self.num_train_steps)
        decayed = self.learning_rate * ops.power(1.0 - fraction_done, self.poly_power)
        if not self.num_warmup_steps:
            return decayed
        warmup_step = ops.cast(ops.cast(step, "int32") - self.start_warmup_step, "float32")
        warming = self.learning_rate * (warmup_step / float(self.num_warmup_steps))
        return ops.where(warmup_step < self.num_warmup_steps, warming, decayed)
