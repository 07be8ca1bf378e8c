#!/usr/bin/env bash
# A Slurm job, one process a node, all GPUs of each. `maskmill train --launcher slurm …` submits it with sbatch.
#
# What a user edits:
#SBATCH --job-name=maskmill-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --requeue
# SIGTERM comes 120 seconds before the time is over: the training writes a checkpoint, and goes on from it when requeued.
#SBATCH --signal=TERM@120
set -euo pipefail

# JAX learns the hosts from Slurm itself (--coordinator auto).
if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then
  exec srun maskmill train --coordinator=auto "$@"
fi
exec srun maskmill train "$@"
