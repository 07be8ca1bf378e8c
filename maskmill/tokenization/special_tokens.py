"""Special tokens: what a model uses them for, and what they are called."""

from collections.abc import Collection, Mapping
from typing import Any

# Hugging Face's name of each role, and the tokens that have it in BERT's, RoBERTa's and similar vocabularies.
ROLES: Mapping[str, tuple[str, ...]] = {
    "unk_token": ("[UNK]", "<unk>"),
    "sep_token": ("[SEP]", "</s>", "<sep>"),
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>", "<cls>"),
    "mask_token": ("[MASK]", "<mask>"),
}


def roles_of(tokens: Collection[str]) -> dict[str, str]:
    """Return the token of each role, as far as one of the known names is among the tokens; the first name counts."""
    found = {role: next((name for name in names if name in tokens), None) for role, names in ROLES.items()}
    return {role: token for role, token in found.items() if token is not None}


def named_roles(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the token of each role that a tokenizer_config.json or a special_tokens_map.json with this content
    names.
    """
    named = {role: content.get(role) for role in ROLES}
    tokens = {role: token.get("content") if isinstance(token, dict) else token for role, token in named.items()}
    return {role: token for role, token in tokens.items() if isinstance(token, str)}
