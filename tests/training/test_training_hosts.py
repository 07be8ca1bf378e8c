"""Several processes that train together: they wait for each other, but not for ever."""

import os
import socket
import subprocess
import sys

import pytest


@pytest.mark.parametrize("process_id", [0, 1])
def test_processes_that_do_not_come_end_the_wait_with_one_sentence(process_id):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    program = (
        "import sys; from training import devices; from training.options import TrainOptions\n"
        "from maskmill.errors import RunFailedError\n"
        "options = TrainOptions(output_dir='nowhere', input_file=('nothing',), coordinator_timeout=1,\n"
        f"                       coordinator={address!r}, num_processes=2, process_id={process_id})\n"
        "try:\n    devices._meet_other_processes(options)\nexcept RunFailedError as error:\n    sys.exit(str(error))\n"
    )
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stderr == (
        f"--coordinator {address}: not all 2 processes were there within 1 s; start them all with the same "
        "--coordinator, or wait longer with --coordinator_timeout SECONDS.\n"
    )
    assert done.returncode == 1
