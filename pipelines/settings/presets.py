"""Presets: the recipes of papers and files by name (data/presets.toml), as values of a build's sections."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maskmill.errors import UnusableInputError
from pipelines.settings.options import nearest, shown

_FILE = Path(__file__).parent / "data" / "presets.toml"

# The section of a preset that holds the keys beside a build's sections.
BUILD = "build"
# The key of a preset that tells the paper or the repository.
FOLLOWS = "follows"


@functools.cache
def _read() -> Mapping[str, Mapping[str, Any]]:
    import tomllib

    return tomllib.loads(_FILE.read_text("utf-8"))


def names() -> list[str]:
    """Return the names of all presets."""
    return list(_read())


def find(name: str) -> Mapping[str, Any]:
    """Return the preset of a name: by section and option, the value and where that stands; and FOLLOWS.

    Raises:
      UnusableInputError: there is none.
    """
    presets = _read()
    if name not in presets:
        hint = nearest(name, presets, otherwise=f"; there are {', '.join(presets)}")
        raise UnusableInputError(f"preset {shown(name)}: there is no such preset{hint}")
    return presets[name]


def values_of(name: str | None, *sections: str) -> dict[str, Any]:
    """Return what a preset gives for the options of some sections; nothing if `name` is None.

    Raises:
      UnusableInputError: there is no such preset.
    """
    preset = find(name) if name is not None else {}
    return {option: value for section in sections for option, (value, _) in preset.get(section, {}).items()}
