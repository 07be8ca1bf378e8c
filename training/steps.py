"""One training step and one evaluation step, on JAX and on TensorFlow, on one device or many.

A batch is a mapping of arrays [parts, examples, …]. A step computes the parts one after the other, adds their gradients
and updates the weights once. Every loss is divided by its weight over the whole batch, on all parts and devices, so
neither the number of parts nor the number of devices changes the result. The exception is `clip="before"`, the
reference's own way: each device clips the gradient of each part before averaging, so both numbers matter.

On JAX, the optimizer's moments can be sharded over the devices, so that each has and updates a part of them (ZeRO,
arXiv:1910.02054), and so can the weights between steps. Each device then adds up only the gradients of its part.

Dropout is drawn from the seed, the number of the step, the part and the layer. A resumed run therefore draws the same
values as an uninterrupted one, and no random state is saved.
"""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import keras
import numpy as np
from keras import ops

from maskmill.errors import UnusableInputError
from training.backend_ops import Draws, to_numpy
from training.devices import AXIS, Devices
from training.encoders import ENDS
from training.tasks import Task

CLIP_NORM = 1.0

Clip = Literal["after", "before", "none"]
Sharding = Literal["data", "zero1", "fsdp"]
Batch = Mapping[str, Any]


class StepOptions(NamedTuple):
    """Options of computing an update.

    clip: gradients are clipped to CLIP_NORM "after" or "before" they are averaged over devices and parts, or not
      ("none").
    sharding: each device has the whole state ("data"), a part of the moments ("zero1"), or of the weights, too
      ("fsdp"); JAX only.
    reduce_dtype: the dtype in which devices add up their gradients; JAX only.
    """

    clip: Clip = "after"
    sharding: Sharding = "data"
    reduce_dtype: Literal["float32", "bfloat16"] = "float32"


DEFAULTS = StepOptions()


