"""What the local runner starts as a worker process: Beam's own worker, which ends when its parent does.

A worker whose parent was killed would otherwise wait for work for ever, and hold its memory.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2), Linux


def end_with_parent(parent: int) -> None:
    """Asks the system to kill this process when its parent ends; elsewhere than on Linux there is no such wish."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)  # it ended before the wish was heard


if __name__ == "__main__":
    end_with_parent(int(sys.argv.pop(1)))

    # Beam takes a second to import: too long to be without that wish.
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)
