"""`python -m transforms.kernels loading` prepares an image for reading."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from example_sets import setup_of, write_set

READING = """
import sys
from numba.core.dispatcher import Dispatcher
import maskmill
from transforms.kernels import compiler

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("transforms.")]
    kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)]
    return {(k.py_func.__module__, k.py_func.__name__, signature) for k in kernels for signature in k.signatures}

compiler.warm(["loading", "masking.kernels.row_masks"])
warm = compiled()
assert warm
for path in sys.argv[1:]:
    for features in ("google", "huggingface"):
        with maskmill.open(path, batch_size=4, features=features, tail="pad", with_samples=True) as data:
            for batch in data:
                pass
print(sorted(compiled() - warm))
"""


@pytest.mark.long
def test_reading_runs_only_kernels_that_were_prepared(tmp_path: Path) -> None:
    paths = [
        write_set(tmp_path / "stored", setup_of()),
        write_set(tmp_path / "packed", setup_of(objective="mlm", pack=True, full_sentences=False, format="mds")),
        write_set(tmp_path / "drawn", setup_of(objective="mlm", dynamic_masking=True, dupe_factor=1, format="parquet")),
    ]
    done = subprocess.run(
        [sys.executable, "-c", READING, *paths], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
