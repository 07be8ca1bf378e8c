"""examples: text shards → shards of training examples, and manifest.json."""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam

from maskmill.masking.objective_options import decided_mask_unit
from maskmill.records.examples import kernels_of
from maskmill.storage.files import FileInfo
from pipelines.settings.stage_options import ExamplesOptions, decided_masking
from pipelines.stages.stage import Stage
from pipelines.stages.text_source import announce_texts, describe_texts
from pipelines.terminal.progress import ProgressLine
from transforms.examples import close_examples, example_shards
from transforms.examples.example_shards import ExamplesSetup
from transforms.examples.example_steps import WriteExamples
from transforms.grouping import GroupAll


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesStage(Stage[ExamplesOptions]):
    """Input: TextShard. Output: ExampleShard.

    tokenizer_kernels: the compiled code that the tokenizer needs, see LoadedTokenizer. texts: the text shards, where
    they were there before the run.
    """

    name: ClassVar[str] = "examples"
    tokenizer_kernels: tuple[str, ...]
    texts: Sequence[FileInfo] = ()

    @property
    def setup(self) -> ExamplesSetup:
        """What decides a shard's examples, the vocabulary's checksum included."""
        name, path = self.options.tokenizer
        return ExamplesSetup(
            vocab_file=path,
            vocab_sha256=self.contents[f"{name}_sha256"],
            is_tokenizer=name == "tokenizer_file",
            masking=decided_masking(self.options.masking, self.options.compat),
            objective=self.options.objective,
            format=self.options.format,
            one_seed=self.options.compat != "none",
            packed=self.options.packed,
        )

    @property
    def kernels(self) -> Sequence[str]:
        """Those of the steps from sentences to records."""
        return kernels_of(self.setup.plan, self.tokenizer_kernels)

    @property
    def decided(self) -> dict[str, Any]:
        """What --compat decides, and what is masked together."""
        masking = self.setup.masking
        return {
            "mask_unit": decided_mask_unit(masking, self.options.objective),
            "unicode": masking.unicode,
            "duplicate_pieces": masking.duplicate_pieces,
            "one_seed": self.setup.one_seed,
        }

    @property
    def folders(self) -> Sequence[str]:
        """Those of MDS."""
        return self.setup.plan.folders

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        """The text shards that `input` names."""
        return describe_texts(pipeline, self.texts, self.options.input)

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        """Adds the masking step."""
        _ = (
            elements
            | "AllTexts" >> GroupAll()
            | "Announce" >> beam.Map(announce_texts, self.output, example_shards.KIND)
        )
        shards = elements | "WriteExamples" >> WriteExamples(setup=self.setup, output=self.output)
        return shards, [shards]

    def close(self, elements: Sequence[Any]) -> None:
        """Writes the manifest, and sweeps."""
        close_examples.close_examples(
            elements, self.setup, parameters=self.parameters, decided=self.decided, output=self.output
        )

    def progress(self) -> list[ProgressLine]:
        """Example shards."""
        return [ProgressLine(label="examples", output=self.output, kind=example_shards.KIND)]
