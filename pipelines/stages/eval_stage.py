"""eval: the eval examples that are picked of a build's eval shards, and manifest.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from maskmill.storage import files
from pipelines.settings.stage_options import EvalOptions
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.stage import Build, GraphStage

if TYPE_CHECKING:
    from transforms.collection import Collection, Graph

# The file of the picked eval examples, in the stage's folder.
EVAL_NAME = "eval.tfrecord"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalStage(GraphStage[EvalOptions]):
    """Input: ExampleShard. Output: PickedExamples, or None if there are none to pick.

    examples: the finished stage whose shards it reads if it is the first; None if that stage runs before it.
    """

    name = "eval"
    options_class = EvalOptions
    after = ExamplesStage
    decides = ("output", "compat")

    examples: ExamplesStage | None = None

    @classmethod
    def missing(cls, build: Build) -> str | None:
        """Why no eval examples can be picked of a build's examples."""
        examples = build[ExamplesStage]
        if examples.format.format != "tfrecord":
            return f"eval examples are picked from TFRecords, and the examples are {examples.format.format}"
        if examples.objective.bins is not None:
            return "eval examples are picked from shards of one file, and --bins makes several of a shard"
        return None

    @classmethod
    def check(cls, options: EvalOptions, *, is_first: bool) -> Self:
        """Checks the output; the examples are not there yet; raises as Stage.check."""
        cls.check_output(options)
        return cls(options=options)

    def source(self, graph: "Graph") -> "Collection":
        """The eval shards that the manifest of the examples lists."""
        from maskmill.examples import example_shards

        if self.examples is None:
            return super().source(graph)
        examples = graph.create("Examples", [self.examples.output])
        return examples.flat_map("FindShards", example_shards.find_eval_shards, self.examples.setup)

    def expand(self, elements: "Collection") -> "tuple[Collection, Sequence[Collection]]":
        """Adds the picking step."""
        from transforms.examples.example_steps import PickEvalExamples

        picked = elements.step(
            PickEvalExamples,
            wanted=self.options.num_examples_to_pick,
            strict=self.options.compat != "none",
            output=files.join(self.output, EVAL_NAME),
        )
        return picked, [picked]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes the manifest, and sweeps."""
        from maskmill.examples import close_examples

        (picked,) = elements
        close_examples.close_picked(picked, self.parameters, self.output)

    def progress(self) -> Mapping[str, str]:
        """Picking takes a moment: it has no line."""
        return {}
