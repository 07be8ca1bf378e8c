"""The YAML file of a build: sections of the stages' options, checked before anything runs.

Each option of a section is also a flag, `--section.option`, which counts instead of what the file says.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import COMPLETED, option
from pipelines.building.build_sections import SOURCES, Section, make_mix, place_of, texts_of
from pipelines.building.report import BuildReport
from pipelines.settings import options as option_tools
from pipelines.settings import presets
from pipelines.settings.options import Option
from pipelines.settings.release_options import SETTINGS, EventsOptions, ReleaseOptions, WatchOptions
from pipelines.settings.source_options import NOT_OF_A_SOURCE, MixOptions, SourceOptions, TextsOptions
from pipelines.settings.stage_options import Compat, ExtractOptions
from pipelines.stages.registry import EXTRACT, STAGES, BuildSoFar, StageEntry
from transforms.shards.options import SplitOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildKeys:
    """The keys beside the sections."""

    output: str = option(help="directory of the build: text, examples and eval go below it")
    preset: str | None = option(
        None, help=f"values of a recipe for all sections, where none are given: {', '.join(presets.names())}"
    )
    compat: Compat = option("none", help="whose data to reproduce, text and records")
    report: BuildReport = option(
        "auto",
        help="how much is verified for report.html: auto (all of it if it is less than 1 GB, else some shards; nothing "
        "that is not on this machine), all or none; off: no report",
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """A build, whole.

    stages: the options of each stage by its name; an optional one is there where its section is, and extract where the
    text is not there already. texts: the text shards with which the build begins in that case. preset: the name of the
    recipe that it follows. report: how much of the build is verified for its report. release, events: these sections.
    watch: that section; None where the file has none.
    """

    output: str
    compat: Compat
    stages: Mapping[str, Any]
    texts: tuple[str, ...] | None = None
    preset: str | None = None
    report: BuildReport = "auto"
    release: ReleaseOptions = dataclasses.field(default_factory=ReleaseOptions)
    watch: WatchOptions | None = None
    events: EventsOptions = dataclasses.field(default_factory=EventsOptions)


def flags() -> dict[str, Option]:
    """The flags of a build: the keys, and each option that a section can give as `section.option`."""
    sections = {entry.name: options_of_section(entry) for entry in STAGES}
    sections |= {name: dict(option_tools.options_of(settings)) for name, settings in SETTINGS.items()}
    return dict(option_tools.options_of(BuildKeys)) | {
        f"{section}.{name}": dataclasses.replace(known, name=f"{section}.{name}", group=section)
        for section, options in sections.items()
        for name, known in options.items()
    }


def options_of_section(entry: StageEntry) -> dict[str, Option]:
    """The options that a stage's section can give: instead of the stage's own, and those that no build decides."""
    own = {name: known for name, known in option_tools.options_of(entry.options).items() if name not in entry.decided}
    return (dict(option_tools.options_of(entry.instead)) if entry.instead else {}) | own


def read_build(path: str, overrides: Mapping[str, Any] | None = None) -> BuildOptions:
    """Reads a build's YAML file.

    Args:
      path: the file.
      overrides: the values of flags (`flags`) by name, which count instead of the file's.

    Raises:
      UnusableInputError: the file is missing or no YAML, a key is unknown, a value has another type or fails a check
        of the stage or step that it belongs to.
    """
    from pipelines.settings import yaml_text

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
    known = [*option_tools.names(BuildKeys), SOURCES, *(entry.name for entry in STAGES), *SETTINGS]
    for key in content:
        if key not in known:
            line = place_of(content, key)
            hint = option_tools.nearest(str(key), known)
            raise UnusableInputError(f"{where}{line}: there is no section {option_tools.shown(key)}{hint}")
    keys = _keys(content, overrides, where)
    so_far = BuildSoFar(output=keys.output, compat=keys.compat, stages={}, preset=keys.preset)
    has_watch = "watch" in content or any(name.startswith("watch.") for name in overrides)
    for entry in STAGES:
        given = {n.partition(".")[2]: v for n, v in overrides.items() if n.partition(".")[0] == entry.name and "." in n}
        if entry.is_optional and entry.name not in content and not given:
            continue
        suggested = presets.values_of(keys.preset, entry.name) if "preset" not in entry.decided else {}
        section = Section(
            entry=entry,
            content=content.get(entry.name),
            given=given,
            where=where,
            suggested={**entry.suggested(so_far), **suggested},
        )
        if reason := entry.missing(so_far):
            if entry.name in content or given:
                raise UnusableInputError(f"{section.title}: {reason}; leave this section out, or change examples.")
            continue
        if entry is EXTRACT and SOURCES in content:
            made: Any = make_mix(content, section, so_far)
        elif entry is EXTRACT and (texts := texts_of(section)):
            so_far = dataclasses.replace(so_far, texts=texts)
            continue
        else:
            made = option_tools.from_mapping(
                entry.options,
                _without_input(section.completed) if entry is EXTRACT and has_watch else section.completed,
                where=section.title,
                label=section.label,
                **entry.decisions(so_far),
            )
        so_far = dataclasses.replace(so_far, stages={**so_far.stages, entry.name: made})
        if reason := entry.clash(so_far):
            raise UnusableInputError(f"{section.title}: {reason}.")
    return BuildOptions(
        output=keys.output,
        compat=keys.compat,
        stages=so_far.stages,
        texts=so_far.texts,
        preset=keys.preset,
        report=keys.report,
        **_settings(content, overrides, where),
    )


def _without_input(values: Any) -> Any:
    """The values of extract where a downloaded dump is its input: then none is named (release_plan.with_input)."""
    if values is None or (isinstance(values, dict) and values.get("input") is None):
        return {**(values or {}), "input": []}
    return values


def rebased(build: BuildOptions, output: str) -> BuildOptions:
    """The same build into another directory: what the build decides itself is decided anew."""
    so_far = BuildSoFar(output=output, compat=build.compat, stages={}, texts=build.texts, preset=build.preset)
    for entry in STAGES:
        if entry.name not in build.stages:
            continue
        own, decided = build.stages[entry.name], entry.decisions(so_far)
        if isinstance(own, MixOptions):
            sources = tuple(
                dataclasses.replace(s, extract=dataclasses.replace(s.extract, output=decided["output"]))
                for s in own.sources
            )
            made: Any = dataclasses.replace(own, output=decided["output"], sources=sources)
        else:
            made = option_tools.changed(own, decided)
        so_far = dataclasses.replace(so_far, stages={**so_far.stages, entry.name: made})
    return dataclasses.replace(build, output=output, stages=so_far.stages)


def so_far_of(build: BuildOptions) -> BuildSoFar:
    """What is known of a build when all of its stages' options are made."""
    return BuildSoFar(
        output=build.output, compat=build.compat, stages=build.stages, texts=build.texts, preset=build.preset
    )


