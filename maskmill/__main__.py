"""The `maskmill` command, also as `python -m maskmill`."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback for a Ctrl-C before the watch begins

from maskmill.command import main

if __name__ == "__main__":
    sys.exit(main())
