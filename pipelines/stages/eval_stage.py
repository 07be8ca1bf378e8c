"""eval: the eval examples that are picked of a build's eval shards, and manifest.json."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from maskmill.storage import files
from pipelines.settings.stage_options import EvalOptions
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.stage import Build, GraphStage

if TYPE_CHECKING:
    import apache_beam as beam


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
        """Return why no eval examples can be picked of a build's examples."""
        examples = build[ExamplesStage]
        if examples.format.format != "tfrecord":
            return f"eval examples are picked from TFRecords, and the examples are {examples.format.format}"
        if examples.objective.bins is not None:
            return "eval examples are picked from shards of one file, and --bins makes several of a shard"
        return None

    @classmethod
    def check(cls, options: EvalOptions, *, is_first: bool) -> Self:
        """Check the output; the examples are not there yet; raise as Stage.check."""
        cls.check_output(options)
        return cls(options=options)

    def source(self, pipeline: "beam.Pipeline") -> "beam.PCollection":
        """Return the eval shards that the manifest of the examples lists."""
        import apache_beam as beam

        from maskmill.example_shards import example_shards

        if self.examples is None:
            return super().source(pipeline)
        examples = pipeline | "Examples" >> beam.Create([self.examples.output]).with_output_types(str)
        return examples | "FindShards" >> beam.FlatMap(example_shards.find_eval_shards, self.examples.setup)

    def expand(self, elements: "beam.PCollection") -> "tuple[beam.PCollection, Sequence[beam.PCollection]]":
        """Add the picking step."""
        from transforms.examples import PickExamples

        picked = elements | PickExamples(
            wanted=self.options.num_examples_to_pick,
            strict=self.options.compat != "none",
            output=files.join(self.output, EVAL_NAME),
        )
        return picked, [picked]

    def close(self, elements: Sequence[Any]) -> None:
        """Write the manifest, and sweep."""
        from maskmill.example_shards import close_examples

        (picked,) = elements
        close_examples.close_picked(picked, self.parameters, self.output)

    def progress(self) -> Mapping[str, str]:
        """Return none: picking takes a moment."""
        return {}
