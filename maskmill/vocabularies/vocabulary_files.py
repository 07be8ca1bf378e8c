"""The files of a vocabulary: those that maskmill reads, and those that transformers needs in a model's directory."""

import json
from collections.abc import Mapping
from typing import Any

from maskmill.tokenization import tokenizer_json
from maskmill.tokenization.special_tokens import roles_of
from maskmill.vocabularies.learning import LearnedVocabulary
from maskmill.vocabularies.options import VocabularyKind, VocabularyOptions

VOCABULARY = "vocab.txt"
TOKENIZER = "tokenizer.json"
# GPT-2's files of a byte-level BPE, which older programs read.
BPE_IDS = "vocab.json"
BPE_MERGES = "merges.txt"
# The names of a vocabulary's files, and of the further files of a model's directory.
VOCABULARY_FILES: Mapping[VocabularyKind, tuple[str, ...]] = {
    "wordpiece": (VOCABULARY, TOKENIZER),
    "bpe": (TOKENIZER, BPE_IDS, BPE_MERGES),
}
MODEL_FILES = ("tokenizer_config.json", "special_tokens_map.json", "config.json")

_POSITIONS = 512  # of BERT's and RoBERTa's models
_MERGES_HEADER = "#version: 0.2\n"


def vocabulary_files(learned: LearnedVocabulary, options: VocabularyOptions) -> dict[str, bytes]:
    """Return the files of a vocabulary: their contents by name.

    For wordpiece: vocab.txt, one piece a line, and tokenizer.json. For bpe: tokenizer.json, vocab.json and merges.txt.
    `tokenizers` writes the same tokenizer.json for the same vocabulary, up to the newline at its end. Reserved tokens
    are ordinary pieces there, as in BERT's own file: they are not recognized in text.

    `tokenizers` gives the same ids as our tokenizers. For wordpiece there are two exceptions: it lower-cases a capital
    sigma at the end of a word to σ and drops private characters (Unicode's category Co), where Python, and with it
    BERT's own code and ours, gives ς and keeps them.
    """
    options = options.decided
    ids = {piece: number for number, piece in enumerate(learned.pieces)}
    special = learned.pieces[: learned.special - options.reserved_tokens]
    roles = roles_of(special)
    if learned.kind == "wordpiece":
        tokenizer = tokenizer_json.wordpiece(ids, special, roles, do_lower_case=bool(options.do_lower_case))
        return {
            VOCABULARY: "".join(f"{piece}\n" for piece in learned.pieces).encode(),
            TOKENIZER: tokenizer_json.to_bytes(tokenizer),
        }
    merges = [(learned.pieces[left], learned.pieces[right]) for left, right in learned.merges.tolist()]
    tokenizer = tokenizer_json.byte_level_bpe(ids, merges, special, roles, add_prefix_space=options.add_prefix_space)
    return {
        TOKENIZER: tokenizer_json.to_bytes(tokenizer),
        BPE_IDS: tokenizer_json.to_bytes(ids),
        BPE_MERGES: (_MERGES_HEADER + "".join(f"{left} {right}\n" for left, right in merges)).encode(),
    }


def model_files(vocabulary: Mapping[str, bytes], options: VocabularyOptions) -> dict[str, bytes]:
    """Return all files that `transformers.AutoTokenizer.from_pretrained` needs in a directory: their contents by name.

    These are the vocabulary's own and MODEL_FILES. config.json is for a model of BERT's (wordpiece) or RoBERTa's (bpe)
    base size with this vocabulary.

    vocabulary: the result of `vocabulary_files`, or the files that were written from it.
    """
    tokenizer = json.loads(vocabulary[TOKENIZER])
    ids = tokenizer_json.token_ids(tokenizer)
    roles = roles_of([token["content"] for token in tokenizer["added_tokens"]])
    described = tokenizer_json.directory_files(tokenizer, roles, positions=_POSITIONS)
    described["config.json"] = _model(options.kind, ids, roles)
    return {**vocabulary, **{name: tokenizer_json.to_bytes(described[name]) for name in MODEL_FILES}}


def _model(kind: VocabularyKind, ids: Mapping[str, int], roles: Mapping[str, str]) -> dict[str, Any]:
    """Return config.json's content; other settings are the defaults of transformers' BertConfig or RobertaConfig."""
    pad = ids[roles["pad_token"]]
    sizes = {"vocab_size": len(ids), "pad_token_id": pad}
    if kind == "wordpiece":
        return {"architectures": ["BertForPreTraining"], "model_type": "bert", **sizes}
    return {
        "architectures": ["RobertaForMaskedLM"],
        "model_type": "roberta",
        **sizes,
        "bos_token_id": ids[roles["cls_token"]],
        "eos_token_id": ids[roles["sep_token"]],
        "layer_norm_eps": 1e-5,
        # The positions of RoBERTa's tokens are counted from the one after the id of the padding.
        "max_position_embeddings": _POSITIONS + pad + 1,
        "type_vocab_size": 1,
    }
