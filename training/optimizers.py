"""LAMB and AdamW with the reference's mathematics, as Keras optimizers, and the schedule of the learning rate.

Keras's optimizers of the same names compute something else: its AdamW corrects the bias of the moments and decays
weights apart from the update, and its Lamb excludes weight decay from the trust ratio.

Neither optimizer here clips gradients. The training step does that (training/steps.py), because the reference may clip
before gradients are averaged over devices.
"""

import re
from typing import Any

import keras
from keras import ops

# The reference (optimization.py) neither decays layer normalisations and biases nor, in LAMB, scales them by the trust
# ratio.
EXCLUDED = re.compile("LayerNorm|bias")


class _Moments(keras.optimizers.Optimizer):
    """The common part of both optimizers: two moments for each weight, in the lists of variables `m` and `v`.

    `rate` is the learning rate that was passed, a number or a schedule; the training step logs it.
    """

    def __init__(
        self,
        learning_rate: Any,
        *,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name or type(self).__name__.lower())
        self.rate = learning_rate
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables: list[Any]) -> None:
        """Make the moments, once."""
        if self.built:
            return
        super().build(variables)
        self.m, self.v = self.add_optimizer_variables(variables, ["m", "v"])
        self._excluded = [EXCLUDED.search(v.path) is not None for v in variables]

    def _moments(self, gradient: Any, variable: Any) -> tuple[Any, Any, bool]:
        """Update the moments. Returns both, and whether the variable is excluded from decay and adaptation."""
        index = self._get_variable_index(variable)
        m = self.beta_1 * self.m[index] + (1.0 - self.beta_1) * gradient
        v = self.beta_2 * self.v[index] + (1.0 - self.beta_2) * ops.square(gradient)
        self.assign(self.m[index], m)
        self.assign(self.v[index], v)
        return m, v, self._excluded[index]


class AdamW(_Moments):
    """google-research/bert's AdamWeightDecayOptimizer (optimization.py): no bias correction, decay in the update."""

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable. All arithmetic is float32."""
        m, v, excluded = self._moments(gradient, variable)
        update = m / (ops.sqrt(v) + self.epsilon)
        if not excluded:
            update = update + self.weight_decay_rate * variable
        self.assign_sub(variable, learning_rate * update)


class Lamb(_Moments):
    """MLPerf's LAMB (mlcommons/training retired_benchmarks/bert/lamb_optimizer_v1.py), after arXiv:1904.00962.

    The bias of both moments is corrected. Weight decay is part of the update that the trust ratio is computed from.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable. All arithmetic is float32."""
        m, v, excluded = self._moments(gradient, variable)
        step = ops.cast(self.iterations + 1, "float32")
        m_hat = m / (1.0 - ops.power(self.beta_1, step))
        v_hat = v / (1.0 - ops.power(self.beta_2, step))
        update = m_hat / (ops.sqrt(v_hat) + self.epsilon)
        trust_ratio: Any = 1.0
        if not excluded:
            update = update + self.weight_decay_rate * variable
            weight_norm, update_norm = ops.norm(ops.reshape(variable, -1)), ops.norm(ops.reshape(update, -1))
            usable = ops.logical_and(weight_norm > 0, update_norm > 0)
            trust_ratio = ops.where(usable, weight_norm / ops.where(usable, update_norm, 1.0), 1.0)
        self.assign_sub(variable, trust_ratio * learning_rate * update)


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
        """Return the learning rate (float32 scalar) of the update that follows `step` updates (an integer scalar)."""
        fraction_done = ops.cast(ops.minimum(step, self.num_train_steps), "float32") / float(self.num_train_steps)
        decayed = self.learning_rate * ops.power(1.0 - fraction_done, self.poly_power)
        if not self.num_warmup_steps:
            return decayed
        warmup_step = ops.cast(ops.cast(step, "int32") - self.start_warmup_step, "float32")
        warming = self.learning_rate * (warmup_step / float(self.num_warmup_steps))
        return ops.where(warmup_step < self.num_warmup_steps, warming, decayed)
