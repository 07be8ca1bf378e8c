#!/usr/bin/env bash
# Starts the training as a process that outlives the terminal. `maskmill train --launcher local …` runs this.
set -euo pipefail

# Edit this:
LOG=${MASKMILL_LOG:-maskmill-train.log}

# This ends the script here if the log cannot be written.
: >>"$LOG"
nohup maskmill train "$@" >>"$LOG" 2>&1 </dev/null &
echo "maskmill train runs as process $! and adds to $LOG. To end it after a checkpoint: kill $!"
