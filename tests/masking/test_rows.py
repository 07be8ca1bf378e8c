"""Rows against plain Python: gathered from instances as the reference writes them, and from sequences, span by span."""

import dataclasses
import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import case_of, options_of, vocabulary_from
from oracles import pretraining as oracle
from properties import SEEDED, tries

from maskmill.masking import rows as masking
from maskmill.masking.instances import make_instances
from maskmill.masking.kernels.rows import RowArrays, Rows
from maskmill.masking.kernels.sequences import Sequences
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.row_masks import RowMasker
from maskmill.masking.rows import instance_blocks, make_rows, row_order, sequence_blocks
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.wordpiece import Tokenizer

OBJECTIVES = ("nsp", "mlm", "blocks", "sop")
ROW_BYTES = 4  # of input_ids, for a piece


def records_in(blocks: Iterable[tuple[RowArrays, int]]) -> list[oracle.Features]:
    """Rows of sentence pairs as google's features."""
    records: list[oracle.Features] = []
    for rows, count in blocks:
        length, predictions = rows.input_ids.shape[1], rows.positions.shape[1]
        for row in range(count):
            pieces, masked = int(rows.lengths[row]), int(rows.masked[row])
            assert rows.members[row] == 1
            assert rows.sequence_starts[row].tolist() == [0, pieces]
            records.append(
                {
                    "input_ids": rows.input_ids[row].tolist(),
                    "input_mask": [1] * pieces + [0] * (length - pieces),
                    "masked_lm_ids": rows.labels[row].tolist(),
                    "masked_lm_positions": rows.positions[row].tolist(),
                    "masked_lm_weights": [1.0] * masked + [0.0] * (predictions - masked),
                    "next_sentence_labels": rows.next_sentence_labels[row].tolist(),
                    "segment_ids": rows.segment_ids[row].tolist(),
                }
            )
    return records


# ---- from instances


@tries(100, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_rows_of_instances_are_the_records_of_the_reference(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(seed)
    settings = case.settings
    vocabulary = vocabulary_from(case.vocabulary, options_of(settings).duplicate_pieces)
    tokenizer = Tokenizer(vocabulary, do_lower_case=settings.do_lower_case, unicode=settings.unicode)
    text = tokenizer.tokenize_bytes(case.inputs[0])
    if not len(text.document_ends):
        return
    instances = make_instances(text, vocabulary, options_of(settings))
    pieces = dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))
    made = oracle.make_instances(case.inputs[:1], pieces, settings)
    expected = [oracle.features_of(instance, pieces, settings) for instance in made]
    rng = random.Random(seed)
    for block in (1, rng.choice([2, 3, 7]), 1000):
        monkeypatch.setattr(masking, "_BLOCK_BYTES", block * ROW_BYTES * settings.max_seq_length)
        assert (
            records_in(instance_blocks(text, instances, instances.order, vocabulary, options_of(settings))) == expected
        )
    step = rng.choice([2, 3])
    every = instance_blocks(text, instances, instances.order[::step], vocabulary, options_of(settings))
    assert records_in(every) == expected[::step]


