#!/usr/bin/env bash
# A Slurm job: one process on each node, with all GPUs of the node. `maskmill train --launcher slurm …` submits it.
#
# Edit these lines:
#SBATCH --job-name=maskmill-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --requeue
# Slurm sends SIGTERM 120 seconds before the time is over. The training writes a checkpoint then, and continues from it
# when the job is requeued.
#SBATCH --signal=TERM@120
set -euo pipefail

# With --coordinator auto, JAX asks Slurm for the other hosts.
if [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ]; then
  exec srun maskmill train --coordinator=auto "$@"
fi
exec srun maskmill train "$@"
