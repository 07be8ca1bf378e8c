"""The batches of a training run: shuffled, endless, and the same on any number of hosts.

The order of the examples is a function of the seed and the step, so that a run resumes where it stopped. The examples
of all files are cut into blocks of neighbours. For each epoch the order of the blocks is drawn anew, the blocks are
dealt to lanes, and each lane shuffles the examples of several of its blocks together, a window. A global batch takes
the same number of examples from each lane. Each host reads lanes of its own, so no example is read twice, and the
number of hosts does not change the batches. Each example comes once in each epoch of its lane.
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
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from training import storage
from training.inputs import INDEX_SUFFIX, READERS, Arrays, Feature, checked, parse
from training.logs import say
from transforms.errors import RunFailedError, UnusableInputError

# A record of a TFRecord file is its length (8 bytes), a checksum (4), its bytes, and a checksum (4).
_LENGTH_BYTES, _HEAD_BYTES, _FRAME_BYTES = 8, 12, 16
_BLOCK_EXAMPLES = 64
_LANES = 16
# The seed of a window's shuffle is [seed and lane, epoch * _EPOCH_STRIDE + window]: no epoch has more windows.
_EPOCH_STRIDE = 2**32
# Blocks of a window that are read at the same time, and the bytes that are read of each at once.
_BLOCK_READERS = 8
_BUFFER_BYTES = 256 << 10
_COPY_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Runs of neighbouring records: `file` (index in `paths`), byte `offset` of the first, `count`; int64 [N] each.

    `names` are what the user calls the files: `.gz` files have been unpacked to `paths`.
    """

    paths: tuple[str, ...]
    names: tuple[str, ...]
    file: np.ndarray
    offset: np.ndarray
    count: np.ndarray

    @property
    def total(self) -> int:
        """The number of examples."""
        return int(self.count.sum())


