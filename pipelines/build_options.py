"""The YAML file of a build: sections of the stages' options, checked before anything runs.

Each option of a section is also a flag, `--section.option`, which counts instead of what the file says.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from pipelines import options as option_tools
from pipelines import yaml_text
from pipelines.options import Option
from pipelines.stage_options import Compat
from pipelines.stages import STAGES, BuildSoFar, StageEntry
from transforms.errors import UnusableInputError
from transforms.options import option


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


def flags() -> dict[str, Option]:
    """The flags of a build: the keys, and each option that a section can give as `section.option`."""
    return dict(option_tools.options_of(BuildKeys)) | {
        f"{entry.name}.{name}": dataclasses.replace(known, name=f"{entry.name}.{name}", group=entry.name)
        for entry in STAGES
        for name, known in option_tools.options_of(entry.options).items()
        if name not in entry.decided
    }


def read_build(path: str, overrides: Mapping[str, Any] | None = None) -> BuildOptions:
    """Reads a build's YAML file.

    Args:
      path: the file.
      overrides: the values of flags (`flags`) by name, which count instead of the file's.

    Raises:
      UnusableInputError: the file is missing or no YAML, a key is unknown, a value has another type or fails a check
        of the stage or step that it belongs to.
    """
    content = yaml_text.read(path)
    if not isinstance(content, dict):
        raise UnusableInputError(f"{path}: a build is a mapping of sections; see maskmill build --print_config.")
    return make_build(content, where=path, overrides=overrides)


def make_build(content: dict[str, Any], *, where: str, overrides: Mapping[str, Any] | None = None) -> BuildOptions:
    """Makes a build from the mapping that its YAML file holds; `where` names the file in messages.

    Raises:
      UnusableInputError: as `read_build`.
    """
    overrides = overrides or {}
    sections = {entry.name for entry in STAGES}
    known = [*option_tools.names(BuildKeys), *(entry.name for entry in STAGES)]
    for key in content:
        if key not in known:
            line = _place(content, key)
            hint = option_tools.nearest(str(key), known)
            raise UnusableInputError(f"{where}{line}: there is no section {option_tools.shown(key)}{hint}.")
    keys = option_tools.from_mapping(
        BuildKeys,
        {key: value for key, value in content.items() if key not in sections}
        | {name: value for name, value in overrides.items() if "." not in name},
        where=where,
        label=lambda name: f"--{name}" if name in overrides else f"{where}{_place(content, name)}: {name}",
    )
    stages: dict[str, Any] = {}
    for entry in STAGES:
        given = {n.partition(".")[2]: v for n, v in overrides.items() if n.partition(".")[0] == entry.name and "." in n}
        if entry.is_optional and entry.name not in content and not given:
            continue
        so_far = BuildSoFar(output=keys.output, compat=keys.compat, stages=stages)
        stages[entry.name] = _make_section(entry, content.get(entry.name), given, so_far, where)
    return BuildOptions(output=keys.output, compat=keys.compat, stages=stages)


def _make_section(entry: StageEntry, section: Any, given: Mapping[str, Any], so_far: BuildSoFar, where: str) -> Any:
    """The options of a stage, of its section in the file and of the flags that were given for it, by option."""

    def label(name: str) -> str:
        return f"--{entry.name}.{name}" if name in given else f"{where}{_place(section, name)}: {entry.name}.{name}"

    if isinstance(section, dict) or (section is None and given):
        values = {**(section or {}), **_as_in_a_file(given)}
    else:
        values = section
    return option_tools.from_mapping(
        entry.options,
        values,
        where=f"{where}: {entry.name}",
        label=label,
        **{name: decide(so_far) for name, decide in entry.decided.items()},
    )


def _place(mapping: Any, key: str) -> str:
    """`, line N` of a key, where it is known."""
    line = getattr(mapping, "lines", {}).get(key)
    return "" if line is None else f", line {line}"


def _as_in_a_file(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def print_config(build: BuildOptions | None = None) -> str:
    """A build's YAML file with a comment for each option.

    Args:
      build: whose values are printed; None: every default. The sections of optional stages that are not there are
        commented out.
    """
    parts = [_section(BuildKeys, build, skip=(), indent="")]
    for entry in STAGES:
        chosen = None if build is None else build.stages.get(entry.name)
        section = f"{entry.name}:\n" + _section(entry.options, chosen, skip=tuple(entry.decided), indent="  ")
        if entry.is_optional and chosen is None:
            section = "# With this section the build ends with a training (extra [tensorflow]).\n# " + section.replace(
                "\n", "\n# "
            )
        parts.append("\n" + section)
    return "\n".join(parts)


def _section(options_class: type, chosen: Any, *, skip: tuple[str, ...], indent: str) -> str:
    """The lines of a section: each option with a comment and its value in `chosen`; where that is None, its default."""
    lines = []
    for name, known in option_tools.options_of(options_class).items():
        if name in skip:
            continue
        choices = f" [{'|'.join(map(str, known.kind.choices))}]" if known.kind.choices else ""
        lines.append(f"{indent}# {known.help}{choices}")
        if chosen is not None:
            lines.append(f"{indent}{name}: {yaml_text.write(functools.reduce(getattr, known.path, chosen))}")
        else:
            lines.append(f"{indent}{name}:" + ("" if known.is_required else f" {yaml_text.write(known.default)}"))
    return "\n".join(lines)
