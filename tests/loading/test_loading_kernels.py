<<<<<<< HEAD
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
=======
"""All kernels that reading calls are made ready when a data set is opened."""

import subprocess
import sys

import pytest
from built_data_sets import build_data_set
from conftest import ROOT

from transforms.masking.objective_options import ObjectiveOptions

# Prints the kernels that were compiled or loaded behind the preparation.
PROGRAM = """
import sys, maskmill
from transforms.kernels import compiler
from transforms.loading import loaders, remote

def used():
    found = {f"{module}.{name}": value for module in sorted(sys.modules) if module.startswith("transforms")
             for name, value in vars(sys.modules[module]).items() if hasattr(value, "py_func")}
    return {name: sum(d.stats.cache_hits.values()) + sum(d.stats.cache_misses.values()) for name, d in found.items()}

compiler.prepare(loaders.KERNELS)
before = used()
for path in sys.argv[1:]:
    for features in ("google", "huggingface"):
        with maskmill.open(path, batch_size=4, features=features) as loader:
            for batch in loader:
                pass
print(*(name for name, count in used().items() if count != before.get(name, 0)))
"""


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("sets")
    drawn = ObjectiveOptions(objective="mlm", dynamic_masking=True, pack=True)
    paths = [
        build_data_set(folder / "tfrecord"),
        build_data_set(folder / "drawn", objective=drawn),
        build_data_set(folder / "mds", format="mds"),
        build_data_set(folder / "parquet", format="parquet"),
    ]
    for index in paths[1].rglob("*.idx"):
        index.unlink()
    return [*map(str, paths), str(next(paths[0].rglob("part-00000*.tfrecord")))]


def test_nothing_is_compiled_while_data_sets_are_read(data_sets: list[str]) -> None:
    command = [sys.executable, "-c", PROGRAM, *data_sets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
>>>>>>> B
