"""What the `maskmill` script starts: makes sure that the packages it is about to import are maskmill's own.

Their names (pipelines, transforms, training) are common ones; somebody else's would shadow them without a word.
"""

import importlib.util
import sys
from pathlib import Path

# A module of each package that nobody else's has beside it.
_PACKAGES = {"pipelines": "build_options.py", "transforms": "grouping.py", "training": "__init__.py"}


def main() -> int:
    """Runs the command line of this process and returns its exit code."""
    here = Path(__file__).resolve().parent
    for package, module in _PACKAGES.items():
        spec = importlib.util.find_spec(package)
        found = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
        if found != here / package or not (found / module).exists():
            print(
                f"maskmill: Python finds another package named {package!r} ({found or 'none'} instead of "
                f"{here / package}); take it off the path, or install maskmill in an environment of its own.",
                file=sys.stderr,
            )
            return 2
    from pipelines import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
