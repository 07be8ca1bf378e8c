"""Text to masked-language-model examples: tokenize, pair, mask, serialise. No Beam, no command line.

Makes the records of create_pretraining_data.py, of mlcommons/training (retired_benchmarks/bert) or, with whole-word
masking, of google-research/bert: for the same text, vocabulary, options and seed the same features, record for record.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from transforms.errors import UnusableInputError
from transforms.masking.instances import Instances, make_instances
from transforms.masking.options import MaskingOptions
from transforms.records.kernels import serialize as serialize_kernels
from transforms.records.tfrecord import WrittenFile
from transforms.storage import files
from transforms.tokenization.vocabulary import Vocabulary
from transforms.tokenization.wordpiece import TokenizedText, Tokenizer

_BUFFER_BYTES = 4 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleCounts:
    """What went into examples, and what came out.

    Attributes:
      text_bytes: of the text read, carriage returns not counted.
      documents: with at least one sentence.
      sentences: lines with at least one piece.
      tokens: pieces of all sentences.
      unknown_words: words that became [UNK].
      examples: records written.
      random_next: of them, with a second part from another document (next sentence label 1).
      masked_positions: of all examples.
    """

    text_bytes: int
    documents: int
    sentences: int
    tokens: int
    unknown_words: int
    examples: int
    random_next: int
    masked_positions: int


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
    """Makes the examples of one group of text files and writes them as TFRecords.

    Args:
      inputs: text files, one sentence a line, blank lines between documents; read as one, in this order.
      outputs: the records are dealt to these files in turn.
      vocabulary: WordPiece vocabulary.
      options: how examples are made.
      indexes: write `OUTPUT.idx` beside each output, DALI's index: a line "offset size" for each record, its frame
        included. For packed files the offsets are those of the unpacked content.
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
    if vocabulary.duplicates != options.duplicate_pieces:
        raise ValueError("the vocabulary was loaded with another rule for duplicate pieces than the options say")
    tokenizer = Tokenizer(vocabulary, do_lower_case=options.do_lower_case, unicode=options.unicode)
    text = tokenizer.tokenize_files(inputs)
    if not len(text.document_ends):
        raise UnusableInputError(
            f"{', '.join(inputs)}: there is no sentence in this text, so no example can be made; check the input."
        )
    instances = make_instances(text, vocabulary, options)
    written = write_instances(
        outputs, text, instances, vocabulary, options, indexes=indexes, packed=packed, checksum=checksum
    )
    counts = ExampleCounts(
        text_bytes=text.bytes,
        documents=len(text.document_ends),
        sentences=len(text.segment_ends),
        tokens=len(text.ids),
        unknown_words=text.unknown,
        examples=len(instances),
        random_next=int(np.count_nonzero(instances.is_random)),
        masked_positions=len(instances.masks),
    )
    return written, counts


def write_instances(
    outputs: Sequence[str],
    text: TokenizedText,
    instances: Instances,
    vocabulary: Vocabulary,
    options: MaskingOptions,
    *,
    indexes: bool = True,
    packed: bool = False,
    checksum: bool = True,
) -> list[WrittenFile]:
    """Writes the instances of a text as TFRecords; see `write_examples`."""
    return [
        written
        for place, path in enumerate(outputs)
        for written in _write(
            path, place, len(outputs), text, instances, vocabulary, options, indexes, packed, checksum
        )
    ]


def _write(
    path: str,
    place: int,
    step: int,
    text: TokenizedText,
    instances: Instances,
    vocabulary: Vocabulary,
    options: MaskingOptions,
    indexes: bool,
    packed: bool,
    checksum: bool,
) -> list[WrittenFile]:
    """Writes every `step`-th record from `place` on, and the index."""
    most = serialize_kernels.most_record_bytes(options.max_seq_length, options.max_predictions_per_seq)
    records = max(1, _BUFFER_BYTES // most)
    buffer = np.empty(records * most, np.uint8)
    sizes = np.empty(records, np.int64)
    lines = np.empty(records * 42, np.uint8)
    varints = np.empty(max(vocabulary.size, options.max_seq_length), np.uint64)
    serialize_kernels.make_varints(varints)
    heads = np.empty(serialize_kernels.HEADS, np.uint8)
    serialize_kernels.make_heads(options.max_seq_length, options.max_predictions_per_seq, heads)
    pieces = np.empty(options.max_seq_length, np.int32)
    cls_id, sep_id, mask_id = (vocabulary.id_of(piece) for piece in ("[CLS]", "[SEP]", "[MASK]"))
    index: list[bytes] = []
    offset = 0
    with files.new_file(path, checksum=checksum, packed=packed) as file:
        for first in range(place, len(instances), records * step):
            last = min(first + records * step, len(instances))
            start = serialize_kernels.serialize_records(
                text.ids, instances.spans, instances.lengths, instances.is_random, instances.mask_ends,
                instances.masks, instances.redrawn, instances.order, varints, heads, pieces,
                cls_id, sep_id, mask_id, options.max_seq_length, options.max_predictions_per_seq, first, last, step,
                buffer, sizes,
            )  # fmt: skip
            file.write(buffer.data[start:])
            if indexes:
                count = math.ceil((last - first) / step)
                used = serialize_kernels.index_lines(sizes, count, offset, lines)
                index.append(lines[:used].tobytes())
            offset += len(buffer) - start
    written = [WrittenFile(path=path, size=file.size, sha256=file.sha256 if checksum else None)]
    if indexes:
        with files.new_file(f"{path}.idx", checksum=checksum) as file:
            file.write(b"".join(index))
        written.append(WrittenFile(path=file.path, size=file.size, sha256=file.sha256 if checksum else None))
    return written
