"""Public names of a package that are imported when they are first used (PEP 562)."""

import importlib
import sys
from collections.abc import Callable, Mapping


def exports(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    homes: by module, the names that it is the home of, separated by spaces.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    names_here = vars(sys.modules[package])

    def find(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return names_here.setdefault(name, getattr(importlib.import_module(home_of[name]), name))

    return find, lambda: sorted({*names_here, *names_here["__all__"]})
