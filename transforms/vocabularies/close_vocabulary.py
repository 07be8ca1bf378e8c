"""What is left to do once a vocabulary and its report are there: a model's directory, the manifest, and the sweep."""

from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.records.file_names import REPORT, REPORT_TABLE
from maskmill.storage import files, manifest, reuse
from maskmill.storage.counts import sum_counts
from transforms.vocabularies import counting, making, merging, vocabulary_files
from transforms.vocabularies.counting import CountedShard
from transforms.vocabularies.making import Listed, MadeReport, MadeVocabulary, VocabularySetup
from transforms.vocabularies.merging import MergedWords
from transforms.vocabularies.transform_fn import process as transform_fn

# The names that the files of any vocabulary have; files that fit and are not of this one are swept.
OUTPUT_PATTERNS = (
    *(name for names in vocabulary_files.VOCABULARY_FILES.values() for name in names),
    REPORT,
    REPORT_TABLE,
    *transform_fn.PATTERNS,
)


def close_vocabulary(
    elements: Sequence[CountedShard | MergedWords | MadeVocabulary | MadeReport],
    *,
    parameters: Mapping[str, Any],
    decided: Mapping[str, Any],
    setup: VocabularySetup,
    model_dir: str | None,
    output: str,
) -> None:
    """Writes the files of a model's directory and the manifest; deletes what older builds left over.

    Args:
      elements: everything that the steps gave, in any order.
      parameters, decided: all options, and what was decided where they leave it open, for the manifest.
      model_dir: the directory of a model; None: there is none to write.
    """
    counted = sorted((e for e in elements if isinstance(e, CountedShard)), key=lambda shard: shard.path)
    merged = [e for e in elements if isinstance(e, MergedWords)]
    (made,) = (e for e in elements if isinstance(e, MadeVocabulary))
    (report,) = (e for e in elements if isinstance(e, MadeReport))
    model = [] if model_dir is None else making.write_model_directory(setup.options, output, model_dir)
    read = {shard.path: shard.sha256 for shard in counted} | dict(report.measured)
    listed = [*made.files, *report.files]
    manifest.write_manifest(
        output,
        stage="vocabulary",
        parameters=parameters,
        decided=decided,
        inputs=[{"path": path, "bytes": files.size(path), "sha256": sha256} for path, sha256 in read.items()],
        shards=_entries(listed),
        counts={"text": {"shards": len(counted), **sum_counts(s.counts for s in counted)}, "vocabulary": made.counts},
        data={"model_files": _entries(model)} if model else {},
    )
    counting.drop_runs(counted, output)
    manifest.sweep(
        output,
        keep=[name for name, *_ in listed],
        patterns=OUTPUT_PATTERNS,
        records={
            counting.KIND: [shard.key for shard in counted],
            merging.KIND: [part.key for part in merged],
            making.KIND: [made.key],
            making.REPORT_KIND: [report.key],
        },
    )
    reuse.account(output, making.KIND, [made.key])


def _entries(listed: Sequence[Listed]) -> list[dict[str, Any]]:
    return [{"name": name, "bytes": size, "sha256": sha256} for name, size, sha256 in listed]