def entries_of(build: BuildOptions) -> list[StageEntry]:
    """The entries of a build's stages, in order."""
    return [entry for entry in STAGES if entry.name in build.stages]


def as_plain(build: BuildOptions) -> dict[str, Any]:
    """The options of a build by section, as JSON can hold them: without the places that the build decides itself."""
    plain: dict[str, Any] = {"compat": build.compat, "preset": build.preset}
    if build.texts is not None:
        plain[EXTRACT.name] = {"from": list(build.texts)}
    for entry in entries_of(build):
        own, decided = build.stages[entry.name], entry.decisions(so_far_of(build))
        values = option_tools.all_parameters(own)
        plain[entry.name] = {name: value for name, value in values.items() if name not in decided}
    return plain


def _settings(content: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The sections that are no stages, by name; without `watch` where there is none."""
    made = {}
    for name, options_class in SETTINGS.items():
        given = {n.partition(".")[2]: v for n, v in overrides.items() if n.partition(".")[0] == name and "." in n}
        title = f"{where}: {name}"
        if name == "watch" and name not in content and not given:
            continue
        values = option_tools.as_mapping(content.get(name), where=title) | given
        made[name] = option_tools.from_mapping(options_class, values, where=title)
    return made


def _keys(content: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> BuildKeys:
    """The keys beside the sections, with those of the preset."""
    sections = {SOURCES, *(entry.name for entry in STAGES), *SETTINGS}
    given = {key: value for key, value in content.items() if key not in sections}
    given |= {name: value for name, value in overrides.items() if "." not in name}
    preset = given.get("preset")
    suggested = presets.values_of(preset, presets.BUILD) if isinstance(preset, str) else {}
    return option_tools.from_mapping(
        BuildKeys,
        {**suggested, **given},
        where=where,
        label=lambda name: f"--{name}" if name in overrides else f"{where}{place_of(content, name)}: {name}",
    )


def print_config(build: BuildOptions | None = None, preset: str | None = None) -> str:
    """A build's YAML file with a comment for each option, and for each value of a preset with its source.

    Args:
      build: whose values are printed; None: every default. Sections that a build may have or not are commented out
        where they are not there.
      preset: where there is no build, the preset whose values are printed instead of defaults.
    """
    recipe = build.preset if build is not None else preset
    parts = [_section(BuildKeys, build, skip=(), indent="", recipe=_recipe(recipe, presets.BUILD))]
    for entry in STAGES:
        chosen = None if build is None else build.stages.get(entry.name)
        if entry is EXTRACT:
            parts += _text_sections(build, recipe)
        elif entry.is_optional and chosen is None:
            parts.append(f"# {entry.purpose}\n" + _commented(_stage_section(entry, None, recipe)))
        elif build is None or chosen is not None:
            parts.append(_stage_section(entry, build, recipe))
    for name, options_class in SETTINGS.items():
        own = None if build is None else getattr(build, name)
        section = f"{name}:\n" + _section(options_class, own, skip=(), indent="  ")
        is_default = own is None or own == options_class()
        parts.append(_SETTINGS_HEADS[name] + (_commented(section) if is_default else section))
    return "\n\n".join(parts)


_SETTINGS_HEADS = {
    "release": "# How `maskmill build --release` names releases, and how many it keeps.\n",
    "watch": "# Where `maskmill watch` finds new dumps; it gives extract its input then.\n",
    "events": "# Who is told of a build.\n",
}

_Recipe = Mapping[str, tuple[Any, str]]


def _recipe(preset: str | None, section: str) -> _Recipe:
    """What a preset gives for a section: by option, the value and its source."""
    if preset is None:
        return {}
    found = presets.find(preset)
    named = {"preset": (preset, found.follows)} if section == presets.BUILD else {}
    return named | {
        name: (value, found.sources[section][name]) for name, value in found.values.get(section, {}).items()
    }


def _stage_section(entry: StageEntry, build: BuildOptions | None, preset: str | None) -> str:
    chosen, skip = None, tuple(entry.decided)
    if build is not None:
        chosen = build.stages[entry.name]
        so_far = BuildSoFar(output=build.output, compat=build.compat, stages=build.stages, texts=build.texts)
        skip = tuple(entry.decisions(so_far))
    recipe = dict(_recipe(preset, entry.name))
    if preset is not None and hasattr(entry.options, COMPLETED):
        completed = getattr(entry.options, COMPLETED)({"preset": preset})
        recipe |= {name: (value, "") for name, value in completed.items() if name not in recipe}
    return f"{entry.name}:\n" + _section(entry.options, chosen, skip=skip, indent="  ", recipe=recipe)


def _text_sections(build: BuildOptions | None, preset: str | None) -> list[str]:
    """The sections that say where the text comes from: of sources, and extract."""
    instead = _section(TextsOptions, TextsOptions(from_=None if build is None else build.texts), skip=(), indent="  ")
    if build is not None and build.texts is not None:
        return [f"{EXTRACT.name}:\n{instead}"]
    chosen = None if build is None else build.stages[EXTRACT.name]
    if isinstance(chosen, MixOptions):
        extract = _section(ExtractOptions, chosen.sources[0].extract, skip=(), indent="  ", only=("random_seed",))
        split = _section(SplitOptions, chosen.split, skip=("max_documents",), indent="  ")
        return [_sources_section(chosen.sources), f"{EXTRACT.name}:\n{split}\n{extract}"]
    head = "# With this section the text is a mix of several sources, and extract has no input.\n"
    own = _section(
        EXTRACT.options, chosen, skip=tuple(EXTRACT.decided), indent="  ", recipe=_recipe(preset, EXTRACT.name)
    )
    return [head + _commented(_sources_section(None)), f"{EXTRACT.name}:\n{instead}\n{own}"]


def _sources_section(sources: Sequence[SourceOptions] | None) -> str:
    """The section of sources; None: of one with what only a source has, each at its default."""
    if sources is None:
        own = _section(SourceOptions, None, skip=(), indent="    ", only=("weight", "max_epochs", "input"))
        return f"{SOURCES}:\n  NAME:\n    # here or in extract: every other option of extract\n{own}"
    return f"{SOURCES}:\n" + "\n".join(
        f"  {source.name}:\n" + _section(SourceOptions, source, skip=NOT_OF_A_SOURCE, indent="    ")
        for source in sources
    )


def _commented(section: str) -> str:
    return "# " + section.replace("\n", "\n# ")


def _section(
    options_class: type,
    chosen: Any,
    *,
    skip: tuple[str, ...],
    indent: str,
    only: tuple[str, ...] | None = None,
    recipe: _Recipe | None = None,
) -> str:
    """The lines of a section: each option with a comment and its value in `chosen`; where that is None, its default.

    recipe: values that count instead of defaults; an option that has its value in it gets a comment with the source.
    """
    from pipelines.settings import yaml_text

    lines = []
    for name, known in option_tools.options_of(options_class).items():
        if name in skip or (only is not None and name not in only):
            continue
        choices = f" [{'|'.join(map(str, known.kind.choices))}]" if known.kind.choices else ""
        lines.append(f"{indent}# {known.help}{choices}")
        suggested, source = (recipe or {}).get(name, (known.default, ""))
        value = functools.reduce(getattr, known.path, chosen) if chosen is not None else suggested
        if source and value == suggested:
            lines.append(f"{indent}# of the preset: {source}")
        is_given = chosen is not None or name in (recipe or {}) or not known.is_required
        lines.append(f"{indent}{name}:" + (f" {yaml_text.write(value)}" if is_given else ""))
    return "\n".join(lines)
