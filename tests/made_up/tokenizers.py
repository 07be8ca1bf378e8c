"""Tokenizers of the library `tokenizers` for tests: byte-level BPE with merges that nobody learnt, and others."""

import random
from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from maskmill.tokenization.byte_level import byte_characters

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

# Characters that go wrong where a rule does: contractions, letters and numbers of 1 to 4 bytes, white space.
CHARACTERS = (
    *"ab'stremvld13 .!-",
    *("  ", " a", " ab", "'s", "'ll", "'S", "é", "я", "中", "한", "𝒳", "²", "٣", "\t", "\xa0", "\u3000", "\u2028"),
    *("🙂", "\u200d", "e\u0301", "\x00", "\x1c", "\x85", "\x7f", "\ue000", "\U0010ffff"),
)


def byte_level_bpe(
    seed: int, *, merges: int = 60, prefix_space: bool = False, added: Sequence[AddedToken | str] = ()
) -> Tokenizer:
    """Byte-level BPE whose ids and ranks are in any order; several merges may give the same piece.

    Merges are mostly of pieces that occur in texts of CHARACTERS.
    """
    draw = random.Random(seed)
    names = byte_characters()
    likely = [names[byte] for character in CHARACTERS for byte in character.encode()]
    pieces = list(likely)
    pairs: dict[tuple[str, str], None] = {}
    for _ in range(merges):
        left, right = draw.choice(pieces), draw.choice(pieces)
        pairs[left, right] = None
        pieces.append(left + right)
    # The library would give a token that has no id the next one of their number, which another may have.
    contents = [token if isinstance(token, str) else token.content for token in added]
    vocabulary = list(dict.fromkeys([*SPECIAL_TOKENS, *contents, *names, *pieces]))
    ids = draw.sample(range(len(vocabulary) + 10), len(vocabulary))
    ranked = draw.sample(list(pairs), len(pairs)) if draw.random() < 0.5 else list(pairs)
    tokenizer = Tokenizer(models.BPE(vocab=dict(zip(vocabulary, ids, strict=True)), merges=ranked))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.add_tokens(list(added))
    return tokenizer
