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
from transforms.loading import loaders
from transforms.reading import remote

def used():
    modules = [vars(module) for name, module in sorted(sys.modules.items()) if name.startswith("transforms")]
    kernels = [value for module in modules for value in module.values() if hasattr(value, "py_func")]
    return {f"{k.py_func.__module__}.{k.py_func.__name__}":
            sum(k.stats.cache_hits.values()) + sum(k.stats.cache_misses.values()) for k in kernels}

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
