"""Tokenizers that are trained on a few lines, as tokenizer.json."""

import functools

import tokenizers
from tokenizers import models, pre_tokenizers, trainers
from tokenizers.implementations import BertWordPieceTokenizer, ByteLevelBPETokenizer

ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LINES = [
    "The apple grows on trees, and it's eaten raw or cooked; as the pear is.",
    "Unfortunately, nobody's undertaken understandable undertakings: 1,234 of them!",
    "Ābols aug kokā, un to ēd jēlu. 苹果是一种常见的水果。",
    "Strawberries, raspberries and gooseberries are not trees' fruit.",
]


@functools.cache
def trained(kind: str) -> str:
    """The JSON of a tokenizer: bpe (byte-level), or unigram (SentencePiece's spaces); both with RoBERTa's names."""
    if kind == "bpe":
        pairs = ByteLevelBPETokenizer()
        pairs.train_from_iterator(LINES * 3, vocab_size=400, special_tokens=ROBERTA, show_progress=False)
        return str(pairs.to_str())
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=ROBERTA, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(LINES * 3, trainer)
    return str(tokenizer.to_str())


def bert(vocab_file: str) -> str:
    """The JSON of BERT's uncased tokenizer with this vocabulary."""
    return str(BertWordPieceTokenizer(vocab_file, lowercase=True).to_str())
