"""Examples from TFRecords, in an order that is a function of the seed and the step, so that a run resumes where it was.

The examples of all files are cut into blocks of neighbours. In each epoch the blocks' order is drawn anew; the blocks
are dealt to lanes, and each lane shuffles the examples of a window of its blocks. A global batch takes the same number
of examples from each lane, and each host reads its own lanes: nothing is read twice, and the batches are the same
on any number of hosts. Every example comes once in each epoch of its lane.
"""

import atexit
import concurrent.futures
import dataclasses
import gzip
import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from transforms.errors import UnusableInputError

INDEX_SUFFIX = ".idx"
# A record of a TFRecord file is its length (8 bytes), a checksum (4), its bytes, and a checksum (4).
_HEAD, _FRAME = 12, 16
_BLOCK_EXAMPLES = 64
_LANES = 16

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Feature:
    """A feature of an example: its length, and whether it holds floats (float32) or integers (int64 on disk).

    Integers are int32 in memory. A feature with `scalar` has one value an example, and its arrays are [B].
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


def find_files(patterns: str) -> list[str]:
    """The TFRecords that comma-separated globs name, local or on an object store, without the indexes beside them.

    Raises:
      UnusableInputError: a pattern matches no file.
    """
    found: dict[str, None] = {}
    for pattern in (p.strip() for p in patterns.split(",")):
        if not pattern:
            continue
        try:
            paths = sorted(tf.io.gfile.glob(os.path.expanduser(pattern)))
        except tf.errors.OpError as error:
            raise UnusableInputError(f"{pattern}: these examples cannot be listed ({error.message}).") from None
        paths = [p for p in paths if not p.endswith((INDEX_SUFFIX, ".json", ".jsonl"))]
        paths = [p for p in paths if not tf.io.gfile.isdir(p)]
        if not paths:
            raise UnusableInputError(f"{pattern}: no examples match; check the path.")
        found |= dict.fromkeys(paths)
    if not found:
        raise UnusableInputError("No examples were named: give TFRecords, a glob or a comma list of them.")
    return list(found)


def example_lengths(path: str) -> dict[str, int]:
    """The features of a file's first example and their lengths; empty for a file without examples.

    Raises:
      UnusableInputError: the file is no TFRecord of examples.
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
        # What a wrong file raises depends on where its bytes first go wrong: the checksum, gzip, or the message.
        if isinstance(error, tf.errors.OpError) or type(error).__name__ == "DecodeError":
            raise UnusableInputError(f"{path}: this is no TFRecord of examples.") from None
        raise
    return {}


def check_features(paths: Sequence[str], features: Mapping[str, Feature]) -> None:
    """Compares the first example of each file with what the model needs.

    Raises:
      UnusableInputError: a feature is missing or has another length; the sentence names the file.
    """
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
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
                        f"{path}: {name} has length {lengths[name]}, and {feature.length} is needed; all examples must "
                        "be made with the same max_seq_length and max_predictions_per_seq as this training."
                    )


def _records_of(paths: Sequence[str]) -> Any:
    """The serialised examples of files, one after the other; `.gz` files are unpacked on the way."""
    datasets = [tf.data.TFRecordDataset(p, compression_type="GZIP" if p.endswith(".gz") else "") for p in paths]
    records = datasets[0]
    for dataset in datasets[1:]:
        records = records.concatenate(dataset)
    return records


