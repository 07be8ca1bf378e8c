"""Which tests of vocabularies need TensorFlow: `make test-training` runs those."""

import importlib.util
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_NEED_TENSORFLOW = "test_transform_fn*.py"

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

if importlib.util.find_spec("tensorflow_transform") is None:
    collect_ignore_glob = [_NEED_TENSORFLOW]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE and item.path.match(_NEED_TENSORFLOW):
            item.add_marker(pytest.mark.training)
