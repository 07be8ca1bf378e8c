"""Fixtures of the training tests. They run on one backend a process, KERAS_BACKEND, by default JAX."""

import gzip
import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import cloud

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
# tests/test_mistakes.py and tests/how_tos.py take these from the conftest that is loaded, which is this one here.
ROOT = HERE.parents[1]
SHARED = ROOT.parent / "shared"
GOLD = DATA / "training"

os.environ.setdefault("KERAS_BACKEND", "jax")
# Both backends get four virtual CPU devices; a test uses one unless it asks for more.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
# The tests spend most of their time compiling, so compiled programs are kept for other tests and later runs.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(HERE.parents[1] / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# These test modules need neither TensorFlow nor Keras: `make test` runs them, `make test-training` all others.
LIGHT = {
    "test_training_config.py",
    "test_training_devices.py",
    "test_training_evaluate.py",
    "test_training_launchers.py",
    "test_training_options.py",
    "test_training_preflight.py",
    "test_training_program.py",
    "test_training_pytorch_files.py",
    "test_training_settings.py",
}
# If a private name of Keras is gone, its test says so before other tests fail because of it.
FIRST = "test_training_private_names.py"

HAS_TRAINING = all(importlib.util.find_spec(name) is not None for name in ("tensorflow", "keras"))
if not HAS_TRAINING:
    collect_ignore = [path.name for path in HERE.glob("test_*.py") if path.name not in LIGHT]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.path.name not in LIGHT:
            item.add_marker(pytest.mark.elsewhere)
    items.sort(key=lambda item: item.path.name != FIRST)


@pytest.fixture(scope="session", autouse=True)
def _four_devices() -> None:
    if not HAS_TRAINING:
        return
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
    if os.environ["KERAS_BACKEND"] == "jax":
        import jax

        # Whichever test is first may ask for another number, which JAX takes as long as it has no devices.
        jax.devices()


@pytest.fixture(scope="session")
def examples_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The gold examples, 3,197 of 128 tokens and 20 predictions, unpacked."""
    path = tmp_path_factory.mktemp("examples") / "two_in_three_out-0.tfrecord"
    path.write_bytes(gzip.decompress((DATA / "gold/pretraining/two_in_three_out-0.tfrecord.gz").read_bytes()))
    return str(path)


@pytest.fixture(scope="session")
def small_examples(examples_path: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first 256 of the gold examples."""
    import tensorflow as tf

    path = str(tmp_path_factory.mktemp("examples") / "small.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for record in tf.data.TFRecordDataset(examples_path).take(256).as_numpy_iterator():
            writer.write(record)
    return path


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A bucket of a Cloud Storage emulator, as a directory."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), "training") as variables, cloud.set_environment(variables):
        yield "gs://training"


@pytest.fixture(scope="session")
def expected() -> dict:
    """The results of the reference's model and optimizers (tests/data/training/README.md)."""
    return json.loads((GOLD / "expected.json").read_text())


@pytest.fixture(scope="session")
def config():
    """The gold checkpoint's configuration."""
    from training.config import from_json

    return from_json((GOLD / "bert_config.json").read_text(), where="bert_config.json")


@pytest.fixture
def with_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced afterwards is for an NVIDIA GPU of the Hopper generation with cuDNN. It cannot be run."""
    from jax._src.cudnn import fused_attention_stablehlo

    from training import backend_ops

    monkeypatch.setattr(fused_attention_stablehlo, "check_cudnn_version", lambda: 91900)
    monkeypatch.setattr(fused_attention_stablehlo, "check_compute_capability", lambda _: True)
    monkeypatch.setattr(backend_ops, "_has_cudnn", lambda: True)


@pytest.fixture
def with_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced afterwards is for a TPU. It cannot be run."""
    from training import backend_ops

    monkeypatch.setattr(backend_ops, "_has_tpu", lambda: True)


@pytest.fixture
def float32_afterwards():
    import keras

    yield
    keras.config.set_dtype_policy("float32")
