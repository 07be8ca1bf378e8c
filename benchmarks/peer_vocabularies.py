"""Learns vocabularies with other projects' programs, each under a Python that has it. It imports nothing of maskmill.

    PYTHON peer_vocabularies.py tokenizers wordpiece|bpe SIZE OUT.json SHARD...
    PYTHON peer_vocabularies.py tensorflow-text wordpiece SIZE OUT.txt SHARD...

benchmarks/vocabulary.py calls it and measures it from outside. The settings are those with which BERT's and RoBERTa's
kind of vocabulary is usually learnt: `tokenizers`' BertWordPieceTokenizer (lower case, its alphabet of 1,000
characters) and ByteLevelBPETokenizer, on files of text; `bert_vocab_from_dataset` of tensorflow-text on the lines of
the same files.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MIN_FREQUENCY = 2
BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def train_tokenizers(kind: str, size: int, output: str, shards: Sequence[str]) -> None:
    """Learns a vocabulary with `tokenizers` and saves its tokenizer.json."""
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

    tokenizer: Any
    if kind == "wordpiece":
        tokenizer, special = BertWordPieceTokenizer(lowercase=True), BERT_TOKENS
    else:
        tokenizer, special = ByteLevelBPETokenizer(), ROBERTA_TOKENS
    tokenizer.train(
        list(shards), vocab_size=size, min_frequency=MIN_FREQUENCY, special_tokens=special, show_progress=False
    )
    tokenizer.save(output)


def train_tensorflow_text(size: int, output: str, shards: Sequence[str]) -> None:
    """Learns a WordPiece vocabulary with tensorflow-text and writes its pieces, one in each line."""
    import tensorflow as tf
    from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

    lines = tf.data.TextLineDataset(list(shards)).batch(1000)
    pieces = bert_vocab_from_dataset.bert_vocab_from_dataset(
        lines, vocab_size=size, reserved_tokens=BERT_TOKENS, bert_tokenizer_params={"lower_case": True}
    )
    Path(output).write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def main() -> None:
    """Learns one vocabulary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=("tokenizers", "tensorflow-text"))
    parser.add_argument("kind", choices=("wordpiece", "bpe"))
    parser.add_argument("size", type=int)
    parser.add_argument("output")
    parser.add_argument("shards", nargs="+")
    arguments = parser.parse_args()
    if arguments.library == "tokenizers":
        train_tokenizers(arguments.kind, arguments.size, arguments.output, arguments.shards)
    else:
        train_tensorflow_text(arguments.size, arguments.output, arguments.shards)


if __name__ == "__main__":
    main()
