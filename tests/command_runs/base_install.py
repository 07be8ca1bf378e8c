"""Runs `maskmill` as in a base install: `python tests/command_runs/base_install.py ARGUMENTS`."""

import importlib.machinery
import importlib.metadata
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def normal_name(package: str) -> str:
    """A package's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def base_packages() -> set[str]:
    """The packages that requirements.lock installs, and what every environment has."""
    names = re.findall(r"^[A-Za-z0-9._-]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return {normal_name(name) for name in (*names, "maskmill", "pip", "setuptools")}


class BasePathFinder(importlib.machinery.PathFinder):
    """Finds the modules that Python's own finder finds, but none of `hidden`."""

    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = super().find_spec(fullname, path, target)
        return None if spec is not None and spec.origin in cls.hidden else spec


def hide_other_packages() -> None:
    """Makes the modules of all packages but the base install's unimportable in this process."""
    base = base_packages()
    BasePathFinder.hidden = frozenset(
        str(file.locate())
        for distribution in importlib.metadata.distributions()
        if normal_name(distribution.metadata["Name"]) not in base
        for file in distribution.files or ()
        if file.suffix in (".py", ".so")
    )
    sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = BasePathFinder


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    hide_other_packages()
    from maskmill import command

    sys.exit(command.main())
