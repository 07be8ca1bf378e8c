"""LAMB and AdamW with the reference's mathematics, as Keras optimizers.

Keras has both under the same names, with other mathematics: its AdamW corrects the bias of the moments and decays
weights apart from the update, its Lamb leaves weight decay out of the trust ratio.

Neither clips gradients: that is the training step's work (training/steps.py), because the reference may clip
before gradients are averaged over devices.
"""

import re
from typing import Any

import keras
from keras import ops

# Layer normalisation and biases: neither decayed nor, in LAMB, scaled by the trust ratio (optimization.py). Keras names
# every layer normalisation of keras-hub's encoders `…layer_norm`.
EXCLUDED = re.compile("LayerNorm|layer_norm|bias")


class _Moments(keras.optimizers.Optimizer):
    """What both share: two moments a variable, in variables named `m` and `v`."""

    def __init__(
        self,
        learning_rate: Any,
        *,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        name: str,
    ) -> None:
        super().__init__(learning_rate=learning_rate, name=name)
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def build(self, variables: list[Any]) -> None:
        if self.built:
            return
        super().build(variables)
        self.m, self.v = self.add_optimizer_variables(variables, ["m", "v"])
        self._excluded = [EXCLUDED.search(v.path) is not None for v in variables]

    def _moments(self, gradient: Any, variable: Any) -> tuple[Any, Any, bool]:
        """Updates the moments. Returns both, and whether the variable is excluded from decay and adaptation."""
        index = self._get_variable_index(variable)
        m = self.beta_1 * self.m[index] + (1.0 - self.beta_1) * gradient
        v = self.beta_2 * self.v[index] + (1.0 - self.beta_2) * ops.square(gradient)
        self.assign(self.m[index], m)
        self.assign(self.v[index], v)
        return m, v, self._excluded[index]


class AdamW(_Moments):
    """google-research/bert's AdamWeightDecayOptimizer (optimization.py): no bias correction, decay in the update."""

    def __init__(self, learning_rate: Any, *, name: str = "adamw", **settings: float) -> None:
        super().__init__(learning_rate, name=name, **settings)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable; all in float32."""
        m, v, excluded = self._moments(gradient, variable)
        update = m / (ops.sqrt(v) + self.epsilon)
        if not excluded:
            update = update + self.weight_decay_rate * variable
        self.assign_sub(variable, learning_rate * update)


class Lamb(_Moments):
    """MLPerf's LAMB (mlcommons/training retired_benchmarks/bert/lamb_optimizer_v1.py), after arXiv:1904.00962.

    Both moments' bias is corrected; decay goes into the update before the trust ratio is taken.
    """

    def __init__(self, learning_rate: Any, *, name: str = "lamb", **settings: float) -> None:
        super().__init__(learning_rate, name=name, **settings)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable; all in float32."""
        m, v, excluded = self._moments(gradient, variable)
        step = ops.cast(self.iterations + 1, "float32")
        m_hat = m / (1.0 - ops.power(self.beta_1, step))
        v_hat = v / (1.0 - ops.power(self.beta_2, step))
        update = m_hat / (ops.sqrt(v_hat) + self.epsilon)
        ratio: Any = 1.0
        if not excluded:
            update = update + self.weight_decay_rate * variable
            weight_norm, update_norm = ops.norm(ops.reshape(variable, -1)), ops.norm(ops.reshape(update, -1))
            usable = ops.logical_and(weight_norm > 0, update_norm > 0)
            ratio = ops.where(usable, weight_norm / ops.where(usable, update_norm, 1.0), 1.0)
        self.assign_sub(variable, ratio * learning_rate * update)
