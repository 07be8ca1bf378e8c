#!/usr/bin/env bash
# A process of its own on this machine, that outlives the terminal. `maskmill train --launcher local …` runs it.
set -euo pipefail

# What a user edits:
LOG=${MASKMILL_LOG:-maskmill-train.log}

nohup maskmill train "$@" >"$LOG" 2>&1 &
echo "maskmill train runs as process $!; it writes to $LOG. kill $! writes a checkpoint and ends it."
