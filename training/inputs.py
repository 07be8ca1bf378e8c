"""Examples from TFRecords: which files, which features, and the batches of an evaluation set.

The batches of a training run are in training/training_input.py.
"""

import concurrent.futures
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from training.config import ModelConfig
from training.options import TrainOptions
from transforms.errors import UnusableInputError

INDEX_SUFFIX = ".idx"
# Files that lie beside the examples and are passed over: DALI's index, a manifest, the rejected documents.
_OTHER_SUFFIXES = (INDEX_SUFFIX, ".json", ".jsonl")
# Files that are examined at the same time.
READERS = 16

# Arrays of examples by feature: [B, length], or [B] for scalar features.
Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Feature:
    """A feature of an example: its length, and whether it holds floats or integers.

    Floats are float32. Integers are int64 on disk and int32 in memory. A `scalar` feature has one value an example, and
    its arrays are [B].
    """

    length: int
    is_float: bool = False
    scalar: bool = False


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
        features["segment_ids"] = Feature(sequence_length)
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
    sequence_length = options.max_seq_length or lengths.get("input_ids", 0)
    predictions = options.max_predictions_per_seq or lengths.get("masked_lm_positions", 0)
    check_sequence_length(paths[0], sequence_length, config)
    features = pretraining_features(
        sequence_length, predictions, segments=config.model_type == "bert", next_sentence=next_sentence
    )
    check_features(paths, features)
    return Examples(training=training, evaluation=evaluation, features=features)


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
            raise UnusableInputError(f"{pattern}: these examples cannot be listed ({error.message}).") from None
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
        if isinstance(error, tf.errors.OpError) or type(error).__name__ == "DecodeError":
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
                    raise UnusableInputError(
                        f"{path}: the examples have no feature {name}; this training needs {', '.join(features)}."
                    )
                if lengths[name] != feature.length:
                    raise UnusableInputError(
                        f"{path}: {name} has length {lengths[name]}, but this training needs {feature.length}; make "
                        "all examples with the same max_seq_length and max_predictions_per_seq."
                    )


def check_ids(batch: Mapping[str, np.ndarray], vocab_size: int) -> None:
    """Checks that every token id is in the model's vocabulary: some devices look up any id without an error.

    Raises:
      UnusableInputError: an id is not.
    """
    for name in ("input_ids", "masked_lm_ids"):
        if name in batch and (batch[name].max() >= vocab_size or batch[name].min() < 0):
            worst = max(batch[name].max(), batch[name].min(), key=abs)
            raise UnusableInputError(
                f"The examples' {name} contain token {worst}, but the model's vocabulary has only {vocab_size} tokens; "
                "make the examples with the model's vocabulary."
            )


def parse(records: Any, features: Mapping[str, Feature]) -> Any:
    """Serialised examples (string tensor [B]) → int32 and float32 tensors by feature: [B, length], [B] for scalars."""
    kinds = {n: tf.float32 if f.is_float else tf.int64 for n, f in features.items()}
    spec = {n: tf.io.FixedLenFeature([] if f.scalar else [f.length], kinds[n]) for n, f in features.items()}
    parsed = tf.io.parse_example(records, spec)
    return {n: v if features[n].is_float else tf.cast(v, tf.int32) for n, v in parsed.items()}


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
      UnusableInputError: there is no example, or an example cannot be read.
    """
    records = _records_of(paths)
    if limit is not None:
        records = records.take(limit)
    share = batch // hosts
    empty = True
    for arrays in explained(records.batch(batch).map(lambda r: parse(r, features)).prefetch(2), paths):
        empty = False
        count = len(next(iter(arrays.values())))
        arrays["example_weights"] = np.ones(count, np.float32)
        filled = {n: np.concatenate([v, np.zeros((batch - count, *v.shape[1:]), v.dtype)]) for n, v in arrays.items()}
        yield {n: v[share * host : share * (host + 1)] for n, v in filled.items()}
    if empty:
        raise UnusableInputError(f"{paths[0]}: the evaluation set has no example.")


def explained(batches: Any, paths: Sequence[str]) -> Iterator[Arrays]:
    """The batches of a tf.data dataset, with one sentence for an error in reading or parsing the files.

    Raises:
      UnusableInputError: a record is damaged, an example is not like the first, or a file cannot be read.
    """
    where = paths[0] if len(paths) == 1 else f"{paths[0]} or one of the {len(paths) - 1} files after it"
    try:
        yield from batches.as_numpy_iterator()
    except tf.errors.DataLossError as error:
        raise UnusableInputError(f"{where}: a record is damaged ({error.message}); make the file again.") from None
    except tf.errors.InvalidArgumentError as error:
        raise UnusableInputError(
            f"{where}: an example has other features or lengths than the first ({error.message.splitlines()[0]})."
        ) from None
    except tf.errors.OpError as error:
        raise UnusableInputError(f"{where}: the examples cannot be read ({error.message}).") from None


def _records_of(paths: Sequence[str]) -> Any:
    """A dataset of the serialised examples of files, one file after the other. `.gz` files are unpacked while read."""
    datasets = [tf.data.TFRecordDataset(p, compression_type="GZIP" if p.endswith(".gz") else "") for p in paths]
    records = datasets[0]
    for dataset in datasets[1:]:
        records = records.concatenate(dataset)
    return records
