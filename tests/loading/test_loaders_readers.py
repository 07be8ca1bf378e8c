"""The libraries that people read Parquet with see the rows that a loader gives (make test-torch)."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import ROOT
from data_sets.built_data_sets import build_data_set

import maskmill
from maskmill.masking.objective_options import ObjectiveOptions

PYTHON = os.environ.get("MASKMILL_READERS_PYTHON", sys.executable)
PROGRAM = ROOT / "tests" / "records" / "readers_program.py"
pytestmark = pytest.mark.elsewhere


def rows_of(library: str, files: list[str], folder: Path) -> list[dict[str, npt.NDArray[Any]]]:
    """The rows of files as a library reads them, in the readers' environment; .npz as readers_program.py writes it."""
    outputs = [str(folder / f"{Path(file).name}.npz") for file in files]
    pairs = itertools.chain(*zip(files, outputs, strict=True))
    done = subprocess.run(
        [PYTHON, str(PROGRAM), library, *pairs],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = []
    for output in outputs:
        arrays = dict(np.load(output))
        names = [name for name in arrays if f"{name}/lengths" in arrays]
        parts = [np.split(arrays[name], arrays[f"{name}/lengths"].cumsum()[:-1]) for name in names]
        rows += [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
    return rows


@pytest.mark.parametrize("library", ["pandas", "datasets"])
def test_equal_rows(library: str, tmp_path: Path) -> None:
    """Each row of a batch is the row of its number, filled up with zeros."""
    objective = ObjectiveOptions(objective="sop")
    opened = maskmill.open(build_data_set(tmp_path, format="parquet", objective=objective), batch_size=12, window=64)
    rows = rows_of(library, [file.path for file in opened.data_sets[0].files], tmp_path)
    assert len(rows) == opened.data_sets[0].samples
    seen = []
    for step, batch in enumerate(opened):
        samples = opened.samples_of(0, step)[1]
        seen += samples.tolist()
        for place, number in enumerate(samples):
            for name, array in batch.items():
                values = rows[number].get(name, np.ones(len(rows[number]["input_ids"])))  # no input_mask: no padding
                filled = np.zeros(array.shape[1])
                filled[: len(values)] = values
                np.testing.assert_array_equal(array[place], filled, err_msg=name)
    assert len(set(seen)) == len(seen) > 100