def find_blocks(paths: Sequence[str]) -> Blocks:
    """Cuts files into blocks.

    `.gz` files cannot be read from the middle, so they are unpacked to a temporary directory first.

    Raises:
      UnusableInputError: there is no example in any file, or a file is cut off.
    """
    names, paths = paths, _unpacked(paths)
    with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
        offsets = list(pool.map(record_offsets, paths, [path == name for path, name in zip(paths, names, strict=True)]))
    total = sum(map(len, offsets))
    if not total:
        raise UnusableInputError(f"{names[0]}: there is no example in the training files.")
    # Small data gets small blocks, so that each lane has several.
    size = max(1, min(_BLOCK_EXAMPLES, total // (8 * _LANES)))
    starts = [np.arange(0, len(o), size) for o in offsets]
    return Blocks(
        paths=tuple(paths),
        names=tuple(names),
        file=np.repeat(np.arange(len(paths)), [len(s) for s in starts]),
        offset=np.concatenate([o[s] for o, s in zip(offsets, starts, strict=True)]),
        count=np.concatenate([np.minimum(size, len(o) - s) for o, s in zip(offsets, starts, strict=True)]),
    )


def record_offsets(path: str, keeps_index: bool = True) -> np.ndarray:
    """The byte offset of each record (int64 [N]), from the index beside the file if it fits, else from the file.

    A file without an index is gone through once, and with `keeps_index` its index is written beside it, as
    `maskmill index` writes it.

    Raises:
      UnusableInputError: the file is cut off.
    """
    size = tf.io.gfile.stat(path).length
    index = path + INDEX_SUFFIX
    has_index = storage.exists(index)
    if has_index:
        offsets = _indexed(storage.read_bytes(index), size)
        if offsets is not None:
            return offsets
        say(f"{index}: this index does not fit its file and is not used; write it anew with maskmill index")
    offsets = _scanned(path, size)
    if keeps_index and not has_index:
        ends = np.append(offsets, size)[1:]
        lines = "".join(f"{start} {end - start}\n" for start, end in zip(offsets, ends, strict=True))
        try:
            storage.write_bytes(index, lines.encode())
        except (RunFailedError, UnusableInputError) as error:
            # The index only saves the next run this pass over the file.
            say(f"the index of {path} could not be kept: {error}")
    return offsets


def _indexed(content: bytes, size: int) -> np.ndarray | None:
    """The offsets (int64 [N]) in an index of a file of `size` bytes; None if it is no index of this file.

    An index fits if its records follow one another from the first byte of the file to the last.
    """
    try:
        places = np.array(content.split(), np.int64).reshape(-1, 2)
    except (ValueError, OverflowError):
        return None
    starts, lengths = places.T
    ends = starts + lengths
    fits = np.array_equal(np.append(0, ends), np.append(starts, size)) and (lengths >= _FRAME_BYTES).all()
    return starts if fits else None


def _scanned(path: str, size: int) -> np.ndarray:
    """The offsets (int64 [N]) of the records of a file of `size` bytes, from the lengths in it.

    Raises:
      UnusableInputError: the file is cut off.
    """
    offsets = []
    with tf.io.gfile.GFile(path, "rb") as file:
        position = 0
        while position < size:
            offsets.append(position)
            file.seek(position)
            head = file.read(_HEAD_BYTES)
            position += _FRAME_BYTES + int.from_bytes(head[:_LENGTH_BYTES], "little")
            if len(head) < _HEAD_BYTES or position > size:
                raise UnusableInputError(f"{path}: this TFRecord is cut off after {len(offsets) - 1} examples.")
    return np.array(offsets, np.int64)


def fingerprint(blocks: Blocks) -> str:
    """A digest (16 hexadecimal digits) of the number of files and of where the blocks are in them, to tell data apart.

    File names do not count.
    """
    digest = hashlib.sha256(f"{len(blocks.paths)}".encode())
    for array in (blocks.file, blocks.offset, blocks.count):
        digest.update(np.ascontiguousarray(array, np.int64).tobytes())
    return digest.hexdigest()[:16]


def _unpacked(paths: Sequence[str]) -> list[str]:
    """The paths, with each `.gz` file replaced by its content in a temporary directory, deleted at exit."""
    if not any(p.endswith(".gz") for p in paths):
        return list(paths)
    directory = tempfile.mkdtemp(prefix="maskmill-examples-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    plain_paths = []
    for i, path in enumerate(paths):
        if path.endswith(".gz"):
            plain_paths.append(os.path.join(directory, f"{i:05d}.tfrecord"))
            _unpack(path, plain_paths[-1])
        else:
            plain_paths.append(path)
    return plain_paths


def _unpack(packed_path: str, path: str) -> None:
    """Unpacks a `.gz` file.

    Raises:
      UnusableInputError: it is damaged.
      RunFailedError: there is no room for what is in it.
    """
    try:
        with tf.io.gfile.GFile(packed_path, "rb") as packed, open(path, "wb") as file:
            shutil.copyfileobj(gzip.GzipFile(fileobj=packed), file, _COPY_BYTES)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnusableInputError(f"{packed_path}: this gzip file is damaged ({error}); make it again.") from None
    except OSError as error:
        raise RunFailedError(
            f"{packed_path}: this file cannot be unpacked to {path} ({error.strerror or error}); make room there, or "
            "set TMPDIR to another directory."
        ) from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingInput:
    """The batches of a training run.

    Args:
      blocks: the examples.
      features: the features to read.
      batch: examples in a batch of all hosts.
      seed: gives the order.
      shuffle: whether to shuffle at all; otherwise the examples come in file order.
      shuffle_buffer: examples that are shuffled among each other, over all lanes.
      host: the number of this host, from 0.
      hosts: the number of hosts.

    Raises:
      UnusableInputError: the batch is no multiple of the number of hosts.
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
                f"The batch of {self.batch} examples cannot be shared evenly by {self.hosts} hosts; choose a multiple."
            )

    @property
    def lanes(self) -> int:
        """The number of lanes that make up the global batch: 16 if the batch and the hosts allow it."""
        if not self.shuffle:
            return 1
        lanes = math.gcd(self.batch, _LANES)
        return lanes if lanes % self.hosts == 0 else self.hosts

    def __call__(self, step: int) -> Iterator[Arrays]:
        """This host's batches, from the one that follows `step` batches on, without end: arrays [batch / hosts, …].

        Raises:
          UnusableInputError: an example cannot be read or used.
        """
        rows = self.batch // self.lanes
        if self.shuffle:
            host_lanes = range(self.lanes * self.host // self.hosts, self.lanes * (self.host + 1) // self.hosts)
            # A batch is made of `rows` examples of each lane in turn.
            places = self._places(host_lanes, step * rows)
            records = places.interleave(self._examples_from, cycle_length=len(host_lanes), block_length=rows)
            records = records.batch(rows * len(host_lanes))
        else:
            share = self.batch // self.hosts
            part = slice(share * self.host, share * (self.host + 1))
            records = self._places(range(1), step * rows).flat_map(self._examples_from)
            records = records.batch(rows).map(lambda batch: batch[part])
        batches = records.map(lambda r: parse(r, self.features), num_parallel_calls=tf.data.AUTOTUNE)
        return checked(batches.prefetch(4), self.blocks.paths, self.features, names=self.blocks.names)

    @property
    def _window(self) -> int:
        """The number of blocks of a lane that are shuffled together."""
        return max(1, self.shuffle_buffer // self.lanes // int(self.blocks.count.max()))

    def _places(self, lanes: range, start: int) -> Any:
        """A dataset of (lane, epoch, window, example): the place of the `start`th example of each lane."""
        places = [(lane, *self._place(lane, start, self._window)) for lane in lanes]
        return tf.data.Dataset.from_tensor_slices(tuple(np.array(places, np.int64).T))

    def _examples_from(self, lane: Any, epoch: Any, window: Any, example: Any) -> Any:
        """A dataset of the serialised examples of a lane, from a place on. No Python runs in TensorFlow's threads."""
        size = self._window
        blocks = {name: tf.constant(getattr(self.blocks, name)) for name in ("file", "offset", "count")}
        paths = tf.constant(self.blocks.paths)

        def windows_of(epoch: Any) -> Any:
            windows = tf.data.Dataset.from_tensor_slices(self._epoch(epoch, lane)).batch(size)
            return windows.enumerate().map(lambda number, window_blocks: (epoch, number, window_blocks))

        def read(epoch: Any, number: Any, window_blocks: Any) -> Any:
            part = {name: tf.gather(values, window_blocks) for name, values in blocks.items()}
            ranges = (tf.gather(paths, part["file"]), part["offset"], part["count"])
            records = tf.data.Dataset.from_tensor_slices(ranges).interleave(
                _read_block, cycle_length=_BLOCK_READERS if self.shuffle else 1, num_parallel_calls=tf.data.AUTOTUNE
            )
            records = records.batch(tf.reduce_sum(part["count"]))
            if self.shuffle:
                # The seed depends on the window's place in the epoch only, so a resumed run shuffles it alike.
                seed = tf.stack([self.seed * _LANES + lane + 1, epoch * _EPOCH_STRIDE + number])
                records = records.map(lambda r: tf.random.experimental.stateless_shuffle(r, seed))
            return records

        windows = tf.data.Dataset.counter(epoch).flat_map(windows_of).skip(window)
        # The next window is read while this one is used.
        return windows.flat_map(read).prefetch(1).unbatch().skip(example)

    def _epoch(self, epoch: Any, lane: Any) -> Any:
        """The blocks of a lane in an epoch, in order (int64 [N]); N may be 0."""
        count = len(self.blocks.count)
        blocks = tf.range(count, dtype=tf.int64)
        if self.shuffle:
            blocks = tf.random.experimental.stateless_shuffle(blocks, tf.stack([np.int64(self.seed), epoch]))
        # Each epoch is dealt on from where the one before ended, so that with fewer blocks than lanes every lane gets
        # some in time.
        return blocks[(lane - epoch * count) % self.lanes :: self.lanes]

    def _place(self, lane: int, start: int, size: int) -> tuple[int, int, int]:
        """The place of a lane's `start`th example: epoch, window (of `size` blocks) and example in the window."""
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
    """A dataset of `count` records of a file from a byte offset on."""
    # tf.data.TFRecordDataset has no argument for the byte offsets that its kernel takes.
    block = tf.raw_ops.TFRecordDatasetV2(
        filenames=[path], compression_type="", buffer_size=_BUFFER_BYTES, byte_offsets=[offset], metadata=""
    )
    return tf.data.experimental.from_variant(block, tf.TensorSpec([], tf.string)).take(count)
