"""eval: the eval examples that are picked of a build's eval shards, and manifest.json."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam

from maskmill.storage import files
from pipelines.settings.stage_options import EvalOptions
from pipelines.stages.examples import ExamplesStage
from pipelines.stages.registry import EVAL_NAME
from pipelines.stages.stage import Stage
from pipelines.terminal.progress import ProgressLine
from transforms.examples import close_examples, example_shards
from transforms.examples.example_steps import PickEvalExamples


def reading(stage: Stage[Any], examples: ExamplesStage) -> "EvalStage":
    """The stage that reads the shards of examples which are finished."""
    if not isinstance(stage, EvalStage):
        raise TypeError(f"{stage.name} picks no eval examples")
    return dataclasses.replace(stage, examples=examples)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalStage(Stage[EvalOptions]):
    """Input: ExampleShard. Output: PickedExamples, or None where there are none to pick.

    examples: the finished stage whose shards it reads where it is the first; None where that stage runs before it.
    """

    name: ClassVar[str] = "eval"
    examples: ExamplesStage | None = None

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """The eval shards that the manifest of the examples lists."""
        if self.examples is None:
            return super().source(pipeline)
        return (
            pipeline
            | "Examples" >> beam.Create([self.examples.output])
            | "FindShards" >> beam.FlatMap(example_shards.find_eval_shards, self.examples.setup)
        )

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds the picking step."""
        picked = elements | "PickEvalExamples" >> PickEvalExamples(
            wanted=self.options.num_examples_to_pick,
            strict=self.options.compat != "none",
            output=files.join(self.output, EVAL_NAME),
        )
        return picked, [picked]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes the manifest, and sweeps."""
        (picked,) = elements
        close_examples.close_picked(picked, self.parameters, self.output)

    def progress(self) -> list[ProgressLine]:
        """Picking takes a moment: it has no line."""
        return []
