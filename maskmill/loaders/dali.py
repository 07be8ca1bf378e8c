"""A loader's batches in NVIDIA DALI, on the CPU or on a GPU.

`Batches` iterates over them and knows the loader's state. `pipeline` is the DALI pipeline behind it, for DALI's own
iterators. `tfrecord_pipeline` reads the TFRecords with DALI's reader instead, in DALI's order.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.loaders.frameworks import needed_by
from maskmill.loading.batches import Batch
from maskmill.loading.loader import Loader
from maskmill.reading.data_set import DataSet, ReadColumn
from maskmill.storage import files

_REMEDY = "install nvidia-dali-cuda120 or nvidia-dali-cuda130 with pip, whichever fits your CUDA."
with needed_by(__name__, "NVIDIA DALI", _REMEDY, "nvidia", "nvidia.dali"):
    from nvidia.dali import Pipeline, fn, tfrecord, types

_DALI_TYPES = {
    np.dtype(np.int32): types.DALIDataType.INT32,
    np.dtype(np.int64): types.DALIDataType.INT64,
    np.dtype(np.float32): types.DALIDataType.FLOAT,
}


def pipeline(
    loader: Loader, *, device_id: int | None = None, num_threads: int = 1, endless: bool = False, **options: Any
) -> Pipeline:
    """A pipeline whose outputs are the arrays of the loader's batches, in the order of `loader.spec`.

    It starts where the loader stands, and does not change the loader. At the end of an epoch, `run` raises
    StopIteration; after `reset` the next epoch follows.

    Args:
      loader: what maskmill.open or maskmill.mix gave.
      device_id: the GPU that gets the arrays; None: they stay on the CPU, and no GPU is needed.
      num_threads: DALI's threads. The loader has one of its own.
      endless: whether the next epoch follows at once.
      options: more arguments of nvidia.dali.Pipeline: prefetch_queue_depth, …
    """
    rows = loader.options.batch_size // loader.options.ranks
    made = Pipeline(batch_size=rows, num_threads=num_threads, device_id=device_id, **options)
    specs = loader.spec
    with made:
        outputs = fn.external_source(
            source=_Source(loader, endless),
            num_outputs=len(specs),
            dtype=[_DALI_TYPES[spec.dtype] for spec in specs.values()],
            ndim=[len(spec.shape) - 1 for spec in specs.values()],
        )
        made.set_outputs(*(outputs if device_id is None else [output.gpu() for output in outputs]))
    made.build()
    return made


class _Source:
    """Gives DALI a batch with each call."""

    def __init__(self, loader: Loader, endless: bool) -> None:
        self._loader = loader.with_options()
        self._endless = endless
        self._batches: Iterator[Batch] | None = None

    def __call__(self) -> tuple[npt.NDArray[np.generic], ...]:
        if self._batches is None:
            self._batches = self._loader.endless() if self._endless else iter(self._loader)
        try:
            return tuple(next(self._batches).values())
        except StopIteration:
            self._batches = None
            raise


class Batches:
    """Iterates over a loader's batches as dicts of DALI's tensors.

    A tensor is a TensorCPU, or with a `device_id` a TensorGPU: both go to other frameworks by DLPack, like
    torch.from_dlpack(tensor). Each iteration goes on where the last one ended or was broken off, to the end of the
    epoch.
    """

    def __init__(self, loader: Loader, *, endless: bool = False, **options: Any) -> None:
        """Starts where the loader stands; `options` are those of `pipeline`."""
        self._loader = loader.with_options()
        self._endless = endless
        self._options = options
        self._given = 0
        self._pipeline: Pipeline | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._pipeline is None:
            self._pipeline = pipeline(self._loader, endless=self._endless, **self._options)
        while True:
            try:
                outputs = self._pipeline.run()
            except StopIteration:
                self._pipeline.reset()
                return
            self._given += 1
            yield {name: output.as_tensor() for name, output in zip(self._loader.spec, outputs, strict=True)}

    def state_dict(self) -> dict[str, Any]:
        """The state of the whole run after the last batch that was given here: the same on every rank."""
        state: dict[str, Any] = self._loader.state_after(self._given)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Lets the next iteration start at the state of a loader, whatever ranks it was saved with.

        Raises:
          UnusableInputError: the state belongs to other data, or to another seed.
        """
        self._loader.load_state_dict(state)
        self._given = 0
        self._pipeline = None


