"""Writes word counts with tft.vocabulary: a vocabulary file for programs that use TensorFlow Transform.

TensorFlow Transform 1.21 does the following, as measured: counts given as int64 weights stay exact (they are summed as
Python's integers); rows are ordered by count, then by the bytes of the word, both descending; an empty word and a word
with a newline or a carriage return are dropped silently, which a vocabulary's text never has; a word that is not UTF-8
ends the run. A million words take some 40 CPU seconds and 0.8 GB.
"""

import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.public import tfxio

from maskmill.errors import RunFailedError
from maskmill.vocabularies.learning import WordCounts

_WORD, _COUNT = "word", "count"
_ROWS = 50_000  # of a batch
_SCHEMA = pa.schema([(_WORD, pa.large_list(pa.large_binary())), (_COUNT, pa.large_list(pa.int64()))])


def write_word_vocabulary(words: WordCounts, threshold: int, name: str, folder: str) -> str:
    """Write the words that occur at least `threshold` times, a line "COUNT WORD" each; return the file's path.

    name: of the vocabulary and of its file. folder: an empty folder for working files; the file is below it.

    Raises:
      RunFailedError: the file lacks words, or has others.
    """
    for part in ("text", "ends", "counts"):
        np.save(os.path.join(folder, part), getattr(words, part))
    written = os.path.join(folder, "analyzed")
    config = tfxio.TensorAdapterConfig(_SCHEMA, {column: _one_a_row(column) for column in (_WORD, _COUNT)})

    def count(row: dict[str, Any]) -> dict[str, Any]:
        tft.vocabulary(
            row[_WORD], weights=row[_COUNT], frequency_threshold=threshold, store_frequency=True, vocab_filename=name
        )
        return {_COUNT: row[_COUNT]}  # an analysis must have an output

    with tft_beam.Context(temp_dir=os.path.join(folder, "temporary")), beam.Pipeline(runner=FnApiRunner()) as pipeline:
        rows = (
            pipeline
            | "Blocks" >> beam.Create(range(0, len(words), _ROWS))
            | "Read" >> beam.FlatMap(_read_rows, folder)  # pa.RecordBatch
        )
        analyzed = (rows, config) | "Analyze" >> tft_beam.AnalyzeDataset(count)
        analyzed | "Write" >> tft_beam.WriteTransformFn(written)
    path: str = tft.TFTransformOutput(written).vocabulary_file_by_name(name)
    _check(path, words.counts[words.counts >= threshold])
    return path


def _one_a_row(column: str) -> Any:
    """Return the description of a column with one value in each row."""
    representation = schema_pb2.TensorRepresentation()
    representation.dense_tensor.column_name = column
    representation.dense_tensor.shape.SetInParent()
    return representation


def _read_rows(first: int, folder: str) -> Iterator[Any]:
    """Yield a pa.RecordBatch of the words from number `first` on."""
    text, ends, counts = (np.load(os.path.join(folder, f"{part}.npy"), "r") for part in ("text", "ends", "counts"))
    last = min(first + _ROWS, len(ends))
    start = int(ends[first - 1]) if first else 0
    offsets = np.concatenate(([0], ends[first:last] - start))
    block = np.ascontiguousarray(text[start : ends[last - 1]])
    words = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), last - first, [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    )
    rows = np.arange(last - first + 1)
    columns = [
        pa.LargeListArray.from_arrays(rows, values) for values in (words, pa.array(np.array(counts[first:last])))
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _check(path: str, counts: Any) -> None:
    """Check that the file has a word for each of the counts, in descending order of these counts."""
    with open(path, "rb") as file:
        found = np.fromiter((int(line.partition(b" ")[0]) for line in file), np.int64)
    if not np.array_equal(found, np.sort(counts)[::-1]):
        raise RunFailedError(
            f"TensorFlow Transform kept {len(found):,} of {len(counts):,} words, or other counts than theirs; "
            "leave out --transform_fn, and report this with the versions of tensorflow-transform and maskmill."
        )
