"""The YAML file of a build: sections of the stages' options, checked before anything runs."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import yaml

from pipelines import options as option_tools
from pipelines.stage_options import Compat
from pipelines.stages import STAGES, BuildSoFar
from transforms.errors import UnusableInputError
from transforms.options import option
from transforms.storage import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildKeys:
    """The keys beside the sections."""

    output: str = option(help="directory of the build: text, examples and eval go below it")
    compat: Compat = option("none", help="whose data to reproduce, text and records")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """A build, whole.

    stages: the options of each stage by its name; an optional one is there where its section is.
    """

    output: str
    compat: Compat
    stages: Mapping[str, Any]


def read_build(path: str) -> BuildOptions:
    """Reads a build's YAML file.

    Raises:
      UnusableInputError: the file is missing or no YAML, a key is unknown, a value has another type or fails a check
        of the stage or step that it belongs to.
    """
    try:
        content = yaml.safe_load(files.read_bytes(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise UnusableInputError(f"{path}{place}: this is not YAML ({getattr(error, 'problem', error)}).") from error
    if not isinstance(content, dict):
        raise UnusableInputError(f"{path}: a build is a mapping of sections; see maskmill build --print_config.")
    return make_build(content, where=path)


def make_build(content: dict[str, Any], *, where: str) -> BuildOptions:
    """Makes a build from the mapping that its YAML file holds; `where` names the file in messages.

    Raises:
      UnusableInputError: as `read_build`.
    """
    sections = {entry.name for entry in STAGES}
    known = [*option_tools.names(BuildKeys), *(entry.name for entry in STAGES)]
    for key in content:
        if key not in known:
            raise UnusableInputError(f"{where}: there is no section {key!r}{option_tools.nearest(str(key), known)}.")
    keys = option_tools.from_mapping(
        BuildKeys, {key: value for key, value in content.items() if key not in sections}, where=where
    )
    stages: dict[str, Any] = {}
    for entry in STAGES:
        if entry.is_optional and entry.name not in content:
            continue
        so_far = BuildSoFar(output=keys.output, compat=keys.compat, stages=stages)
        stages[entry.name] = option_tools.from_mapping(
            entry.options,
            content.get(entry.name),
            where=f"{where}: {entry.name}",
            **{name: decide(so_far) for name, decide in entry.decided.items()},
        )
    return BuildOptions(output=keys.output, compat=keys.compat, stages=stages)


def print_config() -> str:
    """A build's YAML file with every default and a comment each; the sections of optional stages are commented out."""
    parts = [option_tools.describe(BuildKeys, indent="")]
    for entry in STAGES:
        section = f"{entry.name}:\n" + option_tools.describe(entry.options, skip=entry.decided)
        if entry.is_optional:
            section = "# With this section the build ends with a training (extra [tensorflow]).\n# " + section.replace(
                "\n", "\n# "
            )
        parts.append("\n" + section)
    return "\n".join(parts)
