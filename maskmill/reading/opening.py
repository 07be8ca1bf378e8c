"""Open data sets: find their files and columns, and check them before reading."""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.masking.kernels.row_masks import RowMaskRules
from maskmill.reading.block_reader import BlockReader
from maskmill.reading.byte_ranges import ByteRanges, ranges_beside
from maskmill.reading.data_set import DIGEST_DIGITS, DataFile, DataSet, ReadColumn
from maskmill.reading.formats import reader_of_format
from maskmill.reading.made_examples import MadeExamples, manifest_in, parse_examples
from maskmill.reading.read_columns import RowLimits, SchemaColumn, columns_of_example, columns_of_schema
from maskmill.reading.read_vocabulary import UNKNOWN, NamedVocabulary, load_known, mask_rules
from maskmill.reading.record_indexes import first_example, index_blocks
from maskmill.records.file_names import INDEX_SUFFIX, lies_beside
from maskmill.records.shard_formats import needs_manifest
from maskmill.storage import files
from maskmill.storage.paths import path_at

_EXAMPLES = "examples"  # the folder of a build that has its examples
_STAGES = ("examples", "eval")
_MOST_SEGMENTS = 256  # of TFRecords without a schema; a pair of maskmill's has two parts
_PAIR = 2
_END_BYTES = 1 << 16  # of the ends of a file without a checksum, which identify it
_THREADS = 16  # for reading different files
_PIECES = ("input_ids", "input_word_ids")
_NOTHING_NAMED = "No data set was named: give its directory, or TFRecords."


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Request:
    """The arguments of open_data_set."""

    path: str
    split: str
    ranges: ByteRanges
    vocab_file: str | None
    vocabulary_size: int | None
    max_seq_length: int | None
    checksums: bool
    sizes: bool
    text: str | None


def open_data_set(
    path: str | os.PathLike[str],
    *,
    split: str = "train",
    ranges: ByteRanges,
    vocab_file: str | os.PathLike[str] | None = None,
    vocabulary_size: int | None = None,
    max_seq_length: int | None = None,
    checksums: bool = False,
    sizes: bool = True,
    text: str | os.PathLike[str] | None = None,
) -> DataSet:
    """Find the files and columns of a data set, and check them.

    Args:
      path: the directory of `maskmill examples`, of a build (its examples are read) or of its picked eval examples; or
        TFRecords without a manifest: a file, a glob, or a list of both separated by commas.
      split: "train" or "eval"; TFRecords without a manifest have no splits.
      ranges: reads the files.
      vocab_file: the vocabulary of a data set without a copy of it.
      vocabulary_size: of the model; ids must be below it.
      max_seq_length: most pieces of a row that the model takes.
      checksums: whether to read all files now, and compare them with their checksums in the manifest.
      sizes: whether to compare the files' sizes with the manifest now; otherwise a missing or damaged file is found
        when it is read.
      text: the directory of the text shards, for data sets of spans; None: as recorded, relative to the data set.

    Raises:
      UnusableInputError: there is no such data set or split, a file is missing or differs from the manifest, or the
        data does not fit the model.
      RunFailedError: a file cannot be read.
    """
    named = os.path.expanduser(os.fspath(path))
    request = _Request(
        path=named.rstrip("/") or named,
        split=split,
        ranges=ranges,
        vocab_file=None if vocab_file is None else os.path.expanduser(os.fspath(vocab_file)),
        vocabulary_size=vocabulary_size,
        max_seq_length=max_seq_length,
        checksums=checksums,
        sizes=sizes,
        text=None if text is None else os.path.expanduser(os.fspath(text)),
    )
    if not request.path:
        raise UnusableInputError(_NOTHING_NAMED)
    found = find_manifest(request.path, ranges)
    data_set = _open_records(request) if found is None else _open_with_manifest(request, *found)
    _check_model(data_set, request)
    return data_set


def reader_of(data_set: DataSet, ranges: ByteRanges) -> BlockReader:
    """Return the reader of a data set's format, for its files, read through ranges."""
    return reader_of_format(data_set.format)(data_set, ranges)


def find_manifest(path: str, ranges: ByteRanges) -> tuple[dict[str, Any], str] | None:
    """Return the manifest of a data set and its directory, or None.

    Raises:
      UnusableInputError: it is damaged, or not of examples.
    """
    for directory in (path, files.join(path, _EXAMPLES)):
        content = manifest_in(directory, ranges)
        if content is not None and content["stage"] not in _STAGES:
            raise UnusableInputError(
                f"{directory}: this directory belongs to {content['stage']!r} and has no examples; name the directory "
                "of the examples."
            )
        if content is not None:
            return content, directory
    return None


