"""Sequences of each objective against the oracle, and what becomes of each piece of the text."""

import gzip
import math
import random
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import vocabulary_of_pieces
from oracles import sequences as oracle
from oracles.sequences import CLS, SEP, Document
from properties import SEEDED, tries

from maskmill.masking import instances
from maskmill.masking.instances import word_continuations
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.sequences import MadeSequences, make_sequences
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary, load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

VOCABULARY = vocabulary_of_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a"])
SPECIAL = {-1 - 2: CLS, -1 - 3: SEP}  # as Sequences.starts has them
CROSSING = [True, False]
BLOCKS = [(separators, remainder) for separators in ("none", "sep", "recipe") for remainder in ("carry", "drop")]
PAIRS = [("nsp", "reference"), ("nsp", "strict"), ("sop", "ordered")]


def documents_of(sizes: Sequence[Sequence[int]]) -> list[Document]:
    """Documents of sentences of so many pieces; each piece is the number of its place in the text."""
    pieces = iter(range(sum(map(sum, sizes))))
    return [[[next(pieces) for _ in range(size)] for size in document] for document in sizes]


def random_documents(rng: random.Random) -> list[Document]:
    """Documents of few or many, short or long sentences."""
    lengths = rng.choice([[1], [1, 2, 3], [1, 5, 12, 30], [4, 7, 9], [1, 20, 400]])
    counts = rng.choice([[1], [1, 1, 2], [1, 3, 10], [20, 40]])
    count = rng.choice([1, 1, 2, 3, 10, 30])
    return documents_of([[rng.choice(lengths) for _ in range(rng.choice(counts))] for _ in range(count)])


def random_length(rng: random.Random) -> int:
    return rng.choice([5, 6, 7, 8, 9, 11, 16, 20, 33, 64, 128])


def text_of(documents: Sequence[Document], continuing: Collection[int] = ()) -> TokenizedText:
    """The documents as the tokenizer gives them. continuing: the pieces that go on a word."""
    sentences = [sentence for document in documents for sentence in document]
    ids = np.full(sum(map(len, sentences)), VOCABULARY.id_of("a"), np.int32)
    ids[list(continuing)] = VOCABULARY.id_of("##a")
    return TokenizedText(
        ids=ids,
        segment_ends=np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64),
        document_ends=np.cumsum([len(document) for document in documents], dtype=np.int64),
        segment_lines=np.arange(len(sentences), dtype=np.int64),
        words=0,
        unknown=0,
        bytes=0,
    )


def make(
    documents: Sequence[Document],
    length: int,
    masking: dict[str, Any] | None = None,
    continuing: Collection[int] = (),
    **objective: Any,
) -> MadeSequences:
    """The sequences of documents."""
    options = MaskingOptions(max_seq_length=length, **(masking or {"dupe_factor": 1}))
    return make_sequences(text_of(documents, continuing), VOCABULARY, options, ObjectiveOptions(**objective))


def pieces_of(made: MadeSequences) -> list[list[int]]:
    """The pieces of each sequence: places in the text, CLS and SEP. Its arrays must agree with each other."""
    sequences = made.sequences
    assert (sequences.sizes > 0).all()
    assert len(sequences.starts) == len(sequences.sizes) == len(sequences.segments) == int(sequences.ends[-1:].sum())
    result: list[list[int]] = []
    first = 0
    for end in sequences.ends.tolist():
        result.append([])
        for start, size in zip(sequences.starts[first:end].tolist(), sequences.sizes[first:end].tolist(), strict=True):
            assert start >= 0 or size == 1
            result[-1] += range(start, start + size) if start >= 0 else [SPECIAL[start]]
        first = end
    assert sequences.lengths.tolist() == [len(sequence) for sequence in result]
    return result


def segments_of(made: MadeSequences) -> list[list[int]]:
    """The segment ids of each sequence."""
    of_pieces = np.repeat(made.sequences.segments, made.sequences.sizes)
    return [ids.tolist() for ids in np.split(of_pieces, np.cumsum(made.sequences.lengths)[:-1])] if len(made) else []


def text_in(sequences: Sequence[Sequence[int]]) -> list[int]:
    """The pieces of text in sequences, one after the other."""
    return [piece for sequence in sequences for piece in sequence if piece >= 0]


def tokens_of(documents: Sequence[Document]) -> int:
    return sum(len(sentence) for document in documents for sentence in document)


# ---- full sentences


