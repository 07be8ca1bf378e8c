#!/usr/bin/env bash
# A Slurm job: one process for each GPU. `maskmill train --launcher slurm …` submits it.
#
# Edit these lines. Keep a task for each GPU of a node, all of which see all of its GPUs: JAX gives task I of a node its
# GPU I, so --gpus-per-task, which shows each task one GPU only, does not work.
#SBATCH --job-name=maskmill-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --mem=0
#SBATCH --time=24:00:00
# A job whose node failed, or that was preempted, is queued again by Slurm; one whose time is nearly over, by this script.
#SBATCH --requeue
#SBATCH --open-mode=append
# 300 seconds before the time is over, Slurm sends USR1 to this script.
#SBATCH --signal=B:USR1@300
set -euo pipefail

if [ "${SLURM_NTASKS:-1}" -gt 1 ]; then
  # JAX asks Slurm for the other processes.
  set -- --coordinator=auto "$@"
fi
# Since Slurm 22.05, srun takes its cores from this variable, no longer from the job.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}

# The training writes a checkpoint when it gets SIGTERM. scancel sends it to the tasks, but not to this script.
time_is_over=no
trap 'time_is_over=yes; scancel --signal=TERM "$SLURM_JOB_ID"' USR1

# Processes end one after another; the first to end must not take the one with it that still writes the checkpoint.
srun --kill-on-bad-exit=0 maskmill train "$@" &
training=$!
code=0
wait "$training" || code=$?
if [ "$time_is_over" = yes ]; then
  # USR1 ended the first wait, not the training.
  code=0
  wait "$training" || code=$?
  if [ "$code" -ne 0 ]; then
    echo "The time is nearly over: the job is queued again, and the training will go on from its last checkpoint."
    exec scontrol requeue "$SLURM_JOB_ID"
  fi
fi
exit "$code"