def _open_with_manifest(request: _Request, content: Mapping[str, Any], directory: str) -> DataSet:
    """Return a data set with a manifest."""
    examples = parse_examples(content, request.split, directory)
    if not examples.files:
        raise UnusableInputError(f"{request.path}: {_why_no_samples(content, request.split)}")
    if request.sizes:
        _check_sizes(examples.files, request.ranges)
    if examples.texts:
        examples = dataclasses.replace(examples, files=_with_texts(examples, directory, request))
    if request.checksums:
        expected = {file.path: file.sha256 for file in examples.files} | dict(examples.index_sha256)
        _check_sha256(expected, request.ranges)
    named = NamedVocabulary(request.path, request.vocab_file, request.ranges)
    known, rules = examples.vocabulary, None
    vocabulary = load_known(known, named, is_needed=examples.is_dynamic)
    if vocabulary is not None:
        known = dataclasses.replace(known, size=vocabulary.size, special_ids=vocabulary.special_ids)
        rules = mask_rules(examples.options, vocabulary) if examples.is_dynamic else None
    opened = _assembled(request, dataclasses.replace(examples, vocabulary=known), rules)
    return dataclasses.replace(opened, vocabulary=None if vocabulary is None else vocabulary.path)


def _why_no_samples(content: Mapping[str, Any], split: str) -> str:
    """Return why a split has no samples, and what to do."""
    kinds = list(dict.fromkeys(shard["kind"] for shard in content["shards"]))
    others = " and ".join(repr(kind) for kind in kinds if kind != split)
    if split in kinds:
        return f"the split {split!r} of this data set has no examples; make some, or choose another split."
    if others:
        return f"this data set has no split {split!r}, only {others}; choose one that it has."
    return "this data set has no examples; make some from more text."


def _check_sizes(listed: Sequence[DataFile], ranges: ByteRanges) -> None:
    """Raise UnusableInputError if the size of a file differs from the manifest."""
    for file, size in zip(listed, ranges.sizes([file.path for file in listed]), strict=True):
        if size != file.size:
            raise UnusableInputError(
                f"{file.path}: this file has {size:,} bytes, but {file.size:,} are in the manifest; fetch the file "
                "again, or run the command that made it again."
            )


def _with_texts(examples: MadeExamples, directory: str, request: _Request) -> list[DataFile]:
    """Return the files with the paths of their text, in the user's directory, or as recorded, relative or absolute.

    Raises:
      UnusableInputError: a text is missing, or is another one.
    """
    names, recorded = list(examples.texts), list(examples.texts.values())
    if request.text is not None:
        places = [[files.join(request.text, files.base_name(name)) for name in names]]
    else:
        places = [[path_at(directory, name) for name in names], [text.path for text in recorded]]
    for place in places:
        with ranges_beside(place[0], request.path, request.ranges) as ranges:
            if not ranges.exists(place[0]):
                continue
            sizes = ranges.sizes(place) if request.sizes else [text.size for text in recorded]
            for path, found, text in zip(place, sizes, recorded, strict=True):
                if found != text.size:
                    raise UnusableInputError(
                        f"{path}: this text has {found:,} bytes, but the examples were made of one of {text.size:,}; "
                        "fetch the text again, or make the examples again."
                    )
            if request.checksums:
                _check_sha256({path: text.sha256 for path, text in zip(place, recorded, strict=True)}, ranges)
        found_at = dict(zip(names, place, strict=True))
        return [dataclasses.replace(file, text=found_at[str(file.text)]) for file in examples.files]
    tried = ", ".join(dict.fromkeys(place[0] for place in places))
    raise UnusableInputError(
        f"{request.path}: its rows are read from text, which is not there ({tried}); say where the text shards are "
        "(text), or make the examples again."
    )


def _check_sha256(expected: Mapping[str, str | None], ranges: ByteRanges) -> None:
    """Raise UnusableInputError if the content of a file differs from its checksum; expected: by path."""
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as threads:
        digests = threads.map(ranges.sha256_of, expected)
        for (path, sha256), digest in zip(expected.items(), digests, strict=True):
            if digest != sha256:
                raise UnusableInputError(
                    f"{path}: the content of this file is not what was written (another sha256 than in the manifest); "
                    "fetch the file again, or run the command that made it again."
                )


def _open_records(request: _Request) -> DataSet:
    """Return a data set of TFRecords without a manifest."""
    ranges = request.ranges
    paths = _matching_files(request.path, ranges)
    if needs_manifest(paths[0]):
        raise UnusableInputError(
            f"{paths[0]}: only TFRecords can be read without a manifest; name the directory of the data set."
        )
    known = UNKNOWN
    vocabulary = load_known(known, NamedVocabulary(request.path, request.vocab_file, ranges), is_needed=False)
    if vocabulary is not None:
        known = dataclasses.replace(known, size=vocabulary.size, special_ids=vocabulary.special_ids)
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as threads:
        listed = [file for file in threads.map(lambda path: _counted_file(path, ranges), paths) if file.samples]
    if not listed:
        raise UnusableInputError(f"{paths[0]}: there is no example in these files; name others.")
    examples = MadeExamples(format="tfrecord", files=listed, index_sha256={}, schema=None, options={}, vocabulary=known)
    return _assembled(request, examples, None)


