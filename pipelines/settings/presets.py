"""Presets: the recipes of papers and files by name (data/presets.toml), as values of a build's sections."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maskmill.errors import UnusableInputError
from pipelines.settings.options import nearest, shown

_FILE = Path(__file__).parent / "data" / "presets.toml"
_FOLLOWS = "follows"

# The section of a preset that holds the keys beside a build's sections.
BUILD = "build"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preset:
    """A recipe.

    Attributes:
      name: of the preset.
      follows: the paper or the repository.
      values: by section and option, what the option is.
      sources: by section and option, where that stands.
    """

    name: str
    follows: str
    values: Mapping[str, Mapping[str, Any]]
    sources: Mapping[str, Mapping[str, str]]


@functools.cache
def _read() -> Mapping[str, Preset]:
    import tomllib

    presets = {}
    for name, content in tomllib.loads(_FILE.read_text("utf-8")).items():
        sections = {section: keys for section, keys in content.items() if section != _FOLLOWS}
        presets[name] = Preset(
            name=name,
            follows=content[_FOLLOWS],
            values={s: {key: value for key, (value, _) in keys.items()} for s, keys in sections.items()},
            sources={s: {key: source for key, (_, source) in keys.items()} for s, keys in sections.items()},
        )
    return presets


def names() -> list[str]:
    """The names of all presets."""
    return list(_read())


def find(name: str) -> Preset:
    """The preset of a name.

    Raises:
      UnusableInputError: there is none.
    """
    presets = _read()
    if name not in presets:
        hint = nearest(name, presets, otherwise=f"; there are {', '.join(presets)}")
        raise UnusableInputError(f"preset {shown(name)}: there is no such preset{hint}")
    return presets[name]


def values_of(name: str | None, *sections: str) -> dict[str, Any]:
    """What a preset gives for the options of some sections; nothing where `name` is None.

    Raises:
      UnusableInputError: there is no such preset.
    """
    preset = find(name).values if name is not None else {}
    return {option: value for section in sections for option, value in preset.get(section, {}).items()}
