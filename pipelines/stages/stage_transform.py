"""The step that runs a stage, and closes it."""

import dataclasses
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PBegin

from pipelines.stages.stage import GraphStage
from transforms.to_list import ToList


@dataclasses.dataclass(eq=False)
class RunStage(beam.PTransform):
    """Run a stage's steps, and its closing step after all of them.

    Input: what the stage reads; a pipeline where it reads files. Output: what the next stage reads.
    """

    stage: GraphStage[Any]

    def expand(self, elements: beam.PCollection) -> beam.PCollection:
        """Close the stage when all that its steps name has come."""
        read = self.stage.source(elements.pipeline) if isinstance(elements, PBegin) else elements
        made, finished = self.stage.expand(read)
        every = finished | "Finished" >> beam.Flatten().with_output_types(Any)
        every | "AllFinished" >> ToList() | "Close" >> beam.Map(self.stage.close_all).with_output_types(None)
        return made
