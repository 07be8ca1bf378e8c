"""Helpers of the training tests."""

import os
from pathlib import Path

BACKEND = os.environ.get("KERAS_BACKEND", "jax")
GOLD = Path(__file__).parent.parent / "data" / "training"
CHECKPOINT = GOLD / "tf1_ckpt" / "model.ckpt-0"


def devices(count: int | None = None):
    """Devices of this process's backend."""
    from training.devices import DeviceOptions, start

    return start(DeviceOptions(backend=BACKEND, num_devices=count))


def batch_of(path: str, start: int, count: int) -> dict:
    """Examples [start, start + count) of a file of gold examples."""
    import tensorflow as tf

    from training import inputs

    records = list(tf.data.TFRecordDataset(path).skip(start).take(count).as_numpy_iterator())
    parsed = inputs._parse(records, inputs.pretraining_features(128, 20))
    return {name: value.numpy() for name, value in parsed.items()}