def _matching_files(path: str, ranges: ByteRanges) -> list[str]:
    """Return the TFRecords that a list of paths and globs names, each once, in its order."""
    paths: dict[str, None] = {}
    for pattern in (part.strip() for part in path.split(",")):
        if not pattern:
            continue
        matches = [match for match in ranges.glob(pattern) if not lies_beside(match)]
        if not matches and any(sign in pattern for sign in "*?["):
            raise UnusableInputError(f"{pattern}: no examples match; check the path.")
        if not matches:
            raise UnusableInputError(
                f"{pattern}: this is neither a data set (a directory with a manifest.json) nor a file of examples; "
                "name the directory that `maskmill examples` or a build has written, or TFRecords (a glob, too)."
            )
        paths |= dict.fromkeys(matches)
    if not paths:
        raise UnusableInputError(_NOTHING_NAMED)
    return list(paths)


def _counted_file(path: str, ranges: ByteRanges) -> DataFile:
    """Return the description of a TFRecord without a manifest."""
    index = f"{path}{INDEX_SUFFIX}" if ranges.exists(f"{path}{INDEX_SUFFIX}") else None
    size, samples = ranges.size(path), index_blocks(path, ranges, index).samples
    digest = _digest_of_ends(path, size, samples, ranges)
    return DataFile(path=path, samples=samples, size=size, sha256=None, index=index, width=0, digest=digest)


def _assembled(request: _Request, examples: MadeExamples, rules: RowMaskRules | None) -> DataSet:
    """Return the data set of some examples; rules: of masks. Files of width 0 have rows of any width."""
    known, schema = examples.vocabulary, examples.schema
    features = first_example(examples.files[0].path, request.ranges) if schema is None else {}
    width = max((file.width for file in examples.files), default=0) or _width_of(schema, features)
    size, whose = known.size, "the data set's vocabulary"
    if size is None:
        size, whose = request.vocabulary_size, "the model's vocabulary"
    limits = RowLimits(
        width=width,
        vocabulary_size=size,
        vocabulary=whose,
        segments=_MOST_SEGMENTS if schema is None else _PAIR,
        pad_id=known.special_ids.get("pad_id") or 0,
    )
    columns = columns_of_example(features, limits) if schema is None else columns_of_schema(schema, limits)
    by_feature = {column.feature: column for column in columns}
    stored = by_feature["masked_lm_positions"].width if "masked_lm_positions" in by_feature else 0
    listed = tuple(dataclasses.replace(file, width=file.width or width) for file in examples.files)
    return DataSet(
        path=request.path,
        format=examples.format,
        files=listed,
        columns=columns,
        width=width,
        fingerprint=_fingerprint(listed, columns, width, rules),
        vocabulary_size=size,
        special_ids=known.special_ids,
        packed="cu_seqlens" in by_feature,
        mask_rules=rules,
        predictions=examples.predictions if examples.is_dynamic else stored,
        duplicates=known.duplicates,
    )


def _width_of(schema: Sequence[SchemaColumn] | None, features: Mapping[str, tuple[int, str]]) -> int:
    """Return the most pieces of a row, by the columns alone."""
    lengths = {name: length for name, (length, _) in features.items()}
    lengths |= {column.name: column.length or 0 for column in schema or ()}
    of_pieces = [length for name, length in lengths.items() if name in _PIECES]
    return max(of_pieces or lengths.values(), default=0)


def _check_model(data_set: DataSet, request: _Request) -> None:
    """Raise UnusableInputError if a data set does not fit the model."""
    if request.max_seq_length is not None and data_set.width > request.max_seq_length:
        raise UnusableInputError(
            f"{request.path}: its rows have up to {data_set.width:,} pieces, but the model takes at most "
            f"{request.max_seq_length:,} (max_seq_length); make shorter examples, or choose another model."
        )
    size, of_model = data_set.vocabulary_size, request.vocabulary_size
    if size is not None and of_model is not None and size > of_model:
        raise UnusableInputError(
            f"{request.path}: its vocabulary has {size:,} ids, but the model's has only {of_model:,} "
            "(vocabulary_size); make the examples with the model's vocabulary, or choose another model."
        )


# ---- identities of data sets by their content, whatever their place and the names of their files


def _digest_of_ends(path: str, size: int, samples: int, ranges: ByteRanges) -> str:
    """Return DataFile.digest of a file without a checksum: of its size, number of samples, first and last bytes.

    To read it whole would take as long as an epoch.
    """
    ends = [(0, min(size, _END_BYTES)), (max(0, size - _END_BYTES), size)]
    parts = [f"{size}:{samples}:".encode(), *(ranges.read(path, start, end).tobytes() for start, end in ends)]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:DIGEST_DIGITS]


def _fingerprint(
    files: Sequence[DataFile], columns: Sequence[ReadColumn], width: int, mask_rules: RowMaskRules | None
) -> str:
    """Return DataSet.fingerprint, of all that decides the samples and the masks drawn for them."""
    content = {
        "files": [[file.digest, file.samples, file.width] for file in files],
        "columns": [[column.feature, column.width] for column in columns],
        "width": width,
        "masks": None if mask_rules is None else [_plain(value) for value in mask_rules],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:DIGEST_DIGITS]


def _plain(value: object) -> object:
    """Return the checksum of an array, and any other value as it is."""
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return value