def _parse(records: Any, features: Mapping[str, Feature]) -> Arrays:
    """Serialised examples [B] → arrays: [B, length], or [B] for scalars; int32 and float32."""
    kinds = {n: tf.float32 if f.is_float else tf.int64 for n, f in features.items()}
    spec = {n: tf.io.FixedLenFeature([] if f.scalar else [f.length], kinds[n]) for n, f in features.items()}
    parsed = tf.io.parse_example(records, spec)
    return {n: v if features[n].is_float else tf.cast(v, tf.int32) for n, v in parsed.items()}


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Runs of neighbouring records: `file` (in `paths`), byte `offset` of the first, `count`; int64 [N] each."""

    paths: tuple[str, ...]
    file: np.ndarray
    offset: np.ndarray
    count: np.ndarray

    @property
    def total(self) -> int:
        """The number of examples."""
        return int(self.count.sum())


def record_offsets(path: str) -> np.ndarray:
    """The byte offset of each record (int64): from the index beside the file where it fits, else from the file."""
    size = tf.io.gfile.stat(path).length
    index = path + INDEX_SUFFIX
    if tf.io.gfile.exists(index):
        with tf.io.gfile.GFile(index, "rb") as file:
            values = np.array(file.read().split(), np.int64).reshape(-1, 2)
        # An index of another version of the file would give garbage: both must end at the same byte.
        if int(values[-1].sum() if len(values) else 0) == size:
            return values[:, 0]
    offsets = []
    with tf.io.gfile.GFile(path, "rb") as file:
        at = 0
        while at < size:
            offsets.append(at)
            file.seek(at)
            head = file.read(_HEAD)
            at += _FRAME + int.from_bytes(head[:8], "little")
            if len(head) < _HEAD or at > size:
                raise UnusableInputError(f"{path}: this TFRecord is cut off after {len(offsets) - 1} examples.")
    return np.array(offsets, np.int64)


def find_blocks(paths: Sequence[str]) -> Blocks:
    """Cuts files into blocks. `.gz` files, which cannot be read from the middle, are unpacked to a temporary directory.

    Raises:
      UnusableInputError: there is no example in any file, or a file is cut off.
    """
    paths = _unpacked(paths)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        offsets = list(pool.map(record_offsets, paths))
    total = sum(map(len, offsets))
    if not total:
        raise UnusableInputError(f"{paths[0]}: there is no example in the training files.")
    # Small data gets small blocks, so that each lane has several.
    size = max(1, min(_BLOCK_EXAMPLES, total // (8 * _LANES)))
    starts = [np.arange(0, len(o), size) for o in offsets]
    return Blocks(
        paths=tuple(paths),
        file=np.repeat(np.arange(len(paths)), [len(s) for s in starts]),
        offset=np.concatenate([o[s] for o, s in zip(offsets, starts, strict=True)]),
        count=np.concatenate([np.minimum(size, len(o) - s) for o, s in zip(offsets, starts, strict=True)]),
    )


def fingerprint(blocks: Blocks) -> str:
    """Tells data sets apart: a digest of where the blocks are, in which file of how many. File names do not count."""
    digest = hashlib.sha256(f"{len(blocks.paths)}".encode())
    for array in (blocks.file, blocks.offset, blocks.count):
        digest.update(np.ascontiguousarray(array, np.int64).tobytes())
    return digest.hexdigest()[:16]


def _unpacked(paths: Sequence[str]) -> list[str]:
    if not any(p.endswith(".gz") for p in paths):
        return list(paths)
    directory = tempfile.mkdtemp(prefix="maskmill-examples-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    out = []
    for i, path in enumerate(paths):
        if path.endswith(".gz"):
            out.append(os.path.join(directory, f"{i:05d}.tfrecord"))
            with tf.io.gfile.GFile(path, "rb") as packed, open(out[-1], "wb") as file:
                shutil.copyfileobj(gzip.GzipFile(fileobj=packed), file, 1 << 20)
        else:
            out.append(path)
    return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingInput:
    """The batches of a training run.

    `batch` counts the examples of all hosts. With `shuffle` off the examples come in file order.

    Raises:
      UnusableInputError: the batch cannot be shared evenly by the hosts.
    """

    blocks: Blocks
    features: Mapping[str, Feature]
    batch: int
    seed: int = 0
    shuffle: bool = True
    shuffle_buffer: int = 16384
    host: int = 0
    hosts: int = 1

    def __post_init__(self) -> None:
        if self.batch % self.hosts:
            raise UnusableInputError(
                f"The batch of {self.batch} examples cannot be shared evenly by {self.hosts} hosts."
            )

    @property
    def lanes(self) -> int:
        """How many streams make up the global batch: 16 where the batch and the hosts allow."""
        if not self.shuffle:
            return 1
        lanes = math.gcd(self.batch, _LANES)
        return lanes if lanes % self.hosts == 0 else self.hosts

    def __call__(self, step: int) -> Iterator[Arrays]:
        """This host's batches from the one after `step` batches on, without end: arrays [batch / hosts, …]."""
        rows = self.batch // self.lanes
        mine = range(self.lanes * self.host // self.hosts, self.lanes * (self.host + 1) // self.hosts)
        if self.shuffle:
            # `rows` examples of each lane in turn make a batch.
            lanes = self._lanes(mine, step * rows)
            records = lanes.interleave(self._lane, cycle_length=len(mine), block_length=rows).batch(rows * len(mine))
        else:
            share = self.batch // self.hosts
            part = slice(share * self.host, share * (self.host + 1))
            records = self._lanes(range(1), step * rows).flat_map(self._lane).batch(rows).map(lambda batch: batch[part])
        batches = records.map(lambda r: _parse(r, self.features), num_parallel_calls=tf.data.AUTOTUNE)
        return _explained(batches.prefetch(4), self.blocks.paths)

    @property
    def _window(self) -> int:
        """How many blocks of a lane are shuffled together."""
        return max(1, self.shuffle_buffer // self.lanes // int(self.blocks.count.max()))

    def _lanes(self, lanes: range, start: int) -> Any:
        """(lane, epoch, window, example): where the `start`th example of each lane is."""
        places = [(lane, *self._place(lane, start, self._window)) for lane in lanes]
        return tf.data.Dataset.from_tensor_slices(tuple(np.array(places, np.int64).T))

    def _lane(self, lane: Any, epoch: Any, window: Any, examples: Any) -> Any:
        """The serialised examples of a lane from a place on; no Python runs in TensorFlow's threads."""
        size = self._window
        blocks = {name: tf.constant(getattr(self.blocks, name)) for name in ("file", "offset", "count")}
        paths = tf.constant(self.blocks.paths)

        def windows(epoch: Any) -> Any:
            chosen = self._epoch(epoch, lane)
            chosen = tf.data.Dataset.from_tensor_slices(chosen).batch(size)
            return chosen.enumerate().map(lambda number, window: (epoch, number, window))

        def read(epoch: Any, number: Any, window: Any) -> Any:
            part = {name: tf.gather(values, window) for name, values in blocks.items()}
            found = tf.data.Dataset.from_tensor_slices((tf.gather(paths, part["file"]), part["offset"], part["count"]))
            records = found.interleave(
                _read_block, cycle_length=8 if self.shuffle else 1, num_parallel_calls=tf.data.AUTOTUNE
            )
            records = records.batch(tf.reduce_sum(part["count"]))
            if self.shuffle:
                # The seed tells this window apart by its place in the epoch, resumed or not.
                seed = tf.stack([self.seed * _LANES + lane + 1, epoch * 2**32 + number])
                records = records.map(lambda r: tf.random.experimental.stateless_shuffle(r, seed))
            return records

        described = tf.data.Dataset.counter(epoch).flat_map(windows).skip(window)
        # One window is read while the one before is used.
        return described.flat_map(read).prefetch(1).unbatch().skip(examples)

    def _epoch(self, epoch: Any, lane: Any) -> Any:
        """The blocks of a lane in an epoch, in order; there may be none in this one."""
        count = len(self.blocks.count)
        blocks = tf.range(count, dtype=tf.int64)
        if self.shuffle:
            blocks = tf.random.experimental.stateless_shuffle(blocks, tf.stack([np.int64(self.seed), epoch]))
        # Dealing goes on from epoch to epoch, so that each lane has its turn where there are fewer blocks than lanes.
        return blocks[(lane - epoch * count) % self.lanes :: self.lanes]

    def _place(self, lane: int, start: int, size: int) -> tuple[int, int, int]:
        """Where a lane's `start`th example is: the epoch, the window of `size` blocks in it, the example in that."""
        epoch = 0
        while True:
            ends = np.cumsum(self.blocks.count[self._epoch(np.int64(epoch), lane).numpy()])
            if len(ends) and start < ends[-1]:
                ends = np.append(ends[size - 1 : -1 : size], ends[-1])
                window = int(np.searchsorted(ends, start, side="right"))
                return epoch, window, start - int(ends[window - 1] if window else 0)
            start -= int(ends[-1]) if len(ends) else 0
            epoch += 1


def _read_block(path: Any, offset: Any, count: Any) -> Any:
    # tf.data.TFRecordDataset does not show its kernel's byte offsets.
    block = tf.raw_ops.TFRecordDatasetV2(
        filenames=[path], compression_type="", buffer_size=256 << 10, byte_offsets=[offset], metadata=""
    )
    return tf.data.experimental.from_variant(block, tf.TensorSpec([], tf.string)).take(count)


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

    `example_weights` (float32 [batch / hosts]) is 0 for the zeros that fill up the last batch.

    Args:
      paths: TFRecords, `.gz` ones too.
      features: what to read.
      batch: examples in a batch, of all hosts.
      limit: the largest number of examples to take.
      host: which host this is.
      hosts: how many there are.

    Raises:
      UnusableInputError: there is no example.
    """
    records = _records_of(paths)
    if limit is not None:
        records = records.take(limit)
    share = batch // hosts
    empty = True
    for arrays in _explained(records.batch(batch).map(lambda r: _parse(r, features)).prefetch(2), paths):
        empty = False
        count = len(next(iter(arrays.values())))
        arrays["example_weights"] = np.ones(count, np.float32)
        filled = {n: np.concatenate([v, np.zeros((batch - count, *v.shape[1:]), v.dtype)]) for n, v in arrays.items()}
        yield {n: v[share * host : share * (host + 1)] for n, v in filled.items()}
    if empty:
        raise UnusableInputError(f"{paths[0]}: the evaluation set has no example.")


def _explained(batches: Any, paths: Sequence[str]) -> Iterator[Arrays]:
    """Turns what tf.data raises into one sentence."""
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


def check_ids(batch: Mapping[str, np.ndarray], vocab_size: int) -> None:
    """Sees that no token id is beyond the model's vocabulary: an embedding lookup would not notice on every device.

    Raises:
      UnusableInputError: there is one.
    """
    for name in ("input_ids", "masked_lm_ids"):
        if name in batch and (batch[name].max() >= vocab_size or batch[name].min() < 0):
            worst = max(batch[name].max(), batch[name].min(), key=abs)
            raise UnusableInputError(
                f"The examples' {name} hold token {worst}, and the model's vocabulary has {vocab_size} tokens: the "
                "examples were made with another vocabulary than the model's."
            )
