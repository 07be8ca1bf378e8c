"""Makes a vocabulary's files from merged counts, then the report on them, then the manifest: a work item each."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.records.file_names import REPORT, REPORT_TABLE
from maskmill.storage import completions, files, manifest, progress
from maskmill.storage.completions import ItemFiles
from maskmill.storage.manifest import sum_counts
from maskmill.text.shards import TextShard
from maskmill.vocabularies import counting, merging, report
from maskmill.vocabularies.counting import CountedShard
from maskmill.vocabularies.learning import learn_vocabulary
from maskmill.vocabularies.merging import MergedWords, read_words
from maskmill.vocabularies.options import VocabularyKind, VocabularyOptions
from maskmill.vocabularies.transform_fn import process as transform_fn
from maskmill.vocabularies.vocabulary_files import VOCABULARY_FILES, model_files, vocabulary_files

KIND, REPORT_KIND = "vocabulary", "vocabulary_report"

_FEWEST_WORDS = 2

# The kernels that tokenize text for a report.
_TOKENIZERS: Mapping[VocabularyKind, str] = {
    "wordpiece": "tokenization.kernels.wordpiece",
    "bpe": "tokenization.kernels.byte_level",
}

# A file's name relative to the output, its size in bytes and its sha256.
Listed = tuple[str, int, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularySetup:
    """All that determines a vocabulary besides its text.

    options: with all values decided. transform_fn: whether TensorFlow's files are made, too.
    """

    options: VocabularyOptions
    transform_fn: bool = False


def kernels_of(options: VocabularyOptions, compare: Sequence[str]) -> list[str]:
    """Return the modules of a report's kernels: those of the tokenizers of this vocabulary and of others."""
    tokenizers = [
        _TOKENIZERS[options.kind],
        *(_TOKENIZERS["bpe" if path.endswith(".json") else "wordpiece"] for path in compare),
    ]
    return ["vocabularies.kernels.word_counts", *dict.fromkeys(tokenizers)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeVocabulary:
    """The description of a vocabulary: its files, its counts, and the key of its completion record."""

    files: tuple[Listed, ...]
    counts: Mapping[str, int]
    key: str


def make_vocabulary(
    merged: Sequence[MergedWords], setup: VocabularySetup, texts: Sequence[str], output: str
) -> MadeVocabulary:
    """Learn a vocabulary from the merged counts and write its files to the directory `output`.

    Files of an earlier run are kept if they were made from the same counts with the same options and are unchanged.

    merged: all merged counts, in any order. texts: the user's names of the text, for messages.

    Raises:
      UnusableInputError: the text has fewer than two words, or no vocabulary can be learnt from them with these
        options.
    """
    progress.announce(output, KIND, pieces=1, size=0)
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS[KIND], sorted(part.key for part in merged), setup)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: _make(merged, setup, texts, output),
        _files_of,
        name="vocabulary",
    )
    return MadeVocabulary(files=tuple(_files_of(record).written), counts=record["counts"], key=key)


def _files_of(record: Mapping[str, Any]) -> ItemFiles:
    return ItemFiles(written=tuple((name, size, sha256) for name, size, sha256 in record["files"]))


def _make(merged: Sequence[MergedWords], setup: VocabularySetup, texts: Sequence[str], output: str) -> dict[str, Any]:
    """Write the files; return the completion record.

    files: name, size and sha256 of each. counts: of words and pieces.
    """
    options = setup.options
    counted = read_words(merged, output)
    words = counted.words
    if len(words) < _FEWEST_WORDS:
        found = "there is no word" if not len(words) else "there is one word only"
        raise UnusableInputError(
            f"{texts[0]}: {found} in this text to learn a vocabulary from; name text shards with sentences."
        )
    learned = learn_vocabulary(words, options)
    contents = vocabulary_files(learned, options)
    if setup.transform_fn:
        contents |= transform_fn.transform_fn_files(words, counted.threshold, learned, options)
    return {
        **_written(contents, output),
        "counts": {
            "pieces": len(learned.pieces),
            "special": learned.special,
            "alphabet": learned.alphabet,
            "merges": len(learned.merges),
            "distinct_words": len(words),
            "words": int(words.counts.sum()),
            "rarest_words": counted.threshold,
            "left_out_distinct_words": counted.left_out_words,
            "left_out_words": counted.left_out_occurrences,
        },
    }


def _written(contents: Mapping[str, bytes], directory: str) -> dict[str, Any]:
    """Write files into a directory; return their entry in a record: `files`, name, size and sha256 of each."""
    listed = []
    for name, content in contents.items():
        with files.new_file(files.join(directory, name)) as file:
            file.write(content)
        listed.append((name, file.size, file.sha256))
    return {"files": listed}


