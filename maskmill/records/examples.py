"""Text to masked-language-model examples: tokenize, draw rows, write them. No Beam, no command line.

By default these are the records of create_pretraining_data.py, of mlcommons/training (retired_benchmarks/bert) or, with
whole-word masking, of google-research/bert: for the same text, vocabulary, options and seed the same features, record
for record.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.masking.kernels.rows import RowArrays, Rows
from maskmill.masking.kernels.sequences import Sequences
from maskmill.masking.options import MaskingOptions
from maskmill.masking.packing import bin_orders
from maskmill.records.columns import Column
from maskmill.records.drawing import DrawnRows, RowBlocks, draw_rows
from maskmill.records.plan import ExamplesPlan
from maskmill.records.serialization import Serializer
from maskmill.records.tfrecord import WrittenFile, write_tfrecord
from maskmill.records.tokenizing import WORDPIECE_KERNELS, wordpiece
from maskmill.tokenization.tokenized_text import LoadedTokenizer, TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary

Blocks = Iterable[tuple[RowArrays, int]]  # of rows, each with the number of rows in use

# The kernels of every plan, as maskmill.kernels.compiler.chosen_modules names them; of sequences.
_KERNELS = ("kernels", *(f"masking.kernels.{n}" for n in ("instances", "usage", "rows")))
_KERNELS += ("records.kernels.frames", "records.kernels.serialize")
_OF_SEQUENCES = tuple(f"masking.kernels.{name}" for name in ("sequences", "packing", "row_masks"))


def kernels_of(plan: ExamplesPlan, of_tokenizer: tuple[str, ...] = WORDPIECE_KERNELS) -> tuple[str, ...]:
    """Return whose kernels `write_example_files` runs for a plan: each command compiles, or loads, only what it needs.

    of_tokenizer: LoadedTokenizer.kernels.
    """
    return of_tokenizer + _KERNELS + (() if plan.is_exact else _OF_SEQUENCES) + plan.shard_format.kernels


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleCounts:
    """What went into examples, and what came out. What does not apply to an objective or a format is None.

    Attributes:
      text_bytes: of the text read, carriage returns not counted.
      documents: with at least one sentence.
      sentences: lines with at least one piece.
      tokens: pieces of all sentences.
      unused_tokens: of them, those that are in no example: a pair longer than max_seq_length is cut.
      words: of all sentences; a punctuation character or an ideograph is a word of its own.
      unknown_words: of them, those that became [UNK].
      examples: records written.
      example_tokens: pieces of text in all examples, each as often as it is used.
      special_tokens: [CLS] and [SEP], whatever they are called, in all examples.
      padding_tokens: places of all examples after their last piece.
      masked_positions: of all examples; None where the reader draws them.
      random_next: nsp: examples, or sequences in them, whose second part is drawn at random (label 1).
      swapped: sop: sequences whose parts are swapped (label 1).
      dropped_tokens: blocks: of the unused tokens, those of dropped remainders.
      split_sentences: mlm of full sentences: those longer than a sequence.
      single_document_shards: strict labels: 1 if the text is a single document, which has no random pair.
      sequences: pack: in all examples; without packing, each would be an example.
      unpacked_padding_tokens: pack: padding_tokens without it.
    """

    text_bytes: int
    documents: int
    sentences: int
    tokens: int
    unused_tokens: int
    words: int
    unknown_words: int
    examples: int
    example_tokens: int
    special_tokens: int
    padding_tokens: int | None
    masked_positions: int | None
    random_next: int | None = None
    swapped: int | None = None
    dropped_tokens: int | None = None
    split_sentences: int | None = None
    single_document_shards: int | None = None
    sequences: int | None = None
    unpacked_padding_tokens: int | None = None

    @property
    def by_name(self) -> dict[str, int]:
        """Those that apply."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleFile(WrittenFile):
    """A file of examples.

    Attributes:
      examples: how many it has.
      bin: its bin, from 0; None without bins.
      width: the most pieces of its rows, to which they are padded.
      index: its index of records, where there is one.
      records_sha256: of the TFRecord that has the same rows; None where rows are stored.
    """

    examples: int
    bin: int | None = None
    width: int
    index: WrittenFile | None = None
    records_sha256: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowOrigin:
    """What rows consist of, for a format that stores none.

    paths: the files of the text. text: its pieces. sequences, rows: of these. order: int64[rows], the rows of a file.
    """

    paths: Sequence[str]
    text: TokenizedText
    sequences: Sequences
    rows: Rows
    order: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Writing:
    """How the rows of a file are written.

    Attributes:
      vocabulary, plan: what decides their columns.
      width: how many pieces rows are padded to; examples: how many rows there are.
      indexes, packed, checksum: see `write_example_files`.
      origin: what the rows consist of; None: not known, or they have stored masks.
    """

    vocabulary: Vocabulary
    plan: ExamplesPlan
    width: int
    examples: int
    indexes: bool
    packed: bool
    checksum: bool
    origin: RowOrigin | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the rows."""
        return self.plan.columns(self.vocabulary, self.width)

    @property
    def special_ids(self) -> tuple[int, int]:
        """The ids of [CLS] and [SEP]."""
        return self.vocabulary.cls_id, self.vocabulary.sep_id

    def file(
        self, written: WrittenFile, *, examples: int | None = None, index: WrittenFile | None = None
    ) -> ExampleFile:
        """Return the description of a file that was written; examples: how many it has, if not all."""
        examples = self.examples if examples is None else examples
        return ExampleFile(
            **{field.name: getattr(written, field.name) for field in dataclasses.fields(WrittenFile)},
            examples=examples,
            width=self.width,
            index=index,
        )


def write_examples(
    inputs: Sequence[str],
    outputs: Sequence[str],
    vocabulary: Vocabulary,
    options: MaskingOptions,
    *,
    indexes: bool = True,
    packed: bool = False,
    checksum: bool = True,
) -> tuple[list[WrittenFile], ExampleCounts]:
    """Make the reference's examples of one group of text files and write them as TFRecords.

    Args:
      inputs: text files, one sentence a line, blank lines between documents; read as one, in this order.
      outputs: the records are dealt to these files in turn.
      vocabulary: WordPiece vocabulary.
      options: how examples are made.
      indexes: write an index, `OUTPUT.idx`, beside each output; see `tfrecord.index_tfrecord`.
      packed: gzip the outputs.
      checksum: compute the files' sha256 while they are written.

    Returns:
      The files written, each output followed by its index, and the counts.

    Raises:
      UnusableInputError: a file is missing or not UTF-8, or there is no sentence in any of them.
      RunFailedError: an output cannot be written.
    """
    if not outputs or len(set(outputs)) < len(outputs):
        raise UnusableInputError("The outputs must be one or more files, each named once.")
    text = _tokenize(inputs, wordpiece(vocabulary, options))
    plan = ExamplesPlan(masking=options)
    rows = draw_rows(text, vocabulary, plan)
    written, masked = _deal(
        outputs, rows, writing_of(vocabulary, plan, indexes=indexes, packed=packed, checksum=checksum)
    )
    return written, _counts(text, rows, len(rows.order) * options.max_seq_length, masked)


def write_example_files(
    inputs: Sequence[str],
    prefixes: Sequence[str],
    loaded: LoadedTokenizer,
    plan: ExamplesPlan,
    *,
    indexes: bool = True,
    packed: bool = False,
    checksum: bool = True,
) -> tuple[list[ExampleFile], ExampleCounts]:
    """Make the examples of one group of text files, with any objective, and write them in any format.

    Args:
      inputs: text files, one sentence a line, blank lines between documents; read as one, in this order.
      prefixes: the path of each bin's files, or of all, to which the format adds its suffix.
      loaded: the vocabulary and its tokenizer.
      plan: how examples are made, and what they become.
      indexes: write an index beside each TFRecord; see `tfrecord.index_tfrecord`.
      packed: gzip TFRecords.
      checksum: compute the files' sha256 while they are written.

    Returns:
      The files written and the counts. There is no file for a bin without rows, nor for a text without rows.

    Raises:
      UnusableInputError: a file is missing or not UTF-8, or there is no sentence in any of them.
      RunFailedError: a file cannot be written.
    """
    widths, vocabulary = plan.widths, loaded.vocabulary
    writing = writing_of(vocabulary, plan, indexes=indexes, packed=packed, checksum=checksum)
    text = _tokenize(inputs, loaded)
    rows = draw_rows(text, vocabulary, plan)
    orders = [rows.order]
    if plan.objective.bins is not None:
        orders = bin_orders(rows.order, rows.lengths, plan.masking.max_seq_length, len(widths))
    written: list[ExampleFile] = []
    places = masked = 0
    for number, (prefix, order, width) in enumerate(zip(prefixes, orders, widths, strict=True)):
        if len(order):
            blocks = _Counted(rows.lay_out(order, width))
            origin = None
            if rows.sequences is not None and rows.rows is not None:
                origin = RowOrigin(paths=inputs, text=text, sequences=rows.sequences, rows=rows.rows, order=order)
            of_bin = dataclasses.replace(writing, width=width, examples=len(order), origin=origin)
            made = plan.shard_format.write(prefix, blocks, of_bin)
            written += made if plan.objective.bins is None else [dataclasses.replace(f, bin=number) for f in made]
            places += len(order) * width
            masked += blocks.masked
    is_static = not plan.objective.dynamic_masking
    # Packed rows are compared with those of one sequence by the room that each has, whether a file stores it or not.
    has_padding = plan.is_padded or plan.objective.pack
    return written, _counts(text, rows, places if has_padding else None, masked if is_static else None)


def _tokenize(inputs: Sequence[str], loaded: LoadedTokenizer) -> TokenizedText:
    """Return the pieces of text files with at least one sentence."""
    text = loaded.tokenizer().tokenize_files(inputs)
    if not len(text.document_ends):
        raise UnusableInputError(
            f"{', '.join(inputs)}: there is no sentence in this text, so no example can be made; check the input."
        )
    return text


class _Counted:
    """Passes on blocks of rows, and counts their masked positions."""

    def __init__(self, blocks: RowBlocks) -> None:
        self._blocks = blocks
        self.masked = 0

    def __iter__(self) -> RowBlocks:
        for rows, count in self._blocks:
            self.masked += int(rows.masked[:count].sum())
            yield rows, count


def _deal(outputs: Sequence[str], rows: DrawnRows, writing: Writing) -> tuple[list[WrittenFile], int]:
    """Deal rows to TFRecords in turn; return the files, and the number of masked positions."""
    written: list[WrittenFile] = []
    masked = 0
    for place, path in enumerate(outputs):
        blocks = _Counted(rows.lay_out(rows.order[place :: len(outputs)], writing.width))
        written += write_records(path, blocks, writing)
        masked += blocks.masked
    return written, masked


def writing_of(
    vocabulary: Vocabulary, plan: ExamplesPlan, *, indexes: bool, packed: bool = False, checksum: bool
) -> Writing:
    """Return how files of the longest rows are written."""
    return Writing(
        vocabulary=vocabulary,
        plan=plan,
        width=plan.masking.max_seq_length,
        examples=0,
        indexes=indexes,
        packed=packed,
        checksum=checksum,
    )


def write_records(path: str, blocks: Blocks, writing: Writing) -> list[WrittenFile]:
    """Write rows as a TFRecord, and its index; see `tfrecord.write_tfrecord`."""
    predictions = writing.plan.masking.max_predictions_per_seq
    records = Serializer(writing.columns, writing.vocabulary, writing.width, predictions).blocks(blocks)
    return write_tfrecord(path, records, index=writing.indexes, packed=writing.packed, checksum=writing.checksum)


def _counts(text: TokenizedText, rows: DrawnRows, places: int | None, masked: int | None) -> ExampleCounts:
    """Return the counts of a text and of its rows, which have `places` for pieces where they are padded."""
    pieces = int(rows.lengths.sum())
    return ExampleCounts(
        text_bytes=text.bytes,
        documents=len(text.document_ends),
        sentences=len(text.segment_ends),
        tokens=len(text.ids),
        words=text.words,
        unknown_words=text.unknown,
        special_tokens=pieces - rows.counts["example_tokens"],
        padding_tokens=None if places is None else places - pieces,
        masked_positions=masked,
        **rows.counts,
    )
