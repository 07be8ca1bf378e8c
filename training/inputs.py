"""Examples from TFRecords: which files, which features, and the batches of an evaluation set.

The batches of a training run are in training/training_input.py.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from training.config import ModelConfig
from training.options import TrainOptions
from transforms.errors import UnusableInputError

INDEX_SUFFIX = ".idx"
# Files that lie beside the examples and are passed over: DALI's index, a manifest, the rejected documents.
_OTHER_SUFFIXES = (INDEX_SUFFIX, ".json", ".jsonl")
# The feature that tells packed rows.
PACKED = "cu_seqlens"
# Files that are examined at the same time.
READERS = 16
# int32's largest number stands for numbers that it cannot hold.
_INT32 = np.iinfo(np.int32)
# How many records are searched for one that cannot be used, so that its file and number can be named.
_SEARCHED_RECORDS = 1 << 20
_SEARCHED_TOGETHER = 1024

# What to do where examples lack a feature.
_REMEDIES = {
    "next_sentence_labels": " (give --next_sentence_prediction False for examples of --objective mlm or blocks)",
    "masked_lm_positions": " (store masks: make the examples without --dynamic_masking)",
    "input_ids": " (make the examples with --feature_names google)",
}

# Arrays of examples by feature: [B, length], or [B] for scalar features.
Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a feature may have, from `low` to `high`, and their `meaning`: it must be …"""

    low: float
    high: float
    meaning: str


@dataclasses.dataclass(frozen=True)
class Feature:
    """A feature of an example: its length, whether it holds floats or integers, and the values that it may have.

    Floats are float32. Integers are int64 on disk and int32 in memory; what int32 cannot hold becomes its largest or
    smallest number, which is in no range. A `scalar` feature has one value an example, and its arrays are [B]. An
    `optional` feature that an example lacks is zeros.
    """

    length: int
    is_float: bool = False
    scalar: bool = False
    optional: bool = False
    values: Range | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Examples:
    """The files of a run and the features of their examples."""

    training: Sequence[str]
    evaluation: Sequence[str]
    features: Mapping[str, Feature]


def pretraining_features(
    sequence_length: int, predictions: int, *, segments: bool = True, next_sentence: bool = True
) -> dict[str, Feature]:
    """The features of a pre-training example (google-research/bert create_pretraining_data.py)."""
    features = {name: Feature(sequence_length) for name in ("input_ids", "input_mask")}
    if segments:
        # Full sentences and blocks have one segment: their examples have neither labels of pairs nor segments.
        features["segment_ids"] = Feature(sequence_length, optional=not next_sentence)
    features |= {name: Feature(predictions) for name in ("masked_lm_positions", "masked_lm_ids")}
    features["masked_lm_weights"] = Feature(predictions, is_float=True)
    if next_sentence:
        features["next_sentence_labels"] = Feature(1, scalar=True)
    return features


def find_pretraining_examples(options: TrainOptions, config: ModelConfig, *, next_sentence: bool) -> Examples:
    """The files and features of a pre-training run.

    Raises:
      UnusableInputError: there is no example, or the examples do not fit the model; the message names a file.
    """
    training = [] if options.eval_only or not options.input_file else find_files(",".join(options.input_file))
    evaluation = find_files(",".join(options.eval_file)) if options.eval_file else []
    paths = [*training, *evaluation]
    lengths = first_example_lengths(paths)
    if not lengths:
        raise UnusableInputError(f"{paths[0]}: there is no example in these files.")
    if PACKED in lengths:
        raise UnusableInputError(
            f"{paths[0]}: several sequences are packed into each row, and this training's attention would go across "
            "them; make the examples without --pack."
        )
    sequence_length = options.max_seq_length or lengths.get("input_ids", 0)
    predictions = options.max_predictions_per_seq or lengths.get("masked_lm_positions", 0)
    check_sequence_length(paths[0], sequence_length, config)
    features = pretraining_features(
        sequence_length, predictions, segments=config.model_type == "bert", next_sentence=next_sentence
    )
    check_features(paths, features)
    return Examples(training=training, evaluation=evaluation, features=with_ranges(features, config))