@tries(150, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_full_sentences_of_any_documents(seed: int) -> None:
    rng = random.Random(seed)
    documents, length, crossing = random_documents(rng), random_length(rng), rng.choice(CROSSING)
    made = make(documents, length, objective="mlm", cross_documents=crossing)
    sequences = pieces_of(made)
    assert sequences == oracle.full_sentences(documents, length, crossing)
    assert text_in(sequences) == list(range(tokens_of(documents)))
    assert made.unused == made.dropped == 0
    assert made.split_sentences == sum(len(sentence) > length - 2 for document in documents for sentence in document)
    assert not made.sequences.segments.any()
    assert not len(made.sequences.labels)
    for sequence in sequences:
        assert 3 <= len(sequence) <= length
        assert sequence[-2] >= 0


def test_full_sentences_go_on_in_the_next_document_behind_a_separator() -> None:
    documents = documents_of([[2, 2], [3], [1, 9]])
    assert pieces_of(make(documents, 10, objective="mlm")) == [
        [CLS, 0, 1, 2, 3, SEP, 4, 5, 6, SEP],
        [CLS, 7, SEP],
        [CLS, 8, 9, 10, 11, 12, 13, 14, 15, SEP],
        [CLS, 16, SEP],
    ]
    assert pieces_of(make(documents, 10, objective="mlm", cross_documents=False))[:2] == [
        [CLS, 0, 1, 2, 3, SEP],
        [CLS, 4, 5, 6, SEP],
    ]


def test_the_rest_of_a_sentence_that_is_too_long_is_followed_by_the_next() -> None:
    made = make(documents_of([[7, 1]]), 5, objective="mlm")
    assert pieces_of(made) == [[CLS, 0, 1, 2, SEP], [CLS, 3, 4, 5, SEP], [CLS, 6, 7, SEP]]
    assert made.split_sentences == 1


@tries(100, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_filled_sequences_of_any_documents(seed: int) -> None:
    rng = random.Random(seed)
    documents, length, crossing = random_documents(rng), random_length(rng), rng.choice(CROSSING)
    made = make(documents, length, objective="mlm", full_sentences=False, cross_documents=crossing)
    sequences = pieces_of(made)
    assert sequences == oracle.filled(documents, length, crossing)
    assert text_in(sequences) == list(range(tokens_of(documents)))
    assert made.unused == made.dropped == made.split_sentences == 0


def test_filled_sequences_cut_sentences_where_they_are_full() -> None:
    documents = documents_of([[2, 5], [1, 4], [3]])
    made = make(documents, 10, objective="mlm", full_sentences=False)
    assert pieces_of(made) == [
        [CLS, 0, 1, 2, 3, 4, 5, 6, SEP],
        [CLS, 7, 8, 9, 10, 11, SEP, 12, 13, SEP],
        [CLS, 14, SEP],
    ]
    made = make(documents, 6, objective="mlm", full_sentences=False, cross_documents=False)
    assert pieces_of(made) == [
        [CLS, 0, 1, 2, 3, SEP],
        [CLS, 4, 5, 6, SEP],
        [CLS, 7, 8, 9, 10, SEP],
        [CLS, 11, SEP],
        [CLS, 12, 13, 14, SEP],
    ]


# ---- blocks


@tries(200, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_blocks_of_any_documents(seed: int) -> None:
    rng = random.Random(seed)
    documents, length, batch = random_documents(rng), random_length(rng), rng.choice([1, 2, 3, 1000])
    separators, remainder = rng.choice(BLOCKS)
    made = make(
        documents, length, objective="blocks", block_separators=separators, block_remainder=remainder, block_batch=batch
    )
    blocks = pieces_of(made)
    rows = batch if remainder == "drop" else None
    if separators == "recipe":
        assert blocks == oracle.recipe_blocks(documents, length, rows)
    else:
        assert blocks == oracle.blocks(documents, length, separators == "sep", rows)
    text = text_in(blocks)
    assert text == sorted(set(text))
    assert made.unused == made.dropped == tokens_of(documents) - len(text)
    if remainder == "carry":
        assert made.dropped == 0
    assert not made.sequences.segments.any()
    assert not len(made.sequences.labels)


def test_a_separator_stands_only_between_the_documents_of_a_block() -> None:
    made = make(documents_of([[3], [2], [1], [4]]), 7, objective="blocks", block_separators="sep")
    assert pieces_of(made) == [[CLS, 0, 1, 2, SEP, 3, SEP], [CLS, 4, SEP, 5, SEP, 6, SEP], [CLS, 7, 8, 9, SEP]]
    # After four pieces of seven there is no room for a separator and a piece.
    made = make(documents_of([[4], [2]]), 7, objective="blocks", block_separators="sep")
    assert pieces_of(made) == [[CLS, 0, 1, 2, 3, SEP], [CLS, 4, 5, SEP]]


def test_a_block_of_the_recipe_that_is_only_a_separator_is_left_out() -> None:
    made = make(documents_of([[4]]), 5, objective="blocks", block_separators="recipe")
    assert pieces_of(made) == [[CLS, 0, 1, 2, 3]]
    assert made.unused == 0


# ---- pairs


@tries(200, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_pairs_of_any_documents(seed: int) -> None:
    rng = random.Random(seed)
    documents, (objective, kind) = random_documents(rng), rng.choice(PAIRS)
    share = rng.choice([0, 0.3, 0.9, 1])
    rules = oracle.PairRules(
        continuing=frozenset(piece for piece in range(tokens_of(documents)) if rng.random() < share),
        kind=kind,
        length=random_length(rng),
        short_seq_prob=rng.choice([0.0, 0.1, 1.0]),
        dupe_factor=rng.choice([1, 2, 3]),
        seed=rng.randrange(2**64),
    )
    masking = {"short_seq_prob": rules.short_seq_prob, "dupe_factor": rules.dupe_factor, "random_seed": rules.seed}
    strict = kind == "strict"
    made = make(documents, rules.length, masking, rules.continuing, objective=objective, strict_labels=strict)
    expected = oracle.pairs(documents, rules)
    sequences = pieces_of(made)
    assert sequences == [pair.pieces for pair in expected]
    assert segments_of(made) == [pair.segments for pair in expected]
    assert made.sequences.labels.tolist() == [pair.label for pair in expected]
    assert made.unused == tokens_of(documents) - len(set(text_in(sequences)))
    check_labels(kind, documents, sequences, made.sequences.labels.tolist())


def check_labels(kind: str, documents: Sequence[Document], sequences: list[list[int]], labels: list[int]) -> None:
    """What a label says is true, where it must be."""
    owners = [n for n, document in enumerate(documents) for sentence in document for _ in sentence]
    for sequence, label in zip(sequences, labels, strict=True):
        middle = sequence.index(SEP)
        first, second = sequence[1:middle], sequence[middle + 1 : -1]
        assert sequence[0] == CLS
        assert sequence[-1] == SEP
        assert first
        assert second
        same = owners[first[0]] == owners[second[0]]
        if kind == "strict":
            assert label == (not same)
        if kind == "ordered":
            assert same
            assert label == (first[0] > second[0])
        if not label:
            assert same
            assert first[-1] < second[0]


@pytest.mark.parametrize(("objective", "kind"), PAIRS)
def test_room_for_pairs_that_is_guessed_too_small_grows(
    objective: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = documents_of([[4, 7, 2, 9] * 20] * 9)

    def sequences() -> list[list[int]]:
        return pieces_of(make(documents, 32, objective=objective, strict_labels=kind == "strict"))

    expected = sequences()
    monkeypatch.setattr(instances, "_guess", lambda *_: (1, 0))
    monkeypatch.setattr(instances, "_more", lambda size: size + 1)
    assert sequences() == expected


@pytest.mark.parametrize("objective", ["mlm", "blocks"])
def test_sentences_and_blocks_are_made_once_whatever_seed_and_dupe_factor_are(objective: str) -> None:
    documents = documents_of([[4, 7, 2, 9] * 20] * 9)
    masking = ({"dupe_factor": 1}, {"dupe_factor": 5, "random_seed": 1, "short_seq_prob": 1.0})
    once, often = (pieces_of(make(documents, 32, options, objective=objective)) for options in masking)
    assert once == often


def test_another_document_is_drawn_evenly() -> None:
    # Documents of one sentence, so that each pair takes its second part from another.
    documents = documents_of([[2]] * 8)
    made = make(documents, 16, {"dupe_factor": 2000}, objective="nsp", strict_labels=True)
    drawn = Counter((sequence[1] // 2, sequence[4] // 2) for sequence in pieces_of(made))
    assert sorted(drawn) == [(a, b) for a in range(8) for b in range(8) if a != b]
    for times in drawn.values():
        assert abs(times - 2000 / 7) < 5 * math.sqrt(2000 * 6 / 49)


def test_a_sentence_that_is_alone_is_split_at_any_point() -> None:
    made = make(documents_of([[6]]), 16, {"dupe_factor": 1000}, objective="sop")
    # The part that comes first in the text is the one with its first piece.
    points = Counter((s.index(SEP) - 1) if s[1] == 0 else len(s) - s.index(SEP) - 2 for s in pieces_of(made))
    assert sorted(points) == [1, 2, 3, 4, 5]
    for times in points.values():
        assert abs(times - 200) < 5 * math.sqrt(160)


def test_a_sentence_is_split_between_words_where_it_has_more_than_one() -> None:
    # Words of one, three and two pieces.
    made = make(documents_of([[6]]), 16, {"dupe_factor": 100}, {2, 3, 5}, objective="nsp", strict_labels=True)
    assert {sequence.index(SEP) - 1 for sequence in pieces_of(made)} == {1, 4}
    made = make(documents_of([[3]]), 16, {"dupe_factor": 100}, {1, 2}, objective="nsp", strict_labels=True)
    assert {sequence.index(SEP) - 1 for sequence in pieces_of(made)} == {1, 2}


@pytest.mark.parametrize(("objective", "strict"), [("sop", False), ("nsp", True)])
def test_a_single_piece_is_no_pair_and_is_counted(objective: str, strict: bool) -> None:
    made = make(documents_of([[1]]), 16, objective=objective, strict_labels=strict)
    assert len(made) == 0
    assert made.unused == 1
    made = make(documents_of([[1]] * 3), 16, objective=objective, strict_labels=strict)
    assert (len(made), made.unused) == ((0, 3) if objective == "sop" else (3, 0))


# ---- real text


@pytest.fixture(scope="module")
def vocabulary(data: Path) -> Vocabulary:
    return load_vocabulary(str(data / "vocab.txt"))


@pytest.fixture(scope="module")
def real_text(data: Path, vocabulary: Vocabulary) -> TokenizedText:
    content = b"\n".join(gzip.decompress(path.read_bytes()) for path in sorted(data.glob("gold/cleanup/part-*.gz")))
    return Tokenizer(vocabulary).tokenize_bytes(content)


@pytest.mark.builds
@pytest.mark.parametrize(("objective", "kind"), PAIRS)
def test_labels_of_real_text_are_balanced(
    objective: str, kind: str, real_text: TokenizedText, vocabulary: Vocabulary
) -> None:
    masking = MaskingOptions(dupe_factor=2)
    options = ObjectiveOptions(objective=objective, strict_labels=kind == "strict")  # type: ignore[arg-type]
    made = make_sequences(real_text, vocabulary, masking, options)
    rules = oracle.PairRules(
        kind=kind,
        length=masking.max_seq_length,
        short_seq_prob=masking.short_seq_prob,
        dupe_factor=masking.dupe_factor,
        seed=masking.random_seed,
        continuing=frozenset(np.flatnonzero(word_continuations(real_text, vocabulary)).tolist()),
    )
    sentences = [range(start, end) for start, end in pairwise([0, *real_text.segment_ends.tolist()])]
    documents = [sentences[start:end] for start, end in pairwise([0, *real_text.document_ends.tolist()])]
    pairs = oracle.pairs(documents, rules)
    labels = made.sequences.labels
    assert labels.tolist() == [pair.label for pair in pairs]
    of_text = made.sequences.starts[made.sequences.starts >= 0]
    assert of_text.tolist() == [piece for pair in pairs for piece in firsts_of(pair.pieces)]
    chosen = labels[[pair.chosen for pair in pairs]]
    assert len(chosen) > 1000
    assert abs(int(chosen.sum()) - len(chosen) / 2) < 4 * math.sqrt(len(chosen) / 4)


def firsts_of(pieces: list[int]) -> tuple[int, int]:
    """The first piece of each part of a pair."""
    return pieces[1], pieces[pieces.index(SEP) + 1]


# ---- hostile text


@pytest.mark.builds
@pytest.mark.parametrize("length", [5, 512])
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([[1]], id="one piece"),
        pytest.param([[100_000]], id="one long sentence"),
        pytest.param([[1]] * 20_000, id="documents of one piece"),
        pytest.param([[1, 100_000, 1], [100_000]], id="long sentences among short ones"),
    ],
)
def test_hostile_text(sizes: list[list[int]], length: int) -> None:
    documents = documents_of(sizes)
    options: list[dict[str, Any]] = [
        {"objective": "mlm", "cross_documents": crossing, "full_sentences": full}
        for crossing in CROSSING
        for full in (True, False)
    ]
    options += [
        {"objective": "blocks", "block_separators": separators, "block_remainder": remainder}
        for separators, remainder in BLOCKS
    ]
    options += [{"objective": objective, "strict_labels": kind == "strict"} for objective, kind in PAIRS]
    for chosen in options:
        made = make(documents, length, **chosen)
        sequences = pieces_of(made)
        assert len(set(text_in(sequences))) + made.unused == tokens_of(documents)
        assert all(len(sequence) <= length for sequence in sequences)
