"""The backend and its devices: one device, all of a machine, or those of several hosts."""

import contextlib
import dataclasses
import importlib.util
import os
import sys
from typing import Any

from transforms.errors import UnusableInputError


@dataclasses.dataclass(frozen=True)
class Devices:
    """Where a run computes.

    `count` is the number of devices of all hosts. `mesh` is JAX's (None on one device), `strategy` TensorFlow's.
    """

    backend: str
    kind: str
    count: int
    process_index: int
    process_count: int
    mesh: Any = None
    strategy: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes checkpoints and logs."""
        return self.process_index == 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Which backend and devices, and where the other hosts are."""

    backend: str = "jax"
    num_devices: int | None = None
    dtype: str = "float32"
    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    deterministic: bool = False


def select_backend(backend: str) -> None:
    """Chooses Keras's backend; must come before Keras is imported.

    Raises:
      UnusableInputError: Keras runs with another backend in this process already.
    """
    loaded = sys.modules.get("keras")
    if loaded is not None and loaded.backend.backend() != backend:
        raise UnusableInputError(
            f"--backend {backend}: Keras runs on {loaded.backend.backend()} in this process already; start another."
        )
    os.environ["KERAS_BACKEND"] = backend


def start(options: DeviceOptions) -> Devices:
    """Finds the devices and tells Keras to use them.

    With `coordinator` (host:port) this process joins `num_processes` others on JAX; on TensorFlow TF_CONFIG names them,
    as tf.distribute has it. On a CPU, `num_devices` above 1 makes so many virtual devices.

    Raises:
      UnusableInputError: there are fewer devices than asked for, or the other hosts are not named.
    """
    import keras

    keras.config.set_dtype_policy(options.dtype)
    starters = {"jax": _start_jax, "tensorflow": _start_tensorflow}
    return starters[options.backend](options)


def _hide_accelerators_from_tensorflow() -> None:
    """TensorFlow only reads input when JAX computes; it must not take the accelerator's memory."""
    import tensorflow as tf

    for kind in ("GPU", "TPU"):
        tf.config.set_visible_devices([], kind)


def _start_jax(options: DeviceOptions) -> Devices:
    import jax
    import keras

    _hide_accelerators_from_tensorflow()
    if (options.num_devices or 1) > 1 and _platform() == "cpu":
        # Refused when JAX has its devices already; then those that it has are counted below.
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", options.num_devices)
    if options.coordinator is not None:
        # `auto`: Slurm, GKE and Cloud TPU tell JAX themselves.
        address = None if options.coordinator == "auto" else options.coordinator
        keras.distribution.initialize(address, options.num_processes, options.process_id)
    found = jax.devices()
    count = options.num_devices or (1 if found[0].platform == "cpu" else len(found))
    if options.coordinator is not None:
        count = len(found)
    if count > len(found):
        raise UnusableInputError(f"--num_devices {count}: there are only {len(found)} {found[0].platform} devices.")
    distribution = mesh = None
    if count > 1:
        names = [f"{d.platform}:{d.id}" for d in found[:count]]
        distribution = keras.distribution.DataParallel(devices=names, auto_shard_dataset=False)
        mesh = distribution.device_mesh.backend_mesh
    # On one device, too: a run before this one in the process may have left its own.
    keras.distribution.set_distribution(distribution)
    return Devices(
        backend="jax",
        kind=found[0].device_kind,
        count=count,
        process_index=jax.process_index(),
        process_count=jax.process_count(),
        mesh=mesh,
    )


def _platform() -> str:
    """JAX's platform without starting it: the number of virtual CPU devices must be set before."""
    chosen = os.environ.get("JAX_PLATFORMS", "")
    if chosen:
        return chosen.split(",")[0]
    accelerators = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "libtpu")
    return "accelerator" if any(importlib.util.find_spec(m) for m in accelerators) else "cpu"


def _start_tensorflow(options: DeviceOptions) -> Devices:
    import tensorflow as tf

    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    if options.coordinator is not None:
        if "TF_CONFIG" not in os.environ:
            raise UnusableInputError(
                "--coordinator: TensorFlow finds the other hosts by TF_CONFIG, and it is not set; set it on each host, "
                "or take --backend jax."
            )
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        resolver = strategy.cluster_resolver
        index, processes = resolver.task_id, len(resolver.cluster_spec().as_dict()["worker"])
    else:
        strategy, index, processes = _local_strategy(options), 0, 1
    kinds = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return Devices(
        backend="tensorflow",
        kind=kinds[0].device_type,
        count=strategy.num_replicas_in_sync,
        process_index=index,
        process_count=processes,
        strategy=strategy,
    )


def _local_strategy(options: DeviceOptions) -> Any:
    import tensorflow as tf

    accelerators = tf.config.list_physical_devices("GPU")
    if not accelerators and options.num_devices and options.num_devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        virtual = [tf.config.LogicalDeviceConfiguration()] * options.num_devices
        # As above: refused once TensorFlow has its devices.
        with contextlib.suppress(RuntimeError):
            tf.config.set_logical_device_configuration(cpu, virtual)
    kind = "GPU" if accelerators else "CPU"
    found = tf.config.list_logical_devices(kind)
    count = options.num_devices or (len(found) if accelerators else 1)
    if count > len(found):
        raise UnusableInputError(f"--num_devices {count}: there are only {len(found)} {kind} devices.")
    if count == 1:
        return tf.distribute.get_strategy()
    return tf.distribute.MirroredStrategy([d.name for d in found[:count]])
