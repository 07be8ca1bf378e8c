"""The step that collects the templates of a dump."""

import dataclasses

import apache_beam as beam

from maskmill.extraction.template_library import bind_library, collect_templates
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import UnitBatch
from transforms.to_list import ToList


@dataclasses.dataclass(eq=False)
class CollectTemplates(beam.PTransform):
    """Collect the templates of all batches before the first page is extracted.

    Output: the same batches with the key of the library in `templates`.
    """

    reading: ReadOptions
    output: str

    def expand(self, batches: beam.PCollection[UnitBatch]) -> beam.PCollection[UnitBatch]:
        """Collect the templates of each batch on any worker, then bind them."""
        return (
            batches
            | beam.Reshuffle()
            | "Collect" >> beam.Map(collect_templates, self.reading, self.output)
            | ToList()
            | "BindLibrary" >> beam.FlatMap(bind_library, self.output)
        )
