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


def folder(path: Path) -> None:
    path.mkdir()


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
    refused(
        "launcher-process-gke",
        f"--launcher=gke {REMOTE} --coordinator=auto --process_id=1",
        "--launcher gke numbers its processes",
    ),
    refused(
        "launcher-processes-vertex",
        f"--launcher=vertex {REMOTE} --coordinator=auto --num_processes=2",
        "numbers its processes",
    ),
    refused(
        "launcher-tensorflow-slurm", f"--launcher=slurm {LOCAL} --backend=tensorflow", "slurm starts trainings on JAX"
    ),
    refused("launcher-tensorflow-gke", f"--launcher=gke {REMOTE} --backend=tensorflow", "gke starts trainings on JAX"),
    refused("launcher-tensorflow-vertex", f"--launcher=vertex {REMOTE} --backend=tensorflow", "trainings on JAX"),
    refused(
        "launcher-several-on-vertex", f"--launcher=vertex {REMOTE} --coordinator=auto", "vertex starts one machine"
    ),
    # Paths of this machine on a service's machines.
    refused("launcher-gke-local-output", f"--launcher=gke {REMOTE} --output_dir=run", "--output_dir run: the machines"),
    refused("launcher-vertex-local-output", f"--launcher=vertex --dry_run {LOCAL}", r"name one in a bucket \(gs://"),
    refused(
        "launcher-gke-local-input", f"--launcher=gke {REMOTE} --input_file=examples.tfrecord", "--input_file examples"
    ),
    refused(
        "launcher-one-input-is-local",
        f"--launcher=vertex {REMOTE} --input_file=gs://bucket/a,/data/b",
        "--input_file /data/b: the machines of --launcher vertex do not have this path",
    ),
    refused(
        "launcher-vertex-local-vocabulary", f"--launcher=vertex {REMOTE} --vocab_file=vocab.txt", "--vocab_file vocab"
    ),
    refused(
        "launcher-gke-local-weights", f"--launcher=gke {REMOTE} --init_checkpoint=/w/model.ckpt", "--init_checkpoint /w"
    ),
    refused(
        "launcher-vertex-s3", f"--launcher=vertex {REMOTE} --output_dir=s3://bucket/run", "--output_dir s3://bucket"
    ),
    refused(
        "launcher-vertex-home", f"--launcher=vertex {REMOTE} --output_dir='~/run'", "--output_dir .*/run: the machines"
    ),
    # Files of the user's own.
    refused(
        "launcher-file-missing",
        f"--launcher=gke {REMOTE} --launcher_file=mine.yaml",
        "mine.yaml: this file does not exist",
    ),
    refused(
        "launcher-file-folder", f"--launcher=slurm {LOCAL} --launcher_file=mine", "mine: this is no file", mine=folder
    ),
    refused(
        "launcher-file-latin-1",
        f"--launcher=gke {REMOTE} --launcher_file=my.yaml",
        "it is not UTF-8",
        my__yaml=b"a: \xe4\n",
    ),
    refused(
        "launcher-file-empty", f"--launcher=gke {REMOTE} --launcher_file=my.yaml", r"has no \$ARGUMENTS", my__yaml=b""
    ),
    refused(
        "launcher-file-without-a-place",
        f"--launcher=gke {REMOTE} --launcher_file=my.yaml",
        r"my.yaml: this file has no \$ARGUMENTS",
        my__yaml=b"kind: JobSet\n",
    ),
    refused(
        "launcher-file-place-in-a-comment",
        f"--launcher=vertex --dry_run {REMOTE} --launcher_file=my.yaml",
        r"has no \$ARGUMENTS",
        my__yaml=b"# args: $ARGUMENTS\nworkerPoolSpecs: []\n",
    ),
    refused(
        "launcher-file-no-yaml",
        f"--launcher=gke {REMOTE} --launcher_file=my.yaml",
        "no YAML in line 3",
        my__yaml=b"kind: JobSet\nspec: {args: $ARGUMENTS\n",
    ),
    refused(
        "launcher-file-tabs",
        f"--launcher=vertex {REMOTE} --launcher_file=my.yaml",
        "no YAML in line 2",
        my__yaml=b"workerPoolSpecs:\n\t- args: $ARGUMENTS\n",
    ),
    refused(
        "launcher-vertex-file-of-gke",
        f"--launcher=vertex {REMOTE} --launcher_file=my.yaml",
        "this file has no list workerPoolSpecs",
        my__yaml=b"kind: JobSet\nspec: $ARGUMENTS\n",
    ),
    refused(
        "launcher-vertex-two-machines",
        f"--launcher=vertex {REMOTE} --launcher_file=my.yaml",
        "--launcher vertex takes one machine",
        my__yaml=b"workerPoolSpecs: [{replicaCount: 2, containerSpec: {args: $ARGUMENTS}}]\n",
    ),
    refused(
        "launcher-vertex-two-pools",
        f"--launcher=vertex {REMOTE} --launcher_file=my.yaml",
        "--launcher vertex takes one machine",
        my__yaml=b"workerPoolSpecs: [{args: $ARGUMENTS}, {replicaCount: 3}]\n",
    ),
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
