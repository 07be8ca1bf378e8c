"""The roles of special tokens, and the names that tokens of each role have."""

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
    """Return for each role the first of its known names that is among the tokens, if there is one."""
    found = {role: next((name for name in names if name in tokens), None) for role, names in ROLES.items()}
    return {role: token for role, token in found.items() if token is not None}


def named_roles(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the token of each role that a tokenizer_config.json or special_tokens_map.json of this content names."""
    named = {role: content.get(role) for role in ROLES}
    tokens = {role: token.get("content") if isinstance(token, dict) else token for role, token in named.items()}
    return {role: token for role, token in tokens.items() if isinstance(token, str)}
