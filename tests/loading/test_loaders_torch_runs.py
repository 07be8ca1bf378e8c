"""Real processes: killed and taken up with other workers, and started by torchrun."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_runs import torch_training
from conftest import ROOT
from data_sets.built_data_sets import build_data_set

import maskmill
from maskmill.masking.objective_options import ObjectiveOptions

pytestmark = pytest.mark.elsewhere

ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
PROGRAM = torch_training.__file__
PATIENCE_S = 60


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    objective = ObjectiveOptions(objective="mlm", dynamic_masking=True)
    return build_data_set(tmp_path_factory.mktemp("data"), objective=objective)


def in_order(data_set: Path, batches: int, tail: str = "drop") -> list[dict[str, Any]]:
    """The samples of the first batches and what their masks come to, of a reader that is alone."""
    opened = maskmill.open(data_set, batch_size=6, seed=5, window=64, tail=tail, with_samples=True)
    return [
        {
            "samples": batch["samples"].tolist(),
            "masks": int(batch["masked_lm_ids"].sum()) * 1_000_003 + int(batch["masked_lm_positions"].sum()),
        }
        for batch in itertools.islice(opened.endless(), batches)
    ]


def logged(log: Path) -> list[dict[str, Any]]:
    return [{name: line[name] for name in ("samples", "masks")} for line in torch_training.lines_of(log)]


def start(data_set: Path, log: Path, workers: int, batches: int) -> subprocess.Popen[bytes]:
    arguments = [str(data_set), str(log), str(workers), str(batches), "drop"]
    return subprocess.Popen([sys.executable, "-W", "ignore", PROGRAM, *arguments], env=ENVIRONMENT, cwd=ROOT)


def wait_for_lines(log: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(torch_training.lines_of(log)) < count:
        assert process.poll() is None, "the training ended by itself"
        assert time.monotonic() < deadline, "the training does not come to give batches"
        time.sleep(0.01)


def test_a_training_that_is_killed_again_and_again(data_set: Path, tmp_path: Path) -> None:
    """kill -9 of the process that trains, at any batch; each time it goes on with another number of workers."""
    log = tmp_path / "log"
    workers_left: list[psutil.Process] = []
    for workers in (2, 0, 3):
        before = len(torch_training.lines_of(log))
        process = start(data_set, log, workers, 1_000_000)
        wait_for_lines(log, before + 7, process)
        workers_left += psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert start(data_set, log, 1, 5).wait(PATIENCE_S) == 0
    got = logged(log)
    assert len(got) >= 3 * 7 + 5
    assert got == in_order(data_set, len(got))
    # Workers see that nobody is there to read from them, and end.
    assert psutil.wait_procs(workers_left, timeout=PATIENCE_S)[1] == []


def test_a_worker_that_is_killed(data_set: Path, tmp_path: Path) -> None:
    """torch ends the training, which goes on from the last batch that it had."""
    log = tmp_path / "log"
    process = start(data_set, log, 2, 1_000_000)
    wait_for_lines(log, 5, process)
    psutil.Process(process.pid).children()[0].kill()
    assert process.wait(PATIENCE_S) == 1
    assert start(data_set, log, 1, 5).wait(PATIENCE_S) == 0
    got = logged(log)
    assert len(got) >= 10
    assert got == in_order(data_set, len(got))


def test_torchrun_of_two_processes(data_set: Path, tmp_path: Path) -> None:
    """Two ranks with two workers each give the order together, and one process goes on alone."""
    log = tmp_path / "log"
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    subprocess.run(
        [*command, PROGRAM, str(data_set), str(log), "2", "11", "drop"],
        env=ENVIRONMENT | {"OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        check=True,
        timeout=3 * PATIENCE_S,
    )
    ranks = [torch_training.lines_of(log.with_name(f"log.{rank}")) for rank in range(2)]
    wanted = in_order(data_set, 16)
    assert [a["samples"] + b["samples"] for a, b in zip(*ranks, strict=True)] == [b["samples"] for b in wanted[:11]]
    assert [a["masks"] + b["masks"] for a, b in zip(*ranks, strict=True)] == [b["masks"] for b in wanted[:11]]
    assert ranks[0][-1]["state"] == ranks[1][-1]["state"]
    alone = tmp_path / "alone"
    alone.write_text(json.dumps(ranks[1][-1]) + "\n")
    assert start(data_set, alone, 3, 5).wait(PATIENCE_S) == 0
    assert logged(alone)[1:] == wanted[11:]
