#!/usr/bin/env bash
# Starts the training as a process that outlives the terminal. `maskmill train --launcher local …` runs this.
set -euo pipefail

# Edit this:
LOG=${MASKMILL_LOG:-maskmill-train.log}

nohup maskmill train "$@" >"$LOG" 2>&1 &
echo "maskmill train runs as process $! and writes to $LOG. To end it after a checkpoint: kill $!"
