"""JAX's loader: global arrays, of which each process reads what its devices hold."""

import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from conftest import ROOT
from data_sets.built_data_sets import build_data_set
from jax.sharding import SingleDeviceSharding
from made_up.data_sets import samples_in
from made_up.loaders import in_order, loader

import maskmill
from maskmill.loaders.jax import Batches

pytestmark = pytest.mark.elsewhere

PROCESSES = 2
PATIENCE_S = 180


def samples_of(batches: Any) -> list[list[int]]:
    return [samples_in({name: np.asarray(array) for name, array in batch.items()}) for batch in batches]


@pytest.mark.parametrize("tail", ["drop", "pad", "repeat", "carry"])
def test_epochs_follow_each_other_and_states_go_on(tail: str) -> None:
    sharding = SingleDeviceSharding(jax.devices()[0])
    first = Batches(loader(tail=tail), sharding)
    got = samples_of(first) + samples_of(first) + samples_of(itertools.islice(first, 3))
    second = Batches(loader(tail=tail), sharding, endless=True)
    second.load_state_dict(first.state_dict())
    got += samples_of(itertools.islice(second, 7))
    assert got == in_order(tail=tail)[: len(got)]


# Runs with as many CPU devices as it is told. It writes to a file which part of a batch each of its devices has; JAX's
# own libraries print, too.
PROGRAM = """
import itertools, json, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import maskmill, maskmill.loaders.jax
from maskmill.errors import UnusableInputError
data_set, output, address, processes, process, steps, batch_size, state, layouts = json.loads(sys.argv[1])
file = open(output, "w")
if processes > 1:
    jax.distributed.initialize(address, processes, process)
devices = np.array(jax.devices())
grid = devices.reshape(2, -1)
meshes = {
    "data": (devices, ("data",), ("data",)),
    "data, model": (grid, ("data", "model"), ("data", None)),
    "model, data": (grid, ("model", "data"), ("data", None)),
    "data, pieces": (grid, ("data", "pieces"), ("data", "pieces")),
    "out of order": (devices[[0, 2, 1, 3]], ("data",), ("data",)),
}
for layout in layouts:
    arranged, axes, spec = meshes[layout]
    sharding = NamedSharding(Mesh(arranged, axes), PartitionSpec(*spec))
    opened = maskmill.open(data_set, batch_size=batch_size, seed=5, window=64, tail="pad")
    try:
        batches = maskmill.loaders.jax.Batches(opened, sharding, endless=True)
    except UnusableInputError as error:
        print(json.dumps({"refused": str(error)}), file=file)
        break
    if state:
        batches.load_state_dict(state)
    for batch in itertools.islice(batches, steps):
        ids = batch["input_ids"]
        shards = [(shard.index, np.asarray(shard.data).tolist()) for shard in ids.addressable_shards]
        parts = [[[axis.indices(size)[:2] for axis, size in zip(index, ids.shape)], values] for index, values in shards]
        total = int(jax.jit(lambda ids: ids.sum())(ids))
        read = batches._loader.options.batch_size // batches._loader.options.ranks
        line = dict(shape=ids.shape, parts=parts, sum=total, state=batches.state_dict(), read=read)
        print(json.dumps(line), file=file)
"""


def run(
    data_set: Path,
    folder: Path,
    layouts: list[str],
    *,
    processes: int,
    devices: int,
    steps: int,
    batch_size: int = 8,
    state: Any = None,
) -> list[Any]:
    """What each process writes, for all steps of all layouts."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "PYTHONPATH": str(ROOT),
    }
    started = []
    for process in range(processes):
        output = folder / str(process)
        given = json.dumps([str(data_set), str(output), address, processes, process, steps, batch_size, state, layouts])
        command = [sys.executable, "-c", PROGRAM, given]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **pipes))
    written = []
    for number, process in enumerate(started):
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors
        written.append([json.loads(line) for line in (folder / str(number)).read_text().splitlines()])
    return written


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_data_set(tmp_path_factory.mktemp("data"))


def wanted(built: Path, steps: int) -> list[Any]:
    opened = maskmill.open(built, batch_size=8, seed=5, window=64, tail="pad")
    return [batch["input_ids"] for batch in itertools.islice(opened.endless(), steps)]


def together(lines: list[dict[str, Any]]) -> Any:
    """The array that the parts of all processes make; parts that two devices hold are the same."""
    made = np.full(lines[0]["shape"], -1)
    for line in lines:
        for index, values in line["parts"]:
            at = tuple(slice(*axis) for axis in index)
            assert (made[at] == -1).all() or (made[at] == values).all()
            made[at] = values
    return made


# What each process reads of a batch of 8: the rows that its devices hold, or all where they are not neighbours.
ROWS_READ = {"data": 4, "data, model": 4, "model, data": 8, "data, pieces": 4, "out of order": 8}


def test_two_processes_of_two_devices(built: Path, tmp_path: Path) -> None:
    """jax.distributed: each process reads what its devices hold, in any layout; one process goes on alone."""
    steps = 3
    written = run(built, tmp_path, list(ROWS_READ), processes=PROCESSES, devices=2, steps=steps)
    arrays = wanted(built, steps + 2)
    places = [(layout, step) for layout in ROWS_READ for step in range(steps)]
    for lines, (layout, step) in zip(zip(*written, strict=True), places, strict=True):
        np.testing.assert_array_equal(together(lines), arrays[step], err_msg=layout)
        assert {line["sum"] for line in lines} == {int(arrays[step].sum())}
        assert lines[0]["state"] == lines[1]["state"]
        assert [line["read"] for line in lines] == [ROWS_READ[layout]] * PROCESSES, layout
    (alone,) = run(built, tmp_path, ["data"], processes=1, devices=4, steps=2, state=written[0][-1]["state"])
    for line, array in zip(alone, arrays[steps:], strict=True):
        np.testing.assert_array_equal(together([line]), array)


def test_a_batch_that_devices_cannot_share(built: Path, tmp_path: Path) -> None:
    ((line,),) = run(built, tmp_path, ["data"], processes=1, devices=4, steps=1, batch_size=6)
    assert line["refused"] == (
        "A batch of 6 samples cannot be shared evenly by the 4 devices of this sharding; choose a multiple for "
        "batch_size."
    )
