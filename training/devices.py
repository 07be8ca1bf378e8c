"""The backend and its devices: one device, all devices of a machine, or those of several hosts."""

import atexit
import contextlib
import dataclasses
import importlib.util
import math
import os
import socket
import sys
import threading
import time
import zlib
from collections.abc import Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.storage import network
from training.options import TrainOptions

# XLA's flags on every platform; the user's own XLA_FLAGS come after these.
XLA_FLAGS = (
    # XLA ends the process when it puts cuDNN's dropout into a graph of CUDA (seen with JAX 0.11.2 on an H100).
    "--xla_gpu_enable_command_buffer=-CUDNN",
    # cuBLAS alone is 2 % faster than a mix of it and Triton, and needs less time to compile.
    "--xla_gpu_enable_triton_gemm=false",
    # Two products in one would have to be taken apart again for attention.
    "--xla_gpu_dot_merger_threshold_mb=0",
)
# The axis of a mesh of devices over which the examples of a batch are split.
AXIS = "batch"
_LOOKUP_SECONDS = 5.0
_JAX_WAITS_LONGER_SECONDS = 60
# Seconds without a sign of another process after which JAX ends this one: its default.
_JAX_HEARTBEAT_SECONDS = 100
_ASK_AGAIN_SECONDS = 0.1
# TF_CPP_MIN_LOG_LEVEL for nothing but fatal errors.
_FATAL_ONLY = "3"
_STDERR = 2


@dataclasses.dataclass(frozen=True)
class Devices:
    """The devices that a run computes on.

    `kind` is the backend's name for the hardware, `count` the number of devices of all hosts. `process_index` is the
    number of this process, from 0, of `process_count`. `mesh` is JAX's device mesh (None on one device), `strategy`
    TensorFlow's distribution strategy.
    """

    backend: str
    kind: str
    count: int
    process_index: int
    process_count: int
    mesh: Any = None
    strategy: Any = None

    def peak_memory(self) -> int | None:
        """Return the most bytes of arrays so far on the first device of this host; None if unknown."""
        if self.backend != "jax":
            return None
        import jax

        return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")

    @property
    def is_first(self) -> bool:
        """True if this process is the one that writes checkpoints and logs."""
        return self.process_index == 0


def select_backend(backend: str) -> None:
    """Choose Keras's backend. This must happen before Keras is imported.

    Raises:
      UnusableInputError: Keras uses another backend in this process already.
    """
    loaded = sys.modules.get("keras")
    if loaded is not None and loaded.backend.backend() != backend:
        raise UnusableInputError(
            f"--backend {backend}: Keras runs on {loaded.backend.backend()} in this process already; start another "
            "process."
        )
    os.environ["KERAS_BACKEND"] = backend


def start(options: TrainOptions) -> Devices:
    """Find the devices and tell Keras to use them.

    With --coordinator, this process joins the other processes of the run. TensorFlow takes their addresses from
    TF_CONFIG, as tf.distribute defines it. On a CPU, --num_devices above 1 makes that many virtual devices.

    Raises:
      UnusableInputError: there are fewer devices than requested, or TF_CONFIG lacks the other hosts.
      RunFailedError: the other processes did not join in time.
    """
    import keras

    keras.config.set_dtype_policy("mixed_bfloat16" if options.dtype == "bfloat16" else options.dtype)
    return (_start_jax if options.backend == "jax" else _start_tensorflow)(options)


