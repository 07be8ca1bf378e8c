"""Several processes that train together: they wait for each other, but not for ever."""

import json
import os
import socket
import subprocess
import sys

import pytest


@pytest.mark.exhaustive_but("0-jax", "1-jax", "1-tensorflow")
@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
@pytest.mark.parametrize("process_id", [0, 1])
def test_processes_that_do_not_come_end_the_wait_with_one_sentence(process_id, backend):
    with socket.socket() as free, socket.socket() as also_free:
        for one in (free, also_free):
            one.bind(("localhost", 0))
        address, other = (f"localhost:{one.getsockname()[1]}" for one in (free, also_free))
    program = (
        "import sys; from training import devices; from training.options import TrainOptions\n"
        "from maskmill.errors import RunFailedError\n"
        f"{'devices.import_tensorflow(str())' if backend == 'tensorflow' else ''}\n"
        "options = TrainOptions(output_dir='nowhere', input_file=('nothing',), coordinator_timeout=1,\n"
        f"                       coordinator={address!r}, num_processes=2, process_id={process_id},\n"
        f"                       backend={backend!r})\n"
        "try:\n    devices.start(options)\nexcept RunFailedError as error:\n    sys.exit(str(error))\n"
    )
    cluster = {"cluster": {"worker": [address, other]}, "task": {"type": "worker", "index": process_id}}
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_CONFIG": json.dumps(cluster),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stderr == (
        f"--coordinator {address}: not all 2 processes were there within 1 s; start them all with the same "
        "--coordinator, or wait longer with --coordinator_timeout SECONDS.\n"
    )
    assert done.returncode == 1
