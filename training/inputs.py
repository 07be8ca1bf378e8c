"""The examples of a run: its data sets, the features that a task needs, their allowed values, and batches.

Batches are made by maskmill/loading, the same on any number of hosts. The order of the training examples is a function
of the data, the seed and the step alone, so a run resumes where it stopped. Masks that are drawn while reading are one,
too. This imports neither TensorFlow nor Keras.
"""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from maskmill.errors import UnusableInputError
from maskmill.loading.loader import Loader
from maskmill.loading.opened_sources import OpeningOptions, Split, source_of
from maskmill.loading.options import LoaderOptions
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.reading.read_columns import Range
from maskmill.records.features import most_sequences
from training.config import ModelConfig
from training.options import TrainOptions
from training.unpadding import unpadded

# Advice for examples that lack a feature.
_REMEDIES = {
    "next_sentence_labels": " (give --next_sentence_prediction False for examples of --objective mlm or blocks)",
    "masked_lm_positions": (
        " (for examples of --dynamic_masking, name their directory: its manifest says how masks are drawn)"
    ),
}
# Arrays that a reader draws if the files lack them.
_MASKS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
# The array that separates words while masks are drawn.
_CONTINUATION_MASK = "continuation_mask"
_INT32_MAX = np.iinfo(np.int32).max
# The least number of sequences of a packed row for which arrays have room.
_FEWEST_SEQUENCES = 8
# The seed of the masks of an evaluation set, so that all runs are evaluated with the same.
_EVALUATION_SEED = 0

# The purposes of a run's examples.
Purpose = Literal["training", "evaluation"]
# Arrays of examples by feature: [B, length], or [B] for scalar features.
Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Feature:
    """An array that a task needs of each example: its length, and its allowed values.

    Arrays are int32, or float32 if `is_float`. A `scalar` feature has one value an example, and its arrays are [B]. An
    `optional` feature that a data set lacks is filled with zeros. A feature with a value for each of the `sequences` of
    a packed row has arrays [B, M], M as in ArrayMaker, or [B, M + 1] if it holds their borders.
    """

    length: int
    is_float: bool = False
    scalar: bool = False
    optional: bool = False
    sequences: bool = False
    values: Range | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Examples:
    """The examples of a run: its data sets, by purpose, and the features of their examples."""

    data_sets: Mapping[Purpose, DataSet]
    features: Mapping[str, Feature]

    @property
    def paths(self) -> list[str]:
        """The files of all data sets."""
        return [file.path for data_set in self.data_sets.values() for file in data_set.files]


def pretraining_features(
    sequence_length: int, predictions: int, *, segments: bool = True, next_sentence: bool = True, packed: bool = False
) -> dict[str, Feature]:
    """Return the features of pre-training examples (google-research/bert create_pretraining_data.py) or packed rows."""
    features = {name: Feature(sequence_length) for name in ("input_ids", "input_mask")}
    if segments:
        # Full sentences and blocks have one segment: their examples have neither labels of pairs nor segments.
        features["segment_ids"] = Feature(sequence_length, optional=not next_sentence)
    features |= {name: Feature(predictions) for name in ("masked_lm_positions", "masked_lm_ids")}
    features["masked_lm_weights"] = Feature(predictions, is_float=True)
    if next_sentence:
        features["next_sentence_labels"] = Feature(1, scalar=True)
    return _of_packed_rows(features) if packed else features


def _of_packed_rows(features: Mapping[str, Feature]) -> dict[str, Feature]:
    """Return the features of packed rows whose sequences have `features`."""
    sequences = most_sequences(features["input_ids"].length)
    packed = {**features, "cu_seqlens": Feature(sequences + 1, sequences=True)}
    if "next_sentence_labels" in features:
        packed["next_sentence_labels"] = Feature(sequences, sequences=True)
    return packed


def find_pretraining_examples(options: TrainOptions, config: ModelConfig, *, next_sentence: bool) -> Examples:
    """Return the data sets and features of a pre-training run.

    Raises:
      UnusableInputError: there is no example, or the examples do not fit the model; the message names a file.
    """
    data_sets = open_data_sets(options, config)
    first = next(iter(data_sets.values()))
    for data_set in data_sets.values():
        if data_set.packed != first.packed:
            packed, other = (first, data_set) if first.packed else (data_set, first)
            raise UnusableInputError(
                f"{packed.path} has several sequences in a row and {other.path} has one; train and evaluate with "
                "examples of one kind, all made with --pack or none."
            )
    if options.unpad and first.packed:
        raise UnusableInputError(f"{first.path} has rows without padding already; leave --unpad out.")
    sequence_length = options.max_seq_length or first.width
    predictions = options.max_predictions_per_seq or first.predictions
    check_sequence_length(first.path, sequence_length, config)
    features = pretraining_features(
        sequence_length,
        predictions,
        segments=config.has_segments,
        next_sentence=next_sentence,
        packed=first.packed,
    )
    return fitted(data_sets, with_ranges(features, config))


