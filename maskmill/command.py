"""The start of the `maskmill` command: checks that Python finds maskmill's own packages, then hands over to them.

The packages' names (pipelines, transforms, training) are common ones. Somebody else's package of the same name, earlier
on the path, would be imported instead and fail somewhere in the middle of a run.
"""

import importlib.util
import sys
from pathlib import Path

from maskmill import __version__

# The folder that holds maskmill's packages: a checkout, or site-packages.
HOME = Path(__file__).resolve().parent.parent

# Each package, with a file below it that nobody else's has.
_PACKAGES = {
    "pipelines": "running/local_worker.py",
    "transforms": "to_list.py",
    "training": "launchers.py",
}


def foreign_package(*packages: str) -> str | None:
    """Return one sentence about a package that Python would import instead of maskmill's own; None where there is none.

    packages: which to look for; all if none are named.
    """
    for package in packages or _PACKAGES:
        own_file = _PACKAGES[package]
        spec = importlib.util.find_spec(package)
        folder = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
        if folder != HOME / package or not (folder / own_file).exists():
            return (
                f"Python finds another package named {package!r} ({folder or 'none'} instead of {HOME / package}); "
                "take it off the path, or install maskmill in an environment of its own."
            )
    return None


def main() -> int:
    """Run the command line of this process and return its exit code."""
    if (sentence := foreign_package()) is not None:
        print(f"maskmill: {sentence}", file=sys.stderr)
        return 2
    from pipelines.running import interruption, startup

    startup.collect_garbage_rarely()
    startup.hide_bigquery_warning()
    with interruption.Watch(" ".join(sys.argv[1:2])):
        from pipelines.commands import cli

        return cli.main(version=__version__)
