"""The examples of a sample of text: how many there are, how large they are in each format, and what they cost."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.records import shard_formats
from maskmill.records.drawing import draw_rows
from maskmill.records.examples import ExampleCounts, write_example_files
from maskmill.records.plan import ExamplesPlan
from maskmill.storage import files
from maskmill.tokenization.tokenized_text import LoadedTokenizer, TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

PACKED = "tfrecord.gz"
FORMATS = ("tfrecord", PACKED, *(name for name in shard_formats.NAMES if name != "tfrecord"))

# Of more text, documents at even distance count.
_TEXT_BYTES = 8 << 20
# Text of all passes together that is written, that is written in each format to compare them, and of which only the
# rows are drawn. With short_seq_prob, a few long documents whose length happens to be 2 or 3 pieces make a good part of
# the examples, so that a few passes over a sample say little.
_WRITTEN_BYTES, _COMPARED_BYTES, _DRAWN_BYTES = 16 << 20, 2 << 20, 128 << 20
_ROUNDS, _MOST_PASSES = 8, 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleExamples:
    """The examples of some text, for one pass over it.

    Attributes:
      text_bytes, documents, tokens: of the text.
      examples: how many there are; its standard error, as a share of it, in `error`.
      pieces: all pieces in them, special ones included.
      places: of the pieces and of padding; None where rows are not padded.
      of_document: how many examples and pieces more there would be if the same text were one document more. A document
        ends the example that it is in, so examples follow the documents as well as the text.
      sizes: bytes of the files, by format.
      seconds: of CPU, in the format of the plan.
    """

    text_bytes: int
    documents: int
    tokens: int
    examples: float
    error: float
    pieces: float
    places: float | None
    of_document: tuple[float, float]
    sizes: Mapping[str, float]
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Written:
    """What was written: its counts, the bytes of the files, the seconds of CPU that it took."""

    counts: ExampleCounts
    size: int
    seconds: float

    @property
    def size_of_one(self) -> float:
        """Bytes of an example."""
        return self.size / max(1, self.counts.examples)


def examples_of(
    documents: Sequence[bytes], loaded: LoadedTokenizer, plan: ExamplesPlan, *, packed: bool
) -> SampleExamples:
    """Makes the examples of documents, into temporary files.

    documents: the sentences of each, as in a text shard. packed: whether TFRecords are gzipped.

    Raises:
      UnusableInputError: there is no sentence in the documents.
    """
    chosen = _thinned(documents, _TEXT_BYTES)
    text_bytes = sum(map(len, chosen))
    if not text_bytes:
        raise UnusableInputError("There is no sentence in the sample, so no example can be made; check the input.")
    own = format_of(plan, packed=packed)
    compared = {}
    few = _thinned(chosen, _COMPARED_BYTES)
    for name in FORMATS:
        passes = _passes(few, _COMPARED_BYTES, plan)
        compared[name] = _write(few, loaded, _changed(plan, name=name, passes=passes), name)
    # What is loaded once has been loaded now, so that the time is that of the work.
    passes = _passes(chosen, _WRITTEN_BYTES, plan)
    made = _write(chosen, loaded, _changed(plan, name=own, passes=passes), own)
    vocabulary = loaded.vocabulary
    text = loaded.tokenizer().tokenize_bytes(b"".join(chosen))
    drawn = _draw(text, vocabulary, plan)
    examples = float(drawn[:, 0].mean())
    an_example = made.size_of_one / compared[own].size_of_one if compared[own].size else 0.0
    return SampleExamples(
        text_bytes=text_bytes,
        documents=len(text.document_ends),
        tokens=made.counts.tokens,
        examples=examples,
        error=float(drawn[:, 0].std(ddof=1) / len(drawn) ** 0.5 / max(1.0, examples)) if len(drawn) > 1 else 0.0,
        pieces=float(drawn[:, 1].mean()),
        places=float(drawn[:, 2].mean()) if plan.is_padded or plan.objective.pack else None,
        of_document=_of_document(text, drawn, vocabulary, plan),
        sizes={name: examples * an_example * written.size_of_one for name, written in compared.items()},
        seconds=made.seconds / passes,
    )


def format_of(plan: ExamplesPlan, *, packed: bool) -> str:
    """Which of FORMATS a plan writes; packed: whether TFRecords are gzipped."""
    return PACKED if packed and plan.format.format == "tfrecord" else plan.format.format


def _passes(documents: Sequence[bytes], most: int, plan: ExamplesPlan) -> int:
    """How often documents are masked, for about `most` bytes of text: not more often than in the build."""
    return max(1, min(plan.masking.dupe_factor, most // max(1, sum(map(len, documents)))))


def _of_document(
    text: TokenizedText, drawn: npt.NDArray[np.float64], vocabulary: Vocabulary, plan: ExamplesPlan
) -> tuple[float, float]:
    """How many rows and pieces more a text has for each document that it is cut into: told by joining two at a time."""
    ends = text.document_ends
    joined = dataclasses.replace(text, document_ends=ends[(len(ends) - 1) % 2 :: 2])
    fewer = len(ends) - len(joined.document_ends)
    if not fewer:
        return 0.0, 0.0
    rows, pieces, _ = (drawn.mean(0) - _draw(joined, vocabulary, plan).mean(0)) / fewer
    return float(rows), float(pieces)


def _draw(text: TokenizedText, vocabulary: Vocabulary, plan: ExamplesPlan) -> npt.NDArray[np.float64]:
    """Draws the rows of a text some times: for each time its rows, their pieces, their places a pass, [times, 3]."""
    is_random = plan.objective.objective in ("nsp", "sop")
    rounds = _ROUNDS if is_random else 1
    passes = max(1, _DRAWN_BYTES // max(1, text.bytes) // rounds) if is_random else 1
    widths = np.array(plan.widths)
    drawn = []
    for number in range(rounds):
        masking = dataclasses.replace(
            plan.masking, dupe_factor=min(passes, _MOST_PASSES), random_seed=plan.masking.random_seed + number
        )
        lengths = draw_rows(text, vocabulary, dataclasses.replace(plan, masking=masking)).lengths
        places = widths[np.searchsorted(widths, lengths)]
        drawn.append(np.array([len(lengths), lengths.sum(), places.sum()]) / masking.dupe_factor)
    return np.array(drawn, np.float64)


def is_told_once(name: str) -> bool:
    """Whether the files of one of FORMATS are as large at any dupe factor: those that store no masks."""
    return name != PACKED and shard_formats.format_of(name).reads_text


def _changed(plan: ExamplesPlan, *, name: str, passes: int) -> ExamplesPlan:
    """The plan for another format and dupe factor."""
    chosen, objective = "tfrecord" if name == PACKED else name, plan.objective
    if is_told_once(name):
        passes, objective = 1, dataclasses.replace(objective, dynamic_masking=True)
    return dataclasses.replace(
        plan,
        masking=dataclasses.replace(plan.masking, dupe_factor=passes),
        objective=objective,
        format=dataclasses.replace(plan.format, format=chosen),
    )


def _thinned(documents: Sequence[bytes], most: int) -> list[bytes]:
    """Documents at even distance with about `most` bytes together."""
    step = max(1, -(-sum(map(len, documents)) // most))
    return list(documents[step // 2 :: step] or documents)


def _write(documents: Sequence[bytes], loaded: LoadedTokenizer, plan: ExamplesPlan, name: str) -> _Written:
    """Writes the examples of documents in a format, and deletes them."""
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        files.write_bytes(text, b"".join(documents))
        prefixes = [os.path.join(folder, f"part-{number}") for number in range(len(plan.widths))]
        packed = name == PACKED
        started = time.process_time()
        written, counts = write_example_files([text], prefixes, loaded, plan, indexes=not packed, packed=packed)
        seconds = time.process_time() - started
    size = sum(file.size + (file.index.size if file.index is not None else 0) for file in written)
    return _Written(counts=counts, size=size, seconds=seconds)
