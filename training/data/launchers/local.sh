#!/usr/bin/env bash
# Starts the training as a process that outlives the terminal. `maskmill train --launcher local …` runs this.
set -euo pipefail

# Edit this:
LOG=${MASKMILL_LOG:-maskmill-train.log}

if ! command -v maskmill >/dev/null; then
  echo "maskmill is not on the path; activate its environment first." >&2
  exit 127
fi
nohup maskmill train "$@" >>"$LOG" 2>&1 </dev/null &
echo "maskmill train runs as process $! and adds to $LOG. To end it after a checkpoint: kill $!"
