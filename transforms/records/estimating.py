"""The examples of a sample of text: how many there are, how large they are, and what they cost."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping, Sequence

from transforms.errors import UnusableInputError
from transforms.masking.options import MaskingOptions
from transforms.records.examples import ExampleCounts, write_examples
from transforms.storage import files
from transforms.tokenization.vocabulary import Vocabulary

_TEXT_BYTES = 8 << 20  # the examples of so much text are made
_RECORD_PASSES = 16 << 20  # bytes of text that are masked, all passes together
_PACKED_TEXT = 1 << 20  # gzip takes long


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleExamples:
    """The examples of some text, with one pass over it (dupe factor 1).

    counts: of the text and of its examples, those of the examples for `passes` passes. passes: how many there were.
    text_bytes: bytes of the text. sizes: bytes of the records of one pass by format. seconds: of CPU by pass.
    """

    counts: ExampleCounts
    passes: int
    text_bytes: int
    sizes: Mapping[str, float]
    seconds: float


def examples_of(documents: Sequence[bytes], vocabulary: Vocabulary, masking: MaskingOptions) -> SampleExamples:
    """Makes the examples of documents into temporary files, in each format.

    Args:
      documents: the sentences of each, as in a text shard. Where they are more than 8 MB, some at even distance count.

    Raises:
      UnusableInputError: there is no sentence in them.
    """
    chosen = _thinned(documents, _TEXT_BYTES)
    text_bytes = sum(map(len, chosen))
    if not text_bytes:
        raise UnusableInputError("There is no sentence in the sample, so no example can be made; check the input.")
    passes = max(1, min(masking.dupe_factor, _RECORD_PASSES // text_bytes))
    several = dataclasses.replace(masking, dupe_factor=passes)
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, chosen[:1], vocabulary, dataclasses.replace(masking, dupe_factor=1))  # what is loaded once
        counts, size, seconds = _write(folder, chosen, vocabulary, several)
        few = _thinned(chosen, _PACKED_TEXT)
        one = dataclasses.replace(masking, dupe_factor=1)
        _, of_few, _ = _write(folder, few, vocabulary, one)
        _, packed, _ = _write(folder, few, vocabulary, one, packed=True)
    return SampleExamples(
        counts=counts,
        passes=passes,
        text_bytes=text_bytes,
        sizes={"tfrecord": size / passes, "tfrecord.gz": size / passes * packed / of_few},
        seconds=seconds / passes,
    )


def _thinned(documents: Sequence[bytes], most: int) -> list[bytes]:
    """Documents at even distance with about `most` bytes together."""
    step = max(1, -(-sum(map(len, documents)) // most))
    return list(documents[step // 2 :: step] or documents)


def _write(
    folder: str, documents: Sequence[bytes], vocabulary: Vocabulary, masking: MaskingOptions, *, packed: bool = False
) -> tuple[ExampleCounts, int, float]:
    """Writes the examples of documents; returns the counts, the bytes of the files, the seconds of CPU."""
    text = os.path.join(folder, "text")
    files.write_bytes(text, b"".join(documents))
    started = time.process_time()
    written, counts = write_examples(
        [text], [os.path.join(folder, "part")], vocabulary, masking, indexes=not packed, packed=packed
    )
    seconds = time.process_time() - started
    size = sum(file.size for file in written)
    files.delete([file.path for file in written])
    return counts, size, seconds
