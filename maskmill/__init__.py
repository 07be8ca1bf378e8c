"""maskmill: Wikipedia dumps and text corpora to masked-language-model pre-training data.

`build` makes a data set, as do the functions of its stages, `extract`, `vocabulary` and `examples`. `open` reads it
back in batches, `mix` several as one; `verify` says whether data are right, `summarize` and the functions beside it
show what is in them, `lineage_of` from what they were made, and `data_sets_with` which of them may hold a page. All
that is public is listed in `__all__`; docs/stability.md says what stays as it is.

Importing this package imports no Beam, no framework and no NumPy. A name is imported when it is first used (lazy.py).
"""

from typing import TYPE_CHECKING

from maskmill.lazy import exports as _exports

if TYPE_CHECKING:
    from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
    from maskmill.inspection.checkpoint_headers import CheckpointHeader, read_checkpoint_header
    from maskmill.inspection.decoding import DecodedExample, DecodedPiece
    from maskmill.inspection.opened_examples import OpenedExamples, open_examples
    from maskmill.inspection.opened_texts import OpenedTexts, TextDocument, open_texts
    from maskmill.inspection.summaries import Summary, summarize
    from maskmill.lineage.origins import HoldingDataSet, Lineage, data_sets_with, lineage_of
    from maskmill.loading.loader import Loader
    from maskmill.loading.mixing import Given
    from maskmill.loading.open_and_mix import mix, open
    from maskmill.loading.stats import LoaderStats
    from maskmill.programs import build, create_pretraining_data, examples, extract, vocabulary
    from maskmill.results import BuildResult, StageResult
    from maskmill.verification.findings import Finding, Verification
    from maskmill.verification.options import VerifyOptions
    from maskmill.verification.verifying import verify

__version__ = "0.1.0"

__all__ = [
    "BuildResult",
    "CheckpointHeader",
    "DecodedExample",
    "DecodedPiece",
    "Finding",
    "Given",
    "HoldingDataSet",
    "Lineage",
    "Loader",
    "LoaderStats",
    "MissingFileError",
    "OpenedExamples",
    "OpenedTexts",
    "RunFailedError",
    "StageResult",
    "Summary",
    "TextDocument",
    "UnusableInputError",
    "Verification",
    "VerifyOptions",
    "__version__",
    "build",
    "create_pretraining_data",
    "data_sets_with",
    "examples",
    "extract",
    "lineage_of",
    "mix",
    "open",
    "open_examples",
    "open_texts",
    "read_checkpoint_header",
    "summarize",
    "verify",
    "vocabulary",
]

# Where each name is at home.
_HOMES = {
    "maskmill.errors": "MissingFileError RunFailedError UnusableInputError",
    "maskmill.inspection.checkpoint_headers": "CheckpointHeader read_checkpoint_header",
    "maskmill.inspection.decoding": "DecodedExample DecodedPiece",
    "maskmill.inspection.opened_examples": "OpenedExamples open_examples",
    "maskmill.inspection.summaries": "Summary summarize",
    "maskmill.inspection.opened_texts": "OpenedTexts TextDocument open_texts",
    "maskmill.lineage.origins": "HoldingDataSet Lineage data_sets_with lineage_of",
    "maskmill.loading.loader": "Loader",
    "maskmill.loading.mixing": "Given",
    "maskmill.loading.open_and_mix": "mix open",
    "maskmill.loading.stats": "LoaderStats",
    "maskmill.programs": "build create_pretraining_data examples extract vocabulary",
    "maskmill.results": "BuildResult StageResult",
    "maskmill.verification.findings": "Finding Verification",
    "maskmill.verification.options": "VerifyOptions",
    "maskmill.verification.verifying": "verify",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = _exports(__name__, _HOMES)