def with_ranges(features: Mapping[str, Feature], config: ModelConfig, *, num_labels: int = 2) -> dict[str, Feature]:
    """The features with the values that they may have in a model.

    Some devices look up any id without an error, so batches are held against these ranges when they are read.
    """
    length = features["input_ids"].length

    def below(count: int, why: str) -> Range:
        return Range(0, count - 1, f"from 0 to {count - 1}: {why}")

    vocabulary = f"the model's vocabulary has only {config.vocab_size} tokens"
    tokens = below(config.vocab_size, f"{vocabulary}; make the examples with the model's vocabulary")
    segments = f"the model has {config.type_vocab_size} segments (type_vocab_size)"
    ranges = {
        "input_ids": tokens,
        "masked_lm_ids": tokens,
        "input_mask": below(2, "1 marks a token, and 0 what fills an example up"),
        "segment_ids": below(config.type_vocab_size, segments),
        "masked_lm_positions": below(length, f"an example has {length} tokens"),
        "masked_lm_weights": Range(0, float(np.finfo(np.float32).max), "a number that is not negative"),
        "next_sentence_labels": below(2, "0 means the next sentence, and 1 a random one"),
        "label_ids": below(num_labels, f"--num_labels is {num_labels}, and labels count from 0"),
        "query_ids": below(int(_INT32.max), "queries have numbers of 31 bits"),
    }
    return {name: dataclasses.replace(feature, values=ranges[name]) for name, feature in features.items()}


def find_files(patterns: str) -> list[str]:
    """The TFRecords that match comma-separated globs, local or on an object store, without the indexes beside them.

    Raises:
      UnusableInputError: a pattern matches no file.
    """
    paths: dict[str, None] = {}
    for pattern in (p.strip() for p in patterns.split(",")):
        if not pattern:
            continue
        try:
            matches = sorted(tf.io.gfile.glob(os.path.expanduser(pattern)))
        except tf.errors.OpError as error:
            reason = " ".join(str(error.message).split())
            raise UnusableInputError(f"{pattern}: these examples cannot be listed ({reason}).") from None
        matches = [p for p in matches if not p.endswith(_OTHER_SUFFIXES) and not tf.io.gfile.isdir(p)]
        if not matches:
            raise UnusableInputError(f"{pattern}: no examples match; check the path.")
        paths |= dict.fromkeys(matches)
    if not paths:
        raise UnusableInputError("No examples were named: give TFRecords, a glob or a comma list of them.")
    return list(paths)


def example_lengths(path: str) -> dict[str, int]:
    """The lengths of the features of a file's first example, by name; empty for a file without examples.

    Raises:
      UnusableInputError: the file is missing, or no TFRecord of examples.
    """
    try:
        for record in _records_of([path]).take(1).as_numpy_iterator():
            example = tf.train.Example.FromString(record)
            return {
                name: len(getattr(value, value.WhichOneof("kind")).value) if value.WhichOneof("kind") else 0
                for name, value in example.features.feature.items()
            }
    except tf.errors.NotFoundError:
        raise UnusableInputError(f"{path}: this file does not exist.") from None
    except Exception as error:
        # A wrong file fails at its checksum, in gzip or in the message, each with another exception.
        if isinstance(error, tf.errors.OpError | DecodeError):
            raise UnusableInputError(f"{path}: this is no TFRecord of examples.") from None
        raise
    return {}


def first_example_lengths(paths: Sequence[str]) -> dict[str, int]:
    """As `example_lengths`, of the first file that has an example; empty if none has.

    Raises:
      UnusableInputError: a file is missing, or no TFRecord of examples.
    """
    return next((lengths for lengths in map(example_lengths, paths) if lengths), {})


