"""Learning: the merges of the oracle and of `tokenizers`, alphabets, and what cannot be learnt from."""

import collections
import json
import random
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import merges as oracle_merges
from properties import tries
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from maskmill.errors import UnusableInputError
from maskmill.tokenization.byte_level import byte_characters
from maskmill.vocabularies.learning import LearnedVocabulary, WordCounts, learn_vocabulary
from maskmill.vocabularies.options import VocabularyKind, VocabularyOptions

SPECIAL = 5


def table(words: Mapping[str, int] | Mapping[bytes, int]) -> WordCounts:
    """Word counts; the arrays are read-only, as those of files may be."""
    counts = {word.encode() if isinstance(word, str) else word: count for word, count in words.items()}
    text = sorted(counts)
    return WordCounts(
        np.frombuffer(b"".join(text), np.uint8),
        np.cumsum([len(word) for word in text], dtype=np.int64),
        np.array([counts[word] for word in text], np.int64),
    )


def merges_of(learned: LearnedVocabulary) -> list[tuple[str, str]]:
    return [(learned.pieces[left], learned.pieces[right]) for left, right in learned.merges.tolist()]


def of_library(tokenizer: Tokenizer) -> tuple[list[str], list[tuple[str, str]]]:
    """The pieces and the merges of a tokenizer of `tokenizers`."""
    model = json.loads(tokenizer.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get), [(left, right) for left, right in model["merges"]]


# Few letters, so that pairs overlap, tie, and stand beside themselves.
WORDS = st.dictionaries(st.text("ab", min_size=1, max_size=30) | st.text("abcé", min_size=1, max_size=9),
                        st.integers(1, 9) | st.integers(1 << 33, (1 << 33) + 3), min_size=1, max_size=12)  # fmt: skip


@tries(80)
@given(words=WORDS, kind=st.sampled_from(["wordpiece", "bpe"]), more=st.integers(0, 60), least=st.integers(1, 4))
def test_merges_are_the_oracles(words: dict[str, int], kind: VocabularyKind, more: int, least: int) -> None:
    words = {"a": 4, "b": 4} | words
    options = VocabularyOptions(kind=kind, size=(267 if kind == "bpe" else 20) + more, min_frequency=least)
    learned = learn_vocabulary(table(words), options)
    first = learned.special + learned.alphabet
    alphabet = list(learned.pieces[:first])
    if kind == "bpe":
        # The oracle has a character for each byte.
        byte_of = {character: chr(byte) for byte, character in enumerate(byte_characters())}
        alphabet[SPECIAL:] = [byte_of[piece] for piece in alphabet[SPECIAL:]]
    encoded = {word.encode(): count for word, count in words.items()}
    expected = oracle_merges.merges(encoded, alphabet, kind, options.size or 0, least)
    assert learned.merges.tolist() == [list(pair) for pair in expected]
    assert len(set(learned.pieces)) == len(learned.pieces)
    for piece, (left, right) in zip(learned.pieces[first:], merges_of(learned), strict=True):
        assert piece == left + right.removeprefix("##" if kind == "wordpiece" else "")


@tries(60)
@given(words=st.dictionaries(st.text("ab", min_size=1, max_size=40), st.integers(1, 9), min_size=1, max_size=12),
       more=st.integers(0, 60), least=st.integers(1, 4))  # fmt: skip
def test_wordpiece_merges_are_those_of_tokenizers(words: dict[str, int], more: int, least: int) -> None:
    """The library is given our alphabet, because the order of its own is that of a hash table, another in each run."""
    words = {"a": 2, "b": 2} | words
    learned = learn_vocabulary(table(words), VocabularyOptions(size=20 + more, min_frequency=least))
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=20 + more, min_frequency=least, continuing_subword_prefix="##", show_progress=False,
        special_tokens=list(learned.pieces[: learned.special + learned.alphabet]),
    )  # fmt: skip
    theirs.train_from_iterator([" ".join([word] * count) for word, count in words.items()], trainer)
    assert of_library(theirs) == (list(learned.pieces), merges_of(learned))


def made_up_text(words: int) -> list[str]:
    """Lines of words that are made of syllables, the frequent ones much more frequent."""
    rng = random.Random(15)
    syllables = [first + second for first in "bcdfgklmnprstšßж日" for second in ("a", "e", "io", "ü", "о", "ند")]
    known = ["".join(rng.choices(syllables, k=rng.randint(1, 5))) for _ in range(3000)]
    text = rng.choices(known, [1 / (rank + 1) for rank in range(len(known))], k=words)
    return [" ".join(text[at : at + 10]) + ", 1,234-56 ... don't\t!" for at in range(0, words, 10)]


