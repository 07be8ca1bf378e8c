"""One training step and one evaluation step, on JAX and on TensorFlow, on one device or many.

A batch is a mapping of arrays [parts, examples, …]: a step takes the parts one after the other, adds their gradients
up and updates once. Every loss is divided by its weight over the whole batch, on all parts and devices, so that neither
the number of parts nor that of devices changes the result. (With `clip="before"`, the reference's own way, each device
clips the gradient of each part before they are averaged; then both numbers matter.)

Dropout is drawn from the seed, the step's number, the part and the layer, so that a resumed run draws as an undisturbed
one would, and nothing of it needs to be saved.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras
import numpy as np
from keras import ops

from training.devices import Devices
from training.tasks import Task

CLIP_NORM = 1.0
_SEED_STRIDE = 2654435761  # Knuth's multiplier spreads the layers' seeds over 32 bits

Batch = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepOptions:
    """How gradients are clipped to norm 1 (after or before the average over devices and parts, or not) and the seed."""

    clip: Literal["after", "before", "none"] = "after"
    seed: int = 0


class _Steps:
    """What both backends share: the losses of a part as a function of the weights."""

    def __init__(self, task: Task, optimizer: Any, devices: Devices, options: StepOptions) -> None:
        self.task = task
        self.model = task.built.model
        self.optimizer = optimizer
        self.devices = devices
        self.options = options
        if not optimizer.built:
            optimizer.build(self.model.trainable_variables)

    def _seeds(self, counter: Any) -> list[Any]:
        """The states of the model's seed generators, [seed, counter] each."""
        seeds = []
        for i, variable in enumerate(self.model.non_trainable_variables):
            seed = ((self.options.seed + 1) * _SEED_STRIDE + i * 40503) % 2**31
            state = ops.stack([ops.cast(seed, "int32"), ops.cast(counter, "int32")])
            seeds.append(ops.cast(state, variable.dtype))
        return seeds

    def _losses(self, weights: Sequence[Any], counter: Any, part: Batch, divisors: Batch) -> tuple[Any, Any]:
        """The total loss of a part, and each loss by name."""
        inputs = {name: part[name] for name in self.model.input}
        outputs, _ = self.model.stateless_call(weights, self._seeds(counter), inputs, training=True)
        losses = {name: total / divisors[name] for name, total in self.task.sums(outputs, part).items()}
        return sum(losses.values()), losses

    def _divisors(self, totals: Batch) -> dict[str, Any]:
        return {name: total + self.task.epsilon(name) for name, total in totals.items()}

    def _evaluation(self, weights: Sequence[Any], batch: Batch) -> dict[str, Any]:
        inputs = {name: batch[name] for name in self.model.input}
        outputs, _ = self.model.stateless_call(weights, self._seeds(0), inputs, training=False)
        return self.task.evaluation(outputs, batch)

    def _learning_rate(self, step: Any) -> Any:
        rate = self.optimizer._learning_rate
        return rate(step) if callable(rate) else ops.convert_to_tensor(rate)


def _clipped(gradients: list[Any]) -> tuple[list[Any], Any]:
    """Scales gradients so that their joint norm is at most 1 (tf.clip_by_global_norm). Returns the norm before, too."""
    norm = _norm(gradients)
    scale = CLIP_NORM * ops.minimum(1.0 / norm, 1.0 / CLIP_NORM)
    # A gradient of exactly 0 has no direction to keep; NaN and infinity pass through and stop the run.
    scale = ops.where(norm == 0, 1.0, scale)
    return [g * scale for g in gradients], norm


def _norm(gradients: list[Any]) -> Any:
    return ops.sqrt(sum(ops.sum(ops.square(g)) for g in gradients))


