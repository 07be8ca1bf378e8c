"""The one contract of all stages with a build, a command and the progress display.

A stage is one class, in a file of this folder whose name ends in `_stage.py`; registry.py finds it there. Its flags,
its section of a build's file, what `--help` and `--print_config` say of it, its parameters of the Dataflow template and
its entry in the manifest come from the class and its options. Such a file imports neither Beam nor NumPy nor a kernel
at its top, so that a help and the message about a mistake come at once; the methods that run import what they need.
"""

import abc
import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.settings import options as option_tools
from pipelines.settings.stage_options import Compat
from pipelines.terminal.console import bytes_text

if TYPE_CHECKING:
    import apache_beam as beam

    from maskmill.storage import manifest

Options = TypeVar("Options")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage(abc.ABC, Generic[Options]):
    """A stage whose options and inputs were checked.

    Of the class, before anything is checked:
      name: of its section in a build's file, of its command (command_list.py) if it has one, and in its manifest.
      options_class: the class of its options.
      after: the stage after which it comes in a build; None for the first.
      stands_for: the stage whose place it takes if a build chooses so; it has the name of that.
      folder: its directory below the build's; empty: its name.
      decides: the names of the options that a build decides itself, so that the section cannot give them.
      is_optional: whether a build does it only if its section is there.
      ends_graph: whether the stages after it are a graph of their own, because they read its files before they begin.
      purpose: what a build gains by an optional section, as a sentence for `--print_config`.
      instead: the class of the options that a build's section may hold instead of the stage's own; the stage is not run
        then, because what it would make is there.
      places: the names of the options that say where the output lies; no others are left out of the manifest.
      work: how much work a byte of its input is, in bytes of a dump.

    Attributes:
      options: the stage's options.
      paths: every input, and every output but that of `output`.
      read_files: the files that it reads if it is the first, as the checks have found them. Their bytes decide on how
        many processes the graph runs.
      pieces: of how many pieces its work is, if that is known: more processes than those are of no use.
      contents: the sha256 of what an option X names, as `X_sha256`: the content shapes the data, and the name does not.
      unclaimed: the options, and those of `contents`, with which the output directory may be run again at other values.
    """

    name: ClassVar[str]
    options_class: ClassVar[type]
    after: "ClassVar[type[Stage[Any]] | None]" = None
    stands_for: "ClassVar[type[Stage[Any]] | None]" = None
    folder: ClassVar[str] = ""
    decides: ClassVar[Sequence[str]] = ("output",)
    is_optional: ClassVar[bool] = False
    ends_graph: ClassVar[bool] = False
    purpose: ClassVar[str] = ""
    instead: ClassVar[type | None] = None
    places: ClassVar[Sequence[str]] = ("output",)
    work: ClassVar[float] = 1

    options: Options
    paths: tuple[str, ...] = ()
    read_files: Sequence[files.FileInfo] = ()
    pieces: int | None = None
    contents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unclaimed: Sequence[str] = ()

    @classmethod
    @abc.abstractmethod
    def check(cls, options: Options, *, is_first: bool) -> Self:
        """Look at everything that can be looked at before any work: inputs, vocabularies, outputs, needed extras.

        Beam is not imported for this, unless a path is not on this machine.

        is_first: whether the stage reads its own input; otherwise the stage before it makes that.

        Returns:
          The stage, ready to run.

        Raises:
          UnusableInputError: with these options or inputs it cannot run.
        """

    @classmethod
    def check_ahead(cls, options: Options) -> None:
        """Check what can be checked while an earlier graph has not made the vocabulary; raise as `check`."""
        cls.check(options, is_first=False)

    @classmethod
    def decisions(cls, build: "Build") -> dict[str, Any]:
        """Return the values of the options that a build decides itself: `decides`, and what follows from an optional
        stage.
        """
        known = {
            "input": build.all_texts,
            "output": build.folder(cls.folder or cls.name),
            "compat": build.compat,
            "preset": build.preset,
        }
        return {name: known[name] for name in cls.decides}

    @classmethod
    def moved(cls, options: Options, build: "Build") -> Options:
        """Return the options with what another build decides, as the same one in another directory."""
        return option_tools.changed(options, cls.decisions(build))

    @classmethod
    def suggested(cls, build: "Build") -> Mapping[str, Any]:
        """Return the options that follow from the stages before this one if the section does not give them."""
        return {}

    @classmethod
    def missing(cls, build: "Build") -> str | None:
        """Return why a build cannot have the stage, as a clause; None if it can."""
        return None

    @classmethod
    def clash(cls, build: "Build") -> str | None:
        """Return what does not go together in its options and those of earlier stages, as a clause; None if all
        does.
        """
        return None

    @classmethod
    def expected_kernels(cls, options: Options) -> Sequence[str]:
        """Return whose kernels these options ask for, before anything is checked."""
        return ()

    @classmethod
    def shaping(cls, options: Options) -> dict[str, Any]:
        """Return the values of the options on which the stage's result depends, wherever it lies."""
        return option_tools.parameters(options)

    @classmethod
    def output_of(cls, options: Options) -> str:
        """Return the directory that the stage writes."""
        directory: str = options.output  # type: ignore[attr-defined]
        return directory

    @classmethod
    def folders_of(cls, options: Options) -> Sequence[str]:
        """Return the folders below the output that the stage writes to, beside the output itself."""
        return ()

    @classmethod
    def check_output(
        cls,
        options: Options,
        contents: Mapping[str, str] | None = None,
        unclaimed: Sequence[str] = (),
    ) -> "manifest.Claim":
        """Check that the output directory can be claimed for these options; the claim returned is yet to be written.

        A directory whose claim lacks an option was made with its default; one whose claim does not know a checksum of
        `contents` is taken to have been made with the same content.

        Raises:
          UnusableInputError: it belongs to something else, or cannot be written.
        """
        from maskmill.storage import manifest

        wanted, defaults = (
            {name: value for name, value in {**values, **(contents or {})}.items() if name not in unclaimed}
            for values in (
                option_tools.parameters(options, without=cls.places),
                option_tools.option_defaults(options, without=cls.places),
            )
        )
        return manifest.check_output(cls.output_of(options), cls.name, wanted, defaults, cls.folders_of(options))

    @property
    def output(self) -> str:
        """The directory that the stage writes."""
        return self.output_of(self.options)

    @property
    def input_bytes(self) -> int:
        """The bytes of the files that it reads."""
        return sum(file.size for file in self.read_files)

    @property
    def announcement(self) -> str:
        """A line that says before Beam is imported what the stage reads, so that something is seen at once.

        `extract: 1 file, 29.4 MB, into out`; empty if it reads no files.
        """
        count = len(self.read_files)
        found = f"{count:,} file{'' if count == 1 else 's'}, {bytes_text(self.input_bytes)}"
        return f"{self.name}: {found}, into {self.output}" if count else ""

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what shapes the data, for the manifest: every option but `places`, and `contents`."""
        return {**option_tools.parameters(self.options, without=self.places), **self.contents}


def check_extra(extra: str, what: str, *modules: str) -> None:
    """Raise UnusableInputError if a module of an extra is missing; `what` needs it."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInputError(f"{what} needs {missing[0]}; install it: pip install 'maskmill[{extra}]'.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphStage(Stage[Options]):
    """A stage of Beam's graph. It is pickled with the graph.

    A run goes through these in order: `check` of every stage, `claim` for every stage, `source` of the first, `expand`
    of each on what the one before it gave, `close` of each on the workers. What `check` finds are further fields of a
    stage.
    """

    @property
    def kernels(self) -> Sequence[str]:
        """Whose kernels the stage runs, as `maskmill.kernels.compiler.chosen_modules` names them."""
        return ()

    @property
    def decided(self) -> dict[str, Any]:
        """The values that were decided for options that were left open, by name, for the manifest."""
        return {}

    def claim(self) -> "manifest.Claim":
        """Check that the output directory can be claimed for the stage; return and raise as `check_output`."""
        return self.check_output(self.options, self.contents, self.unclaimed)

    def source(self, pipeline: "beam.Pipeline") -> "beam.PCollection":
        """Return what the stage reads if it is the first."""
        raise TypeError(f"{self.name} reads what another stage makes")

    @abc.abstractmethod
    def expand(self, elements: "beam.PCollection") -> "tuple[beam.PCollection, Sequence[beam.PCollection]]":
        """Add the stage's steps to the graph.

        Returns:
          What the next stage reads, and every collection whose elements `close` gets.
        """

    def close_all(self, elements: Sequence[Any]) -> None:
        """Close the stage, as `close`, once nobody else writes to its directory any more."""
        with files.remembering(self.output):
            self.close(elements)

    @abc.abstractmethod
    def close(self, elements: Sequence[Any]) -> None:
        """Write the manifest once all is there, and delete what older builds left over. Runs on a worker.

        elements: of the collections that `expand` named, in no order.
        """

    @abc.abstractmethod
    def progress(self) -> Mapping[str, str]:
        """Return what the progress display follows: the labels of steps, and the kinds of their pieces."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Build:
    """A build: all of it (BuildOptions), or what is known when the options of one of its stages are made.

    `build[ExamplesStage]` is the options of that stage, `build.get(ExamplesStage)` also None.

    Attributes:
      output: the directory of the build.
      compat: whose data it reproduces.
      stages: the options of its stages by their classes, in order; if text is not extracted, there is no extract.
      texts: text shards that exist, which the build begins with; None if it extracts.
      preset: the name of the recipe that the build follows.
    """

    output: str
    compat: Compat
    stages: Mapping[type[Stage[Any]], Any] = dataclasses.field(default_factory=dict)
    texts: tuple[str, ...] | None = None
    preset: str | None = None

    def __contains__(self, stage: type[Stage[Any]]) -> bool:
        return stage in self.stages

    def __getitem__(self, stage: type[Stage[Options]]) -> Options:
        options: Options = self.stages[stage]
        return options

    def get(self, stage: type[Stage[Options]]) -> Options | None:
        """Return the options of a stage; None if the build does not have it."""
        options: Options | None = self.stages.get(stage)
        return options

    def having(self, stage: type[Stage[Options]], options: Options) -> Self:
        """Return the build with these options of a stage."""
        return dataclasses.replace(self, stages={**self.stages, stage: options})

    @property
    def names(self) -> list[str]:
        """The names of its stages, in order."""
        return [stage.name for stage in self.stages]

    def named(self, name: str) -> type[Stage[Any]]:
        """Return the stage of a name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The text shards that its other stages read: those that exist, or the directory of those that it makes."""
        return self.texts or (self.folder("text"),)

    def folder(self, name: str) -> str:
        """Return a directory below the build's output."""
        return files.join(self.output, name)
