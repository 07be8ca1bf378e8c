"""Mixes against a plain loop that takes one sample after the other."""

import dataclasses
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.row_masks import Generator
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.loading.mixing import Given, Mix, mix_of
from maskmill.reading.data_set import DataFile, DataSet


def in_turn(mix: Mix) -> Iterator[int]:
    """The source of each position of a mix, without shuffling."""
    given = [0] * len(mix.weights)
    while any(count != cap for count, cap in zip(given, mix.caps, strict=True)):
        going_on = [source for source, cap in enumerate(mix.caps) if given[source] != cap]
        source = min(going_on, key=lambda k: Fraction(2 * given[k] + 1) / mix.weights[k])
        given[source] += 1
        yield source


def plain_mix(mix: Mix) -> Iterator[tuple[int, int]]:
    """Source and own position of each position of a mix, from the first on."""
    sources, own = in_turn(mix), [0] * len(mix.weights)
    for number in count():
        part = sorted(islice(sources, mix.part))
        if not part:
            return
        generator = Generator(mix.seed, 0, number)
        for last in range(len(part) - 1, 0, -1):
            place = generator.below(last + 1)
            part[last], part[place] = part[place], part[last]
        for source in part:
            yield source, own[source]
            own[source] += 1


def a_mix(weights: Sequence[float | str], caps: Sequence[int | None] | None = None, **more: Any) -> Mix:
    """A mix of sources by weights."""
    fractions = tuple(Fraction(weight) for weight in weights)
    caps = [None] * len(weights) if caps is None else caps
    return Mix(
        samples=(10,) * len(weights), weights=fractions, caps=tuple(caps), fingerprint="", **({"seed": 1} | more)
    )


WEIGHTS = st.one_of(
    st.integers(1, 5).map(Fraction),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
    st.sampled_from([Fraction(1, 10**6), Fraction(10**6), Fraction(str(0.1))]),
)


@st.composite
def mixes(draw: st.DrawFn) -> Mix:
    """Few or many sources of any weights, with and without caps."""
    sources = draw(st.integers(1, 6))
    caps = st.one_of(st.none(), st.integers(1, 120))
    return Mix(
        samples=tuple(draw(st.integers(1, 50)) for _ in range(sources)),
        weights=tuple(draw(WEIGHTS) for _ in range(sources)),
        caps=tuple(draw(caps) for _ in range(sources)),
        seed=draw(st.sampled_from([0, 1, 2**63, 2**64 - 1])),
        fingerprint="",
        part=draw(st.sampled_from([1, 2, 7, 64])),
    )


@tries(100)
@given(mixes(), st.data())
def test_mix_is_what_a_plain_loop_gives(mix: Mix, data: st.DataObject) -> None:
    expected = list(islice(plain_mix(mix), 300))
    assert mix.length is None or mix.length == sum(cap or 0 for cap in mix.caps)
    if len(expected) < 300:
        assert mix.length == len(expected)
    start, stop = sorted(data.draw(st.integers(0, len(expected))) for _ in range(2))
    sources, owns = mix.positions(start, stop)
    assert sources.dtype == owns.dtype == np.int64
    assert list(zip(sources.tolist(), owns.tolist(), strict=True)) == expected[start:stop]
    before = [source for source, _ in expected[:start]]
    assert mix.given(start).tolist() == [before.count(source) for source in range(len(mix.caps))]


@tries(100)
@given(mixes())
def test_mix_knows_which_sources_leave_it_and_where(mix: Mix) -> None:
    sources = list(islice(in_turn(mix), 300))
    expected = {}
    for source, cap in enumerate(mix.caps):
        if cap is not None and sources.count(source) == cap:
            expected[source] = max(place for place, other in enumerate(sources) if other == source) + 1
    found = dict(mix.leaving)
    assert list(found.values()) == sorted(found.values())
    assert {s: p for s, p in found.items() if p <= 300} == {s: p for s, p in expected.items() if p != mix.length}


@tries(100)
@given(st.lists(WEIGHTS, min_size=1, max_size=8), st.integers(0, 10**12))
def test_shares_are_kept_far_into_the_mix(weights: list[Fraction], part: int) -> None:
    mix = a_mix(weights, [None] * len(weights))  # type: ignore[arg-type]
    position = part * mix.part
    counts = mix.before(position)
    assert counts.sum() == position
    for given_by_one, weight in zip(counts.tolist(), weights, strict=True):
        share = weight / sum(weights)
        assert abs(given_by_one - share * position) <= Fraction(1, 2) + share * len(weights) / 2


