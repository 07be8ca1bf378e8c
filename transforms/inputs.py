"""The steps that find the inputs of a build and cut them into work items."""

import dataclasses
from collections.abc import Sequence

import apache_beam as beam

from maskmill.inputs.batches import (
    announce_batches,
    digest_input,
    digest_object,
    inputs_in_order,
    numbered_inputs,
    without_digest,
)
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import Digest, InputFile, UnitBatch
from maskmill.storage.files import FileInfo
from transforms.to_list import ToList


@dataclasses.dataclass(eq=False)
class FindInputs(beam.PTransform):
    """Add checksums and dates to the inputs that were found before the run, if they are still what there is.

    Input: one sequence of FileInfo. Output: one list of InputFile, in the same order.
    """

    patterns: Sequence[str]
    dump_date: str | None
    input_format: str = "auto"

    def expand(self, found: beam.PCollection[Sequence[FileInfo]]) -> beam.PCollection[list[InputFile]]:
        """Describe each input on any worker."""
        return (
            found
            | "Match" >> beam.FlatMap(numbered_inputs, self.patterns, self.input_format)
            | beam.Reshuffle()
            | "Digest" >> beam.Map(digest_input, self.dump_date)
            | ToList()
            | "InOrder" >> beam.Map(inputs_in_order)
        )


class DigestObjects(beam.PTransform):
    """Read the inputs that are known by their store's checksum for their own, beside all work that does not need it."""

    def expand(self, inputs: beam.PCollection[list[InputFile]]) -> beam.PCollection[Digest]:
        """Read each input on any worker."""
        return (
            inputs | "InStores" >> beam.FlatMap(without_digest) | beam.Reshuffle() | "Digest" >> beam.Map(digest_object)
        )


@dataclasses.dataclass(eq=False)
class CutIntoBatches(beam.PTransform):
    """Cut the inputs into batches of units, and announce how many there are.

    kinds: of the steps that take a batch each. source: its name, in a build that mixes several.
    """

    input_format: str
    reading: ReadOptions
    limit: int | None
    output: str
    kinds: tuple[str, ...]
    source: str = ""

    def expand(self, inputs: beam.PCollection[list[InputFile]]) -> beam.PCollection[UnitBatch]:
        """Cut all inputs at once: a limit counts over all of them."""
        return inputs | "Cut" >> beam.FlatMap(
            announce_batches, self.input_format, self.reading, self.limit, self.output, self.kinds, self.source
        )
