"""What the training tests share. They run on one backend a process: KERAS_BACKEND names it, JAX is the default."""

import dataclasses
import gzip
import importlib.util
import json
import os
from pathlib import Path

import pytest

os.environ.setdefault("KERAS_BACKEND", "jax")
# Both backends get four virtual CPU devices; a test uses one unless it asks for more.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
# The tests compile far longer than they compute: every program is kept, for the other tests and the next time.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[2] / ".cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# The data path's environment has no TensorFlow: there these tests are none of its business (make test-training).
if importlib.util.find_spec("tensorflow") is None or importlib.util.find_spec("keras_hub") is None:
    collect_ignore_glob = ["test_*.py"]

DATA = Path(__file__).parent.parent / "data"
GOLD = DATA / "training"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.training)


@pytest.fixture(scope="session", autouse=True)
def _four_devices() -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)


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
def expected() -> dict:
    """What the reference model and optimizers do (tests/data/training/README.md)."""
    return json.loads((GOLD / "expected.json").read_text())


@pytest.fixture(scope="session")
def config():
    """The gold checkpoint's configuration."""
    from training.config import from_json

    return from_json((GOLD / "bert_config.json").read_text(), where="bert_config.json")


@pytest.fixture(scope="session")
def tiny(config):
    """A still smaller model, with dropout, of the same vocabulary."""
    return dataclasses.replace(config, num_hidden_layers=1, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
