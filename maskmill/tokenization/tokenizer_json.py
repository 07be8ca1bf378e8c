"""Hugging Face's descriptions of our tokenizers: tokenizer.json, and the files of transformers beside it.

The layout of tokenizer.json is that of huggingface/tokenizers (`Tokenizer.save`, from 0.20 on). The parts are those
that transformers saves for BERT's and RoBERTa's tokenizers, in the same order.
"""

import json
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

# In characters. A longer word becomes [UNK], in the reference and in kernels/wordpiece.py.
LONGEST_WORD = 200


def wordpiece(
    ids: Mapping[str, int], special: Sequence[str], roles: Mapping[str, str], *, do_lower_case: bool
) -> dict[str, Any]:
    """Return BERT's tokenizer: basic tokenizer, WordPiece, [CLS] … [SEP].

    Args:
      ids: the id of each piece.
      special: the pieces that the tokenizer finds in raw text before splitting it.
      roles: a token for each of Hugging Face's names unk_token, sep_token and cls_token.
      do_lower_case: whether it lower-cases text and strips accents.
    """
    cls, sep = roles["cls_token"], roles["sep_token"]
    begin, first, end = _special(cls, 0), {"Sequence": {"id": "A", "type_id": 0}}, _special(sep, 0)
    second = [{"Sequence": {"id": "B", "type_id": 1}}, _special(sep, 1)]
    return _tokenizer(
        added_tokens=[_added_token(token, ids[token]) for token in special],
        normalizer={
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": do_lower_case,
        },
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor={
            "type": "TemplateProcessing",
            "single": [begin, first, end],
            "pair": [begin, first, end, *second],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in sorted((cls, sep))
            },
        },
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
        model={
            "type": "WordPiece",
            "unk_token": roles["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": LONGEST_WORD,
            "vocab": dict(ids),
        },
    )


def byte_level_bpe(
    ids: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    special: Sequence[str],
    roles: Mapping[str, str],
    *,
    add_prefix_space: bool,
) -> dict[str, Any]:
    """Return RoBERTa's tokenizer: GPT-2's pattern and byte-level BPE, <s> … </s></s> … </s>.

    Args:
      ids: the id of each piece.
      merges: the two pieces of each merge; the first one is applied first.
      special: the pieces that the tokenizer finds in raw text before splitting it.
      roles: a token for each of Hugging Face's names sep_token, cls_token and mask_token.
      add_prefix_space: whether a text is treated as if it began with a space.
    """
    cls, sep, mask = roles["cls_token"], roles["sep_token"], roles["mask_token"]
    return _tokenizer(
        # RoBERTa's <mask> includes the space before it, because the piece that it replaces does.
        added_tokens=[_added_token(token, ids[token], lstrip=token == mask) for token in special],
        normalizer=None,
        pre_tokenizer=_byte_level(add_prefix_space),
        post_processor={
            "type": "RobertaProcessing",
            "sep": [sep, ids[sep]],
            "cls": [cls, ids[cls]],
            "trim_offsets": True,
            "add_prefix_space": add_prefix_space,
        },
        decoder=_byte_level(True),
        model={
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": dict(ids),
            "merges": [list(merge) for merge in merges],
        },
    )


def directory_files(tokenizer: Mapping[str, Any], roles: Mapping[str, str], *, positions: int) -> dict[str, Any]:
    """Return the contents of tokenizer_config.json and special_tokens_map.json, which transformers reads, by name.

    Args:
      tokenizer: the content of any tokenizer.json.
      roles: its tokens, by role (special_tokens.py).
      positions: the most tokens that the model takes.
    """
    tokens: dict[str, Any] = dict(roles)
    # The classes of BERT and RoBERTa build another tokenizer from the vocabulary, in which words of more than 100
    # characters are unknown, and without other normalisers. This class takes tokenizer.json as it is.
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions}
    model, normalizer, post_processor = (
        tokenizer.get(part) or {"type": None} for part in ("model", "normalizer", "post_processor")
    )
    if model["type"] == "WordPiece" and normalizer["type"] == "BertNormalizer":
        config["do_lower_case"] = normalizer["lowercase"]
        config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    elif post_processor["type"] == "RobertaProcessing":
        tokens |= {"bos_token": roles["cls_token"], "eos_token": roles["sep_token"]}
        config["model_input_names"] = ["input_ids", "attention_mask"]  # its models have one segment
    special = [token["content"] for token in tokenizer.get("added_tokens") or [] if token["special"]]
    if others := [token for token in special if token not in roles.values()]:
        tokens["additional_special_tokens"] = others
    return {"tokenizer_config.json": config | tokens, "special_tokens_map.json": tokens}


def token_ids(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    """Return the id of each token in the content of any tokenizer.json, added tokens included."""
    vocabulary = tokenizer["model"]["vocab"]
    if not isinstance(vocabulary, Mapping):  # Unigram's: pieces with their scores
        vocabulary = {piece: number for number, (piece, *_) in enumerate(vocabulary)}
    return {**vocabulary, **{token["content"]: token["id"] for token in tokenizer.get("added_tokens") or []}}


def lower_cases(content: bytes, ids: Mapping[str, int]) -> bool | None:
    """Return whether a tokenizer.json lower-cases text; None unless it is BERT's tokenizer with this vocabulary.

    Args:
      content: of the tokenizer.json beside a vocab.txt, which itself has no such setting.
      ids: the id of each piece of the vocabulary.
    """
    try:
        tokenizer = json.loads(content)
        normalizer = tokenizer["normalizer"]
        fits = normalizer["type"] == "BertNormalizer" and token_ids(tokenizer) == ids
        return bool(normalizer["lowercase"]) if fits else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def to_bytes(content: Mapping[str, Any]) -> bytes:
    """Return a JSON file as `tokenizers` and transformers write them: indented by two, characters as they are."""
    return (_written(content, "\n") + "\n").encode()


def _written(value: Any, margin: str) -> str:
    """Return indented JSON. Python's own encoder takes several times as long for a vocabulary.

    margin: the newline and the blanks before the closing bracket.
    """
    if isinstance(value, str):
        return encode_basestring(value)
    inner = margin + "  "
    if isinstance(value, Mapping) and value:
        items = [f"{inner}{encode_basestring(name)}: {_written(item, inner)}" for name, item in value.items()]
        return "{" + ",".join(items) + margin + "}"
    if isinstance(value, Sequence) and value:
        return "[" + ",".join([inner + _written(item, inner) for item in value]) + margin + "]"
    return json.dumps(value)


def _tokenizer(*, added_tokens: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    by_id = sorted(added_tokens, key=lambda token: token["id"])
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": by_id, **parts}


def _added_token(token: str, number: int, *, lstrip: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": lstrip, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": token, **flags}


def _special(token: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": token, "type_id": segment}}


def _byte_level(add_prefix_space: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": True}