class Steps(abc.ABC):
    """The steps of a task on a backend, and the losses of a part as a function of the weights.

    seed: of dropout.
    """

    def __init__(
        self, task: Task, optimizer: Any, devices: Devices, how: StepOptions = DEFAULTS, *, seed: int = 0
    ) -> None:
        self.task = task
        self.built = task.built
        self.optimizer = optimizer
        self.devices = devices
        self.how = how
        self.seed = seed
        if not optimizer.built:
            optimizer.build(self.built.variables)

    @abc.abstractmethod
    def load(self) -> None:
        """Take the state (weights, moments, number of updates) from the Keras variables."""

    @abc.abstractmethod
    def store(self) -> None:
        """Put the state into the Keras variables."""

    @abc.abstractmethod
    def train(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Update once, on a batch [parts, examples of this host, …].

        Return every loss by name, their sum `loss`, `gradient_norm` before clipping, and `learning_rate`: float32
        scalars on the device, which may still be computing them.
        """

    @abc.abstractmethod
    def evaluate(self, batch: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Return the task's `evaluation` of a batch [examples of this host, …], for the examples of all hosts.

        The arrays are on the device, which may still be computing them.
        """

    @abc.abstractmethod
    def any_host(self, value: bool) -> bool:
        """Return whether `value` is true on any host. Every host must call this at the same step."""

    def _losses(
        self, weights: Sequence[Any], counter: Any, part: Batch, divisors: Batch, device: Any = 0
    ) -> tuple[Any, Any]:
        """Return the total loss of a part, and each loss by name. `counter` and `device` are as in Draws."""
        outputs = self.built.outputs(weights, part, Draws(self.seed, counter, device))
        losses = {name: total / divisors[name] for name, total in self.task.sums(outputs, part).items()}
        return sum(losses.values()), losses

    def _divisors(self, weights: Batch) -> dict[str, Any]:
        """Return the divisor of each loss: its weight plus the task's epsilon."""
        return {name: weight + self.task.epsilon(name) for name, weight in weights.items()}

    def _evaluation(self, weights: Sequence[Any], batch: Batch) -> dict[str, Any]:
        return self.task.evaluation(self.built.outputs(weights, batch), batch)

    def _clipped_after(self, gradients: list[Any]) -> tuple[list[Any], Any]:
        """Return the averaged gradients, clipped if the options say so, and their norm before clipping."""
        clipped, norm = _clipped(gradients)
        return (clipped if self.how.clip == "after" else gradients), norm

    def _results(self, losses: Batch, norm: Any, step: Any) -> dict[str, Any]:
        """Return the results of `train` for the update that follows `step` updates."""
        rate = self.optimizer.rate
        rate = rate(step) if callable(rate) else ops.convert_to_tensor(rate, "float32")
        return {**losses, "loss": sum(losses.values()), "gradient_norm": norm, "learning_rate": rate}


def _clipped(gradients: list[Any]) -> tuple[list[Any], Any]:
    """Scale gradients so that their joint norm is at most CLIP_NORM, as tf.clip_by_global_norm does.

    Return the scaled gradients and their norm before.
    """
    norm = ops.sqrt(sum(ops.sum(ops.square(g)) for g in gradients))
    scale = CLIP_NORM * ops.minimum(1.0 / norm, 1.0 / CLIP_NORM)
    # Gradients that are all 0 stay 0. NaN and infinity pass through, and the training loop stops the run.
    scale = ops.where(norm == 0, 1.0, scale)
    return [g * scale for g in gradients], norm


class JaxSteps(Steps):
    """Compiled steps on JAX. The state is kept in arrays here; `store` puts it back into the Keras variables.

    The Keras variables have the same arrays, so that the state is in memory once. A step frees its input arrays; until
    the next `store`, the Keras variables cannot be read.
    """

    def __init__(
        self, task: Task, optimizer: Any, devices: Devices, how: StepOptions = DEFAULTS, *, seed: int = 0
    ) -> None:
        super().__init__(task, optimizer, devices, how, seed=seed)
        import jax

        self._jax = jax
        weights, state = self.built.variables, optimizer.variables
        # The axes along which arrays are sharded; None for arrays that each device has whole.
        self._weight_axes = [self._axis(v, cut=how.sharding == "fsdp") for v in weights]
        self._state_axes = [self._axis(v, cut=how.sharding != "data") for v in state]
        self._gradient_axes = [self._axis(v, cut=how.sharding != "data") for v in weights]
        layouts = self._layout(None), self._layout(0), self._layout(1)
        self._replicated, self._by_examples, self._by_parts = layouts
        after = [list(map(self._layout, axes)) for axes in (self._weight_axes, self._state_axes)]
        self._train = jax.jit(
            self._train_step,
            donate_argnums=(0, 1),
            out_shardings=None if devices.mesh is None else (*after, self._replicated),
        )
        self._evaluate = jax.jit(self._evaluation_on_all, out_shardings=self._replicated)
        self.load()

    def _axis(self, variable: Any, *, cut: bool) -> int | None:
        """Return the first axis of a variable that divides evenly among the devices; None without `cut` or such an
        axis.
        """
        count, shape = self.devices.count, variable.shape
        return next((i for i, size in enumerate(shape) if cut and size and size % count == 0), None)

    def _spec(self, axis: int | None) -> Any:
        """Return JAX's partition spec of arrays that are sharded along an axis."""
        return self._jax.sharding.PartitionSpec(*([] if axis is None else [None] * axis + [AXIS]))

    def _layout(self, axis: int | None) -> Any:
        """Return the sharding of arrays along an axis; None for a single device."""
        mesh = self.devices.mesh
        return None if mesh is None else self._jax.sharding.NamedSharding(mesh, self._spec(axis))

    def load(self) -> None:
        """Take the state from the Keras variables, and lay it out over the devices."""
        for variables, axes in (
            (self.built.variables, self._weight_axes),
            (self.optimizer.variables, self._state_axes),
        ):
            for variable, axis in zip(variables, axes, strict=True):
                if (layout := self._layout(axis)) is not None:
                    value = to_numpy(variable)
                    variable.assign(self._jax.make_array_from_callback(value.shape, layout, value.__getitem__))
        self._weights = [v.value for v in self.built.variables]
        self._state = [v.value for v in self.optimizer.variables]

    def store(self) -> None:
        """Put the state into the Keras variables."""
        for variable, value in zip(self.built.variables, self._weights, strict=True):
            variable.assign(value)
        for variable, value in zip(self.optimizer.variables, self._state, strict=True):
            variable.assign(value)

    def train(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Update once; see Steps.train."""
        losses: dict[str, Any]
        self._check_padding(batch)
        placed = self._placed(batch, self._by_parts)
        self._weights, self._state, losses = self._train(self._weights, self._state, placed)
        return losses

    def evaluate(self, batch: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Return the task's `evaluation` of a batch; see Steps.evaluate."""
        self._check_padding(batch)
        evaluation: Mapping[str, Any] = self._evaluate(self._weights, self._placed(batch, self._by_examples))
        return evaluation

    def any_host(self, value: bool) -> bool:
        """Return whether `value` is true on any host; see Steps.any_host."""
        from jax.experimental import multihost_utils

        return bool(multihost_utils.process_allgather(np.array(value)).any())

    def _check_padding(self, batch: Mapping[str, np.ndarray]) -> None:
        """Check that padding is at the end of each example: cuDNN gets lengths, not masks.

        Raises:
          UnusableInputError: a token follows padding.
        """
        mask = batch["input_mask"]
        if ENDS in batch or self.built.fused_by(packed=False, drops=False) != "cuDNN":
            return
        if (mask[..., 1:] > mask[..., :-1]).any():
            raise UnusableInputError(
                "input_mask of an example has a 1 after a 0, and fused attention on this device takes padding at the "
                "end only; make the examples with the padding at their end, or train with --dtype float32."
            )

    def _placed(self, batch: Mapping[str, np.ndarray], sharding: Any) -> Any:
        """Return a host's batch on its devices."""
        if sharding is None:
            return {name: self._jax.device_put(value) for name, value in batch.items()}
        place = self._jax.make_array_from_process_local_data
        return {name: place(sharding, value) for name, value in batch.items()}

    def _train_step(self, weights: list[Any], state: list[Any], batch: Batch) -> tuple[Any, Any, Any]:
        """Return the new weights and state, and the losses. Compiled."""
        step = state[0]
        gradients, losses = self._gradients(weights, step, batch)
        gradients, norm = self._clipped_after(gradients)
        results = self._results(losses, norm, step)
        weights, state = self.optimizer.stateless_apply(state, gradients, weights)
        return weights, state, results

    def _evaluation_on_all(self, weights: list[Any], batch: Batch) -> dict[str, Any]:
        """Return the task's `evaluation`, with the devices' examples in order. Compiled."""
        if self.devices.mesh is None:
            return self._evaluation(weights, batch)
        # JAX cannot shard Splash's calls by itself.
        on_all = self._on_all(self._evaluation, (self._spec(None), self._spec(0)), self._spec(0))
        evaluation: dict[str, Any] = on_all(weights, dict(batch))
        return evaluation

    def _on_all(self, of_device: Callable[..., Any], inputs: Any, outputs: Any) -> Callable[..., Any]:
        """Return a function that all devices run, each on its parts of arrays that are sharded by these specs."""
        on_all: Callable[..., Any] = self._jax.shard_map(
            of_device, mesh=self.devices.mesh, in_specs=inputs, out_specs=outputs, check_vma=False
        )
        return on_all

    def _gradients(self, weights: list[Any], step: Any, batch: Batch) -> tuple[Any, Any]:
        """Return the gradients and losses of a batch: summed over each device, then over all devices."""
        if self.devices.mesh is None:
            return self._of_device(weights, step, batch, device=0, together=lambda x: x)
        jax, axes = self._jax, self._gradient_axes
        together = functools.partial(jax.lax.psum, axis_name=AXIS)

        def of_device(weights: list[Any], step: Any, batch: Batch) -> Any:
            device = jax.lax.axis_index(AXIS)
            gradients, losses = self._of_device(weights, step, batch, device=device, together=together)
            narrow = [gradient.astype(self.how.reduce_dtype) for gradient in gradients]
            whole, losses = together(([g for g, axis in zip(narrow, axes, strict=True) if axis is None], losses))
            added = iter(whole)
            narrow = [
                next(added) if axis is None else jax.lax.psum_scatter(g, AXIS, scatter_dimension=axis, tiled=True)
                for g, axis in zip(narrow, axes, strict=True)
            ]
            return [gradient.astype("float32") for gradient in narrow], losses

        inputs = self._spec(None), self._spec(None), self._spec(1)
        on_all = self._on_all(of_device, inputs, (list(map(self._spec, axes)), self._spec(None)))
        gradients_and_losses: tuple[Any, Any] = on_all(weights, step, dict(batch))
        return gradients_and_losses

    def _of_device(
        self, weights: list[Any], step: Any, batch: Batch, *, device: Any, together: Callable[[Any], Any]
    ) -> tuple[Any, Any]:
        """Return the gradients and losses of a device's examples, summed over parts; all devices' sum is the batch's.

        `device` is its number, from 0, and `together` sums over all devices.
        """
        jax, count = self._jax, self.devices.count
        parts = next(iter(batch.values())).shape[0]
        gradient = jax.grad(self._losses, has_aux=True)
        divisors = self._divisors(together(self.task.weights(batch)))

        def of_part(index: Any, part: Batch) -> tuple[Any, Any]:
            counter = step * parts + index
            if self.how.clip != "before":
                gradients, losses = gradient(weights, counter, part, divisors, device)
                return gradients, losses
            # The reference's replicas: each clips the gradient of its own loss, and then they are averaged.
            own = self._divisors(self.task.weights(part))
            gradients, losses = gradient(weights, counter * count + device, part, own)
            averaged: tuple[Any, Any] = jax.tree.map(lambda x: x / parts / count, (_clipped(gradients)[0], losses))
            return averaged

        if parts == 1:
            return of_part(0, {k: v[0] for k, v in batch.items()})

        def add(total: Any, indexed: Any) -> tuple[Any, None]:
            return jax.tree.map(jax.numpy.add, total, of_part(*indexed)), None

        of_one = jax.eval_shape(of_part, 0, {k: v[0] for k, v in batch.items()})
        nothing = jax.tree.map(lambda x: jax.numpy.zeros(x.shape, x.dtype), of_one)
        gradients_and_losses: tuple[Any, Any]
        gradients_and_losses, _ = jax.lax.scan(add, nothing, (jax.numpy.arange(parts), dict(batch)))
        return gradients_and_losses


class TensorFlowSteps(Steps):
    """Compiled steps on TensorFlow. The state is kept in the Keras variables themselves."""

    def __init__(
        self, task: Task, optimizer: Any, devices: Devices, how: StepOptions = DEFAULTS, *, seed: int = 0
    ) -> None:
        super().__init__(task, optimizer, devices, how, seed=seed)
        import tensorflow as tf

        self._tf = tf
        self._strategy = devices.strategy
        # Keras would sum the gradients of all devices here. _gradients has done that already, before clipping.
        optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: gradients_and_variables
        self._train = tf.function(self._train_step, reduce_retracing=True)
        self._evaluate = tf.function(self._evaluate_step, reduce_retracing=True)

    def load(self) -> None:
        """Do nothing: the state is in the Keras variables."""

    def store(self) -> None:
        """Do nothing: the state is in the Keras variables."""

    def train(self, batch: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Update once; see Steps.train."""
        return dict(self._train(self._placed(batch, axis=1)))

    def evaluate(self, batch: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Return the task's `evaluation` of a batch; see Steps.evaluate."""
        evaluation: Mapping[str, Any] = self._evaluate(self._placed(batch, axis=0))
        return evaluation

    def any_host(self, value: bool) -> bool:
        """Return whether `value` is true on any host; see Steps.any_host."""
        of_device = self._tf.constant(float(value))
        values = self._strategy.experimental_distribute_values_from_function(lambda _: of_device)
        return bool(self._strategy.reduce("SUM", values, axis=None) > 0)

    def _placed(self, batch: Mapping[str, np.ndarray], *, axis: int) -> Any:
        """Return a host's batch on its devices, split along the axis of the examples."""
        host_devices = self._strategy.num_replicas_in_sync // self.devices.process_count
        if host_devices == 1:
            return {name: self._tf.convert_to_tensor(value) for name, value in batch.items()}

        def placed(pieces: list[np.ndarray]) -> Any:
            return self._strategy.experimental_distribute_values_from_function(
                lambda context: self._tf.convert_to_tensor(pieces[context.replica_id_in_sync_group % host_devices])
            )

        return {name: placed(np.split(value, host_devices, axis)) for name, value in batch.items()}

    def _train_step(self, batch: Batch) -> dict[str, Any]:
        results = self._strategy.run(self._update, args=(batch,))
        return {name: self._strategy.experimental_local_results(value)[0] for name, value in results.items()}

    def _update(self, batch: Batch) -> dict[str, Any]:
        """Update on each device. All devices end with the same gradients, and so with the same weights."""
        gradients, losses, norm = self._gradients(batch)
        results = self._results(losses, norm, self.optimizer.iterations)
        self.optimizer.apply(gradients, self.built.variables)
        return results

    def _gradients(self, batch: Batch) -> tuple[list[Any], dict[str, Any], Any]:
        """Return the gradients, clipped if the options say so, the losses of all devices, and the gradients' norm
        before.
        """
        tf = self._tf
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        weights = [tf.convert_to_tensor(v.value) for v in self.built.variables]
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        parts = next(iter(batch.values())).shape[0]
        clips_each_device = self.how.clip == "before"
        batch_weights = self.task.weights(batch)
        if not clips_each_device and replicas > 1:
            batch_weights = context.all_reduce("SUM", batch_weights)

        def of_part(index: Any) -> tuple[list[Any], dict[str, Any]]:
            part = {name: value[index] for name, value in batch.items()}
            divisors = self._divisors(self.task.weights(part) if clips_each_device else batch_weights)
            counter = (step * parts + index) * replicas + context.replica_id_in_sync_group
            with tf.GradientTape() as tape:
                tape.watch(weights)
                loss, losses = self._losses(weights, counter, part, divisors)
            gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]
            if clips_each_device:
                gradients = [g / parts / replicas for g in _clipped(gradients)[0]]
                losses = {name: value / parts / replicas for name, value in losses.items()}
            return gradients, losses

        def add(index: Any, total: Any) -> tuple[Any, Any]:
            return index + 1, tf.nest.map_structure(tf.add, total, of_part(index))

        gradients_and_losses = of_part(0)
        if parts > 1:
            _, gradients_and_losses = tf.while_loop(
                lambda index, _: index < parts, add, (tf.constant(1), gradients_and_losses)
            )
        gradients, losses = gradients_and_losses
        if replicas > 1:
            gradients = context.all_reduce("SUM", gradients)
            losses = context.all_reduce("SUM", losses)
        gradients, norm = self._clipped_after(gradients)
        return gradients, losses, norm

    def _evaluate_step(self, batch: Batch) -> dict[str, Any]:
        def of_device(batch: Batch) -> dict[str, Any]:
            weights = [self._tf.convert_to_tensor(v.value) for v in self.built.variables]
            return self._evaluation(weights, batch)

        evaluation = self._strategy.run(of_device, args=(batch,))
        return {name: self._strategy.gather(value, axis=0) for name, value in evaluation.items()}


def make_steps(task: Task, optimizer: Any, devices: Devices, how: StepOptions = DEFAULTS, *, seed: int = 0) -> Steps:
    """Return the steps for the backend that Keras runs on; see `Steps`."""
    of_backend = JaxSteps if keras.backend.backend() == "jax" else TensorFlowSteps
    return of_backend(task, optimizer, devices, how, seed=seed)
