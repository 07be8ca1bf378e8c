"""The YAML file of a build: sections of the stages' options, checked before anything runs.

Each option of a section is also a flag, `--section.option`, which counts instead of what the file says.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from maskmill.arguments import check_at_least, check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import COMPLETED, option
from maskmill.text_shards.options import SplitOptions
from pipelines.building.build_report import BuildReport
from pipelines.building.build_sections import SOURCES, Section, make_mix, place_of, texts_of
from pipelines.settings import options as option_tools
from pipelines.settings import presets
from pipelines.settings.options import Option
from pipelines.settings.release_options import SETTINGS, ReleaseOptions, WatchOptions
from pipelines.settings.source_options import NOT_OF_A_SOURCE, SourceOptions, TextsOptions
from pipelines.settings.stage_options import Compat, ExtractOptions
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import MixStage
from pipelines.stages.registry import STAGES
from pipelines.stages.stage import Build, Stage

_STAGE_NAMES = tuple(stage.name for stage in STAGES)


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
    on_event: str | None = option(
        None, help="command (for /bin/sh) that gets JSON on standard input when a build starts, finishes or fails"
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildOptions(Build):
    """A build, whole.

    report: how much of the build is verified for its report. release: this section. watch: that section; None if
    the file has none. on_event: the command that gets the events of a build.
    """

    report: BuildReport = "auto"
    release: ReleaseOptions = dataclasses.field(default_factory=ReleaseOptions)
    watch: WatchOptions | None = None
    on_event: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildChoices:
    """The flags of `maskmill build` that no section of its file has.

    Raises:
      UnusableInputError: they do not go together.
    """

    print_config: bool = option(
        False, help="print the build with a comment for each option, every default without CONFIG.yaml, and stop"
    )
    release: bool = option(False, help="build a release: a directory of its own below output/releases, never changed")
    keep: int | None = option(None, help="with --release: how many complete releases stay, instead of release.keep")
    dump: str | None = option(None, help="date of the downloaded dump to build, as 2026-11-01 (default: the newest)")
    from_: str | None = option(
        None, help="the first stage to run; those before it must be finished", choices=_STAGE_NAMES
    )
    until: str | None = option(None, help="the last stage to run", choices=_STAGE_NAMES)
    dry_run: bool = option(False, help="say what would run and what is there, and stop; writes nothing")
    json: bool = option(False, help="with --dry_run: say it as JSON")
    owner: str | None = option(
        None, help="who builds, as a scheduler names its run; the same owner takes over a lock that it has left behind"
    )

    GROUPS: ClassVar[dict[str, str]] = {"release": "releases and stages"}
    NOT_OF_A_WATCH: ClassVar[tuple[str, ...]] = ("release", "dry_run", "json", "print_config")

    def __post_init__(self) -> None:
        if self.keep is not None and not self.release:
            raise UnusableInputError("--keep goes with --release; a plain build keeps what it has made.")
        check_at_least(1, self, "keep")
        if self.owner is not None and not self.release:
            raise UnusableInputError("--owner goes with --release, whose lock it names.")
        if self.json and not self.dry_run:
            raise UnusableInputError("--json goes with --dry_run.")


def flags() -> dict[str, Option]:
    """Return the flags of a build: the keys, and each option that a section can give as `section.option`."""
    sections = {stage.name: options_of_section(stage) for stage in STAGES}
    sections |= {name: dict(option_tools.options_of(settings)) for name, settings in SETTINGS.items()}
    return dict(option_tools.options_of(BuildKeys)) | {
        f"{section}.{name}": dataclasses.replace(known, name=f"{section}.{name}", group=section)
        for section, options in sections.items()
        for name, known in options.items()
    }


def options_of_section(stage: type[Stage[Any]]) -> dict[str, Option]:
    """Return the options that a stage's section can give: instead of the stage's own, and those that no build
    decides.
    """
    known = option_tools.options_of(stage.options_class)
    own = {name: option for name, option in known.items() if name not in stage.decides}
    return (dict(option_tools.options_of(stage.instead)) if stage.instead else {}) | own


def read_build(path: str, overrides: Mapping[str, Any] | None = None) -> BuildOptions:
    """Read a build's YAML file.

    overrides: the values of flags (`flags`) by name, which count instead of the file's.

    Raises:
      UnusableInputError: the file is missing or not YAML, a key is unknown, a value has another type or fails a check
        of the stage or step that it belongs to.
    """
    from pipelines.settings import yaml_text

    content = yaml_text.read(path)
    if not isinstance(content, dict):
        raise UnusableInputError(f"{path}: a build is a mapping of sections; see maskmill build --print_config.")
    return make_build(content, where=path, overrides=overrides)


def make_build(content: dict[str, Any], *, where: str, overrides: Mapping[str, Any] | None = None) -> BuildOptions:
    """Make a build from the mapping that its YAML file holds; `where` names the file in messages.

    Raises:
      UnusableInputError: as `read_build`.
    """
    overrides = overrides or {}
    known = [*option_tools.names(BuildKeys), SOURCES, *(stage.name for stage in STAGES), *SETTINGS]
    for key in content:
        if key not in known:
            line = place_of(content, key)
            hint = option_tools.nearest(str(key), known)
            raise UnusableInputError(f"{where}{line}: there is no section {option_tools.shown(key)}{hint}")
    keys = _keys(content, overrides, where)
    build = BuildOptions(**dataclasses.asdict(keys))
    has_watch = "watch" in content or any(name.startswith("watch.") for name in overrides)
    for stage in STAGES:
        given = _of_section(overrides, stage.name)
        if stage.is_optional and stage.name not in content and not given:
            continue
        suggested = presets.values_of(keys.preset, stage.name) if "preset" not in stage.decides else {}
        section = Section(
            stage=stage,
            content=content.get(stage.name),
            given=given,
            where=where,
            suggested={**stage.suggested(build), **suggested},
        )
        if reason := stage.missing(build):
            if stage.name in content or given:
                raise UnusableInputError(f"{section.title}: {reason}; leave this section out, or change examples.")
            continue
        if stage is ExtractStage and SOURCES in content:
            build = build.having(MixStage, make_mix(content, section, build))
            continue
        if stage is ExtractStage and (texts := texts_of(section)):
            build = dataclasses.replace(build, texts=texts)
            continue
        made: Any = option_tools.from_mapping(
            stage.options_class,
            _without_input(section.completed) if stage is ExtractStage and has_watch else section.completed,
            where=section.title,
            label=section.label,
            **stage.decisions(build),
        )
        build = build.having(stage, made)
        if reason := stage.clash(build):
            raise UnusableInputError(f"{section.title}: {reason}.")
    return dataclasses.replace(build, **_settings(content, overrides, where))


def _of_section(overrides: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the values of a section's flags, by option."""
    return {n.removeprefix(f"{section}."): v for n, v in overrides.items() if n.startswith(f"{section}.")}


