"""eval: the eval examples that are picked of a build's eval shards, and manifest.json."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam

from pipelines.progress import ProgressLine
from pipelines.stage import Stage
from pipelines.stage_options import EvalOptions
from pipelines.stages import EVAL_NAME
from transforms.records import closing
from transforms.records.example_steps import PickEvalExamples
from transforms.storage import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalStage(Stage[EvalOptions]):
    """Input: ExampleShard. Output: PickedExamples, or None where there are none to pick."""

    name: ClassVar[str] = "eval"

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
        closing.close_picked(picked, self.parameters, self.output)

    def progress(self) -> list[ProgressLine]:
        """Picking takes a moment: it has no line."""
        return []