def write_model_directory(options: VocabularyOptions, output: str, model_dir: str) -> list[Listed]:
    """Write all files of a tokenizer that transformers reads into the directory of a model; return them."""
    vocabulary = {name: files.read_bytes(files.join(output, name)) for name in VOCABULARY_FILES[options.kind]}
    files.make_directory(model_dir)
    listed: list[Listed] = _written(model_files(vocabulary, options), model_dir)["files"]
    return listed


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeReport:
    """The description of a report.

    files: report.json and report.md. measured: the path of each text that it measures, and of each vocabulary that it
    compares with ours, with its sha256. key: of the completion record.
    """

    files: tuple[Listed, ...]
    measured: Mapping[str, str]
    key: str


def measured_texts(texts: Sequence[TextShard]) -> list[TextShard]:
    """Return the text that a vocabulary is measured on: the held-out text, or without any the first shard."""
    with_text = sorted((text for text in texts if text.size), key=lambda text: (text.number, text.path))
    return [text for text in with_text if text.kind == "eval"] or with_text[:1]


def report_vocabulary(
    elements: Sequence[MadeVocabulary | TextShard],
    setup: VocabularySetup,
    compare: Sequence[str],
    output: str,
) -> MadeReport:
    """Measure a vocabulary, and others for comparison, on held-out text; write report.json and report.md.

    elements: the vocabulary and all text shards, in any order. compare: the files of the others, vocab.txt or
    tokenizer.json.

    Raises:
      UnusableInputError: one of the others cannot be read.
    """
    (vocabulary,) = (element for element in elements if isinstance(element, MadeVocabulary))
    texts = measured_texts([element for element in elements if isinstance(element, TextShard)])
    others = {path: files.sha256_of(path) for path in compare}
    measured = {text.path: text.sha256 for text in texts} | others
    version = completions.FORMAT_VERSIONS[REPORT_KIND]
    key = completions.fingerprint(
        REPORT_KIND, version, vocabulary.key, [text.sha256 for text in texts], list(others.items())
    )

    def write() -> dict[str, Any]:
        found = report.measure(
            files.join(output, VOCABULARY_FILES[setup.options.kind][0]),
            setup.options,
            compare,
            [text.path for text in texts],
            kind=texts[0].kind,
        )
        for text in texts:
            text.check_unchanged()
        contents = {
            REPORT: completions.canonical_json(found, indent=1).encode(),
            REPORT_TABLE: report.as_table(found).encode(),
        }
        return _written(contents, output)

    record = completions.once(output, REPORT_KIND, key, write, _files_of, name=REPORT)
    return MadeReport(files=tuple(_files_of(record).written), measured=measured, key=key)


# The names of the files of all vocabularies; files with such names that this one does not have are deleted.
OUTPUT_PATTERNS = (
    *(name for names in VOCABULARY_FILES.values() for name in names),
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
    """Write the files of a model's directory and the manifest; delete files that older builds left over.

    Args:
      elements: the results of all steps, in any order.
      parameters, decided: for the manifest, all options, and the values that were decided for open ones.
      model_dir: the directory of a model; None to write none.
    """
    counted = sorted((e for e in elements if isinstance(e, CountedShard)), key=lambda shard: shard.path)
    merged = [e for e in elements if isinstance(e, MergedWords)]
    (vocabulary,) = (e for e in elements if isinstance(e, MadeVocabulary))
    (measured,) = (e for e in elements if isinstance(e, MadeReport))
    model = [] if model_dir is None else write_model_directory(setup.options, output, model_dir)
    read = {shard.path: shard.sha256 for shard in counted} | dict(measured.measured)
    listed = [*vocabulary.files, *measured.files]
    sizes = files.each(output, files.size, read)
    manifest.write_manifest(
        output,
        stage="vocabulary",
        parameters=parameters,
        decided=decided,
        inputs=[
            {"path": path, "bytes": size, "sha256": sha256}
            for (path, sha256), size in zip(read.items(), sizes, strict=True)
        ],
        shards=_entries(listed),
        counts={
            "text": {"shards": len(counted), **sum_counts(s.counts for s in counted)},
            "vocabulary": vocabulary.counts,
        },
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
            KIND: [vocabulary.key],
            REPORT_KIND: [measured.key],
        },
    )


def _entries(listed: Sequence[Listed]) -> list[dict[str, Any]]:
    return [{"name": name, "bytes": size, "sha256": sha256} for name, size, sha256 in listed]
