"""Trainings that are to start elsewhere, and MLPerf's log. None of these needs TensorFlow."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from mistakes.table import Mistake, each_flag_once

LOCAL = "--output_dir=run --input_file=examples.tfrecord --preset=tiny"
REMOTE = "--output_dir=gs://bucket/run --input_file=gs://bucket/part-* --preset=tiny"
JOB = b"workerPoolSpecs: [{containerSpec: {args: $ARGUMENTS}}]\n"


def program(code: int) -> Callable[[Path], None]:
    """Makes a program that ends with a code."""

    def make(path: Path) -> None:
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)

    return make


def refused(name: str, flags: str, says: str, **files: bytes | Callable[[Path], object]) -> Mistake:
    """A training that is refused; a file's name has `__` for a dot."""
    given = {name.replace("__", "."): content for name, content in files.items()}
    return Mistake(name, f"train {flags}", says, files=given)


def without_programs(name: str, flags: str, says: str) -> Mistake:
    """A launcher where no program is on the path."""
    command = f"PATH=$PWD maskmill train {flags}"
    return Mistake(name, command, says, shell=True)


MISTAKES = [
    # Options of launchers without one, or that do not go together.
    refused("launcher-dry-run-alone", f"--dry_run {LOCAL}", "--dry_run goes with --launcher"),
    refused("launcher-without-examples", "--launcher=slurm --output_dir=run", "--input_file is missing"),
    refused(
        "launcher-two-models",
        f"--launcher=slurm --dry_run {LOCAL} --bert_config_file=c.json",
        "--bert_config_file and --preset both name the model",
    ),
    refused("launcher-no-batch", f"--launcher=slurm {LOCAL} --train_batch_size=0", "--train_batch_size is 0"),
    refused(
        "launcher-process-slurm",
        f"--launcher=slurm {LOCAL} --coordinator=auto --process_id=0",
        "--process_id: --launcher slurm",
    ),
    # Paths of this machine on a service's machines.
    refused(
        "launcher-one-input-is-local",
        f"--launcher=vertex {REMOTE} --input_file=gs://bucket/a,/data/b",
        "--input_file /data/b: the machines of --launcher vertex do not have this path",
    ),
    refused(
        "launcher-vertex-s3", f"--launcher=vertex {REMOTE} --output_dir=s3://bucket/run", "--output_dir s3://bucket"
    ),
    refused(
        "launcher-vertex-home", f"--launcher=vertex {REMOTE} --output_dir='~/run'", "--output_dir .*/run: the machines"
    ),
    # Files of the user's own.
    refused(
        "launcher-vertex-misspelt-region",
        f"--launcher=vertex {REMOTE} --launcher_file=my.yaml",
        "#launch knows REGION and DISPLAY_NAME, not 'REGIO'",
        my__yaml=b"#launch REGIO=europe-west4\n" + JOB,
    ),
    # Programs that are missing, or fail.
    without_programs("launcher-no-sbatch", f"--launcher=slurm {LOCAL}", "needs sbatch, which is not installed here"),
    without_programs("launcher-no-kubectl", f"--launcher=gke {REMOTE}", "needs kubectl, which is not installed here"),
    without_programs("launcher-no-gcloud", f"--launcher=vertex {REMOTE}", "needs gcloud, which is not installed here"),
    without_programs("launcher-no-bash", f"--launcher=local {LOCAL}", "needs bash, which is not installed here"),
    Mistake(
        "launcher-no-maskmill-on-the-path",
        f"PATH=$PWD/bin maskmill train --launcher=local {LOCAL}",
        "finds no maskmill on the path; activate its environment",
        files={"bin/bash": program(0)},
        shell=True,
    ),
    Mistake(
        "launcher-sbatch-fails",
        f"PATH=$PWD/bin:$PATH maskmill train --launcher=slurm {LOCAL}",
        "--launcher slurm: sbatch ended with code 3",
        code=1,
        files={"bin/sbatch": program(3)},
        shell=True,
    ),
    Mistake(
        "launcher-kubectl-fails",
        f"PATH=$PWD/bin:$PATH maskmill train --launcher=gke {REMOTE}",
        "--launcher gke: kubectl ended with code 1",
        code=1,
        files={"bin/kubectl": program(1)},
        shell=True,
    ),
    Mistake(
        "launcher-own-script-fails",
        f"train --launcher=local --launcher_file=mine.sh {LOCAL}",
        "--launcher local: bash ended with code 7",
        code=1,
        files={"mine.sh": b"exit 7\n"},
    ),
    # MLPerf's log, which must have what MLPerf's checker asks for.
    refused("mlperf-without-eval-set", f"{LOCAL} --mlperf_log", "--mlperf_log needs --eval_file"),
    refused(
        "mlperf-classify",
        f"{LOCAL} --mlperf_log --task=classify --eval_file=examples.tfrecord",
        "--mlperf_log goes with pre-training",
    ),
    refused(
        "mlperf-closed-division-with-adamw",
        f"{LOCAL} --mlperf_log --eval_file=examples.tfrecord --submission_division=closed",
        "--submission_division closed needs --optimizer lamb",
    ),
]
MISTAKES = [dataclasses.replace(row, command=each_flag_once(row.command)) for row in MISTAKES]