VOCABULARY = vocabulary_from("\n".join(["[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(300)), "##1"]).encode())


def test_short_instances_fit_into_narrower_rows() -> None:
    sentences = "\n\n".join(" ".join(map(str, range(start, start + 3))) + "\n7 8" for start in range(250))
    text = Tokenizer(VOCABULARY).tokenize_bytes(sentences.encode())
    options = MaskingOptions(max_seq_length=24, max_predictions_per_seq=4, dupe_factor=2)
    instances = make_instances(text, VOCABULARY, options)
    lengths = instances.arrays.lengths.sum(axis=1)[instances.order] + 3
    for width in (8, 16):
        narrow = dataclasses.replace(options, max_seq_length=width)
        short = instances.order[lengths <= width]
        assert len(short) > 0
        wide_rows = records_in(instance_blocks(text, instances, short, VOCABULARY, options))
        for record in wide_rows:
            for name in ("input_ids", "input_mask", "segment_ids"):
                assert not any(record[name][width:])
                record[name] = record[name][:width]
        assert records_in(instance_blocks(text, instances, short, VOCABULARY, narrow)) == wide_rows
        if len(short) < len(lengths):
            with pytest.raises(ValueError, match=f"do not fit into rows of {width} pieces"):
                next(instance_blocks(text, instances, instances.order, VOCABULARY, narrow))


def test_no_instances_make_no_blocks() -> None:
    text = Tokenizer(VOCABULARY).tokenize_bytes(b"1 2 3\n4 5\n")
    options = MaskingOptions(max_seq_length=24, max_predictions_per_seq=4, dupe_factor=2)
    instances = make_instances(text, VOCABULARY, options)
    assert list(instance_blocks(text, instances, instances.order[:0], VOCABULARY, options)) == []


# ---- from sequences


@dataclasses.dataclass(frozen=True)
class Made:
    """A made-up text, sequences over it, and plain lists of what is in them."""

    text: TokenizedText
    sequences: Sequences
    pieces: list[list[int]]
    segments: list[list[int]]
    masking: MaskingOptions
    objective: ObjectiveOptions


def text_of_ids(ids: npt.NDArray[np.int32]) -> TokenizedText:
    """A text of one segment."""
    ends, one, zero = np.array([len(ids)], np.int64), np.ones(1, np.int64), np.zeros(1, np.int64)
    return TokenizedText(ids=ids, segment_ends=ends, document_ends=one, segment_lines=zero, words=0, unknown=0, bytes=0)


def made_up(rng: random.Random, **objective: Any) -> Made:
    """Sequences of spans of any sizes and special pieces, at most max_seq_length long in all."""
    most = rng.choice([5, 6, 16, 33, 128, 200])
    ids = np.array([rng.randrange(2**31 - 1) for _ in range(rng.choice([1, 9, 300, 2000]))], np.int32)
    spans: list[tuple[int, int, int]] = []
    ends, pieces, segments = [], [], []
    for _ in range(rng.choice([0, 1, 2, 30, 80])):
        left = rng.randint(1, most)
        pieces.append([])
        segments.append([])
        while left:
            size, segment = 1, rng.randrange(2)
            if rng.random() < 0.3:
                special = rng.choice([0, 101, 2**31 - 2])
                spans.append((-1 - special, 1, segment))
                pieces[-1].append(special)
            else:
                size = rng.randint(1, min(left, len(ids)))
                start = rng.choice([0, len(ids) - size, rng.randint(0, len(ids) - size)])
                spans.append((start, size, segment))
                pieces[-1] += ids[start : start + size].tolist()
            segments[-1] += [segment] * size
            left -= size
            if rng.random() < 0.1:
                break
        ends.append(len(spans))
    drawn = {"objective": rng.choice(OBJECTIVES), "pack": rng.random() < 0.5, "dynamic_masking": rng.random() < 0.5}
    options = ObjectiveOptions(**drawn | objective)
    columns = list(zip(*spans, strict=True)) if spans else [(), (), ()]
    sequences = Sequences(
        starts=np.array(columns[0], np.int64),
        sizes=np.array(columns[1], np.int32),
        segments=np.array(columns[2], np.uint8),
        ends=np.array(ends, np.int64),
        lengths=np.array(list(map(len, pieces)), np.int32),
        labels=np.array([rng.randrange(2) for _ in pieces] if options.objective in ("nsp", "sop") else [], np.uint8),
    )
    settings = MaskingOptions(
        max_seq_length=most,
        max_predictions_per_seq=rng.choice([1, 3, 300]),
        dupe_factor=1 if options.dynamic_masking else rng.choice([1, 3]),
        random_seed=rng.choice([0, 12345, -(2**70)]),
    )
    return Made(text_of_ids(ids), sequences, pieces, segments, settings, options)


class KeyMasker(RowMasker):
    """Writes the key of a row as its only label, at position 0, so that a test sees which rows were masked with it."""

    def __init__(self) -> None:
        """Needs nothing."""

    def draw(self, rows: RowArrays, count: int, epochs: npt.NDArray[np.int64], samples: npt.NDArray[np.int64]) -> None:
        """Masks nothing."""
        assert len(epochs) == len(samples) == count
        rows.masked[:count] = 1
        rows.positions[:count] = rows.labels[:count] = 0
        rows.labels[:count, 0] = 1000 * epochs + samples


def rows_in(blocks: Iterator[tuple[RowArrays, int]]) -> list[dict[str, Any]]:
    """What the arrays of all blocks say of each row, without what they leave open."""
    result = []
    for rows, count in blocks:
        assert 0 < count <= len(rows.lengths)
        for row in range(count):
            members = int(rows.members[row])
            result.append(
                {
                    "input_ids": rows.input_ids[row].tolist(),
                    "length": int(rows.lengths[row]),
                    "segment_ids": rows.segment_ids[row].tolist(),
                    "starts": rows.sequence_starts[row, : members + 1].tolist(),
                    "next_sentence_labels": rows.next_sentence_labels[row, :members].tolist(),
                    "masks": int(rows.masked[row]),
                    "positions": rows.positions[row].tolist(),
                    "labels": rows.labels[row].tolist(),
                }
            )
    return result


def plain_rows(made: Made, rows: Rows, order: Iterable[int]) -> list[dict[str, Any]]:
    """The same, made of lists."""
    result = []
    most, predictions = made.masking.max_seq_length, made.masking.max_predictions_per_seq
    pairs, dynamic = made.objective.objective in ("nsp", "sop"), made.objective.dynamic_masking
    for row in order:
        members = rows.members[rows.ends[row - 1] if row else 0 : rows.ends[row]].tolist()
        ids = [piece for sequence in members for piece in made.pieces[sequence]]
        segments = [segment for sequence in members for segment in made.segments[sequence]]
        starts = [sum(len(made.pieces[sequence]) for sequence in members[:k]) for k in range(len(members) + 1)]
        key = 1000 * int(rows.epochs[row]) + int(rows.samples[row])
        result.append(
            {
                "input_ids": ids + [0] * (most - len(ids)),
                "length": len(ids),
                "segment_ids": segments + [0] * (most - len(ids)) if pairs else [],
                "starts": starts,
                "next_sentence_labels": [int(made.sequences.labels[sequence]) for sequence in members] if pairs else [],
                "masks": 0 if dynamic else 1,
                "positions": [] if dynamic else [0] * predictions,
                "labels": [] if dynamic else [key] + [0] * (predictions - 1),
            }
        )
    return result


@tries(300, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_rows_of_sequences_are_those_of_a_plain_gather(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    made = made_up(rng)
    rows = make_rows(made.sequences, made.masking, made.objective)
    order = row_order(rows, made.masking, made.objective)
    masker = None if made.objective.dynamic_masking else KeyMasker()
    expected = plain_rows(made, rows, order.tolist())
    for block in (1, rng.choice([2, 3, 7]), 1000):
        monkeypatch.setattr(masking, "_BLOCK_BYTES", block * ROW_BYTES * made.masking.max_seq_length)
        blocks = sequence_blocks(
            made.text, made.sequences, rows, order, VOCABULARY, made.masking, made.objective, masker
        )
        assert rows_in(blocks) == expected
    part = sequence_blocks(
        made.text, made.sequences, rows, order[::-3], VOCABULARY, made.masking, made.objective, masker
    )
    assert rows_in(part) == expected[::-3]


@tries(100, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_no_piece_is_lost_or_doubled_in_any_epoch(seed: int) -> None:
    made = made_up(random.Random(seed), pack=True)
    rows = make_rows(made.sequences, made.masking, made.objective)
    order = row_order(rows, made.masking, made.objective)
    masker = None if made.objective.dynamic_masking else KeyMasker()
    found: dict[int, list[tuple[int, ...]]] = {epoch: [] for epoch in set(rows.epochs.tolist())}
    place = 0
    blocks = sequence_blocks(made.text, made.sequences, rows, order, VOCABULARY, made.masking, made.objective, masker)
    for row in rows_in(blocks):
        starts = row["starts"]
        assert starts[0] == 0
        assert starts[-1] == row["length"] <= made.masking.max_seq_length
        assert (np.diff(starts) > 0).all()
        sequences = [tuple(row["input_ids"][a:b]) for a, b in itertools.pairwise(starts)]
        found[int(rows.epochs[order[place]])] += sequences
        place += 1
    assert place == len(rows.ends)
    for sequences in found.values():
        assert sorted(sequences) == sorted(map(tuple, made.pieces))


@pytest.mark.parametrize("pack", [False, True], ids=["unpacked", "packed"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_epochs_repeat_the_rows_of_objectives_without_passes_of_their_own(objective: str, pack: bool) -> None:
    made = made_up(random.Random(3), objective=objective, pack=pack, dynamic_masking=False)
    once = make_rows(made.sequences, dataclasses.replace(made.masking, dupe_factor=1), made.objective)
    rows = make_rows(made.sequences, dataclasses.replace(made.masking, dupe_factor=3), made.objective)
    epochs = 3 if objective in ("mlm", "blocks") else 1
    count = len(once.ends)
    assert count > 1
    assert (count < len(made.pieces)) == pack
    assert len(rows.ends) == epochs * count
    assert rows.epochs.tolist() == [epoch for epoch in range(epochs) for _ in range(count)]
    assert rows.samples.tolist() == list(range(count)) * epochs
    members = np.split(rows.members, rows.ends[:-1])
    for row, sequences in enumerate(np.split(once.members, once.ends[:-1])):
        for epoch in range(epochs):
            assert np.array_equal(members[epoch * count + row], sequences)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_rows_are_shuffled_but_for_running_text_that_the_reader_masks(objective: str, dynamic: bool) -> None:
    count = 1000
    rows = Rows(*[np.arange(count)] * 4)
    expected = list(range(count))
    if not (dynamic and objective in ("mlm", "blocks")):
        random.Random(-5).shuffle(expected)
    options = ObjectiveOptions(objective=objective, dynamic_masking=dynamic)  # type: ignore[arg-type]
    assert row_order(rows, MaskingOptions(random_seed=-5), options).tolist() == expected


def test_rows_that_are_too_long_are_refused() -> None:
    made = made_up(random.Random(3), objective="mlm", pack=False, dynamic_masking=True)
    rows = make_rows(made.sequences, made.masking, made.objective)
    longest = int(made.sequences.lengths.max())
    narrow = dataclasses.replace(made.masking, max_seq_length=max(5, longest - 1))
    order = np.arange(len(rows.ends))
    with pytest.raises(ValueError, match=f"to {longest} do not fit into rows of {narrow.max_seq_length} pieces"):
        next(sequence_blocks(made.text, made.sequences, rows, order, VOCABULARY, narrow, made.objective, None))
    short = order[made.sequences.lengths <= narrow.max_seq_length]
    expected = plain_rows(dataclasses.replace(made, masking=narrow), rows, short.tolist())
    blocks = sequence_blocks(made.text, made.sequences, rows, short, VOCABULARY, narrow, made.objective, None)
    assert rows_in(blocks) == expected