def open_data_sets(options: TrainOptions, config: ModelConfig) -> dict[Purpose, DataSet]:
    """Open the examples of a run, by purpose, those of training first.

    Raises:
      UnusableInputError: examples are missing, or cannot be used with the model.
    """
    data_sets: dict[Purpose, DataSet] = {}
    if options.input_file and not options.eval_only:
        data_sets["training"] = _opened(options.input_file, "train", options, config)
    if options.eval_file:
        data_sets["evaluation"] = _opened(options.eval_file, "eval", options, config)
    return data_sets


def _opened(paths: Sequence[str], split: Split, options: TrainOptions, config: ModelConfig) -> DataSet:
    path = ",".join(paths)
    opening = OpeningOptions(
        split=split, vocab_file=options.vocab_file or options.tokenizer_file, vocabulary_size=config.vocab_size
    )
    return opening.data_set(path, opening.ranges(path))


def with_ranges(features: Mapping[str, Feature], config: ModelConfig, *, num_labels: int = 2) -> dict[str, Feature]:
    """Return the features with their allowed values in a model.

    Some devices look up invalid ids without an error, so examples are checked against these ranges when they are read.
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
        "query_ids": below(_INT32_MAX, "queries have numbers of 31 bits"),
        "cu_seqlens": below(length + 1, f"a row has {length} tokens"),
    }
    return {name: dataclasses.replace(feature, values=ranges[name]) for name, feature in features.items()}


def check_sequence_length(path: str, length: int, config: ModelConfig) -> None:
    """Check that the model has a position for each token of a sequence.

    Raises:
      UnusableInputError: the sequences are longer; the message names the file.
    """
    if length > config.max_position_embeddings:
        raise UnusableInputError(
            f"{path}: the sequences are {length} tokens long, but the model has only "
            f"{config.max_position_embeddings} positions (max_position_embeddings)."
        )


def fitted(data_sets: Mapping[Purpose, DataSet], features: Mapping[str, Feature]) -> Examples:
    """Return the data sets with the columns that a task needs, each with the values that the model allows.

    Raises:
      UnusableInputError: a data set lacks a feature, or a feature has another length.
    """
    return Examples(data_sets={n: _fitted(data_set, features) for n, data_set in data_sets.items()}, features=features)


def _fitted(data_set: DataSet, features: Mapping[str, Feature]) -> DataSet:
    _check_features(data_set, features)
    draws_masks = data_set.mask_rules is not None and _MASKS[0] in features
    read = [
        _within(column, features[column.feature]) if column.feature in features else column
        for column in data_set.columns
        if column.feature in features or (draws_masks and column.feature == _CONTINUATION_MASK)
    ]
    return dataclasses.replace(data_set, columns=tuple(read), mask_rules=data_set.mask_rules if draws_masks else None)


def _check_features(data_set: DataSet, features: Mapping[str, Feature]) -> None:
    """Compare the arrays of a data set with the features that a task needs."""
    columns = {column.feature: column for column in data_set.columns}
    # Arrays that are made while reading: masks, and input_mask for files with rows without padding.
    made = dict.fromkeys(_MASKS, data_set.predictions) if data_set.mask_rules is not None else {}
    if "input_ids" in columns and columns["input_ids"].varies:
        made["input_mask"] = data_set.width
    for name, feature in features.items():
        column = columns.get(name)
        if column is None and name not in made:
            if feature.optional:
                continue
            raise UnusableInputError(
                f"{data_set.path}: the examples have no feature {name}; this training needs {', '.join(features)}"
                f"{_REMEDIES.get(name, '')}."
            )
        length = made[name] if column is None else column.width
        if length != feature.length:
            raise UnusableInputError(
                f"{data_set.path}: {name} has length {length}, but this training needs {feature.length}; make all "
                "examples with the same max_seq_length and max_predictions_per_seq."
            )
        if column is not None and (column.dtype.kind == "f") != feature.is_float:
            kinds = "floats" if feature.is_float else "integers"
            raise UnusableInputError(f"{data_set.path}: {name} must be {kinds}; make the examples again.")


def _within(column: ReadColumn, feature: Feature) -> ReadColumn:
    """Return the column with the allowed values of a feature, or its own ones if these are fewer."""
    column = dataclasses.replace(column, optional=feature.optional)
    allowed = feature.values
    if allowed is None or (column.high is not None and column.high < allowed.high):
        return column
    return dataclasses.replace(column, low=allowed.low, high=allowed.high, meaning=allowed.meaning)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingInput:
    """The batches of a training run.

    A batch of all hosts has `batch` examples, with their `features`. The seed determines the order and the masks that
    are drawn while reading. `shuffle_buffer` examples are shuffled among each other; without `shuffle` they are in file
    order. This host is number `host` of `hosts`, from 0. With `unpad`, examples are put into rows without padding,
    whose number is a multiple of it.

    Raises:
      UnusableInputError: the batch is not a multiple of the number of hosts.
    """

    data_set: DataSet
    features: Mapping[str, Feature]
    batch: int
    seed: int = 0
    shuffle: bool = True
    shuffle_buffer: int = 16384
    host: int = 0
    hosts: int = 1
    unpad: int | None = None

    def __post_init__(self) -> None:
        if self.batch % self.hosts:
            raise UnusableInputError(
                f"The batch of {self.batch} examples cannot be shared evenly by {self.hosts} hosts; choose a multiple."
            )

    def __call__(self, step: int) -> "TrainingBatches":
        """Return this host's batches after the first `step` ones, without end.

        A batch at the end of an epoch is filled up with the first examples of the next.
        """
        options = LoaderOptions(
            batch_size=self.batch,
            seed=self.seed,
            shuffle=self.shuffle,
            window=self.shuffle_buffer,
            rank=self.host,
            ranks=self.hosts,
            tail="carry",
        )
        loader = _loader(self.data_set, options)
        loader.load_state_dict(loader.state_after(step))
        return TrainingBatches(loader, ArrayMaker(self.features, self.hosts, self.unpad))


class TrainingBatches(Iterator[Arrays]):
    """Batches of a training run, arrays [batch / hosts, …], which a thread prepares in advance."""

    def __init__(self, loader: Loader, arrays: "ArrayMaker") -> None:
        """Take the loader's batches from its position, and close the loader in the end."""
        self._loader = loader
        self._batches = loader.endless()
        self._arrays = arrays

    @property
    def is_ready(self) -> bool:
        """True if the next batch is ready, so that `next` does not wait."""
        return self._batches.is_ready

    def __next__(self) -> Arrays:
        """Return the next batch.

        Raises:
          UnusableInputError: an example cannot be read or used.
        """
        return self._arrays(next(self._batches))

    def close(self) -> None:
        """End the thread; close files and connections."""
        self._loader.close()


