"""Batches of made-up rows, held against a plain oracle: every school of features, stored and drawn masks, mixes."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import row_masks as oracle_row_masks
from oracles.batches import BATCHES, Layout, Sample
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.loading.batches import ArraySpec, BatchMaker, alike
from maskmill.loading.options import LoaderOptions
from maskmill.masking.row_masks import (
    CONTINUES,
    SPECIAL,
    STARTS,
    RowMaskRules,
    ngram_lengths,
    row_mask_rules,
    span_lengths,
)
from maskmill.reading.block_reader import Rows
from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.reading.kernels import gathering

VOCABULARY = 300
CLS, SEP, MASK, PAD = 1, 2, 3, 5
SEED = 12345
NAMES = {CLS: "[CLS]", SEP: "[SEP]", MASK: "[MASK]"}
IDS = {name: number for number, name in NAMES.items()}
UNITS = ("piece", "whole_word", "word", "ngram", "span")


def token(number: int, *, continues: bool) -> str:
    """A piece as the oracle of masks has it."""
    return NAMES.get(number, f"##{number}" if continues else str(number))


def number_of(token: str) -> int:
    return IDS[token] if token in IDS else int(token.removeprefix("##"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Made:
    """A data set, its rows as they are stored, and how the oracle masks them (None: they have masks)."""

    data_set: DataSet
    samples: list[Sample]
    widths: list[int]  # of each sample's file
    continues: list[list[int]]
    rules: oracle_row_masks.Rules | None


def made_up(rng: np.random.Generator, layout: Layout, source: int) -> Made:
    """A data set of some rows."""
    widths = sorted({int(rng.integers(4, 40)) for _ in range(rng.integers(1, 3))})
    drawn, padded, by_column = (bool(rng.integers(2)) for _ in range(3))
    predictions = int(rng.integers(1, widths[0]))
    of_rows = [widths[rng.integers(len(widths))] for _ in range(int(rng.integers(1, 8)))]
    samples = [made_up_sample(rng, layout, width, 0 if drawn else predictions, source) for width in of_rows]
    # The oracle has names, not ids, for special pieces, which never go on a word.
    continues = [[int(n not in NAMES and rng.integers(2)) for n in sample.ids] for sample in samples]
    starting = {number: token(number, continues=not by_column and number % 3 == 0) for number in range(VOCABULARY)}
    unit = UNITS[rng.integers(len(UNITS))]
    columns = columns_of(layout, widths, predictions, drawn=drawn, padded=padded, by_column=by_column)
    return Made(
        data_set=DataSet(
            path=f"set {source}",
            format="parquet",
            files=tuple(
                DataFile(path=f"{width}", samples=1, size=None, sha256=None, index=None, width=width)
                for width in widths
            ),
            columns=columns,
            width=widths[-1],
            fingerprint="",
            vocabulary_size=VOCABULARY,
            special_ids={"pad_id": PAD},
            packed=layout.packed,
            mask_rules=rules_of(unit, widths[-1], predictions, by_column=by_column) if drawn else None,
            predictions=predictions,
        ),
        samples=samples,
        widths=of_rows,
        continues=continues
        if by_column
        else [[int(starting[number].startswith("##")) for number in sample.ids] for sample in samples],
        rules=oracle_row_masks.Rules(
            unit=unit, pieces=list(starting.values()), masked_lm_prob=0.3, max_predictions=predictions
        )
        if drawn
        else None,
    )


def made_up_sample(rng: np.random.Generator, layout: Layout, width: int, predictions: int, source: int) -> Sample:
    length = int(rng.integers(2, width + 1))
    sequences = int(rng.integers(1, length // 2 + 1)) if layout.packed else 1
    inner = 2 * np.sort(rng.choice(np.arange(1, length // 2), sequences - 1, replace=False)) if sequences > 1 else []
    masked = np.sort(rng.choice(length, rng.integers(0, min(length, predictions) + 1), replace=False)).tolist()
    return Sample(
        ids=rng.integers(0, VOCABULARY, length).tolist(),
        segments=rng.integers(0, 2, length).tolist(),
        special=rng.integers(0, 2, length).tolist(),
        starts=[0, *map(int, inner), length],
        pairs=rng.integers(0, 2, sequences).tolist(),
        masks=[(at, int(rng.integers(VOCABULARY))) for at in masked],
        number=int(rng.integers(1 << 40)),
        source=source,
        epoch=int(rng.integers(5)),
    )


def rules_of(unit: str, width: int, predictions: int, *, by_column: bool) -> RowMaskRules:
    kinds = np.array([CONTINUES if not by_column and n % 3 == 0 else STARTS for n in range(VOCABULARY)], np.uint8)
    kinds[[MASK]] = STARTS
    kinds[[CLS, SEP]] = SPECIAL
    return row_mask_rules(
        unit=cast(Any, unit),
        to_predict=[min(predictions, max(1, round(n * 0.3))) for n in range(width + 1)],
        kinds=kinds,
        mask_id=MASK,
        piece_ids=np.arange(VOCABULARY),
        run_lengths={"ngram": ngram_lengths(3), "span": span_lengths(0.2, 10)}.get(unit, ()),
    )


def columns_of(
    layout: Layout, widths: Sequence[int], predictions: int, *, drawn: bool, padded: bool, by_column: bool
) -> tuple[ReadColumn, ...]:
    """The columns, with types that are larger than they must be here and there, as those of large vocabularies are."""
    width, varies = widths[-1], not padded or len(widths) > 1
    wanted: dict[str, tuple[int, bool, Any]] = {"input_ids": (width, varies, np.uint16)}
    if padded:
        wanted["input_mask"] = width, varies, np.uint8
    if by_column and drawn:
        wanted["continuation_mask"] = width, varies, np.uint8
    if layout.has_pairs:
        wanted["segment_ids"] = width, varies, np.uint8
        wanted["next_sentence_labels"] = (width // 2, True, np.uint8) if layout.packed else (1, False, np.uint8)
    if layout.has_special:
        wanted["special_tokens_mask"] = width, varies, np.uint8
    if layout.packed:
        wanted["sequence_ids"] = width, varies, np.uint8
        wanted["position_ids"] = width, varies, np.uint16
        wanted["cu_seqlens"] = width // 2 + 1, True, np.uint16
    if not drawn:
        wanted["masked_lm_positions"] = predictions, False, np.uint8
        wanted["masked_lm_ids"] = predictions, False, np.int32
        wanted["masked_lm_weights"] = predictions, False, np.float32
    fills = {"input_ids": PAD, "special_tokens_mask": 1, "cu_seqlens": None}
    return tuple(
        ReadColumn(name=name, feature=name, width=width, varies=varies, dtype=np.dtype(dtype), fill=fills.get(name, 0))
        for name, (width, varies, dtype) in sorted(wanted.items())
    )


def put(rows: Rows, columns: Sequence[ReadColumn], own: set[str], row: int, made: Made, place: int) -> None:
    """Writes a sample to a row as a reader would."""
    sample, width = made.samples[place], made.widths[place]
    sequences = list(zip(sample.starts, sample.starts[1:], strict=False))
    values: dict[str, list[Any]] = {
        "input_ids": list(sample.ids),
        "input_mask": [1] * len(sample.ids),
        "continuation_mask": made.continues[place],
        "segment_ids": list(sample.segments),
        "special_tokens_mask": list(sample.special),
        "sequence_ids": [n for n, (start, end) in enumerate(sequences, 1) for _ in range(start, end)],
        "position_ids": [at - start for start, end in sequences for at in range(start, end)],
        "cu_seqlens": list(sample.starts),
        "next_sentence_labels": list(sample.pairs),
        "masked_lm_positions": [at for at, _ in sample.masks],
        "masked_lm_ids": [label for _, label in sample.masks],
        "masked_lm_weights": [1.0] * len(sample.masks),
    }
    for column in columns:
        found = values[column.feature] if column.name in own else []
        fill = found[-1] if column.fill is None else column.fill if column.name in own else 0
        if "input_mask" in own and column.feature in ("input_ids", "input_mask", "segment_ids", "special_tokens_mask"):
            found = found + [fill] * (width - len(found))  # as it is stored
        rows.arrays[column.feature][row] = found + [fill] * (column.width - len(found))
        if column.varies:
            rows.counts[column.feature][row] = len(found)


def masked(made: Made, place: int) -> Sample:
    """A sample as the oracle masks it."""
    sample = made.samples[place]
    if made.rules is None:
        return sample
    tokens = [token(n, continues=bool(c)) for n, c in zip(sample.ids, made.continues[place], strict=True)]
    drawn = oracle_row_masks.mask(tokens, made.rules, SEED, sample.epoch, sample.number)
    labels = [number_of(label) for label in drawn.labels]
    masks = list(zip(drawn.positions, labels, strict=True))
    return dataclasses.replace(sample, ids=[number_of(t) for t in drawn.tokens], masks=masks)


@given(seed=st.integers(0, 2**32), features=st.sampled_from(sorted(BATCHES)))
@tries(150, **SEEDED)
def test_a_batch_is_that_of_the_oracle(seed: int, features: Any) -> None:
    rng = np.random.default_rng(seed)
    layout = Layout(
        width=0, predictions=0, pad_id=PAD, packed=bool(rng.integers(2)) and features != "huggingface",
        has_pairs=bool(rng.integers(2)), has_special=bool(rng.integers(2)),
    )  # fmt: skip
    made = [made_up(rng, layout, source) for source in range(rng.integers(1, 4))]
    data_sets = alike([one.data_set for one in made])
    owns = [{column.name for column in one.data_set.columns} for one in made]
    # Rows lie in any order, among others.
    there = [(source, place) for source, one in enumerate(made) for place in range(len(one.samples))]
    there = [there[n] for n in rng.permutation(len(there))]
    rows = Rows(data_sets[0].columns, len(there))
    for row, (source, place) in enumerate(there):
        put(rows, data_sets[source].columns, owns[source], row, made[source], place)
    at = rng.integers(-1, len(there), int(rng.integers(1, 7)))
    of_rows = [(made[s], p) if row >= 0 else None for row in at.tolist() for s, p in [there[row]]]
    samples = [masked(*pair) if pair else None for pair in of_rows]
    widths = sorted({width for one in made for width in one.data_set.files and one.widths})
    needed = max([pair[0].widths[pair[1]] for pair in of_rows if pair], default=widths[0])
    layout = dataclasses.replace(
        layout,
        width=int(rng.choice([width for width in widths if width >= needed])),
        predictions=max(one.data_set.predictions for one in made),
    )
    options = LoaderOptions(batch_size=2 * len(at), ranks=2, seed=SEED, features=features)
    maker = BatchMaker(data_sets, options)
    keys = [[getattr(s, name) if s else 0 for s in samples] for name in ("source", "epoch", "number")]
    batch = maker.make(rows, at, *(np.array(key, np.int64) for key in keys), layout.width)
    expected = BATCHES[features](samples, layout)
    assert sorted(batch) == sorted(expected)
    assert list(batch) == list(maker.spec)
    for name, array in batch.items():
        assert array.tolist() == expected[name], name
        assert array.dtype == (
            np.float32 if name.endswith("weights") else np.int64 if features == "huggingface" else np.int32
        )
        spec = maker.spec[name]
        assert (spec.dtype, len(spec.shape)) == (array.dtype, array.ndim)
        assert all(size in (None, found) for size, found in zip(spec.shape, array.shape, strict=True))


def test_batches_use_no_kernel_that_is_not_prepared() -> None:
    gathering.warm_up()
    kernels = gathering.gather, gathering.put_labels
    prepared = [set(kernel.signatures) for kernel in kernels]
    for seed, features in itertools.product(range(20), BATCHES):
        test_a_batch_is_that_of_the_oracle.hypothesis.inner_test(seed, features)
    assert [set(kernel.signatures) for kernel in kernels] == prepared


def one_set(layout: Layout, widths: Sequence[int], **changes: bool) -> DataSet:
    """A data set that nobody reads."""
    kinds = {"drawn": False, "padded": True, "by_column": False} | changes
    return DataSet(
        path="the/set",
        format="parquet",
        files=tuple(
            DataFile(path=f"{width}", samples=1, size=None, sha256=None, index=None, width=width) for width in widths
        ),
        columns=columns_of(layout, widths, 3, **kinds),
        width=widths[-1],
        fingerprint="",
        vocabulary_size=VOCABULARY,
        special_ids={"pad_id": PAD},
        packed=layout.packed,
        mask_rules=rules_of("piece", widths[-1], 3, by_column=False) if kinds["drawn"] else None,
        predictions=3,
    )


LAYOUT = Layout(width=0, predictions=3, pad_id=PAD, packed=False, has_pairs=False, has_special=False)
PACKED = dataclasses.replace(LAYOUT, packed=True, has_pairs=True)


def test_the_spec_has_the_arrays_of_a_rank() -> None:
    maker = BatchMaker([one_set(LAYOUT, [8])], LoaderOptions(batch_size=12, ranks=3, tail="pad", with_samples=True))
    int32, float32 = np.dtype(np.int32), np.dtype(np.float32)
    assert maker.spec == {
        "input_ids": ArraySpec((4, 8), int32),
        "input_mask": ArraySpec((4, 8), int32),
        "masked_lm_positions": ArraySpec((4, 3), int32),
        "masked_lm_ids": ArraySpec((4, 3), int32),
        "masked_lm_weights": ArraySpec((4, 3), float32),
        "sample_weights": ArraySpec((4,), float32),
        "samples": ArraySpec((4,), np.dtype(np.int64)),
    }


def test_the_spec_leaves_open_what_differs_from_batch_to_batch() -> None:
    spec = BatchMaker([one_set(PACKED, [8, 12])], LoaderOptions(batch_size=4)).spec
    assert {name: array.shape[1] for name, array in spec.items()} == {
        "input_ids": None, "input_mask": None, "segment_ids": None, "sequence_ids": None, "position_ids": None,
        "cu_seqlens": None, "next_sentence_labels": None,
        "masked_lm_positions": 3, "masked_lm_ids": 3, "masked_lm_weights": 3,
    }  # fmt: skip


@pytest.mark.parametrize("kinds", [{"drawn": True}, {"drawn": True, "padded": False}], ids=["padded", "not padded"])
@pytest.mark.parametrize("features", ["google", "v2"])
def test_stored_and_drawn_masks_give_the_same_arrays(features: Any, kinds: dict[str, bool]) -> None:
    options = LoaderOptions(batch_size=4, features=features)
    specs = [BatchMaker([one_set(PACKED, [8], **of_set)], options).spec for of_set in ({}, kinds)]
    assert list(specs[0].items()) == list(specs[1].items())


def test_weights_and_numbers_tell_padding_from_samples() -> None:
    made = [dataclasses.replace(one_set(LAYOUT, [4]), path=name) for name in "ab"]
    rows = Rows(made[0].columns, 1)
    for array in rows.arrays.values():
        array[:] = 1
    maker = BatchMaker(made, LoaderOptions(batch_size=3, tail="pad", with_samples=True))
    keys = np.array([1, 0, 0]), np.array([5, 0, 0]), np.array([7, -1, 0])
    batch = maker.make(rows, np.array([0, -1, -1]), *keys, 4)
    assert batch["sample_weights"].tolist() == [1, 0, 0]
    assert batch["samples"].tolist() == [7, -1, -1]
    assert batch["sources"].tolist() == [1, -1, -1]
    assert batch["input_ids"].tolist() == [[1] * 4, [PAD] * 4, [PAD] * 4]


def test_columns_that_are_not_known_are_given_as_they_are() -> None:
    others = (
        ReadColumn(name="label_ids", feature="label_ids", width=1, varies=False, dtype=np.dtype(np.int32)),
        ReadColumn(name="scores", feature="scores", width=2, varies=False, dtype=np.dtype(np.float32)),
    )
    made = dataclasses.replace(one_set(LAYOUT, [4]), columns=others, special_ids={})
    rows = Rows(others, 2)
    rows.arrays["label_ids"][:] = [[3], [-4]]
    rows.arrays["scores"][:] = [[0.5, 1], [2, 3]]
    zeros = np.zeros(2, np.int64)
    for features, integers in (("google", np.int32), ("huggingface", np.int64)):
        options = LoaderOptions(batch_size=2, features=cast(Any, features))
        batch = BatchMaker([made], options).make(rows, np.array([1, 0]), zeros, zeros, zeros, 4)
        assert {name: (array.tolist(), array.dtype) for name, array in batch.items()} == {
            "label_ids": ([[-4], [3]], integers),
            "scores": ([[2, 3], [0.5, 1]], np.float32),
        }


def test_rows_without_padding_and_without_a_mask_are_masked_anywhere() -> None:
    made = one_set(LAYOUT, [8], drawn=True)
    made = dataclasses.replace(made, columns=tuple(c for c in made.columns if c.feature == "input_ids"))
    rows = Rows(made.columns, 1)
    rows.arrays["input_ids"][:] = 100
    zeros = np.zeros(2, np.int64)
    batch = BatchMaker([made], LoaderOptions(batch_size=2)).make(rows, np.array([0, -1]), zeros, zeros, zeros, 8)
    assert "input_mask" not in batch
    assert batch["masked_lm_weights"].sum(axis=1).tolist() == [2, 0]  # 0.3 of 8


@pytest.mark.parametrize(
    ("feature", "count", "value", "message"),
    [
        ("input_ids", 9, 1, "the/set: sample 41 (counted from 0) has more than 8 values of input_ids, "),
        ("cu_seqlens", 6, 1, "the/set: sample 41 (counted from 0) has more than 5 values of cu_seqlens, "),
        ("next_sentence_labels", 5, 1, "has more than 4 values of next_sentence_labels, "),
        ("masked_lm_positions", None, 8, "has a mask after its 8 pieces, the width that its file has in "),
    ],
)
def test_rows_that_do_not_fit_into_their_bin_are_named(
    feature: str, count: int | None, value: int, message: str
) -> None:
    made = one_set(PACKED, [8, 12])
    rows = Rows(made.columns, 2)
    for array in rows.arrays.values():
        array[:] = 0
    rows.arrays[feature][1] = value
    if count is not None:
        rows.counts[feature][1] = count
    keys = np.zeros(2, np.int64), np.zeros(2, np.int64), np.array([40, 41])
    maker = BatchMaker([made], LoaderOptions(batch_size=2))
    with pytest.raises(UnusableInputError) as failed:
        maker.make(rows, np.arange(2), *keys, 8)
    assert message in str(failed.value)
    assert maker.make(rows, np.arange(2), *keys, 12)["input_ids"].shape == (2, 12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 7}, "b has vocabulary_size 7 and a has 300; mix data sets of one vocabulary."),
        (
            {"special_ids": {"pad_id": 0}},
            "b has special_ids {'pad_id': 0} and a has {'pad_id': 5}; mix data sets of one vocabulary.",
        ),
        ({"packed": False}, "a has several sequences in a row and b has one; mix data sets of one kind."),
        (
            {"columns": columns_of(LAYOUT, [8], 3, drawn=False, padded=True, by_column=False)},
            "a has cu_seqlens and b does not; mix data sets that have the same columns.",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_data_sets_that_do_not_go_together_are_refused(changes: dict[str, Any], message: str) -> None:
    first = dataclasses.replace(one_set(PACKED, [8]), path="a")
    other = dataclasses.replace(first, path="b", **changes)
    with pytest.raises(UnusableInputError) as failed:
        alike([first, other])
    assert str(failed.value) == message


def test_what_is_not_known_of_a_vocabulary_is_not_compared() -> None:
    first = one_set(LAYOUT, [8])
    assert len(alike([first, dataclasses.replace(first, vocabulary_size=None, special_ids={})])) == 2
