"""Parse the manifest of examples: their files, columns, options and vocabulary."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.data_set import DIGEST_DIGITS, DataFile
from maskmill.reading.read_columns import SchemaColumn
from maskmill.reading.read_vocabulary import KnownVocabulary
from maskmill.storage import files, manifest


class MadeText(NamedTuple):
    """The text of rows: its path when the examples were made, its size in bytes, its sha256."""

    path: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class MadeExamples:
    """The examples of a split, as their manifest describes them.

    Attributes:
      format: of the files.
      files: those with samples.
      index_sha256: of the files' indexes, by path.
      schema: the columns; None in manifests of older versions.
      options: those of the examples, completed by the manifest's "decided".
      vocabulary: that of the examples, as far as the manifest describes it.
      texts: of formats without rows, by DataFile.text, which is here relative to the directory.
    """

    format: str
    files: Sequence[DataFile]
    index_sha256: Mapping[str, str]
    schema: Sequence[SchemaColumn] | None
    options: Mapping[str, Any]
    vocabulary: KnownVocabulary
    texts: Mapping[str, MadeText] = dataclasses.field(default_factory=dict)

    @property
    def is_dynamic(self) -> bool:
        """True if readers draw the masks."""
        return bool(self.options.get("dynamic_masking"))

    @property
    def predictions(self) -> int:
        """Most masks of a row; 0: not known."""
        return int(self.options.get("max_predictions_per_seq", 0))


def manifest_in(directory: str, ranges: ByteRanges) -> dict[str, Any] | None:
    """Return the manifest in a directory; None if there is none.

    Raises:
      UnusableInputError: it is damaged.
    """
    file = files.join(directory, manifest.MANIFEST)
    try:
        return manifest.parse_manifest(file, ranges.read_all(file))
    except MissingFileError:
        return None


def parse_examples(content: Mapping[str, Any], split: str, directory: str) -> MadeExamples:
    """Return the examples of a split, maybe none, that a manifest describes.

    Args:
      content: of the manifest.
      split: "train" or "eval".
      directory: of the manifest and the files.

    Raises:
      UnusableInputError: an entry is missing, or not as maskmill writes it.
    """
    try:
        # The parameters of picked eval examples are those of the picking.
        options = dict(content.get("examples", content["parameters"])) | dict(content.get("decided", {}))
        width = int(options.get("max_seq_length", 0))
        shards = [shard for shard in content["shards"] if shard["kind"] == split]
        inputs = {entry["path"]: entry for entry in content["inputs"]}
        texts = {shard["text"]: inputs[next(iter(shard["inputs"]))] for shard in shards if "text" in shard}
        entries = [
            {**entry, "text": shard.get("text")}
            for shard in shards
            for entry in manifest.files_of_shard(shard)
            if entry["examples"]
        ]
        return MadeExamples(
            format=content.get("format", "tfrecord"),
            files=[_data_file(entry, directory, width) for entry in entries],
            index_sha256={files.join(directory, e["index"]): e["index_sha256"] for e in entries if "index" in e},
            schema=[_schema_column(entry) for entry in content["schema"]] if "schema" in content else None,
            options=options,
            vocabulary=_vocabulary(content, options, directory),
            texts={text: MadeText(e["path"], int(e["bytes"]), str(e["sha256"])) for text, e in texts.items()},
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UnusableInputError(
            f"{files.join(directory, manifest.MANIFEST)}: an entry of this manifest is missing or not as maskmill "
            f"writes it ({type(error).__name__}: {error}); run the command that made the directory again."
        ) from None


def _data_file(entry: Mapping[str, Any], directory: str, width: int) -> DataFile:
    """Return a file that the manifest lists; width: of rows without bins."""
    return DataFile(
        path=files.join(directory, entry["name"]),
        samples=int(entry["examples"]),
        size=int(entry["bytes"]),
        sha256=str(entry["sha256"]),
        index=files.join(directory, entry["index"]) if "index" in entry else None,
        width=int(entry.get("width", width)),
        digest=entry.get("records_sha256", entry["sha256"])[:DIGEST_DIGITS],
        text=entry["text"],
    )


def _schema_column(entry: Mapping[str, Any]) -> SchemaColumn:
    (length,) = entry["shape"]
    return SchemaColumn(str(entry["name"]), None if length is None else int(length), entry["dtype"] == "float32")


def _vocabulary(content: Mapping[str, Any], options: Mapping[str, Any], directory: str) -> KnownVocabulary:
    """Return the vocabulary as far as the manifest describes it; manifests of older versions have fewer entries."""
    copied = content.get("vocabulary")
    is_tokenizer = options.get("tokenizer_file") is not None
    option = "tokenizer_file" if is_tokenizer else "vocab_file"
    return KnownVocabulary(
        size=content.get("vocabulary_size"),
        special_ids=dict(content.get("special_ids", {})),
        sha256=options.get(f"{option}_sha256") if copied is None else copied["sha256"],
        copy=None if copied is None else files.join(directory, copied["name"]),
        name=options.get(option),
        is_tokenizer=is_tokenizer,
        duplicates=options.get("duplicate_pieces", "first"),
    )
