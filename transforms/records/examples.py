"""Text to masked-language-model examples: tokenize, pair, mask, serialise. No Beam, no command line.

Makes the records of create_pretraining_data.py, of mlcommons/training (retired_benchmarks/bert) or, with whole-word
masking, of google-research/bert: for the same text, vocabulary, options and seed the same features, record for record.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from transforms.errors import UnusableInputError
from transforms.masking.instances import Instances, make_instances
from transforms.masking.options import MaskingOptions
from transforms.records.serialization import Serializer
from transforms.records.tfrecord import WrittenFile, write_tfrecord
from transforms.tokenization.vocabulary import Vocabulary
from transforms.tokenization.wordpiece import TokenizedText, Tokenizer

# Whose kernels `write_examples` runs, as transforms.kernels.compiler.prepare names them.
KERNELS = ("kernels", "tokenization", "masking", "records")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExampleCounts:
    """What went into examples, and what came out.

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
      random_next: of them, with a second part from another document (next sentence label 1).
      masked_positions: of all examples.
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
      indexes: write DALI's index, `OUTPUT.idx`, beside each output; see `tfrecord.index_tfrecord`.
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
        unused_tokens=instances.unused,
        words=text.words,
        unknown_words=text.unknown,
        examples=len(instances),
        example_tokens=int(instances.arrays.lengths.sum()),
        random_next=int(np.count_nonzero(instances.arrays.is_random)),
        masked_positions=len(instances.arrays.masks),
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
    serializer = Serializer(vocabulary, options)
    written = []
    for place, path in enumerate(outputs):
        blocks = serializer.blocks(text, instances, instances.order[place :: len(outputs)])
        written += write_tfrecord(path, blocks, index=indexes, packed=packed, checksum=checksum)
    return written
