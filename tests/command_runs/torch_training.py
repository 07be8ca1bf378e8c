"""A training without a model, for the tests to kill: reads batches, and logs each with the state after it.

Arguments: the data set, the log, how many worker processes, how many batches, and tail. It goes on from the log's last
whole line. With torchrun each process is a rank; the log's name gets the rank.
"""

import json
import os
import sys
from pathlib import Path

import maskmill
import maskmill.loaders.torch


def lines_of(path: Path) -> list[dict]:
    """The whole lines of a log; the last one may be cut off."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def run(data_set: str, log: Path, workers: int, batches: int, tail: str) -> None:
    if "LOCAL_RANK" in os.environ:
        import torch

        torch.distributed.init_process_group("gloo")
        log = log.with_name(f"{log.name}.{torch.distributed.get_rank()}")
    opened = maskmill.open(data_set, batch_size=6, seed=5, window=64, tail=tail, with_samples=True)
    loader = maskmill.loaders.torch.DataLoader(opened, num_workers=workers, endless=True)
    done = lines_of(log)
    if done:
        loader.load_state_dict(done[-1]["state"])
    log.write_text("".join(json.dumps(line) + "\n" for line in done))
    with log.open("a") as file:
        for number, batch in enumerate(loader):
            if number == batches:
                break
            digest = int(batch["masked_lm_ids"].sum() * 1_000_003 + batch["masked_lm_positions"].sum())
            line = {"samples": batch["samples"].tolist(), "masks": digest, "state": loader.state_dict()}
            file.write(json.dumps(line) + "\n")
            file.flush()
    if "LOCAL_RANK" in os.environ:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
