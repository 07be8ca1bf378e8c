"""The files of a tokenizer in a Hugging Face directory, without which `AutoTokenizer` knows no word.

The tokenizer is BERT's WordPiece, with the vocabulary that the model was trained with. It is described twice: in
`tokenizer.json` for Hugging Face's tokenizers, and in `vocab.txt` for programs that read BERT's own file.
"""

import json
from collections.abc import Mapping
from typing import Any

from training import storage
from training.config import ModelConfig
from training.preflight import check_vocabulary_size
from transforms.errors import UnusableInputError
from transforms.storage import files

VOCABULARY = "vocab.txt"
CONFIG = "tokenizer_config.json"
# The files of any tokenizer of Hugging Face's.
_FILES = (
    "tokenizer.json", CONFIG, "special_tokens_map.json", "added_tokens.json", VOCABULARY, "vocab.json", "merges.txt",
)  # fmt: skip
# Hugging Face's names of the special tokens, by their roles. Examples are filled up with id 0, BERT's [PAD].
_ROLES = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
# A longer word is unknown, to the reference and to transforms/tokenization.
_LONGEST_WORD = 200


def of_conversion(
    vocabulary: str | None, do_lower_case: bool | None, *, beside: str, run: Mapping[str, Any], model: ModelConfig
) -> dict[str, bytes]:
    """The tokenizer's files for a conversion: their contents by name.

    Args:
      vocabulary: the vocabulary's file; by default the tokenizer or the vocabulary beside the input.
      do_lower_case: whether text is lower-cased; by default as the run did, or if no token has a capital letter.
      beside: the directory of the input.
      run: the settings of the run that the input is a checkpoint of, if it is one.
      model: the model's configuration.

    Raises:
      UnusableInputError: there is no vocabulary, or it is larger than the model's.
    """
    if vocabulary is None and do_lower_case is None:
        found = {name: files.join(beside, name) for name in _FILES}
        found = {name: path for name, path in found.items() if storage.exists(path)}
        if set(found) - {VOCABULARY}:
            return {name: storage.read_bytes(path) for name, path in found.items()}
    if vocabulary is None:
        vocabulary = files.join(beside, VOCABULARY)
        if not storage.exists(vocabulary):
            raise UnusableInputError(
                f"--vocab_file is missing: there is no {VOCABULARY} in {beside or '.'}, and without the vocabulary "
                "Hugging Face's tokenizer would know no word."
            )
    if do_lower_case is None:
        do_lower_case = run.get("do_lower_case")
    return of_vocabulary(vocabulary, do_lower_case, model)


def of_vocabulary(path: str, do_lower_case: bool | None, model: ModelConfig) -> dict[str, bytes]:
    """The files of BERT's tokenizer with a vocabulary: their contents by name.

    Raises:
      UnusableInputError: the vocabulary cannot be used, or it is larger than the model's.
    """
    from transforms.tokenization.vocabulary import load_vocabulary

    with storage.local_copy(path) as copy:
        vocabulary = load_vocabulary(copy)
    check_vocabulary_size(path, vocabulary.size, model)
    ids = dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))
    pieces = [piece for piece, _ in sorted(ids.items(), key=lambda item: item[1])]
    special = {role: token for role, token in _ROLES.items() if token in ids}
    special.setdefault("pad_token", pieces[0])
    if do_lower_case is None:
        do_lower_case = not any(piece != piece.lower() for piece in pieces if piece not in special.values())
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": do_lower_case,
        "model_max_length": model.max_position_embeddings,
        "tokenize_chinese_chars": True,
        "strip_accents": None,
        **special,
    }
    contents = {
        "tokenizer.json": _fast_tokenizer(ids, special, do_lower_case),
        CONFIG: config,
        "special_tokens_map.json": special,
    }
    made = {
        name: (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode() for name, content in contents.items()
    }
    return made | {VOCABULARY: "".join(f"{piece}\n" for piece in pieces).encode()}


def keep_vocabulary(path: str, directory: str) -> None:
    """Copies a run's vocabulary to its directory, so that its checkpoints can be exported with a tokenizer.

    Raises:
      UnusableInputError: the run was begun with another vocabulary.
      RunFailedError: it cannot be written.
    """
    kept, content = files.join(directory, VOCABULARY), storage.read_bytes(path)
    if not storage.exists(kept):
        storage.write_bytes(kept, content)
    elif storage.read_bytes(kept) != content:
        raise UnusableInputError(
            f"{directory}: this run was begun with another vocabulary ({kept}) than {path}; give that, or another "
            "--output_dir."
        )


def _fast_tokenizer(ids: Mapping[str, int], special: Mapping[str, str], do_lower_case: bool) -> dict[str, Any]:
    """The content of `tokenizer.json` (huggingface/tokenizers): BERT's steps from text to [CLS] … [SEP]."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = sorted({ids[token]: token for token in special.values()}.items())
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": token, **flags} for number, token in tokens],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": do_lower_case,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing",
            "sep": [special["sep_token"], ids[special["sep_token"]]],
            "cls": [special["cls_token"], ids[special["cls_token"]]],
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": special["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": dict(ids),
        },
    }