def tfrecord_pipeline(
    loader: Loader, *, device_id: int | None = None, num_threads: int = 1, shuffle: bool = True, **options: Any
) -> Pipeline:
    """A pipeline that reads the data set's TFRecords with DALI's reader, by the DALI indexes beside them.

    Nothing of a sample goes through Python. What `Batches` promises does not hold: the order is DALI's (`shuffle`:
    within its buffer), it has no state, and there are only the columns that the files have. The outputs are in the
    order of the columns' names, int32 or float32, [width] for each sample.

    Args:
      loader: what maskmill.open gave: batch size, seed, rank and ranks count, the rank as DALI's shard.
      device_id: the GPU that gets the arrays; None: they stay on the CPU, and no GPU is needed.
      num_threads: DALI's threads.
      shuffle: whether DALI shuffles.
      options: more arguments of fn.readers.tfrecord: initial_fill, pad_last_batch, …

    Raises:
      UnusableInputError: the data set is not one of local TFRecords with indexes, or its masks are not stored, or its
        rows are packed.
    """
    data_set = _readable_by_dali(loader)
    floats, integers = tfrecord.VarLenFeature(tfrecord.float32, 0.0), tfrecord.VarLenFeature(tfrecord.int64, 0)
    features = {column.name: floats if column.dtype.kind == "f" else integers for column in data_set.columns}
    chosen = loader.options
    rows = chosen.batch_size // chosen.ranks
    made = Pipeline(batch_size=rows, num_threads=num_threads, device_id=device_id, seed=chosen.seed)
    with made:
        read = fn.readers.tfrecord(
            path=[file.path for file in data_set.files],
            index_path=[file.index for file in data_set.files],
            features=features,
            shard_id=chosen.rank,
            num_shards=chosen.ranks,
            random_shuffle=shuffle,
            **options,
        )
        outputs = [_filled(read[column.name], column) for column in data_set.columns]
        made.set_outputs(*(outputs if device_id is None else [output.gpu() for output in outputs]))
    made.build()
    return made


def _filled(values: Any, column: ReadColumn) -> Any:
    """A column's values as int32 or float32, filled up to its width."""
    if column.dtype.kind != "f":
        values = fn.cast(values, dtype=types.DALIDataType.INT32)
    return fn.pad(values, axes=(0,), shape=(column.width,), fill_value=column.fill)


def _readable_by_dali(loader: Loader) -> DataSet:
    """The data set of a loader, if DALI's reader can read it.

    Raises:
      UnusableInputError: it cannot.
    """
    reason = ""
    data_set = loader.data_sets[0]
    if len(loader.data_sets) > 1:
        reason = "this is a mix of data sets"
    elif data_set.format != "tfrecord":
        reason = f"this data set is {data_set.format}, not TFRecord"
    elif data_set.packed:
        reason = "its rows are packed"
    elif data_set.mask_rules is not None:
        reason = "its masks are not stored but drawn when it is read"
    else:
        for file in data_set.files:
            if not files.is_local(file.path) or file.path.endswith(".gz"):
                reason = f"{file.path} is not a local, uncompressed file"
            elif file.index is None or not os.path.exists(file.index):
                reason = f"{file.path} has no index of the form that DALI reads (.idx) beside it"
    if reason:
        raise UnusableInputError(
            f"{data_set.path}: DALI's TFRecord reader cannot read this, because {reason}; use "
            "maskmill.loaders.dali.Batches, which can."
        )
    return data_set
