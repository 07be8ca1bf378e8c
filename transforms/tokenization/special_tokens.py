"""Special tokens: what a model uses them for, and what they are called."""

from collections.abc import Collection, Mapping

# Hugging Face's name of each role, and the tokens that have it in BERT's, RoBERTa's and similar vocabularies.
ROLES: Mapping[str, tuple[str, ...]] = {
    "unk_token": ("[UNK]", "<unk>"),
    "sep_token": ("[SEP]", "</s>", "<sep>"),
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>", "<cls>"),
    "mask_token": ("[MASK]", "<mask>"),
}


def roles_of(tokens: Collection[str]) -> dict[str, str]:
    """The token of each role, as far as one of the known names is among the tokens; the first name counts."""
    found = {role: next((name for name in names if name in tokens), None) for role, names in ROLES.items()}
    return {role: token for role, token in found.items() if token is not None}
