"""The choice of the backend and the platform, before either is started."""

import importlib.util
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from training import devices
from transforms.errors import UnusableInputError


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


def test_the_first_process_writes():
    first, second = (
        devices.Devices(backend="jax", kind="cpu", count=2, process_index=i, process_count=2) for i in range(2)
    )
    assert first.is_first
    assert not second.is_first


def test_a_coordinator_without_an_address_is_refused_before_anything_is_imported():
    with pytest.raises(UnusableInputError, match=r"^--coordinator nohost\.invalid:1: there is no host nohost"):
        devices.check_coordinator("nohost.invalid:1")
    for fine in (None, "auto", "localhost:1", "127.0.0.1:1", "[::1]:1"):
        devices.check_coordinator(fine)


@pytest.mark.long
@pytest.mark.parametrize("process_id", [0, 1])
def test_processes_that_do_not_come_end_the_wait_with_one_sentence(process_id):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    program = (
        "import sys; from training import devices; from transforms.errors import RunFailedError\n"
        f"options = devices.DeviceOptions(coordinator={address!r}, num_processes=2, process_id={process_id},\n"
        "                                coordinator_timeout=1)\n"
        "try:\n    devices._meet_other_processes(options)\nexcept RunFailedError as error:\n    sys.exit(str(error))\n"
    )
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stderr == (
        f"--coordinator {address}: not all 2 processes were there within 1 s; start them all with the same "
        "--coordinator, or wait longer with --coordinator_timeout SECONDS.\n"
    )
    assert done.returncode == 1
