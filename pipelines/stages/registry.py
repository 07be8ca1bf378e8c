"""The stages of a build, in order. Whoever walks them (the command, a build, the Dataflow template) reads this list.

To add a stage: its options in pipelines/settings/stage_options.py, what it looks at first in checks.py, its module with
a `Stage` (stage.py), and an entry here. Nothing here imports Beam or a kernel.
"""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from maskmill.storage import files
from pipelines.settings.source_options import MixOptions, TextsOptions
from pipelines.settings.stage_options import (
    Compat,
    EvalOptions,
    ExamplesOptions,
    ExtractOptions,
    VocabularyStageOptions,
)
from training.options import TrainOptions

if TYPE_CHECKING:
    from pipelines.stages.checks import Checked
    from pipelines.stages.stage import Stage

# The file of the picked eval examples, in the eval stage's folder.
EVAL_NAME = "eval.tfrecord"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildSoFar:
    """What a build knows when the options of one of its stages are made.

    Attributes:
      output: the directory of the build.
      compat: whose data it reproduces.
      stages: the options of the stages before this one, by name.
      texts: text shards that exist, which the build begins with; None where it extracts.
      preset: the name of the recipe that the build follows.
    """

    output: str
    compat: Compat
    stages: Mapping[str, Any]
    texts: tuple[str, ...] | None = None
    preset: str | None = None

    def folder(self, name: str) -> str:
        """A directory below the build's output."""
        return files.join(self.output, name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StageEntry:
    """What is known of a stage before it is imported.

    Attributes:
      name: of its section in a build's file and in its manifest; of its command (cli.py), where it has one.
      options: the class of its options.
      checks: `module:function` of what it looks at before any work (`check`).
      implementation: `module:Class` of its Stage; None for training, which runs behind the graph.
      is_optional: whether a build does it only where its section is there.
      ends_graph: whether the stages behind it are a graph of their own, because they read its files before they begin.
      purpose: what a build gains by an optional section, as a sentence for `--print_config`.
      instead: the class of the options that a build's section may hold instead of the stage's own; the stage is not run
        then, because what it would make is there.
      decided: the options that a build decides itself, which the section cannot give.
      made: further ones, where an optional stage before this one makes what they name.
      suggested: the options that follow from the stages before it where the section does not give them.
      missing: why a build cannot have the stage, as a clause; None where it can.
      clash: what does not go together in its options and those of earlier stages, as a clause; None where all does.
    """

    name: str
    options: type
    checks: str
    implementation: str | None
    is_optional: bool = False
    ends_graph: bool = False
    purpose: str = ""
    instead: type | None = None
    decided: Mapping[str, Callable[[BuildSoFar], Any]]
    made: Callable[[BuildSoFar], Mapping[str, Any]] = lambda build: {}
    suggested: Callable[[BuildSoFar], Mapping[str, Any]] = lambda build: {}
    missing: Callable[[BuildSoFar], str | None] = lambda build: None
    clash: Callable[[BuildSoFar], str | None] = lambda build: None

    def check(self, options: Any, *, is_first: bool) -> "Checked":
        """Looks at everything that can be looked at before any work: inputs, vocabularies, outputs, needed extras.

        Beam is not imported for this, unless a path is not on this machine.

        Args:
          options: the stage's options.
          is_first: whether the stage reads its own input; otherwise the stage before it makes that.

        Raises:
          UnusableInputError: with these options or inputs it cannot run.
        """
        checked: Checked = _named(self.checks)(options, is_first=is_first)
        return checked

    def decisions(self, build: BuildSoFar) -> dict[str, Any]:
        """The values of the options that a build decides itself."""
        return {name: decide(build) for name, decide in self.decided.items()} | dict(self.made(build))

    def load(self) -> "type[Stage[Any]]":
        """Imports the stage, and Beam with it."""
        if self.implementation is None:
            raise ValueError(f"{self.name} is no stage of the graph")
        stage: type[Stage[Any]] = _named(self.implementation)
        return stage


def _named(place: str) -> Any:
    """What `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _texts(build: BuildSoFar) -> tuple[str, ...]:
    return build.texts or (build.stages["extract"].output,)


def _clash_of_vocabulary(build: BuildSoFar) -> str | None:
    if build.compat != "none":
        return f"compat {build.compat} reproduces data of a vocabulary that exists; leave this section out"
    return None


def _tokenizer_of(build: BuildSoFar) -> Mapping[str, Any]:
    """What examples tokenize with where the build makes the vocabulary."""
    made: VocabularyStageOptions | None = build.stages.get("vocabulary")
    if made is None:
        return {}
    name, path = made.tokenizer
    decided: dict[str, Any] = {"vocab_file": None, "tokenizer_file": None, name: path}
    if name == "vocab_file":
        decided["do_lower_case"] = made.vocabulary.decided.do_lower_case
    return decided


def _eval_examples(build: BuildSoFar) -> tuple[str, ...]:
    """The picked eval examples; where none are picked, or have no masks, all that the build makes."""
    examples: ExamplesOptions = build.stages["examples"]
    if "eval" not in build.stages or examples.objective.dynamic_masking:
        return (examples.output,)
    return (files.join(build.stages["eval"].output, EVAL_NAME),)


def _why_not_picked(build: BuildSoFar) -> str | None:
    """Why no eval examples can be picked of a build's examples."""
    examples: ExamplesOptions = build.stages["examples"]
    if examples.format.format != "tfrecord":
        return f"eval examples are picked from TFRecords, and the examples are {examples.format.format}"
    if examples.objective.bins is not None:
        return "eval examples are picked from shards of one file, and --bins makes several of a shard"
    return None


def why_not_trained(examples: ExamplesOptions) -> str | None:
    """Why `maskmill train` cannot read examples, as a clause; None where it can."""
    if not examples.objective.pack:
        return None
    return "maskmill train reads a sequence a row, and the examples have pack"


def _training_of(build: BuildSoFar) -> Mapping[str, Any]:
    """Full sentences and blocks have no labels of pairs to learn."""
    if build.stages["examples"].objective.objective in ("mlm", "blocks"):
        return {"next_sentence_prediction": False}
    return {}


def _clash_of_training(build: BuildSoFar) -> str | None:
    objective = build.stages["examples"].objective.objective
    if objective in ("mlm", "blocks") and build.stages["train"].next_sentence_prediction:
        return f"next_sentence_prediction needs pairs, which examples of objective {objective} are not; leave it out"
    return None


EXTRACT = StageEntry(
    name="extract",
    options=ExtractOptions,
    checks="pipelines.stages.checks:extract",
    implementation="pipelines.stages.extract:ExtractStage",
    instead=TextsOptions,
    decided={"output": lambda build: build.folder("text"), "compat": lambda build: build.compat},
)

# What takes the place of EXTRACT in a build with a section `sources`.
MIX = dataclasses.replace(
    EXTRACT, options=MixOptions, checks="pipelines.stages.checks:mix", implementation="pipelines.stages.mix:MixStage"
)

STAGES: tuple[StageEntry, ...] = (
    EXTRACT,
    StageEntry(
        name="vocabulary",
        options=VocabularyStageOptions,
        checks="pipelines.stages.checks:vocabulary",
        implementation="pipelines.stages.vocabulary:VocabularyStage",
        is_optional=True,
        ends_graph=True,
        purpose="With this section the build makes its vocabulary from its text, and examples names none.",
        decided={"input": _texts, "output": lambda build: build.folder("vocabulary")},
        clash=_clash_of_vocabulary,
    ),
    StageEntry(
        name="examples",
        options=ExamplesOptions,
        checks="pipelines.stages.checks:examples",
        implementation="pipelines.stages.examples:ExamplesStage",
        decided={
            "input": _texts,
            "output": lambda build: build.folder("examples"),
            "compat": lambda build: build.compat,
            "preset": lambda build: build.preset,
        },
        made=_tokenizer_of,
    ),
    StageEntry(
        name="eval",
        options=EvalOptions,
        checks="pipelines.stages.checks:eval_set",
        implementation="pipelines.stages.eval_set:EvalStage",
        decided={"output": lambda build: build.folder("eval"), "compat": lambda build: build.compat},
        missing=_why_not_picked,
    ),
    StageEntry(
        name="train",
        options=TrainOptions,
        checks="pipelines.stages.checks:train",
        implementation=None,
        is_optional=True,
        purpose="With this section the build ends with a training (extra [tensorflow]).",
        decided={
            "output_dir": lambda build: build.folder("train"),
            "input_file": lambda build: (build.stages["examples"].output,),
            "eval_file": _eval_examples,
            "vocab_file": lambda build: build.stages["examples"].vocab_file,
            "tokenizer_file": lambda build: build.stages["examples"].tokenizer_file,
        },
        suggested=_training_of,
        missing=lambda build: why_not_trained(build.stages["examples"]),
        clash=_clash_of_training,
    ),
)

GRAPH_STAGES = tuple(entry for entry in STAGES if entry.implementation is not None)

# The Dataflow template launches one graph, and a build that makes its vocabulary is two.
TEMPLATE_STAGES = tuple(entry for entry in GRAPH_STAGES if not entry.is_optional)
