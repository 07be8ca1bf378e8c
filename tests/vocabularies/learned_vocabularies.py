"""Vocabularies that `tokenizers` learns, as our learners give theirs."""

import json
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from maskmill.vocabularies.learning import LearnedVocabulary
from maskmill.vocabularies.options import VocabularyOptions

TEXT = (
    "The quick brown fox jumps over the lazy dogs.",
    "The dogs' foxes don't jump: they're quicker, and the brown ones are laziest.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "色は匂へど散りぬるを、我が世誰ぞ常ならむ。",
    "1,234.5 and \"quotes\" \\ back\tslash",
) * 2  # fmt: skip


def learn(options: VocabularyOptions, text: Sequence[str] = TEXT) -> tuple[LearnedVocabulary, Tokenizer]:
    """A vocabulary for a text, and the tokenizer of `tokenizers` that has learnt it."""
    options = options.decided
    special = list(options.first_tokens)
    if options.kind == "bpe":
        theirs = Tokenizer(models.BPE())
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=options.add_prefix_space)
        theirs.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(initial_alphabet=alphabet, **_common(options, special))
    else:
        theirs = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        theirs.normalizer = normalizers.BertNormalizer(lowercase=options.do_lower_case)
        theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        theirs.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(**_common(options, special))
    theirs.train_from_iterator(text, trainer)
    ids = theirs.get_vocab()
    pieces = tuple(sorted(ids, key=lambda piece: ids[piece]))
    merges = json.loads(theirs.to_str())["model"].get("merges", [])
    learned = LearnedVocabulary(
        kind=options.kind,
        pieces=pieces,
        special=len(special),
        alphabet=sum(len(piece.removeprefix("##")) == 1 for piece in pieces[len(special) :]),
        merges=np.array([[ids[left], ids[right]] for left, right in merges], np.int32).reshape(-1, 2),
    )
    return learned, theirs


def _common(options: VocabularyOptions, special: list[str]) -> dict[str, object]:
    return {
        "vocab_size": options.size,
        "min_frequency": options.min_frequency,
        "special_tokens": special,
        "show_progress": False,
    }
