"""The stages as steps of any pipeline: each claims its directory, writes its files, and at the end the manifest.

`maskmill build` runs the same step (stage_transform.py) once it has claimed the directories of all stages together.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.pvalue import PBegin

from maskmill.example_shards.example_shards import ExampleShard, PickedExamples
from maskmill.text.shards import TextShard
from maskmill.vocabularies.making import MadeVocabulary
from pipelines.settings import options as option_tools
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.stage import GraphStage
from pipelines.stages.stage_transform import RunStage
from pipelines.stages.vocabulary_stage import VocabularyStage


class _FileStep(beam.PTransform):
    """A stage with options by name, which are checked at once; its input and directory when it joins a pipeline."""

    stage: ClassVar[type[GraphStage[Any]]]
    defaults: ClassVar[Mapping[str, Any]] = {"input": ()}

    def __init__(self, output: str, **options: Any) -> None:
        super().__init__()
        given = {"output": output, **self.defaults, **options}
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        self._options: Any = option_tools.from_mapping(self.stage.options_class, given, where=type(self).__name__)

    def _run(self, elements: beam.PCollection) -> beam.PCollection:
        """Check the input if it is files, claim the directory, and run the stage."""
        checked = self.stage.check(self._options, is_first=isinstance(elements, PBegin))
        with checked.claim().held():
            return RunStage(checked).expand(elements)


class ExtractText(_FileStep):
    """Extract text shards and the eval set of a dump or corpus, with manifest.json, as `maskmill extract` does.

    It begins a pipeline. Output: TextShard, the description of each shard that has text.

    patterns: paths, globs, stores' addresses. output: the directory. options: of `maskmill extract`, by name.

    Raises:
      UnusableInputError: options or inputs cannot be used, or the directory belongs to something else.
    """

    stage = ExtractStage

    def __init__(self, patterns: str | Sequence[str], output: str, **options: Any) -> None:
        super().__init__(output, input=patterns, **options)

    def expand(self, begin: PBegin) -> beam.PCollection[TextShard]:
        """Claim the directory, extract, write the manifest."""
        return self._run(begin)


class LearnVocabulary(_FileStep):
    """Learn a vocabulary, with its report and manifest.json, as `maskmill vocabulary` does.

    Input: TextShard; or a pipeline, if the option `input` names text shards. Output: the description of its files.

    output: the directory. options: of `maskmill vocabulary`, by name.

    Raises:
      UnusableInputError: as ExtractText.
    """

    stage = VocabularyStage

    def expand(self, shards: beam.PCollection[TextShard]) -> beam.PCollection[MadeVocabulary]:
        """Claim the directory, count and learn, write the manifest."""
        return self._run(shards)


class WriteTransformFn(LearnVocabulary):
    """Learn a vocabulary, and write TensorFlow Transform's count of the words and a SavedModel from text to ids, too.

    As LearnVocabulary; the files are in the folder tft below the output. It needs the extra [tensorflow].
    """

    defaults: ClassVar[Mapping[str, Any]] = {**LearnVocabulary.defaults, "transform_fn": True}


class WriteExampleShards(_FileStep):
    """Write training examples of text shards, with manifest.json, as `maskmill examples` does.

    Input: TextShard; or a pipeline, if the option `input` names text shards. Output: ExampleShard.

    output: the directory. options: of `maskmill examples`, by name; vocab_file or tokenizer_file must be among them.

    Raises:
      UnusableInputError: as ExtractText.
    """

    stage = ExamplesStage

    def expand(self, shards: beam.PCollection[TextShard]) -> beam.PCollection[ExampleShard]:
        """Claim the directory, mask and write, write the manifest."""
        return self._run(shards)


class PickEvalExamples(_FileStep):
    """Pick eval examples at even distance from the eval shards, with manifest.json, as `maskmill build` does.

    Input: ExampleShard, of TFRecords. Output: PickedExamples, or None where there are no eval examples.

    output: the directory. options: of a build's section eval, by name.

    Raises:
      UnusableInputError: as ExtractText.
    """

    stage = EvalStage
    defaults: ClassVar[Mapping[str, Any]] = {}

    def expand(self, shards: beam.PCollection[ExampleShard]) -> beam.PCollection[PickedExamples | None]:
        """Claim the directory, pick, write the manifest."""
        return self._run(shards)
