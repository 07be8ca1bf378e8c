"""`python -m maskmill`: the `maskmill` command."""

import sys

from maskmill.command import main

if __name__ == "__main__":
    sys.exit(main())
