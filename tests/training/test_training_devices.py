"""The choice of the backend and the platform, before either is started."""

import importlib.util
import os
import sys
from types import SimpleNamespace

import pytest

from maskmill.errors import UnusableInputError
from training import devices


def test_the_backend_is_chosen_before_keras_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    devices.select_backend("tensorflow")
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


def test_a_process_keeps_its_backend(monkeypatch):
    keras = SimpleNamespace(backend=SimpleNamespace(backend=lambda: "jax"))
    monkeypatch.setitem(sys.modules, "keras", keras)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    devices.select_backend("jax")
    with pytest.raises(UnusableInputError, match="Keras runs on jax in this process already; start another process"):
        devices.select_backend("tensorflow")
    assert os.environ["KERAS_BACKEND"] == "jax"


@pytest.mark.parametrize(
    ("platforms", "installed", "expected"),
    [
        ("", (), "cpu"),
        ("", ("jax_cuda12_plugin",), "accelerator"),
        ("", ("libtpu",), "accelerator"),
        ("cpu", ("libtpu",), "cpu"),
        ("cuda,cpu", (), "cuda"),
    ],
)
def test_jaxs_platform_is_known_before_jax_starts(monkeypatch, platforms, installed, expected):
    monkeypatch.setenv("JAX_PLATFORMS", platforms)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in installed else None)
    assert devices._platform() == expected


def test_a_coordinator_without_an_address_is_refused_before_anything_is_imported():
    with pytest.raises(UnusableInputError, match=r"^--coordinator nohost\.invalid:1: there is no host nohost"):
        devices.check_coordinator("nohost.invalid:1")
    for fine in (None, "auto", "localhost:1", "127.0.0.1:1", "[::1]:1"):
        devices.check_coordinator(fine)