def test_bpe_of_a_text_is_that_of_tokenizers() -> None:
    lines = made_up_text(30_000)
    options = VocabularyOptions(kind="bpe", size=3000).decided
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = byte_level
    trainer = trainers.BpeTrainer(
        vocab_size=3000, min_frequency=2, special_tokens=list(options.first_tokens), show_progress=False,
        initial_alphabet=byte_level.alphabet(),
    )  # fmt: skip
    theirs.train_from_iterator(lines, trainer)
    byte_of = {character: byte for byte, character in enumerate(byte_characters())}
    counts: collections.Counter[bytes] = collections.Counter()
    for line in lines:
        counts.update(bytes(byte_of[character] for character in word) for word, _ in byte_level.pre_tokenize_str(line))
    learned = learn_vocabulary(table(counts), options)
    assert of_library(theirs) == (list(learned.pieces), merges_of(learned))
    assert (learned.special, learned.alphabet, len(learned.pieces)) == (SPECIAL, 256, 3000)


# ---- alphabets


def alphabet_of(words: Mapping[str, int], **options: int) -> list[str]:
    learned = learn_vocabulary(table(words), VocabularyOptions(**{"size": 1000, "min_frequency": 2, **options}))
    return list(learned.pieces[learned.special :][: learned.alphabet])


def test_wordpiece_begins_with_all_characters_then_with_those_that_go_on_words() -> None:
    assert alphabet_of({"ba": 2, "cab": 3, "日": 2}) == ["a", "b", "c", "日", "##a", "##b"]


def test_a_limited_alphabet_has_the_most_frequent_characters_and_of_those_the_first() -> None:
    words = {"z": 9, "d": 2, "b": 2, "c": 2, "e": 1}
    assert alphabet_of(words, limit_alphabet=3) == ["b", "c", "z"]
    assert alphabet_of(words, limit_alphabet=99) == ["b", "c", "d", "e", "z"]


@pytest.mark.parametrize(("of_b", "kept"), [(1, ["a"]), (2, ["a", "b"])])
def test_without_a_limit_characters_that_are_too_rare_are_left_out(of_b: int, kept: list[str]) -> None:
    assert alphabet_of({"a": 100, "b": of_b}) == kept


@pytest.mark.parametrize(("of_a", "kept"), [(19_996, ["a", "b"]), (39_996, ["a"])])
def test_without_a_limit_one_of_ten_thousand_characters_is_left_out(of_a: int, kept: list[str]) -> None:
    assert alphabet_of({"a": of_a, "b": 2, "c": 2}) == kept


def test_words_with_a_character_that_is_left_out_teach_nothing() -> None:
    learned = learn_vocabulary(table({"abé": 9, "ba": 2}), VocabularyOptions(size=99, limit_alphabet=2))
    assert learned.pieces[SPECIAL:] == ("a", "b", "##a", "##b", "ba")


# ---- what cannot be learnt from


def test_words_without_frequent_characters_are_refused() -> None:
    with pytest.raises(UnusableInputError, match="no character of the input occurs 2 times; name more text"):
        learn_vocabulary(table({"ab": 1, "cd": 1}), VocabularyOptions())


def test_words_without_frequent_pairs_leave_the_alphabet() -> None:
    learned = learn_vocabulary(table({" abc": 1, "d": 1}), VocabularyOptions(kind="bpe"))
    assert (len(learned.pieces), learned.merges.shape) == (SPECIAL + 256, (0, 2))


def test_an_alphabet_that_is_larger_than_the_vocabulary_is_refused() -> None:
    words = {"abc": 2, "d": 2}
    assert len(learn_vocabulary(table(words), VocabularyOptions(size=SPECIAL + 6)).pieces) == SPECIAL + 6
    with pytest.raises(UnusableInputError) as error:
        learn_vocabulary(table(words), VocabularyOptions(size=SPECIAL + 5))
    assert str(error.value) == (
        "--size 10 is less than the 5 special and reserved tokens and the 6 characters of this text; give 11 or more, "
        "or a smaller --limit_alphabet."
    )


@pytest.mark.parametrize("taken", ["a", "##b", "ab"])
def test_a_special_token_that_the_text_has_as_a_piece_is_refused(taken: str) -> None:
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", taken)
    with pytest.raises(UnusableInputError, match=f"--special_tokens: {taken} is a piece of this text, too"):
        learn_vocabulary(table({"ab": 2, "b": 2}), VocabularyOptions(special_tokens=special))


def test_a_long_word_is_merged_in_linear_time() -> None:
    """Each merge of the naive way would go through all of it."""
    learned = learn_vocabulary(table({b"ab" * (1 << 19): 1, b"c": 1}), VocabularyOptions(kind="bpe"))
    assert max(map(len, learned.pieces)) == 1 << 19


@pytest.mark.parametrize(("kind", "alphabet"), [("wordpiece", 1), ("bpe", 256)])
def test_the_smallest_size_has_room_for_the_alphabet(kind: VocabularyKind, alphabet: int) -> None:
    least = len(VocabularyOptions(kind=kind).first_tokens) + alphabet
    assert VocabularyOptions(kind=kind, size=least).decided_size == least
    with pytest.raises(UnusableInputError, match=f"give {least} or more"):
        VocabularyOptions(kind=kind, size=least - 1)