def test_what_each_source_gave_is_told_in_samples_repetitions_and_shares() -> None:
    mix = a_mix([3, 1], part=4)
    assert mix.given_by(["wiki", "books"], 20) == (
        Given(path="wiki", samples=15, repetitions=1.5, share=0.75),
        Given(path="books", samples=5, repetitions=0.5, share=0.25),
    )
    assert [source.share for source in mix.given_by(["wiki", "books"], 0)] == [0, 0]


def test_a_finite_mix_has_no_positions_behind_its_end() -> None:
    mix = a_mix([1, 1], [5, 7])
    assert mix.length == 12
    assert np.bincount(mix.positions(0, 12)[0]).tolist() == [5, 7]
    with pytest.raises(ValueError, match="positions up to 13, but the mix has 12"):
        mix.positions(0, 13)


def a_data_set(path: str = "wiki", samples: int = 10, **more: Any) -> DataSet:
    """A data set without files that exist."""
    described: dict[str, Any] = {
        "path": path,
        "format": "tfrecord",
        "files": (DataFile(path=f"{path}/0", samples=samples, size=1, sha256=None, index=None, width=8),),
        "columns": (),
        "width": 8,
        "fingerprint": path,
        "vocabulary_size": 100,
        "special_ids": {"[PAD]": 0},
        "packed": False,
        "mask_rules": None,
        "predictions": 2,
    }
    return DataSet(**described | more)


def test_weights_and_repetitions_are_what_the_user_wrote() -> None:
    wiki, books = a_data_set("wiki", 10), a_data_set("books", 5)
    mix = mix_of([wiki, books], [0.1, 0.3], max_repetitions=[2.5, None], seed=-1)
    assert mix.weights == (Fraction(1, 4), Fraction(3, 4))
    assert mix.caps == (25, None)
    assert mix.samples == (10, 5)
    assert mix.seed == 2**64 - 1
    assert mix.length is None
    assert mix_of([wiki, books], [1, 3], max_repetitions=4).caps == (40, 20)
    assert mix_of([wiki], [1], max_repetitions=0.01).caps == (1,)


def test_fingerprint_of_a_mix_tells_sources_shares_and_caps_but_no_scale_of_weights() -> None:
    wiki, books = a_data_set("wiki"), a_data_set("books")
    first = mix_of([wiki, books], [1, 3]).fingerprint
    assert mix_of([wiki, books], [0.1, 0.3], seed=5).fingerprint == first
    others = [
        mix_of([books, wiki], [1, 3]),
        mix_of([wiki, books], [1, 2]),
        mix_of([wiki, books], [1, 3], max_repetitions=2),
        mix_of([wiki, dataclasses.replace(books, fingerprint="x")], [1, 3]),
    ]
    assert len({first, *(mix.fingerprint for mix in others)}) == 5


@pytest.mark.parametrize(
    ("weights", "most", "message"),
    [
        ([1, 0], None, "books: weight of this data set is 0, but it must be a number above 0."),
        ([float("nan"), 1], None, "wiki: weight of this data set is nan, but it must be a number above 0."),
        ([1, 1], -1, "wiki: max_repetitions of this data set is -1, but it must be a number above 0."),
        ([1, 1], [1], "max_repetitions has 1 numbers, but the mix has 2 data sets; give one for each, or one for all."),
    ],
    ids=["weight-0", "weight-nan", "repetitions", "too-few"],
)
def test_numbers_that_make_no_mix_are_refused(weights: list[float], most: Any, message: str) -> None:
    with pytest.raises(UnusableInputError) as error:
        mix_of([a_data_set("wiki"), a_data_set("books")], weights, max_repetitions=most)
    assert str(error.value) == message


def test_a_data_set_that_is_named_twice_is_refused() -> None:
    with pytest.raises(UnusableInputError) as error:
        mix_of([a_data_set("wiki"), a_data_set("copy", fingerprint="wiki")], [1, 1])
    assert str(error.value) == "copy has the same samples as wiki; name one of them, with the sum of their weights."
