"""The sections of a build's YAML file that say where its text comes from: extract, with its flags, and sources."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.text_shards.options import SplitOptions
from pipelines.settings import options as option_tools
from pipelines.settings.source_options import COMMON, MixOptions, SourceOptions, TextsOptions, check_name
from pipelines.stages.stage import Build, Stage

SOURCES = "sources"

# Options of which only one can be given: a suggestion for one falls with a value for another.
_EXCLUSIVE = (("num_eval_articles", "eval_fraction"),)

# What the section extract cannot have beside sources: each source has its own input.
_OF_ONE_SOURCE = ("input", *option_tools.names(TextsOptions))
# Of the options that only sources have, those that may stand in the section extract for all of them.
_OF_A_MIX = ("temperature", "max_epochs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """The section of a stage: what the file has for it, and the flags that were given for it, by option.

    suggested: what counts for options that neither of them gives.
    """

    stage: type[Stage[Any]]
    content: Any
    given: Mapping[str, Any]
    where: str
    suggested: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def title(self) -> str:
        """The section in messages."""
        return f"{self.where}: {self.stage.name}"

    @property
    def completed(self) -> Any:
        """The values by option, with what is suggested; if the file has no mapping there, what it has."""
        values = self.values
        if values is not None and not isinstance(values, dict):
            return values
        values = values or {}
        excluded = {name for names in _EXCLUSIVE for name in names if any(values.get(n) is not None for n in names)}
        return {name: value for name, value in self.suggested.items() if name not in excluded} | values

    @property
    def values(self) -> Any:
        """The values by option; if the file has no mapping there, what it has."""
        if not isinstance(self.content, dict) and (self.content is not None or not self.given):
            return self.content
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in self.given.items()}
        values = {**(self.content or {}), **given}
        # `from: null` stands in what --print_config prints.
        instead = option_tools.names(self.stage.instead) if self.stage.instead else ()
        return {name: value for name, value in values.items() if value is not None or name not in instead}

    def label(self, name: str) -> str:
        """Return what messages call an option of the section."""
        if name in self.given:
            return f"--{self.stage.name}.{name}"
        return f"{self.where}{place_of(self.content, name)}: {self.stage.name}.{name}"


def place_of(mapping: Any, key: str) -> str:
    """Return `, line N` of a key, if it is known."""
    line = getattr(mapping, "lines", {}).get(key)
    return "" if line is None else f", line {line}"


def texts_of(section: Section) -> tuple[str, ...] | None:
    """Return the text shards that the section extract names instead of an extraction; None if it names none.

    Raises:
      UnusableInputError: other options stand beside them.
    """
    (key,) = option_tools.names(TextsOptions)
    values = section.values
    if not isinstance(values, dict) or key not in values:
        return None
    if others := [str(name) for name in values if name != key]:
        raise UnusableInputError(
            f"{section.label(others[0])}: no other option of extract goes with {key}, which takes text that is "
            "extracted already; leave one of them out."
        )
    texts: TextsOptions = option_tools.from_mapping(TextsOptions, values, where=section.title, label=section.label)
    if not texts.from_:
        raise UnusableInputError(f"{section.label(key)} is empty; give a value, or leave it out.")
    return texts.from_


def make_mix(content: Mapping[str, Any], section: Section, so_far: Build) -> MixOptions:
    """Return the options of extract in a build with sources.

    content: of the build's file, whose section of sources has the options of each source by its name. section: extract,
    with what the sources share: what they have in common, and their defaults.

    Raises:
      UnusableInputError: a source's name, options or part in the mix are unusable, or the section extract has what only
        a source can have.
    """
    where, sources = section.where, content[SOURCES]
    if not isinstance(sources, dict) or not sources:
        place = place_of(content, SOURCES)
        raise UnusableInputError(f"{where}{place}: {SOURCES} must be a mapping from each source's name to its options.")
    shared = option_tools.as_mapping(section.completed, where=section.title)
    known = option_tools.options_of(section.stage.options_class)
    for name, value in shared.items():
        if name not in known and name not in (*_OF_ONE_SOURCE, *_OF_A_MIX):
            hint = option_tools.nearest(str(name), known)
            raise UnusableInputError(f"{section.label(str(name))}: there is no such option{hint}")
        if name in _OF_ONE_SOURCE and value is not None:
            raise UnusableInputError(
                f"{section.label(name)}: with {SOURCES} each source names its own input; leave this one out."
            )
    of_split = [name for name in option_tools.names(SplitOptions) if name in COMMON]
    defaults = {name: value for name, value in shared.items() if name not in (*of_split, *_OF_ONE_SOURCE)}
    made = [_make_source(name, sources, defaults, section, so_far) for name in sources]
    split: SplitOptions = option_tools.from_mapping(
        SplitOptions,
        {name: shared[name] for name in of_split if name in shared},
        where=section.title,
        label=section.label,
    )
    in_order = sorted(made, key=lambda source: source.name)
    output = section.stage.decisions(so_far)["output"]
    try:
        return MixOptions(output=output, compat=so_far.compat, split=split, sources=tuple(in_order))
    except UnusableInputError as error:
        raise UnusableInputError(f"{where}: {error}") from None


def _make_source(
    name: Any, sources: Mapping[str, Any], defaults: Mapping[str, Any], section: Section, so_far: Build
) -> SourceOptions:
    """Return the options of a source: its own, and for the others the defaults, which the section extract has."""
    where = section.where
    try:
        check_name(name)
    except UnusableInputError as error:
        raise UnusableInputError(f"{where}{place_of(sources, name)}: {error}") from None
    title = f"{where}: {SOURCES}.{name}"
    own = option_tools.as_mapping(sources[name], where=title)

    def label(key: str) -> str:
        if key in defaults and key not in own:
            return section.label(key)
        return f"{where}{place_of(own, key)}: {SOURCES}.{name}.{key}"

    for key in COMMON:
        if key in own:
            raise UnusableInputError(f"{label(key)}: the sources have this in common; give it in the section extract.")
    made: SourceOptions = option_tools.from_mapping(
        SourceOptions, {**defaults, **own}, where=title, label=label, name=name, **section.stage.decisions(so_far)
    )
    return made
