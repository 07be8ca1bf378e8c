"""The examples of a sample of text: how many there are, how large they are in each format, and what they cost."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import cast

from transforms.errors import UnusableInputError
from transforms.records.examples import ExampleCounts, write_example_files
from transforms.records.options import Format
from transforms.records.plan import ExamplesPlan
from transforms.storage import files
from transforms.tokenization.vocabulary import Vocabulary

PACKED = "tfrecord.gz"
FORMATS = ("tfrecord", PACKED, "parquet", "mds")

# Of more text, documents at even distance count. One pass over some of it tells how formats differ.
_TEXT_BYTES = 8 << 20
_PASSES_BYTES = 16 << 20  # of all passes together
_COMPARED_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleExamples:
    """The examples of some text.

    Attributes:
      counts: of the text and of its examples, those of the examples for all `passes`.
      passes: how often the text was masked (its dupe factor).
      text_bytes: of the text.
      sizes: bytes of the files of one pass, by format.
      seconds: of CPU for one pass, in the format of the plan.
    """

    counts: ExampleCounts
    passes: int
    text_bytes: int
    sizes: Mapping[str, float]
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Written:
    """What was written: its counts, the bytes of the files, the seconds of CPU that it took."""

    counts: ExampleCounts
    size: int
    seconds: float


def examples_of(
    documents: Sequence[bytes], vocabulary: Vocabulary, plan: ExamplesPlan, *, packed: bool
) -> SampleExamples:
    """Makes the examples of documents, into temporary files.

    Args:
      documents: the sentences of each, as in a text shard.
      vocabulary: WordPiece vocabulary.
      plan: how examples are made, and what they become.
      packed: whether TFRecords are gzipped.

    Raises:
      UnusableInputError: there is no sentence in the documents.
    """
    chosen = _thinned(documents, _TEXT_BYTES)
    text_bytes = sum(map(len, chosen))
    if not text_bytes:
        raise UnusableInputError("There is no sentence in the sample, so no example can be made; check the input.")
    passes = max(1, min(plan.masking.dupe_factor, _PASSES_BYTES // text_bytes))
    own = PACKED if packed and plan.format.format == "tfrecord" else plan.format.format
    few = _thinned(chosen, _COMPARED_BYTES)
    compared = {name: _write(few, vocabulary, _with_format(plan, name, passes=1), name) for name in FORMATS}
    # What is loaded once has been loaded now, so that the time is that of the work.
    made = _write(chosen, vocabulary, _with_format(plan, own, passes=passes), own)
    one_pass = made.size / passes
    return SampleExamples(
        counts=made.counts,
        passes=passes,
        text_bytes=text_bytes,
        sizes={name: one_pass * other.size / max(1, compared[own].size) for name, other in compared.items()},
        seconds=made.seconds / passes,
    )


def _with_format(plan: ExamplesPlan, name: str, *, passes: int) -> ExamplesPlan:
    chosen = cast(Format, "tfrecord" if name == PACKED else name)
    return dataclasses.replace(
        plan,
        masking=dataclasses.replace(plan.masking, dupe_factor=passes),
        format=dataclasses.replace(plan.format, format=chosen),
    )


def _thinned(documents: Sequence[bytes], most: int) -> list[bytes]:
    """Documents at even distance with about `most` bytes together."""
    step = max(1, -(-sum(map(len, documents)) // most))
    return list(documents[step // 2 :: step] or documents)


def _write(documents: Sequence[bytes], vocabulary: Vocabulary, plan: ExamplesPlan, name: str) -> _Written:
    """Writes the examples of documents in a format, and deletes them."""
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        files.write_bytes(text, b"".join(documents))
        prefixes = [os.path.join(folder, f"part-{number}") for number in range(len(plan.widths))]
        packed = name == PACKED
        started = time.process_time()
        written, counts = write_example_files([text], prefixes, vocabulary, plan, indexes=not packed, packed=packed)
        seconds = time.process_time() - started
    size = sum(file.size + (file.index.size if file.index is not None else 0) for file in written)
    return _Written(counts=counts, size=size, seconds=seconds)
