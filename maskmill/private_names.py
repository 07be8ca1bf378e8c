"""The names of other libraries that maskmill uses though their documentation does not promise them.

A new version of a library may take one away without a word; `missing` says which, before anything else fails.
"""

import dataclasses
import dis
import importlib
import inspect
import platform
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.resources import files
from typing import Any


@dataclasses.dataclass(frozen=True)
class PrivateName:
    """A name that maskmill uses though nobody promises it.

    Attributes:
      library: the package that has it, as it is installed.
      seen_in: the library's version that it was last seen in.
      module: the module that it is in.
      name: the name there; after a class and a dot a method, or an attribute that the class's methods set.
      used_for: what maskmill does with it.
    """

    library: str
    seen_in: str
    module: str
    name: str
    used_for: str


def _listed() -> Iterator[PrivateName]:
    content = files("maskmill").joinpath("data/private_names.toml").read_text("utf-8")
    for entry in tomllib.loads(content)["names"]:
        for module, names in entry["modules"].items():
            for name in names:
                yield PrivateName(entry["library"], entry["seen_in"], module, name, entry["used_for"])


PRIVATE_NAMES = tuple(_listed())


def missing(library: str) -> list[str]:
    """Return one sentence for each name of an installed library that is gone."""
    installed = platform.python_version() if library == "python" else metadata.version(library)
    return [
        f"{library} {installed} has no {name.module}.{name.name}, which {name.seen_in} had; maskmill "
        f"{name.used_for} with it."
        for name in PRIVATE_NAMES
        if name.library == library and not _exists(name)
    ]


def _exists(name: PrivateName) -> bool:
    try:
        found: Any = importlib.import_module(name.module)
    except ModuleNotFoundError:
        return False
    for part in name.name.split("."):
        if not hasattr(found, part):
            return inspect.isclass(found) and _sets(found, part)
        found = getattr(found, part)
    return True


def _sets(kind: type, attribute: str) -> bool:
    """Return whether a method of a class, or of one that it is derived from, sets an attribute of that name."""
    methods = (value for base in kind.__mro__ for value in vars(base).values() if inspect.isfunction(value))
    return any(
        instruction.opname == "STORE_ATTR" and instruction.argval == attribute
        for method in methods
        for instruction in dis.get_instructions(method)
    )