def check_sequence_length(path: str, length: int, config: ModelConfig) -> None:
    """Checks that the model has a position for each token of a sequence.

    Raises:
      UnusableInputError: the sequences are longer; the message names the file.
    """
    if length > config.max_position_embeddings:
        raise UnusableInputError(
            f"{path}: the sequences are {length} tokens long, but the model has only "
            f"{config.max_position_embeddings} positions (max_position_embeddings)."
        )


def check_features(paths: Sequence[str], features: Mapping[str, Feature]) -> None:
    """Compares the first example of each file with the features that the model needs.

    Raises:
      UnusableInputError: a feature is missing or has another length; the message names the file.
    """
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        for path, lengths in zip(paths, pool.map(example_lengths, paths), strict=True):
            if not lengths:
                continue
            for name, feature in features.items():
                if name not in lengths:
                    if feature.optional:
                        continue
                    raise UnusableInputError(
                        f"{path}: the examples have no feature {name}; this training needs {', '.join(features)}"
                        f"{_REMEDIES.get(name, '')}."
                    )
                if lengths[name] != feature.length:
                    raise UnusableInputError(
                        f"{path}: {name} has length {lengths[name]}, but this training needs {feature.length}; make "
                        "all examples with the same max_seq_length and max_predictions_per_seq."
                    )


def parse(records: Any, features: Mapping[str, Feature]) -> Any:
    """Serialised examples (string tensor [B]) → int32 and float32 tensors by feature: [B, length], [B] for scalars."""
    kinds = {n: tf.float32 if f.is_float else tf.int64 for n, f in features.items()}
    spec = {
        n: tf.io.FixedLenFeature(
            [] if f.scalar else [f.length], kinds[n], default_value=[0] * f.length if f.optional else None
        )
        for n, f in features.items()
    }
    parsed = tf.io.parse_example(records, spec)
    return {n: v if features[n].is_float else _as_int32(v) for n, v in parsed.items()}


def _as_int32(values: Any) -> Any:
    """An int64 tensor → int32. Without the clip, a number that int32 cannot hold would become any other."""
    return tf.cast(tf.clip_by_value(values, np.int64(_INT32.min), np.int64(_INT32.max)), tf.int32)


def evaluation_batches(
    paths: Sequence[str],
    features: Mapping[str, Feature],
    *,
    batch: int,
    limit: int | None = None,
    host: int = 0,
    hosts: int = 1,
) -> Iterator[Arrays]:
    """This host's share of each batch of an evaluation set, in file order: arrays [batch / hosts, …].

    The last batch is filled up with zeros. `example_weights` (float32 [batch / hosts]) is 1 for an example and 0 for
    what fills up.

    Args:
      paths: TFRecords, also `.gz`.
      features: the features to read.
      batch: examples in a batch of all hosts.
      limit: the largest number of examples to read.
      host: the number of this host, from 0.
      hosts: the number of hosts.

    Raises:
      UnusableInputError: there is no example, or an example cannot be read or used.
    """
    records = _records_of(paths)
    if limit is not None:
        records = records.take(limit)
    share = batch // hosts
    empty = True
    for arrays in checked(records.batch(batch).map(lambda r: parse(r, features)).prefetch(2), paths, features):
        empty = False
        count = len(next(iter(arrays.values())))
        arrays["example_weights"] = np.ones(count, np.float32)
        filled = {n: np.concatenate([v, np.zeros((batch - count, *v.shape[1:]), v.dtype)]) for n, v in arrays.items()}
        yield {n: v[share * host : share * (host + 1)] for n, v in filled.items()}
    if empty:
        raise UnusableInputError(f"{paths[0]}: the evaluation set has no example.")


