"""Options for text of a build that is not from one extraction: text shards that exist, or a mix of sources.

Text shards stand in a build's section extract as `from`; sources in a section of their own. Like stage_options.py, this
imports neither Beam nor a kernel.
"""

import dataclasses
import re
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.options import nested, option
from maskmill.text_shards.options import Source, SplitOptions
from pipelines.settings.options import option_defaults, parameters
from pipelines.settings.stage_options import Compat, ExtractOptions

# Of the options of extract, those that a mix has once: it has one eval set, one seed and one size of shards.
COMMON = ("num_eval_articles", "eval_fraction", "shard_size_mb", "random_seed")
# What a source neither gives nor has in the manifest.
NOT_OF_A_SOURCE = ("output", "compat", *COMMON)

# Names of sources become parts of file names and of labels.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MOST_EPOCHS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextsOptions:
    """The options that the section extract of a build holds instead of its own if the text is there already."""

    from_: tuple[str, ...] | None = option(
        None,
        help="build from text shards that exist, as `maskmill examples --input` takes them; nothing is extracted then, "
        "and no other option stands beside it",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """A source of a mix: its part, and the options of extract that are its own.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    name: str
    weight: float | None = option(
        None,
        help="share of the training text in bytes, in relation to the other sources' weights; null in all sources: "
        "each is taken whole",
    )
    max_epochs: float = option(1.0, help="how often the text of this source may be taken, 1 or more, as 2 or 1.5")
    temperature: float | None = option(
        None,
        help="shares are in relation to the size of a source's text to this power, 0 to 1 (mBERT: 0.7, XLM-R: 0.3), "
        "times its weight if it has one; the same for all sources, so best given in extract",
    )
    extract: ExtractOptions = nested(ExtractOptions)

    def __post_init__(self) -> None:
        if self.weight is not None and self.weight < 0:
            raise UnusableInputError(f"weight must be 0 or more, not {self.weight:g}.")
        if self.temperature is not None and not 0 <= self.temperature <= 1:
            raise UnusableInputError(
                f"temperature must be 0 (equal shares) to 1 (shares by size), not {self.temperature:g}."
            )
        if not 1 <= self.max_epochs <= _MOST_EPOCHS:
            raise UnusableInputError(
                f"max_epochs must be 1 to {_MOST_EPOCHS}, not {self.max_epochs:g}; a weight makes a source's part "
                "smaller."
            )

    @property
    def source(self) -> Source:
        """Return the source as the steps need it."""
        return Source(
            name=self.name,
            extraction=self.extract.decided_extraction,
            max_documents=self.extract.split.max_documents,
            weight=self.weight,
            max_epochs=self.max_epochs,
            temperature=self.temperature,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class MixOptions:
    """The options of extract in a build that mixes sources.

    sources: in the order of their names. split: what they have in common; max_documents is each source's own.

    Raises:
      UnusableInputError: the sources cannot be mixed.
    """

    output: str
    compat: Compat
    split: SplitOptions
    sources: tuple[SourceOptions, ...]

    def __post_init__(self) -> None:
        if self.compat == "mlperf":
            raise UnusableInputError(
                "sources: --compat mlperf reproduces a data set of one dump; leave one of them out."
            )
        first, *others = self.sources
        for source in others:
            if source.temperature != first.temperature:
                raise UnusableInputError(
                    f"sources.{source.name}.temperature is {source.temperature}, and that of {first.name} is "
                    f"{first.temperature}; the sources have one in common, so give it in the section extract."
                )
        without = [source.name for source in self.sources if source.weight is None]
        if without and len(without) < len(self.sources) and first.temperature is None:
            raise UnusableInputError(
                f"sources.{without[0]}.weight is missing, and other sources have one; give all a weight, or none."
            )
        if not without and not sum(source.weight or 0 for source in self.sources):
            raise UnusableInputError("sources: the weights sum to 0; give at least one source a weight above 0.")

    @property
    def random_seed(self) -> int:
        """The seed of the eval set, and of the choice of documents."""
        return self.sources[0].extract.extraction.random_seed

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of all options as the manifest holds them, those of a source as `sources.NAME.OPTION`."""
        split = parameters(self.split)
        common = {"compat": self.compat, "random_seed": self.random_seed}
        common |= {name: split[name] for name in COMMON if name in split}
        return common | self._of_sources(lambda source: parameters(source, without=NOT_OF_A_SOURCE))

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the options that have one, under the names of `parameters`."""
        known = option_defaults(ExtractOptions)
        of_source = option_defaults(SourceOptions, without=NOT_OF_A_SOURCE)
        return {name: known[name] for name in ("compat", *COMMON)} | self._of_sources(lambda source: of_source)

    def _of_sources(self, values_of: Any) -> dict[str, Any]:
        return {
            f"sources.{source.name}.{name}": value
            for source in self.sources
            for name, value in values_of(source).items()
        }

    @property
    def decided(self) -> "MixOptions":
        """These options with the values that were decided for what was left open."""
        sources = [dataclasses.replace(source, extract=source.extract.decided) for source in self.sources]
        return dataclasses.replace(self, split=self.split.decided, sources=tuple(sources))


def check_name(name: Any) -> None:
    """Raise UnusableInputError if a key cannot be the name of a source."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UnusableInputError(f"{name!r} cannot name a source; take letters, digits, _ and -.")