class JaxSteps(_Steps):
    """Compiled steps on JAX. The state lives in arrays here; `store` puts it back into the Keras variables."""

    def __init__(self, task: Task, optimizer: Any, devices: Devices, options: StepOptions) -> None:
        super().__init__(task, optimizer, devices, options)
        import jax

        self._jax = jax
        self._rows = self._parts = self._whole = None
        if devices.mesh is not None:
            spec = jax.sharding.PartitionSpec
            self._whole = jax.sharding.NamedSharding(devices.mesh, spec())
            self._rows = jax.sharding.NamedSharding(devices.mesh, spec("batch"))
            self._parts = jax.sharding.NamedSharding(devices.mesh, spec(None, "batch"))
        self._train = jax.jit(self._train_step, donate_argnums=(0, 1), out_shardings=self._whole)
        self._evaluate = jax.jit(self._evaluation, out_shardings=self._whole)
        self.load()

    def load(self) -> None:
        """Takes the state from the Keras variables."""
        # Copies: the arrays here are donated to each step, the variables' own must stay usable.
        copy = self._jax.numpy.copy
        self._weights = [copy(v.value) for v in self.model.trainable_variables]
        self._state = [copy(v.value) for v in self.optimizer.variables]

    def store(self) -> None:
        """Puts the state into the Keras variables."""
        copy = self._jax.numpy.copy
        for variable, value in zip(self.model.trainable_variables, self._weights, strict=True):
            variable.assign(copy(value))
        for variable, value in zip(self.optimizer.variables, self._state, strict=True):
            variable.assign(copy(value))

    def train(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Updates once. Returns losses, `gradient_norm` and `learning_rate` as device scalars, not waited for."""
        self._weights, self._state, losses = self._train(self._weights, self._state, self._placed(batch, self._parts))
        return losses

    def evaluate(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the task's `evaluation` gives for a batch [examples, …] of all hosts."""
        parts = self._evaluate(self._weights, self._placed(batch, self._rows))
        return {name: np.asarray(value) for name, value in parts.items()}

    def any_host(self, value: bool) -> bool:
        """Whether it is so on any host; all must ask."""
        from jax.experimental import multihost_utils

        return bool(multihost_utils.process_allgather(np.array(value)).any())

    def _placed(self, batch: Mapping[str, np.ndarray], sharding: Any) -> Any:
        if sharding is None:
            return {name: self._jax.numpy.asarray(value) for name, value in batch.items()}
        place = self._jax.make_array_from_process_local_data
        return {name: place(sharding, value) for name, value in batch.items()}

    def _train_step(self, weights: list[Any], state: list[Any], batch: Batch) -> tuple[Any, Any, Any]:
        jax = self._jax
        step = state[0]
        parts = next(iter(batch.values())).shape[0]
        gradient = jax.grad(self._losses, has_aux=True)
        if self.options.clip == "before":
            replicas = self.devices.count
            # [parts, replicas, examples of one device, …]: one gradient for each device, as the reference's replicas.
            split = {k: v.reshape(parts, replicas, -1, *v.shape[2:]) for k, v in batch.items()}
            if self._parts is not None:
                split = {k: jax.lax.with_sharding_constraint(v, self._parts) for k, v in split.items()}

            def clipped(weights: list[Any], counter: Any, part: Batch) -> tuple[Any, Any]:
                divisors = self._divisors(self.task.weights(part))
                gradients, losses = gradient(weights, counter, part, divisors)
                return _clipped(gradients)[0], losses

            def of_part(index: Any, part: Batch) -> tuple[Any, Any]:
                counters = (step * parts + index) * replicas + jax.numpy.arange(replicas)
                each = jax.vmap(clipped, in_axes=(None, 0, 0))(weights, counters, part)
                return jax.tree.map(lambda x: x.mean(0) / parts, each)

        else:
            split = dict(batch)
            divisors = self._divisors(self.task.weights(batch))

            def of_part(index: Any, part: Batch) -> tuple[Any, Any]:
                return gradient(weights, step * parts + index, part, divisors)

        def add(total: Any, indexed: Any) -> tuple[Any, None]:
            return jax.tree.map(jax.numpy.add, total, of_part(*indexed)), None

        first = of_part(0, {k: v[0] for k, v in split.items()})
        if parts > 1:
            rest = {k: v[1:] for k, v in split.items()}
            first, _ = jax.lax.scan(add, first, (jax.numpy.arange(1, parts), rest))
        gradients, losses = first
        norm = _norm(gradients)
        if self.options.clip == "after":
            gradients, norm = _clipped(gradients)
        rate = self._learning_rate(step)
        weights, state = self.optimizer.stateless_apply(state, gradients, weights)
        total = sum(losses.values())
        return weights, state, losses | {"loss": total, "gradient_norm": norm, "learning_rate": rate}


class TensorFlowSteps(_Steps):
    """Compiled steps on TensorFlow. The state lives in the Keras variables themselves."""

    def __init__(self, task: Task, optimizer: Any, devices: Devices, options: StepOptions) -> None:
        super().__init__(task, optimizer, devices, options)
        import tensorflow as tf

        self._tf = tf
        self._strategy = devices.strategy
        # Keras would add the devices' gradients up; here that is done before they are clipped.
        optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables
        self._train = tf.function(self._train_step, reduce_retracing=True)
        self._evaluate = tf.function(self._evaluate_step, reduce_retracing=True)

    def load(self) -> None:
        """The state is in the variables already."""

    def store(self) -> None:
        """The state is in the variables already."""

    def train(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Updates once. Returns losses, `gradient_norm` and `learning_rate` as scalars."""
        return dict(self._train(self._placed(batch, axis=1)))

    def evaluate(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the task's `evaluation` gives for a batch [examples, …] of all hosts."""
        return {name: np.asarray(value) for name, value in self._evaluate(self._placed(batch, axis=0)).items()}

    def any_host(self, value: bool) -> bool:
        """Whether it is so on any host; all must ask."""
        of_device = self._tf.constant(float(value))
        values = self._strategy.experimental_distribute_values_from_function(lambda _: of_device)
        return bool(self._strategy.reduce("SUM", values, axis=None) > 0)

    def _placed(self, batch: Mapping[str, np.ndarray], *, axis: int) -> Any:
        replicas = self._strategy.extended._num_replicas_in_sync // self.devices.process_count
        if replicas == 1:
            return {name: self._tf.convert_to_tensor(value) for name, value in batch.items()}
        pieces = {name: np.split(value, replicas, axis) for name, value in batch.items()}
        return {
            name: self._strategy.experimental_distribute_values_from_function(
                lambda context, each=each: self._tf.convert_to_tensor(each[context.replica_id_in_sync_group % replicas])
            )
            for name, each in pieces.items()
        }

    def _train_step(self, batch: Batch) -> dict[str, Any]:
        results = self._strategy.run(self._update, args=(batch,))
        return {name: self._strategy.experimental_local_results(value)[0] for name, value in results.items()}

    def _update(self, batch: Batch) -> dict[str, Any]:
        """What each device does. All have the same gradients in the end, and so the same weights."""
        gradients, losses, norm = self._gradients(batch)
        rate = self._learning_rate(self.optimizer.iterations)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return losses | {"loss": sum(losses.values()), "gradient_norm": norm, "learning_rate": rate}

    def _gradients(self, batch: Batch) -> tuple[list[Any], dict[str, Any], Any]:
        tf = self._tf
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        weights = [tf.convert_to_tensor(v.value) for v in self.model.trainable_variables]
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        parts = next(iter(batch.values())).shape[0]
        before = self.options.clip == "before"
        totals = self.task.weights(batch)
        if not before and replicas > 1:
            totals = context.all_reduce("SUM", totals)

        def of_part(index: Any) -> tuple[list[Any], dict[str, Any]]:
            part = {name: value[index] for name, value in batch.items()}
            divisors = self._divisors(self.task.weights(part) if before else totals)
            counter = (step * parts + index) * replicas + context.replica_id_in_sync_group
            with tf.GradientTape() as tape:
                tape.watch(weights)
                loss, losses = self._losses(weights, counter, part, divisors)
            gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
            if before:
                gradients = [g / parts / replicas for g in _clipped(gradients)[0]]
                losses = {name: value / parts / replicas for name, value in losses.items()}
            return gradients, losses

        total = of_part(0)
        if parts > 1:

            def add(index: Any, total: Any) -> tuple[Any, Any]:
                return index + 1, tf.nest.map_structure(tf.add, total, of_part(index))

            _, total = tf.while_loop(lambda index, _: index < parts, add, (tf.constant(1), total))
        gradients, losses = total
        if replicas > 1:
            gradients = context.all_reduce("SUM", gradients)
            losses = context.all_reduce("SUM", losses)
        norm = _norm(gradients)
        if self.options.clip == "after":
            gradients, norm = _clipped(gradients)
        return gradients, losses, norm

    def _evaluate_step(self, batch: Batch) -> dict[str, Any]:
        def of_replica(batch: Batch) -> dict[str, Any]:
            weights = [v.value for v in self.model.trainable_variables]
            return self._evaluation([self._tf.convert_to_tensor(w) for w in weights], batch)

        parts = self._strategy.run(of_replica, args=(batch,))
        return {name: self._strategy.gather(value, axis=0) for name, value in parts.items()}


def make_steps(task: Task, optimizer: Any, devices: Devices, options: StepOptions) -> JaxSteps | TensorFlowSteps:
    """The steps for Keras's backend."""
    return (JaxSteps if keras.backend.backend() == "jax" else TensorFlowSteps)(task, optimizer, devices, options)
