"""Masks of rows against the oracle, their shares on real text, and that they depend on nothing but their key."""

import dataclasses
import gzip
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import row_masks as oracle
from properties import SEEDED, tries

from maskmill.masking.kernels import row_masks as kernels
from maskmill.masking.kernels.rows import RowArrays
from maskmill.masking.objective_options import MaskUnit, ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.row_masks import MaskedRows, RowMasker, draw_masks, row_mask_rules
from maskmill.tokenization.vocabulary import Vocabulary, load_vocabulary, wordpiece_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

UNITS: tuple[MaskUnit, ...] = get_args(MaskUnit)
Ints = npt.NDArray[np.int32]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[UNK]"]


def rows_of(rows: Sequence[Sequence[int]], width: int, most: int) -> RowArrays:
    """A block of rows without masks. Where masks will be written stands something else."""
    count = len(rows)
    input_ids = np.zeros((count, width), np.int32)
    for row, ids in zip(input_ids, rows, strict=True):
        row[: len(ids)] = ids
    return RowArrays(
        input_ids=input_ids,
        lengths=np.array([len(ids) for ids in rows], np.int32),
        segment_ids=np.zeros((count, 0), np.uint8),
        positions=np.full((count, most), 77, np.int32),
        labels=np.full((count, most), 77, np.int32),
        masked=np.full(count, 77, np.int32),
        sequence_starts=np.zeros((count, width // 2 + 1), np.int32),
        members=np.ones(count, np.int32),
        next_sentence_labels=np.zeros((count, 0), np.uint8),
        continues=np.zeros((count, 0), np.uint8),
    )


# ---- against the oracle


class Case(NamedTuple):
    """All that decides the masks of some rows. rows: of pieces, each with its epoch and sample."""

    vocabulary: Vocabulary
    masking: MaskingOptions
    objective: ObjectiveOptions
    rows: list[tuple[list[str], int, int]]


def shares_of(rng: random.Random) -> dict[str, float]:
    """Shares of masks, random pieces and kept ones, of which some may be 0."""
    parts = [rng.random() * rng.randint(0, 1) for _ in range(3)]
    parts[rng.randrange(3)] += 0.1
    names = ("mask_share", "random_share", "keep_share")
    return {name: part / sum(parts) for name, part in zip(names, parts, strict=True)}


def case_of(seed: int, unit: MaskUnit) -> Case:
    """Any vocabulary with gaps between its ids, any options, and rows of any pieces in any order."""
    rng = random.Random(seed)
    pieces = [*SPECIAL, "a", "b", *(f"w{n}" for n in range(rng.randrange(20))), "##c", "##d", "##e"]
    rng.shuffle(pieces)
    ids = np.sort(np.array(rng.sample(range(3 * len(pieces)), len(pieces)), np.int32))
    length = rng.choice([5, 16, 63, 64, 65, 130, 300])
    masking = MaskingOptions(
        max_seq_length=length,
        max_predictions_per_seq=rng.choice([1, 3, 20, length]),
        masked_lm_prob=rng.choice([0.15, 0.01, 0.5, 1.0]),
        random_seed=rng.choice([12345, -1, 2**64 - 1, -(2**70), rng.randrange(2**64)]),
    )
    objective = ObjectiveOptions(
        objective="mlm",
        mask_unit=unit,
        max_ngram=rng.randint(1, 6),
        span_probability=rng.uniform(0.05, 0.95),
        max_span=rng.randint(1, 12),
        **(shares_of(rng) if rng.random() < 0.7 else {}),
    )
    weights = [rng.random() ** 3 for _ in pieces]
    rows = [
        (
            rng.choices(pieces, weights, k=rng.choice([0, 1, 2, length, rng.randint(0, length)])),
            rng.choice([0, 1, rng.randrange(2**63)]),
            rng.randrange(-(2**63), 2**63),
        )
        for _ in range(rng.randint(1, 6))
    ]
    return Case(
        wordpiece_vocabulary("made up", "", "first", dict(zip(pieces, ids.tolist(), strict=True))),
        masking,
        objective,
        rows,
    )


def oracle_rules(vocabulary: Vocabulary, masking: MaskingOptions, objective: ObjectiveOptions) -> oracle.Rules:
    return oracle.Rules(
        unit=str(objective.mask_unit),
        pieces=vocabulary.pieces,
        masked_lm_prob=masking.masked_lm_prob,
        max_predictions=masking.max_predictions_per_seq,
        mask_share=objective.mask_share,
        random_share=objective.random_share,
        keep_share=objective.keep_share,
        max_ngram=objective.max_ngram,
        span_probability=objective.span_probability,
        max_span=objective.max_span,
    )


@pytest.mark.parametrize("unit", UNITS)
@tries(150, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_any_rows_vocabulary_and_options(unit: MaskUnit, seed: int) -> None:
    case = case_of(seed, unit)
    ids = dict(zip(case.vocabulary.pieces, case.vocabulary.ids.tolist(), strict=True))
    rows = rows_of(
        [[ids[piece] for piece in pieces] for pieces, _, _ in case.rows],
        case.masking.max_seq_length,
        case.masking.max_predictions_per_seq,
    )
    unused = rows_of([[0] * 5] * 2, case.masking.max_seq_length, case.masking.max_predictions_per_seq)
    block = RowArrays(*(np.concatenate(arrays) for arrays in zip(rows, unused, strict=True)))
    epochs, samples = np.array([row[1:] for row in case.rows], np.int64).T
    RowMasker(*case[:3]).draw(block, len(case.rows), epochs, samples)

    for n, (pieces, epoch, sample) in enumerate(case.rows):
        expected = oracle.mask(pieces, oracle_rules(*case[:3]), case.masking.random_seed, epoch, sample)
        padding = [0] * (case.masking.max_predictions_per_seq - len(expected.positions))
        assert block.input_ids[n, : len(pieces)].tolist() == [ids[piece] for piece in expected.tokens]
        assert not block.input_ids[n, len(pieces) :].any()
        assert block.positions[n].tolist() == expected.positions + padding
        assert block.labels[n].tolist() == [ids[piece] for piece in expected.labels] + padding
        assert block.masked[n] == len(expected.positions)
    for before, after in zip(unused, block, strict=True):
        assert (after[len(case.rows) :] == before).all()


@pytest.mark.parametrize("unit", UNITS)
@tries(50, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_it_makes_no_difference_whether_ids_or_rows_tell_words(unit: MaskUnit, seed: int) -> None:
    case = case_of(seed, unit)
    ids = dict(zip(case.vocabulary.pieces, case.vocabulary.ids.tolist(), strict=True))
    rows = [[ids[piece] for piece in pieces] for pieces, _, _ in case.rows]
    epochs, samples = np.array([row[1:] for row in case.rows], np.int64).T
    width, most = case.masking.max_seq_length, case.masking.max_predictions_per_seq
    expected = rows_of(rows, width, most)
    RowMasker(*case[:3]).draw(expected, len(rows), epochs, samples)
    continues = np.zeros((len(rows), width), np.uint8)
    for told, (pieces, _, _) in zip(continues, case.rows, strict=True):
        told[: len(pieces)] = [piece.startswith("##") for piece in pieces]
    block = rows_of(rows, width, most)._replace(continues=continues)
    of_tokenizer = dataclasses.replace(case.vocabulary, marks_words=False)
    RowMasker(of_tokenizer, *case[1:3]).draw(block, len(rows), epochs, samples)
    for one, other in zip(expected[:-1], block, strict=False):
        assert np.array_equal(one, other)


# ---- what a row's masks depend on


@pytest.fixture(scope="module")
def vocabulary(data: Path) -> Vocabulary:
    return load_vocabulary(str(data / "vocab.txt"))


@pytest.fixture(scope="module")
def text_ids(vocabulary: Vocabulary, data: Path) -> Ints:
    """The pieces of two shards of Wikipedia's text, one after the other."""
    content = b"\n".join(gzip.decompress(path.read_bytes()) for path in sorted(data.glob("gold/cleanup/part-*.gz")))
    return Tokenizer(vocabulary).tokenize_bytes(content).ids


WIDTH, MOST = 512, 77


@pytest.fixture(scope="module")
def real_rows(vocabulary: Vocabulary, text_ids: Ints) -> Ints:
    """int32[rows, WIDTH]: the text in rows, each with its [CLS] and [SEP]."""
    return full_rows(vocabulary, text_ids, WIDTH)


def full_rows(vocabulary: Vocabulary, ids: Ints, width: int) -> Ints:
    ids = ids[: len(ids) - len(ids) % (width - 2)].reshape(-1, width - 2)
    ends = [np.full((len(ids), 1), vocabulary.id_of(piece), np.int32) for piece in ("[CLS]", "[SEP]")]
    return np.concatenate([ends[0], ids, ends[1]], axis=1)


def masker(vocabulary: Vocabulary, unit: MaskUnit, **changes: Any) -> RowMasker:
    """A masker with the defaults of the options, for rows of WIDTH pieces."""
    masking = {"max_seq_length": WIDTH, "max_predictions_per_seq": MOST, "masked_lm_prob": 0.15, "random_seed": 7}
    of_masking = {name: changes.pop(name, value) for name, value in masking.items()}
    objective = ObjectiveOptions(objective="mlm", mask_unit=unit, **changes)
    return RowMasker(vocabulary, MaskingOptions(**of_masking), objective)


def masked_rows(drawer: RowMasker, ids: Ints, epochs: Any, samples: Any, most: int = MOST) -> RowArrays:
    """Copies of rows with their masks."""
    rows = rows_of([[]] * len(ids), 0, most)._replace(
        input_ids=ids.copy(), lengths=np.full(len(ids), ids.shape[1], np.int32)
    )
    drawer.draw(rows, len(ids), np.broadcast_to(epochs, len(ids)), np.asarray(samples))
    return rows


@pytest.mark.parametrize("unit", UNITS)
def test_every_part_of_the_key_changes_the_masks(unit: MaskUnit, vocabulary: Vocabulary, real_rows: Ints) -> None:
    ids = np.repeat(real_rows[:1], 4, axis=0)
    rows = masked_rows(masker(vocabulary, unit), ids, [0, 1, 0, 1], [0, 0, 1, 1])
    other = masked_rows(masker(vocabulary, unit, random_seed=8), ids, [0, 1, 0, 1], [0, 0, 1, 1])
    drawn = [row.tobytes() for row in (*rows.input_ids, *other.input_ids)]
    assert len(set(drawn)) == len(drawn)


def test_without_a_unit_whole_word_masking_decides(vocabulary: Vocabulary) -> None:
    for whole_words, unit in ((False, kernels.PIECE), (True, kernels.WHOLE_WORD)):
        masking = MaskingOptions(do_whole_word_mask=whole_words)
        assert RowMasker(vocabulary, masking, ObjectiveOptions(objective="mlm")).rules.unit == unit


def test_callers_use_the_compiled_code_of_the_warm_up(vocabulary: Vocabulary, real_rows: Ints) -> None:
    kernels.warm_up()
    masked_rows(masker(vocabulary, "span"), real_rows[:2], 0, np.arange(2))
    assert len(kernels.draw_row_masks.signatures) == 1


# ---- shares on real text

EPOCHS = 20


def assert_binomial(observed: Any, trials: Any, share: Any, spread: float = 1.0) -> None:
    """The observed counts are within 5 standard deviations of the binomial law, whose variance is `spread` times it."""
    trials = np.asarray(trials)
    within = 5 * np.sqrt(spread * trials * share * (1 - share))
    assert (np.abs(observed - trials * share) <= within).all(), (observed, trials * share, within)


class Drawn(NamedTuple):
    """Real rows with masks, EPOCHS times, of one unit. is_masked: bool[rows, WIDTH]."""

    unit: MaskUnit
    before: Ints
    rows: RowArrays
    is_masked: npt.NDArray[np.bool_]
    vocabulary: Vocabulary


@pytest.fixture(scope="module", params=UNITS)
def drawn(request: pytest.FixtureRequest, vocabulary: Vocabulary, real_rows: Ints) -> Drawn:
    before = np.concatenate([real_rows] * EPOCHS)
    epochs, samples = np.divmod(np.arange(len(before)), len(real_rows))
    rows = masked_rows(masker(vocabulary, request.param), before, epochs, samples)
    is_masked = np.zeros(before.shape, bool)
    for marks, positions, count in zip(is_masked, rows.positions, rows.masked, strict=True):
        marks[positions[:count]] = True
    return Drawn(request.param, before, rows, is_masked, vocabulary)


def word_starts(ids: Ints, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    continues = np.zeros(vocabulary.size, bool)
    continues[vocabulary.ids] = [piece.startswith("##") for piece in vocabulary.pieces]
    starts = ~continues[ids]
    starts[:, 1] = True
    return starts


@pytest.mark.builds
def test_as_many_positions_are_masked_as_wanted(drawn: Drawn) -> None:
    wanted = round(WIDTH * 0.15)
    assert (drawn.rows.masked == drawn.is_masked.sum(axis=1)).all()
    assert drawn.rows.masked.max() == wanted
    # Real text nearly always has a word of one piece left over, to fill the last place.
    assert drawn.rows.masked.min() == wanted
    assert (np.diff(drawn.rows.positions[:, :wanted]) > 0).all()
    special = [drawn.vocabulary.id_of(piece) for piece in ("[CLS]", "[SEP]")]
    assert not drawn.is_masked[np.isin(drawn.before, special)].any()
    assert (drawn.before[drawn.is_masked] == drawn.rows.labels[:, :wanted].ravel()).all()
    assert (drawn.before == drawn.rows.input_ids)[~drawn.is_masked].all()


def test_words_are_masked_as_a_whole(drawn: Drawn) -> None:
    starts = word_starts(drawn.before, drawn.vocabulary)
    together = ~starts[:, 1:] & (drawn.is_masked[:, 1:] != drawn.is_masked[:, :-1])
    assert together.any() == (drawn.unit == "piece")


@pytest.mark.builds
def test_positions_are_masked_evenly(drawn: Drawn) -> None:
    count, inside = len(drawn.before), drawn.is_masked[:, 1:-1]
    share = drawn.rows.masked.sum() / inside.size
    if drawn.unit == "piece":
        assert_binomial(inside.sum(axis=0), count, share)
        return
    # Pieces of words and spans are masked together, which spreads the counts by the mean size of such a group squared
    # over its mean size; and no span begins before the row, so its first words are masked less often.
    sides = 20 if drawn.unit in ("ngram", "span") else 0
    parts = np.array_split(inside[:, sides:], 10, axis=1)
    share = inside[:, sides:].mean()
    sizes = np.diff(np.flatnonzero(np.diff(np.pad(drawn.is_masked, ((0, 0), (1, 1))).ravel().astype(int))))[::2]
    spread = (sizes**2).mean() / sizes.mean()
    assert_binomial(np.array([part.sum() for part in parts]), [part.size for part in parts], share, spread)


def decision_starts(drawn: Drawn) -> npt.NDArray[np.bool_]:
    """Where it is drawn what is written, from there to the next one."""
    masked = drawn.is_masked
    if drawn.unit == "word":
        return masked & word_starts(drawn.before, drawn.vocabulary)
    if drawn.unit == "span":
        return masked & ~np.pad(masked, ((0, 0), (1, 0)))[:, :-1]
    return masked


def test_shares_of_masks_random_pieces_and_kept_ones(drawn: Drawn) -> None:
    starts = decision_starts(drawn)
    before, after = drawn.before, drawn.rows.input_ids
    mask_id = drawn.vocabulary.id_of("[MASK]")
    is_mask, is_kept = after == mask_id, after == before
    chance = 1 / len(drawn.vocabulary.pieces)  # of any piece that is drawn at random
    assert_binomial((is_mask & starts).sum(), starts.sum(), 0.8 + 0.1 * chance)
    assert_binomial((is_kept & starts).sum(), starts.sum(), 0.1 + 0.1 * chance)
    # One decision holds for all of its pieces; a random piece can happen to be [MASK] or the one before it.
    follows = drawn.is_masked & ~starts
    differs = (is_mask != np.roll(is_mask, 1, axis=1)) & follows
    assert differs.sum() <= 10
    assert follows.any() == (drawn.unit in ("word", "span"))


def test_random_pieces_come_from_the_whole_vocabulary(drawn: Drawn) -> None:
    after, vocabulary = drawn.rows.input_ids[drawn.is_masked], drawn.vocabulary
    redrawn = after[(after != drawn.before[drawn.is_masked]) & (after != vocabulary.id_of("[MASK]"))]
    assert len(redrawn) > 10_000
    counts = np.bincount(redrawn * 16 // vocabulary.size, minlength=16)
    sizes = np.bincount(vocabulary.ids * 16 // vocabulary.size, minlength=16)
    assert_binomial(counts, len(redrawn), sizes / sizes.sum())


@pytest.mark.builds
@pytest.mark.parametrize(
    ("unit", "weights"), [("ngram", [1, 1 / 2, 1 / 3, 1 / 4]), ("span", [0.2 * 0.8**n for n in range(10)])]
)
def test_lengths_of_ngrams_and_spans(
    unit: MaskUnit, weights: list[float], vocabulary: Vocabulary, text_ids: Ints
) -> None:
    """The first run of each row: those after it are shortened by what is masked already. From the oracle, if equal."""
    width, most = 64, 40
    ids = full_rows(vocabulary, text_ids, width)
    drawer = masker(vocabulary, unit, masked_lm_prob=0.6, max_ngram=4, max_seq_length=width)
    rows = masked_rows(drawer, ids, 0, np.arange(len(ids)), most)
    names = dict(zip(vocabulary.ids.tolist(), vocabulary.pieces, strict=True))
    rules = oracle_rules(
        vocabulary,
        MaskingOptions(masked_lm_prob=0.6, max_predictions_per_seq=most),
        ObjectiveOptions(mask_unit=unit, max_ngram=4),
    )
    first: Counter[int] = Counter()
    cut = 0
    for sample, row in enumerate(ids.tolist()):
        expected = oracle.mask([names[i] for i in row], rules, 7, 0, sample)
        assert rows.positions[sample, : rows.masked[sample]].tolist() == expected.positions
        drawn, taken = expected.runs[0]
        first[drawn] += 1
        cut += taken < drawn
    lengths = np.arange(1, len(weights) + 1)
    share = np.array(weights) / sum(weights)
    assert_binomial(np.array([first[n] for n in lengths.tolist()]), len(ids), share)
    # Only the end of a row cuts a first run, which is where one in about as many words starts as a run is long.
    assert 0 < cut < len(ids) * (lengths @ share) / 30


# ---- rows that leave no choice

CLS, SEP, MASK, A, GOES_ON = range(5)
KINDS = [kernels.SPECIAL, kernels.SPECIAL, kernels.STARTS, kernels.STARTS, kernels.CONTINUES]


def rules_of(unit: MaskUnit, to_predict: int, width: int = 600) -> kernels.RowMaskRules:
    return row_mask_rules(
        unit=unit,
        to_predict=[to_predict] * (width + 1),
        kinds=KINDS,
        mask_id=MASK,
        piece_ids=range(5),
        shares=(1, 0, 0),
        run_lengths=(1, 1, 1) if unit in ("ngram", "span") else (),
    )


def block_of(ids: Sequence[int], most: int = 600) -> MaskedRows:
    rows = rows_of([ids], len(ids), most)
    return MaskedRows(rows.input_ids, rows.lengths, rows.positions, rows.labels, rows.masked)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("ids", "to_predict", "masked"),
    [
        ([], 1, 0),
        ([CLS], 1, 0),
        ([CLS, SEP], 1, 0),
        ([SEP] * 600, 90, 0),
        ([CLS, *[A] * 598, SEP], 0, 0),
        ([CLS, *[A] * 598, SEP], 299, 299),
        ([CLS, A, SEP] * 200, 600, 200),
        ([CLS, GOES_ON, A, SEP], 2, 2),
        ([CLS, A, *[GOES_ON] * 9, SEP], 10, 10),
    ],
    ids=["empty", "cls", "no pieces", "separators", "none wanted", "half", "one each", "no start", "one word"],
)
def test_rows_without_a_choice(unit: MaskUnit, ids: list[int], to_predict: int, masked: int) -> None:
    rows = block_of(ids)
    draw_masks(rules_of(unit, to_predict), 1, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert rows.masked.tolist() == [masked]
    assert rows.input_ids[0].tolist().count(MASK) == masked
    assert not rows.positions[0, masked:].any()
    assert not rows.labels[0, masked:].any()


@pytest.mark.parametrize("unit", UNITS)
def test_rows_that_are_masked_as_a_whole(unit: MaskUnit) -> None:
    rows = block_of([CLS, *[A] * 598, SEP])
    draw_masks(rules_of(unit, 600), 1, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
    # N-grams that would overlap are given up, and leave some words between those that are taken.
    assert 450 < rows.masked[0] < 598 if unit == "ngram" else rows.masked[0] == 598


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("words", [1, 3])
def test_words_that_are_too_long_are_not_masked(unit: MaskUnit, words: int) -> None:
    rows = block_of([CLS, *([A] + [GOES_ON] * 149) * words, SEP])
    draw_masks(rules_of(unit, 90), 1, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert rows.masked.tolist() == [90 if unit == "piece" else 0]


@pytest.mark.parametrize("unit", UNITS)
def test_no_more_masks_than_there_is_room_for(unit: MaskUnit) -> None:
    rows = block_of([CLS, *[A] * 598, SEP], most=5)
    draw_masks(rules_of(unit, 90), 1, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert rows.masked.tolist() == [5]


CERTAIN = 2**53


@pytest.mark.parametrize(
    ("shares", "masked_below", "kept_below"),
    [
        ((1, 0, 0), CERTAIN, CERTAIN),
        ((0, 1, 0), 0, 0),
        ((0, 0, 1), 0, CERTAIN),
        ((0.7, 0, 0.3), int(0.7 * CERTAIN), CERTAIN),
        ((0.5, 0.25, 0.25), CERTAIN / 2, CERTAIN * 3 / 4),
    ],
)
def test_a_share_of_0_is_never_drawn(shares: tuple[float, float, float], masked_below: int, kept_below: int) -> None:
    lengths = (0.1, 0.2, 0.7, 0.0)
    rules = row_mask_rules(
        unit="span", to_predict=[1], kinds=KINDS, mask_id=MASK, piece_ids=[A], shares=shares, run_lengths=lengths
    )
    assert (rules.masked_below, rules.kept_below) == (masked_below, kept_below)
    assert rules.lengths_below[2:].tolist() == [CERTAIN, CERTAIN]


# ---- what is refused


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"input_ids": np.full((1, 4), A, np.int64)}, "input_ids must be a writable int32 array"),
        ({"lengths": np.ones(2, np.int32)}, "lengths must be a writable int32 array in C order with an element for"),
        ({"labels": np.ones((1, 3), np.int32)}, r"positions are \(1, 2\) and labels \(1, 3\)"),
        ({"lengths": np.full(1, 5, np.int32)}, "lengths must be from 0 to 4"),
        ({"input_ids": np.full((1, 4), 5, np.int32)}, "input_ids must be from 0 to 4"),
        ({"input_ids": np.full((1, 4), -1, np.int32)}, "input_ids must be from 0 to 4"),
        ({"input_ids": np.full((1, 9), A, np.int32)}, "rows of 9 pieces: these rules are for up to 8"),
    ],
)
def test_arrays_that_do_not_fit(changes: dict[str, Any], said: str) -> None:
    rows = block_of([CLS, A, A, SEP], most=2)._replace(**changes)
    with pytest.raises(ValueError, match=said):
        draw_masks(rules_of("piece", 1, width=8), 1, rows, np.zeros(1, np.int64), np.zeros(1, np.int64))


def test_keys_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="epochs and samples must have an element for each of 1 rows"):
        draw_masks(rules_of("piece", 1), 1, block_of([A]), np.zeros(1, np.int64), np.zeros(2, np.int64))


def test_the_longest_row() -> None:
    rules = rules_of("piece", kernels.MAX_ROW, width=kernels.MAX_ROW + 1)
    keys = np.zeros(1, np.int64)
    rows = block_of([A] * kernels.MAX_ROW, most=kernels.MAX_ROW)
    draw_masks(rules, 1, rows, keys, keys)
    assert rows.positions[0].tolist() == list(range(kernels.MAX_ROW))
    with pytest.raises(ValueError, match="rows of 65536 pieces: these rules are for up to 65535"):
        draw_masks(rules, 1, block_of([A] * (kernels.MAX_ROW + 1)), keys, keys)


def test_no_rows() -> None:
    rows = MaskedRows(*(array[:0] for array in block_of([A])))
    draw_masks(rules_of("piece", 1), 1, rows, np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.parametrize("unit", ["ngram", "span"])
def test_runs_need_lengths(unit: MaskUnit) -> None:
    with pytest.raises(ValueError, match=f"{unit}: run_lengths must have the weight of each length"):
        row_mask_rules(unit=unit, to_predict=[1], kinds=KINDS, mask_id=MASK, piece_ids=[A])
