"""The steps from a dump or a corpus to records, for Beam pipelines: a folder for each, plain functions first.

Steps whose elements are articles and documents, between which a pipeline may put steps of its own:

  ReadArticles     files → Article, and Rejected under the tag `rejected`
  FilterQuality    Article → Article
  SplitSentences   Article → Document
  PickEval         Article or Document → the same under `train` and `eval`
  WriteText        Document → TextShard
  WriteExamples    Document → ExampleShard
  CreateExamples   Document → bytes of a tf.train.Example

The stages of `maskmill build`, whose elements describe files, which is the fast way; each writes a directory:

  ExtractText          files → TextShard
  LearnVocabulary, WriteTransformFn   TextShard → MadeVocabulary
  WriteExampleShards   TextShard → ExampleShard
  PickEvalExamples     ExampleShard → PickedExamples

Importing this package imports no Beam; each name is imported at its first use. docs/use-the-steps.md has pipelines.
"""

from typing import TYPE_CHECKING

from maskmill.lazy import exports as _exports

if TYPE_CHECKING:
    from maskmill.extraction.options import WikitextOptions
    from maskmill.inputs.articles import Article, Document, Rejected
    from maskmill.inputs.options import ReadOptions
    from maskmill.masking.objective_options import ObjectiveOptions
    from maskmill.masking.options import MaskingOptions
    from maskmill.records.options import FormatOptions
    from maskmill.text_shards.options import ExtractionOptions, QualityOptions
    from pipelines.stages.file_steps import (
        ExtractText,
        LearnVocabulary,
        PickEvalExamples,
        WriteExampleShards,
        WriteTransformFn,
    )
    from transforms.elements.steps import (
        CreateExamples,
        FilterQuality,
        PickEval,
        ReadArticles,
        SplitSentences,
        WriteExamples,
        WriteText,
    )

__all__ = [
    "Article",
    "CreateExamples",
    "Document",
    "ExtractText",
    "ExtractionOptions",
    "FilterQuality",
    "FormatOptions",
    "LearnVocabulary",
    "MaskingOptions",
    "ObjectiveOptions",
    "PickEval",
    "PickEvalExamples",
    "QualityOptions",
    "ReadArticles",
    "ReadOptions",
    "Rejected",
    "SplitSentences",
    "WikitextOptions",
    "WriteExampleShards",
    "WriteExamples",
    "WriteText",
    "WriteTransformFn",
]

# Where each name is at home.
_HOMES = {
    "maskmill.masking.objective_options": "ObjectiveOptions",
    "maskmill.masking.options": "MaskingOptions",
    "maskmill.records.options": "FormatOptions",
    "pipelines.stages.file_steps": "ExtractText LearnVocabulary PickEvalExamples WriteExampleShards WriteTransformFn",
    "transforms.elements.steps": "CreateExamples FilterQuality PickEval ReadArticles SplitSentences WriteExamples "
    "WriteText",
    "maskmill.extraction.options": "WikitextOptions",
    "maskmill.inputs.articles": "Article Document Rejected",
    "maskmill.inputs.options": "ReadOptions",
    "maskmill.text_shards.options": "ExtractionOptions QualityOptions",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = _exports(__name__, _HOMES)
