"""Runs the tests that concern both backends on TensorFlow too, in other processes: one process has one backend."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_helpers import BACKEND

HERE = Path(__file__).parent
# This test runs alone: TensorFlow's collectives on CPUs fail when a process makes a second strategy.
ALONE = "test_clipping_before_the_average_is_each_devices_own"
RUNS = {
    # The other optimizer runs on JAX.
    "gold": ["test_training_gold.py", "-k", "not lamb"],
    "gold-lamb": ["test_training_gold.py", "-k", "lamb"],
    "steps": ["test_training_steps.py", f"--deselect=tests/training/test_training_steps.py::{ALONE}"],
    "clipping": [f"test_training_steps.py::{ALONE}"],
    "killed": ["test_training_loop.py::test_killed_and_told_to_end_the_run_goes_on_bit_equal"],
    "two-hosts": ["test_training_loop.py::test_two_hosts_are_one"],
    "lost-host": ["test_training_loop.py::test_a_host_ends_when_another_is_killed"],
}


@pytest.mark.skipif(BACKEND == "tensorflow", reason="this is the run on TensorFlow")
@pytest.mark.exhaustive_but("gold")
@pytest.mark.parametrize("run", RUNS)
def test_on_tensorflow(run):
    tests, *options = RUNS[run]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / tests), *options],
        cwd=HERE.parents[1],
        env=os.environ | {"KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
