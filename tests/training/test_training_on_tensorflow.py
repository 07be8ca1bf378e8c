"""The tests that concern both backends, once more on TensorFlow: a process runs on one backend only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_helpers import BACKEND

HERE = Path(__file__).parent
BOTH = ["test_training_gold.py", "test_training_steps.py"]
RESUME = "test_training_loop.py::test_killed_and_told_to_end_the_run_goes_on_bit_equal"


@pytest.mark.skipif(BACKEND == "tensorflow", reason="this is the run on TensorFlow")
@pytest.mark.parametrize("tests", [*BOTH, RESUME])
def test_on_tensorflow(tests):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / tests)],
        cwd=HERE.parents[1],
        env=os.environ | {"KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
