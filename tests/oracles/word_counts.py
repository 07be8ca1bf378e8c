"""Word counts in plain Python: WordPiece's words by the reference's basic tokenization, BPE's by `tokenizers`."""

import collections
import itertools
from collections.abc import Iterator

from tokenizers.pre_tokenizers import ByteLevel

from maskmill.tokenization.byte_level import byte_characters
from maskmill.vocabularies.counting import WordRules
from maskmill.vocabularies.learning import WordCounts
from oracles import pretraining as oracle
from oracles.line_joints import documents_of, with_joints

WORDPIECE = WordRules(kind="wordpiece", do_lower_case=True, add_prefix_space=False)
CASED = WordRules(kind="wordpiece", do_lower_case=False, add_prefix_space=False)
BPE = WordRules(kind="bpe", do_lower_case=False, add_prefix_space=False)
PREFIXED = WordRules(kind="bpe", do_lower_case=False, add_prefix_space=True)
ALL_RULES = (WORDPIECE, CASED, BPE, PREFIXED)

Counts = dict[bytes, int]


def count(content: bytes, rules: WordRules) -> tuple[Counts, int]:
    """The words of a text with their counts, in the order of their bytes; and how many are left out as too long."""
    words = list(_bpe_words(content, rules) if rules.kind == "bpe" else _wordpiece_words(content, rules))
    kept = [word for word in words if len(word) <= (1 << 20) and (rules.kind == "bpe" or len(word.decode()) <= 100)]
    return dict(sorted(collections.Counter(kept).items())), len(words) - len(kept)


def _wordpiece_words(content: bytes, rules: WordRules) -> Iterator[bytes]:
    plain = oracle.Tokenizer({}, rules.do_lower_case, oracle.unicode("15.1.0"))
    for line in oracle.lines_of(content, drops_returns=False):
        yield from (word.encode() for word in plain.words(line))


def _bpe_words(content: bytes, rules: WordRules) -> Iterator[bytes]:
    first_split = ByteLevel(add_prefix_space=rules.add_prefix_space).pre_tokenize_str
    split = ByteLevel(add_prefix_space=False).pre_tokenize_str
    numbers = {character: byte for byte, character in enumerate(byte_characters())}
    for lines in documents_of(oracle.lines_of(content, drops_returns=False)):
        for number, line in enumerate(with_joints(lines)):
            yield from (bytes(numbers[char] for char in word) for word, _ in (split if number else first_split)(line))


def as_dict(words: WordCounts) -> Counts:
    """What a table of counts says, in its order."""
    text = words.text.tobytes()
    places = itertools.pairwise([0, *words.ends.tolist()])
    return {text[start:end]: count for (start, end), count in zip(places, words.counts.tolist(), strict=True)}
