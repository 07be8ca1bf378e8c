"""Turn text into masked-language-model examples: tokenize it, draw rows, write them.

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

# The kernels of every plan, as maskmill.kernels.compiler.chosen_modules names them; and those of sequences.
_KERNELS = ("kernels", *(f"masking.kernels.{n}" for n in ("instances", "usage", "rows")))
_KERNELS += ("records.kernels.frames", "records.kernels.serialize")
_OF_SEQUENCES = tuple(f"masking.kernels.{name}" for name in ("sequences", "packing", "row_masks"))


def kernels_of(plan: ExamplesPlan, of_tokenizer: tuple[str, ...] = WORDPIECE_KERNELS) -> tuple[str, ...]:
    """Return the kernels that `write_example_files` runs for a plan; a command compiles, or loads, no others.

    of_tokenizer: LoadedTokenizer.kernels.
    """
    return of_tokenizer + _KERNELS + (() if plan.is_exact else _OF_SEQUENCES) + plan.shard_format.kernels


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleCounts:
    """The counts of a text and of its examples; None if a count does not apply to the objective or the format.

    Attributes:
      text_bytes: bytes read, carriage returns not counted.
      documents: documents with at least one sentence.
      sentences: lines with at least one piece.
      tokens: pieces of all sentences.
      unused_tokens: tokens in no example: a pair longer than max_seq_length is cut.
      words: words of all sentences; each punctuation character or ideograph is a word.
      unknown_words: words that became [UNK].
      examples: records written.
      example_tokens: pieces of text in all examples, each as often as it is used.
      special_tokens: [CLS] and [SEP], whatever they are called, in all examples.
      padding_tokens: places after the last piece, in all examples.
      masked_positions: masked positions in all examples; None if the reader draws the masks.
      random_next: nsp: examples, or sequences in them, whose second part is drawn at random (label 1).
      swapped: sop: sequences whose parts are swapped (label 1).
      dropped_tokens: blocks: the unused tokens in dropped remainders.
      split_sentences: mlm with full_sentences: sentences longer than a sequence.
      single_document_shards: strict labels: 1 if the text is a single document, which has no random pair.
      sequences: pack: sequences in all examples; without packing, each would be an example.
      unpacked_padding_tokens: pack: the padding_tokens that there would be without packing.
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
        """The counts that apply, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleFile(WrittenFile):
    """A file of examples.

    Attributes:
      examples: the number of its examples.
      bin: its bin, from 0; None without bins.
      width: the most pieces of its rows, to which they are padded.
      index: its index of records, or None.
      records_sha256: spans: the sha256 of the TFRecord with the same rows; None for formats that store rows.
    """

    examples: int
    bin: int | None = None
    width: int
    index: WrittenFile | None = None
    records_sha256: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowOrigin:
    """The source of the rows of a file, for a format that stores where they come from.

    paths: the files of the text. text: its pieces. sequences, rows: drawn from it. order: int64[rows of the file].
    """

    paths: Sequence[str]
    text: TokenizedText
    sequences: Sequences
    rows: Rows
    order: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Writing:
    """The settings with which the rows of a file are written.

    Attributes:
      vocabulary, plan: decide the columns.
      width: the number of pieces that rows are padded to; examples: the number of rows.
      indexes, packed, checksum: see `write_example_files`.
      origin: the source of the rows; None if unknown, or if they have stored masks.
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
        """Return the description of a file that was written; examples: the number of its rows, None: all."""
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
      options: the masking options.
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
      plan: the options of examples and of their format.
      indexes: write an index beside each TFRecord; see `tfrecord.index_tfrecord`.
      packed: gzip TFRecords.
      checksum: compute the files' sha256 while they are written.

    Returns:
      The files written and the counts. A bin without rows gets no file.

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
            blocks = _CountedBlocks(rows.lay_out(order, width))
            origin = None
            if rows.sequences is not None and rows.rows is not None:
                origin = RowOrigin(paths=inputs, text=text, sequences=rows.sequences, rows=rows.rows, order=order)
            of_bin = dataclasses.replace(writing, width=width, examples=len(order), origin=origin)
            of_rows = plan.shard_format.write(prefix, blocks, of_bin)
            written += of_rows if plan.objective.bins is None else [dataclasses.replace(f, bin=number) for f in of_rows]
            places += len(order) * width
            masked += blocks.masked
    is_static = not plan.objective.dynamic_masking
    # The padding of packed rows is compared with that of unpacked ones, whether a file stores it or not.
    has_padding = plan.is_padded or plan.objective.pack
    return written, _counts(text, rows, places if has_padding else None, masked if is_static else None)


def _tokenize(inputs: Sequence[str], loaded: LoadedTokenizer) -> TokenizedText:
    """Return the text of some files, tokenized; raise UnusableInputError if there is no sentence in it."""
    text = loaded.tokenizer().tokenize_files(inputs)
    if not len(text.document_ends):
        raise UnusableInputError(
            f"{', '.join(inputs)}: there is no sentence in this text, so no example can be made; check the input."
        )
    return text


class _CountedBlocks:
    """Pass on blocks of rows, and count their masked positions."""

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
        blocks = _CountedBlocks(rows.lay_out(rows.order[place :: len(outputs)], writing.width))
        written += write_records(path, blocks, writing)
        masked += blocks.masked
    return written, masked


def writing_of(
    vocabulary: Vocabulary, plan: ExamplesPlan, *, indexes: bool, packed: bool = False, checksum: bool
) -> Writing:
    """Return the settings for files of the longest rows."""
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
    """Return the counts of a text and of its rows; places: for pieces, in all rows; None if rows are not padded."""
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
