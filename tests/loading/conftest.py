"""Tests of loaders for frameworks run where their framework is: `make test-training` and `make test-torch`."""

import importlib.util

NEEDS = {
    "test_loaders_torch.py": "torch",
    "test_loaders_torch_runs.py": "torch",
    "test_loaders_dali.py": "nvidia",
    "test_loaders_tf.py": "tensorflow",
    "test_loaders_grain.py": "grain",
    "test_loaders_jax.py": "jax",
}

collect_ignore = [name for name, package in NEEDS.items() if importlib.util.find_spec(package) is None]
