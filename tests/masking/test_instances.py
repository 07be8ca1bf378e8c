"""Instances against the oracle, and what options are refused."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import Case, case_of, options_of, text_of, vocabulary_from, vocabulary_of
from oracles import pretraining as oracle
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.masking import instances as masking
from maskmill.masking.instances import Instances, make_instances
from maskmill.masking.kernels.masks import KEPT, KIND_SHIFT, MASKED, POSITION, REDRAWN
from maskmill.masking.options import MaskingOptions
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary
from maskmill.tokenization.wordpiece import Tokenizer


def tokenized(case: Case) -> tuple[TokenizedText, Vocabulary]:
    """The first text of a case."""
    settings = case.settings
    vocabulary = vocabulary_from(case.vocabulary, options_of(settings).duplicate_pieces)
    tokenizer = Tokenizer(vocabulary, do_lower_case=settings.do_lower_case, unicode=settings.unicode)
    return tokenizer.tokenize_bytes(case.inputs[0]), vocabulary


def as_oracle(instances: Instances, text: TokenizedText, vocabulary: Vocabulary) -> list[oracle.Instance]:
    """The instances as the oracle gives them: with pieces instead of places, in the order of writing."""
    names = dict(zip(vocabulary.ids.tolist(), vocabulary.pieces, strict=True))
    arrays = instances.arrays
    result = []
    for n in instances.order.tolist():
        (a, b), (a_length, b_length) = arrays.spans[n], arrays.lengths[n]
        parts = [[names[i] for i in text.ids[start : start + size]] for start, size in ((a, a_length), (b, b_length))]
        tokens = ["[CLS]", *parts[0], "[SEP]", *parts[1], "[SEP]"]
        first, first_redrawn = arrays.mask_ends[n - 1] if n else (0, 0)
        last, last_redrawn = arrays.mask_ends[n]
        redrawn = iter(arrays.redrawn[first_redrawn:last_redrawn].tolist())
        positions = [int(mask) & POSITION for mask in arrays.masks[first:last]]
        labels = [tokens[position] for position in positions]
        for position, mask in zip(positions, arrays.masks[first:last].tolist(), strict=True):
            kind = mask >> KIND_SHIFT
            assert kind in (MASKED, KEPT, REDRAWN)
            if kind != KEPT:
                tokens[position] = "[MASK]" if kind == MASKED else names[next(redrawn)]
        assert next(redrawn, None) is None
        segment_ids = [0] * (a_length + 2) + [1] * (b_length + 1)
        result.append(oracle.Instance(tokens, segment_ids, positions, labels, bool(arrays.is_random[n])))
    return result


def check(case: Case) -> None:
    """The instances of a case are those of the oracle."""
    text, vocabulary = tokenized(case)
    if not len(text.document_ends):
        return
    instances = make_instances(text, vocabulary, options_of(case.settings))
    pieces = dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))
    expected = oracle.make_instances(case.inputs[:1], pieces, case.settings)
    assert len(instances) == len(expected)
    assert as_oracle(instances, text, vocabulary) == expected


@tries(100, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_any_text_vocabulary_seed_and_options(seed: int) -> None:
    check(case_of(seed))


@tries(100, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_the_pieces_that_are_in_no_instance_are_counted(seed: int) -> None:
    case = case_of(seed)
    text, vocabulary = tokenized(case)
    if not len(text.document_ends):
        return
    instances = make_instances(text, vocabulary, options_of(case.settings))
    used: set[int] = set()
    for starts, sizes in zip(instances.arrays.spans.tolist(), instances.arrays.lengths.tolist(), strict=True):
        for start, size in zip(starts, sizes, strict=True):
            used.update(range(start, start + size))
    assert instances.unused == len(text.ids) - len(used)


SMALL = oracle.Settings(
    max_seq_length=16, max_predictions_per_seq=3, masked_lm_prob=0.15, short_seq_prob=0.5, dupe_factor=2, random_seed=3
)


def small_case(**settings: Any) -> Case:
    rng = random.Random(1)
    return Case([text_of(rng, 60)], vocabulary_of(rng), oracle.Settings(**vars(SMALL) | settings))


@pytest.mark.parametrize("whole_words", [False, True])
def test_arrays_that_are_guessed_too_small_grow(whole_words: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = []

    def barely_more(size: int) -> int:
        grown.append(size)
        return size + 1

    monkeypatch.setattr(masking, "_more", barely_more)
    monkeypatch.setattr(masking, "_guess", lambda *_: (1, SMALL.max_predictions_per_seq))
    check(small_case(do_whole_word_mask=whole_words))
    assert len(grown) > 10


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"max_seq_length": 4}, "max_seq_length 4: an example has 5 to 16,384 pieces "),
    ({"max_seq_length": 16_385}, "max_seq_length 16385: an example has 5 to 16,384 pieces "),
    ({"max_predictions_per_seq": 0}, "max_predictions_per_seq 0: without a masked position "),
    ({"max_predictions_per_seq": 16_385}, "max_predictions_per_seq 16385: the longest sequence has 16,384 "),
    ({"masked_lm_prob": 0.0}, "masked_lm_prob 0.0: this share must be above 0 and at most 1."),
    ({"masked_lm_prob": 1.01}, "masked_lm_prob 1.01: this share"),
    ({"masked_lm_prob": float("nan")}, "masked_lm_prob nan: this share"),
    ({"short_seq_prob": -0.1}, "short_seq_prob -0.1: this share must be from 0 to 1."),
    ({"short_seq_prob": 2}, "short_seq_prob 2: this share"),
    ({"dupe_factor": 0}, "dupe_factor 0: each document must be used at least once"),
    ({"dupe_factor": 10_001}, "dupe_factor 10001: this is how often each document is used, up to 10,000 times"),
    ({"unicode": "12.0.0"}, "unicode is '12.0.0'; it must be one of 11.0.0, 15.1.0."),
    ({"duplicate_pieces": "both"}, "duplicate_pieces is 'both'; it must be one of first, last."),
]


@pytest.mark.parametrize(("options", "sentence"), BAD_OPTIONS)
def test_unusable_options_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnusableInputError) as raised:
        MaskingOptions(**options)
    assert str(raised.value).startswith(sentence)
