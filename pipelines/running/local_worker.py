"""What the local runner starts as a worker process: Beam's own worker, which ends when its parent does.

A worker whose parent was killed would otherwise wait for work for ever, and hold its memory.

    python -P local_worker.py PARENT_PROCESS_ID MODULE_PATH

The process runs this file and takes over its parent's module path (`sys.path`, as JSON): it finds the packages that
the parent found, installed or not, and none that happens to lie in the working directory.
"""

import ctypes
import json
import os
import shlex
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2), Linux


def command(log: str) -> str:
    """The shell command of a worker of this process. What the worker prints to stderr goes to the file `log`."""
    # -P keeps this file's folder off the path until the parent's is read.
    worker = [sys.executable, "-P", os.path.abspath(__file__), str(os.getpid()), json.dumps(sys.path)]
    # Ctrl-C on a terminal reaches every process of the command. What follows from it, the parent decides.
    return f"trap '' INT HUP; exec {shlex.join(worker)} 2>>{shlex.quote(log)}"


def is_worker(command_line: list[str]) -> bool:
    """Whether a process that was started with these arguments is a worker."""
    return os.path.abspath(__file__) in command_line


def end_with_parent(parent: int) -> None:
    """Asks the system to kill this process when its parent ends; elsewhere than on Linux there is no such wish."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)  # it ended before the wish was heard


def main() -> None:
    """Reads the two arguments and becomes Beam's worker."""
    end_with_parent(int(sys.argv.pop(1)))
    sys.path[:] = json.loads(sys.argv.pop(1))
    # The parent asks so once the run is over: what this worker is doing is of no use any more.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    # Beam takes a second to import: too long to be without that wish.
    from pipelines.running.startup import collect_garbage_rarely, import_beam_for_local_runner

    collect_garbage_rarely()
    import_beam_for_local_runner()
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
