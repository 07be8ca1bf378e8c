"""What a learner gives: the pieces of a vocabulary, and the merges that made them."""

import dataclasses

import numpy as np
import numpy.typing as npt

from transforms.vocabularies.options import VocabularyKind


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnedVocabulary:
    """A vocabulary in the order of its ids.

    Attributes:
      kind: wordpiece or bpe.
      pieces: one for each id, as the tokenizer's file has them: with wordpiece "##" before a piece that goes on a word;
        with bpe in GPT-2's characters for bytes ("Ġthe"). First the special tokens, then the reserved ones, then the
        alphabet, then a piece for each merge, in their order.
      special: how many of the first pieces are special or reserved tokens.
      alphabet: how many pieces of one character (wordpiece) or byte (bpe) follow them.
      merges: int32[merges, 2], the ids of the left and the right part; the first merge was made first, and made
        the first piece behind the alphabet.
    """

    kind: VocabularyKind
    pieces: tuple[str, ...]
    special: int
    alphabet: int
    merges: npt.NDArray[np.int32]