def checked(
    batches: Any, paths: Sequence[str], features: Mapping[str, Feature], *, names: Sequence[str] | None = None
) -> Iterator[Arrays]:
    """The batches of a tf.data dataset, each held against the values that its features may have.

    Args:
      batches: a dataset of arrays by feature.
      paths: the files that it reads.
      features: the features that it reads.
      names: what the user calls the files, if not by their paths.

    Raises:
      UnusableInputError: a record is damaged, lacks a feature or has a value that the model cannot take, or a file
        cannot be read. The message names file, record, feature and value.
    """
    names = paths if names is None else names
    where = names[0] if len(names) == 1 else f"{names[0]} or one of the {len(names) - 1} files after it"
    try:
        for arrays in batches.as_numpy_iterator():
            for name, feature in features.items():
                if wrong := _wrong_value(name, arrays[name], feature.values):
                    _fail(paths, features, names, f"{where}: {wrong}")
            yield arrays
    except tf.errors.DataLossError as error:
        raise UnusableInputError(f"{where}: a record is damaged ({error.message}); make the file again.") from None
    except tf.errors.InvalidArgumentError as error:
        reason = error.message.splitlines()[0]
        _fail(paths, features, names, f"{where}: an example has other features or lengths than the first ({reason}).")
    except tf.errors.OpError as error:
        raise UnusableInputError(f"{where}: the examples cannot be read ({error.message}).") from None


def _wrong_value(name: str, array: np.ndarray, allowed: Range | None) -> str | None:
    """What is wrong with the first value of an array that a feature may not have; None if all values are allowed."""
    # A comparison with NaN is false. Minimum and maximum are much faster than a comparison of each value.
    if allowed is None or not array.size or (array.min() >= allowed.low and array.max() <= allowed.high):
        return None
    worst = array[~((array >= allowed.low) & (array <= allowed.high))].flat[0].item()
    return f"{name} is {worst}, but it must be {allowed.meaning}."


def _fail(paths: Sequence[str], features: Mapping[str, Feature], names: Sequence[str], otherwise: str) -> NoReturn:
    """Searches the files for the first record that cannot be used.

    Raises:
      UnusableInputError: always; with the sentence `otherwise` if there is no such record among the first million.
    """
    searched = 0
    # A damaged record that comes first ends the search.
    with contextlib.suppress(tf.errors.OpError):
        for path, name in zip(paths, names, strict=True):
            number = 0
            for batch in _records_of([path]).batch(_SEARCHED_TOGETHER).as_numpy_iterator():
                if _problem_of_batch(batch, features):
                    for place, record in enumerate(batch, number + 1):
                        if problem := _problem(record, features):
                            raise UnusableInputError(f"{name}, record {place}: {problem}")
                number += len(batch)
                searched += len(batch)
                if searched >= _SEARCHED_RECORDS:
                    raise UnusableInputError(otherwise)
    raise UnusableInputError(otherwise)


def _problem_of_batch(records: np.ndarray, features: Mapping[str, Feature]) -> bool:
    """Whether one of some serialised examples (bytes [B]) cannot be used."""
    try:
        arrays = parse(records, features)
    except tf.errors.InvalidArgumentError:
        return True
    return any(_wrong_value(name, arrays[name].numpy(), feature.values) for name, feature in features.items())


def _problem(record: bytes, features: Mapping[str, Feature]) -> str | None:
    """What is wrong with a serialised example, as a sentence without the place; None if nothing is."""
    try:
        stored = tf.train.Example.FromString(record).features.feature
    except DecodeError:
        return "this is no example (tf.train.Example)."
    for name, feature in features.items():
        kind = "float_list" if feature.is_float else "int64_list"
        if name not in stored:
            if feature.optional:
                continue
            return f"the feature {name} is missing."
        if stored[name].WhichOneof("kind") != kind:
            return f"{name} must be {'floats' if feature.is_float else 'integers'} (a {kind})."
        values = np.array(getattr(stored[name], kind).value)
        if len(values) != feature.length:
            return f"{name} has length {len(values)}, but this training needs {feature.length}."
        if wrong := _wrong_value(name, values, feature.values):
            return wrong
    return None


def _records_of(paths: Sequence[str]) -> Any:
    """A dataset of the serialised examples of files, one file after the other. `.gz` files are unpacked while read."""
    datasets = [tf.data.TFRecordDataset(p, compression_type="GZIP" if p.endswith(".gz") else "") for p in paths]
    records = datasets[0]
    for dataset in datasets[1:]:
        records = records.concatenate(dataset)
    return records