def _without_input(values: Any) -> Any:
    """Return the values of extract if a downloaded dump is its input: then none is named (release_plan.with_input)."""
    if values is None or (isinstance(values, dict) and values.get("input") is None):
        return {**(values or {}), "input": []}
    return values


def rebased(build: BuildOptions, output: str) -> BuildOptions:
    """Return the same build into another directory: what the build decides itself is decided anew."""
    moved = dataclasses.replace(build, output=output, stages={})
    for stage, own in build.stages.items():
        moved = moved.having(stage, stage.moved(own, moved))
    return moved


def as_plain(build: BuildOptions) -> dict[str, Any]:
    """Return the options of a build by section, as JSON can hold them: without the places that the build decides
    itself.
    """
    plain: dict[str, Any] = {"compat": build.compat, "preset": build.preset}
    if build.texts is not None:
        plain[ExtractStage.name] = {"from": list(build.texts)}
    for stage, own in build.stages.items():
        decided = stage.decisions(build)
        values = option_tools.parameters(own)
        plain[stage.name] = {name: value for name, value in values.items() if name not in decided}
    return plain


def _settings(content: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the sections that are not stages, by name; without `watch` if there is none."""
    made = {}
    for name, options_class in SETTINGS.items():
        given = _of_section(overrides, name)
        title = f"{where}: {name}"
        if name == "watch" and name not in content and not given:
            continue
        values = option_tools.as_mapping(content.get(name), where=title) | given
        made[name] = option_tools.from_mapping(options_class, values, where=title)
    return made


def _keys(content: Mapping[str, Any], overrides: Mapping[str, Any], where: str) -> BuildKeys:
    """Return the keys beside the sections, with those of the preset."""
    sections = {SOURCES, *(stage.name for stage in STAGES), *SETTINGS}
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
    """Return a build's YAML file with a comment for each option, and for each value of a preset with its source.

    Args:
      build: whose values are printed; None: every default. Sections that a build may have or not are commented out
        if they are not there.
      preset: if there is no build, the preset whose values are printed instead of defaults.
    """
    recipe = build.preset if build is not None else preset
    parts = [_section(BuildKeys, build, skip=(), indent="", recipe=_recipe(recipe, presets.BUILD))]
    for stage in STAGES:
        chosen = None if build is None else build.get(stage)
        if stage is ExtractStage:
            parts += _text_sections(build, recipe)
        elif stage.is_optional and chosen is None:
            parts.append(f"# {stage.purpose}\n" + _commented(_stage_section(stage, None, recipe)))
        elif build is None or chosen is not None:
            parts.append(_stage_section(stage, build, recipe))
    for name, options_class in SETTINGS.items():
        own = None if build is None else getattr(build, name)
        section = f"{name}:\n" + _section(options_class, own, skip=(), indent="  ")
        is_default = own is None or own == options_class()
        parts.append(_SETTINGS_HEADS[name] + (_commented(section) if is_default else section))
    return "\n\n".join(parts)


_SETTINGS_HEADS = {
    "release": "# How `maskmill build --release` names releases, and how many it keeps.\n",
    "watch": "# Where `maskmill watch` finds new dumps; it gives extract its input then.\n",
}

_Recipe = Mapping[str, tuple[Any, str]]


def _recipe(preset: str | None, section: str) -> _Recipe:
    """Return what a preset gives for a section: by option, the value and its source."""
    if preset is None:
        return {}
    found = presets.find(preset)
    named = {"preset": (preset, found[presets.FOLLOWS])} if section == presets.BUILD else {}
    return named | {name: (value, source) for name, (value, source) in found.get(section, {}).items()}


def _stage_section(stage: type[Stage[Any]], build: BuildOptions | None, preset: str | None) -> str:
    chosen, skip = None, tuple(stage.decides)
    if build is not None:
        chosen, skip = build[stage], tuple(stage.decisions(build))
    recipe = dict(_recipe(preset, stage.name))
    if preset is not None and hasattr(stage.options_class, COMPLETED):
        completed = getattr(stage.options_class, COMPLETED)({"preset": preset})
        recipe |= {name: (value, "") for name, value in completed.items() if name not in recipe}
    return f"{stage.name}:\n" + _section(stage.options_class, chosen, skip=skip, indent="  ", recipe=recipe)


def _text_sections(build: BuildOptions | None, preset: str | None) -> list[str]:
    """Return the sections that say where the text comes from: of sources, and extract."""
    name = ExtractStage.name
    instead = _section(TextsOptions, TextsOptions(from_=None if build is None else build.texts), skip=(), indent="  ")
    if build is not None and build.texts is not None:
        return [f"{name}:\n{instead}"]
    mix = None if build is None else build.get(MixStage)
    if mix is not None:
        extract = _section(ExtractOptions, mix.sources[0].extract, skip=(), indent="  ", only=("random_seed",))
        split = _section(SplitOptions, mix.split, skip=("max_documents",), indent="  ")
        return [_sources_section(mix.sources), f"{name}:\n{split}\n{extract}"]
    chosen = None if build is None else build[ExtractStage]
    head = "# With this section the text is a mix of several sources, and extract has no input.\n"
    skip = tuple(ExtractStage.decides)
    own = _section(ExtractOptions, chosen, skip=skip, indent="  ", recipe=_recipe(preset, name))
    return [head + _commented(_sources_section(None)), f"{name}:\n{instead}\n{own}"]


def _sources_section(sources: Sequence[SourceOptions] | None) -> str:
    """Return the section of sources; None: of one with what only a source has, each at its default."""
    if sources is None:
        only = ("weight", "max_epochs", "temperature", "input")
        own = _section(SourceOptions, None, skip=(), indent="    ", only=only)
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
    """Return the lines of a section: each option with a comment and its value in `chosen`; if that is None, its
    default.

    recipe: values that count instead of defaults; an option that has its value in it gets a comment with the source.
    """
    from pipelines.settings import yaml_text

    lines = []
    for name, known in option_tools.options_of(options_class).items():
        if name in skip or (only is not None and name not in only):
            continue
        choices = f" [{'|'.join(known.kind.words_of_choices)}]" if known.kind.choices else ""
        lines.append(f"{indent}# {known.help}{choices}")
        suggested, source = (recipe or {}).get(name, (known.default, ""))
        value = functools.reduce(getattr, known.path, chosen) if chosen is not None else suggested
        if source and value == suggested:
            lines.append(f"{indent}# of the preset: {source}")
        is_given = chosen is not None or name in (recipe or {}) or not known.is_required
        lines.append(f"{indent}{name}:" + (f" {yaml_text.write(value)}" if is_given else ""))
    return "\n".join(lines)