class EvaluationInput:
    """The batches of an evaluation set, at most `max_batches`, in file order; see TrainingInput."""

    def __init__(
        self,
        data_set: DataSet,
        features: Mapping[str, Feature],
        *,
        batch: int,
        max_batches: int | None = None,
        host: int = 0,
        hosts: int = 1,
    ) -> None:
        self._arrays = ArrayMaker(features, hosts)
        self._max_batches = max_batches
        options = LoaderOptions(
            batch_size=batch, seed=_EVALUATION_SEED, shuffle=False, rank=host, ranks=hosts, tail="pad"
        )
        self._loader = _loader(data_set, options)
        self._start = self._loader.state_dict()

    def __call__(self) -> Iterator[Arrays]:
        """Yield this host's share of each batch: arrays [batch / hosts, …].

        The last batch is padded with zeros. `example_weights` (float32 [batch / hosts]) is 1 for an example and 0 for
        padding.

        Raises:
          UnusableInputError: an example cannot be read or used.
        """
        self._loader.load_state_dict(self._start)
        with contextlib.closing(iter(self._loader)) as batches:
            for batch in itertools.islice(batches, self._max_batches):
                yield self._arrays(batch) | {"example_weights": batch["sample_weights"]}


def _loader(data_set: DataSet, options: LoaderOptions) -> Loader:
    return Loader([source_of(data_set, OpeningOptions())], options)


class ArrayMaker:
    """Makes a task's arrays from a loader's batches: [B, …], and [B] for scalar features.

    Packed rows have room for far more sequences than they contain. Their arrays have room for the most of any row so
    far, rounded up to a power of two, because a new shape makes a step compile again. With several `hosts`, none knows
    the rows of the others, so their arrays keep all the room.

    With `unpad`, rows of one example become packed ones; see TrainingInput.
    """

    def __init__(self, features: Mapping[str, Feature], hosts: int, unpad: int | None = None) -> None:
        self._width = features["input_ids"].length
        self._features = features if unpad is None else _of_packed_rows(features)
        self._hosts = hosts
        self._unpad = unpad
        self._sequences = _FEWEST_SEQUENCES

    def __call__(self, batch: Mapping[str, np.ndarray]) -> Arrays:
        """Return the arrays of a batch."""
        if self._unpad is not None:
            batch = unpadded(dict(batch), self._width, self._unpad)
        if (ends := batch.get("cu_seqlens")) is not None:
            most = int((ends[:, 1:] > ends[:, :-1]).sum(axis=1).max())
            while self._sequences < most or (self._hosts > 1 and self._sequences < ends.shape[1]):
                self._sequences *= 2
        return {name: self._array(name, feature, batch) for name, feature in self._features.items()}

    def _array(self, name: str, feature: Feature, batch: Mapping[str, np.ndarray]) -> np.ndarray:
        if name not in batch and feature.optional:
            return np.zeros_like(batch["input_ids"])
        if feature.sequences:
            return batch[name][:, : self._sequences + (name == "cu_seqlens")]
        return batch[name].reshape(-1) if feature.scalar else batch[name]