def import_tensorflow(what: str) -> Any:
    """Import TensorFlow without its notes on the terminal, some of which it writes before it reads its log level.

    Raises:
      UnusableInputError: it is not installed; `what` needs it.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", _FATAL_ONLY)
    terminal = os.dup(_STDERR)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), _STDERR)
            import tensorflow
    except ModuleNotFoundError:
        raise UnusableInputError(f"{what} needs TensorFlow; install it: pip install 'maskmill[tensorflow]'.") from None
    finally:
        os.dup2(terminal, _STDERR)
        os.close(terminal)
    return tensorflow


def _chosen(options: TrainOptions, available: list[Any], kind: str, *, accelerated: bool) -> list[Any]:
    """Return the devices of a run: as many as requested; by default all accelerators, or one CPU."""
    count = options.num_devices or (len(available) if accelerated else 1)
    if count > len(available):
        raise UnusableInputError(f"--num_devices {count}: there are only {len(available)} {kind} devices.")
    return available[:count]


def _start_jax(options: TrainOptions) -> Devices:
    import jax
    import numpy

    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = " ".join([*(flag for flag in XLA_FLAGS if flag not in given), given]).strip()
    if not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", _compilation_cache())
    # TensorFlow only reads checkpoints here; it must not take the accelerator's memory.
    if (tensorflow := sys.modules.get("tensorflow")) is not None:
        for kind in ("GPU", "TPU"):
            tensorflow.config.set_visible_devices([], kind)
    if (options.num_devices or 1) > 1 and _platform() == "cpu":
        # JAX refuses this if it has its devices already. Those are counted below.
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", options.num_devices)
    if options.coordinator is not None:
        _meet_other_processes(options)
    available = jax.devices()
    platform = available[0].platform
    used = available
    if options.coordinator is None:
        used = _chosen(options, available, platform, accelerated=platform != "cpu")
    mesh = jax.sharding.Mesh(numpy.array(used), (AXIS,)) if len(used) > 1 else None
    return Devices(
        backend="jax",
        kind=available[0].device_kind,
        count=len(used),
        process_index=jax.process_index(),
        process_count=jax.process_count(),
        mesh=mesh,
    )


def _compilation_cache() -> str:
    """Return the directory in which JAX keeps compiled programs for the next run, beside maskmill's other caches.

    A program for a CPU may use all its instructions, so each kind of CPU has a directory of its own.
    """
    from llvmlite import binding as llvm

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    features = zlib.crc32(llvm.get_host_cpu_features().flatten().encode())
    return os.path.join(cache, "maskmill", "xla", f"{llvm.get_host_cpu_name()}-{features:08x}")


def check_coordinator(coordinator: str | None) -> None:
    """Look up the first process's host, before any slow import.

    Raises:
      UnusableInputError: its name has no address.
    """
    host = (coordinator or "").rpartition(":")[0].strip("[]")
    if host and (failure := network.lookup_failure(host, _LOOKUP_SECONDS)):
        raise UnusableInputError(f"--coordinator {coordinator}: there is no host {host} ({failure}); correct its name.")


def _meet_other_processes(options: TrainOptions) -> None:
    """Join the processes of a run on several hosts; JAX's own error would be a late stack trace."""
    import jax
    import keras

    ended: list[Exception | None] = []
    timeout = math.ceil(options.coordinator_timeout)

    def join() -> None:
        try:
            jax.distributed.initialize(
                # With None, JAX asks the platform: Slurm, GKE or Cloud TPU.
                coordinator_address=None if options.coordinator == "auto" else options.coordinator,
                num_processes=options.num_processes,
                process_id=options.process_id,
                initialization_timeout=timeout + _JAX_WAITS_LONGER_SECONDS,
                heartbeat_timeout_seconds=min(timeout, _JAX_HEARTBEAT_SECONDS),
            )
        except Exception as error:  # noqa: BLE001 - the main thread reports it
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=join, name="meet-other-processes", daemon=True)
    thread.start()
    thread.join(options.coordinator_timeout)
    if ended and ended[0] is not None:
        raise UnusableInputError(
            f"--coordinator {options.coordinator}: the processes cannot meet ({ended[0]}); correct --coordinator, "
            "--num_processes and --process_id."
        ) from ended[0]
    if not ended:
        raise _not_all_there(options, options.num_processes)
    # As keras.distribution.initialize does: what takes no seed from us must be the same on all hosts.
    keras.utils.set_random_seed(0)


def _not_all_there(options: TrainOptions, count: int | None) -> RunFailedError:
    """Return the error for processes, `count` of them expected, that did not all join in time."""
    return RunFailedError(
        f"--coordinator {options.coordinator}: not all {f'{count} ' if count else ''}processes were there within "
        f"{options.coordinator_timeout:g} s; start them all with the same --coordinator, or wait longer with "
        "--coordinator_timeout SECONDS."
    )


def _all_answer(addresses: Sequence[str], own: int, seconds: float) -> bool:
    """Return whether all processes of a run listen at their addresses within `seconds`; this one is number `own`.

    Raises:
      OSError: this process cannot listen at its own address.
    """
    until = time.monotonic() + seconds
    with socket.create_server(("", int(addresses[own].rpartition(":")[2]))):
        for address in (*addresses[:own], *addresses[own + 1 :]):
            host, _, port = address.rpartition(":")
            while True:
                with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), seconds):
                    break
                if time.monotonic() > until:
                    return False
                time.sleep(_ASK_AGAIN_SECONDS)
    return True


def end_without_others() -> None:
    """Make this process, whose run has failed, end with exit code 1 as soon as Python ends.

    JAX would wait for the other processes for minutes first, and then abort.
    """

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    atexit.register(end)


def _platform() -> str:
    """Return JAX's platform without starting JAX: the number of virtual CPU devices must be set before that."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        return platforms.split(",")[0]
    accelerators = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "libtpu")
    return "accelerator" if any(importlib.util.find_spec(m) for m in accelerators) else "cpu"


def _start_tensorflow(options: TrainOptions) -> Devices:
    import tensorflow as tf

    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    if options.coordinator is not None:
        if "TF_CONFIG" not in os.environ:
            raise UnusableInputError(
                "--coordinator: TensorFlow reads the addresses of the other hosts from TF_CONFIG, which is not set; "
                "set it on each host, or use --backend jax."
            )
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        addresses, index = resolver.cluster_spec().as_dict()["worker"], resolver.task_id
        processes = len(addresses)
        # TensorFlow would wait for ever, and Python would not receive signals meanwhile.
        if not _all_answer(addresses, index, options.coordinator_timeout):
            raise _not_all_there(options, processes)
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        strategy, index, processes = _local_strategy(options), 0, 1
    used = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return Devices(
        backend="tensorflow",
        kind=used[0].device_type,
        count=strategy.num_replicas_in_sync,
        process_index=index,
        process_count=processes,
        strategy=strategy,
    )


def _local_strategy(options: TrainOptions) -> Any:
    """Return TensorFlow's strategy for the devices of this machine."""
    import tensorflow as tf

    accelerators = tf.config.list_physical_devices("GPU")
    if not accelerators and options.num_devices and options.num_devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        virtual = [tf.config.LogicalDeviceConfiguration()] * options.num_devices
        # TensorFlow refuses this if it has its devices already. Those are counted below.
        with contextlib.suppress(RuntimeError):
            tf.config.set_logical_device_configuration(cpu, virtual)
    kind = "GPU" if accelerators else "CPU"
    used = _chosen(options, tf.config.list_logical_devices(kind), kind, accelerated=bool(accelerators))
    if len(used) == 1:
        return tf.distribute.get_strategy()
    return tf.distribute.MirroredStrategy([d.name for d in used])
