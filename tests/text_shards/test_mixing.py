"""The mix of sources: the plan of the oracle, shares within a document, no article of the eval set in training."""

import collections
import dataclasses
import functools
import itertools
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from data_sets.shard_builds import PLAIN, article, input_file, make_fragments, shuffled
from data_sets.steps import run_step
from hypothesis import given
from hypothesis import strategies as st
from made_up import dump_files
from oracles import mixing as oracle_mixing
from oracles.mixing import Document, MixedSource
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.inputs.units import Digest, InputFile, Unit, UnitBatch
from maskmill.storage import completions
from maskmill.text_shards.fragments import KIND, TABLE, Fragment, extract_batch, fragment_key, in_order
from maskmill.text_shards.mixing import mix_counts, plan_mix
from maskmill.text_shards.options import QualityOptions, Source, SplitOptions
from maskmill.text_shards.planning import MEGABYTE, ShardPlan
from transforms.text_shards import PlanMix

SEED = PLAIN.random_seed


def write_fragments(sources: Sequence[MixedSource], output: str, documents_a_fragment: int = 3) -> list[Fragment]:
    """Writes the tables of fragments that hold these documents one after another; there is no text beside them."""
    fragments = []
    for source in sources:
        starts = range(0, max(1, len(source.documents)), documents_a_fragment)
        for number, start in enumerate(starts):
            documents = source.documents[start : start + documents_a_fragment]
            sizes = [size for _, _, size in documents]
            offsets = [0, *itertools.accumulate(sizes)]
            rows = [(hashed, offset, size, 1) for (_, hashed, size), offset in zip(documents, offsets, strict=False)]
            key = f"{source.name}-{number}"
            completions.write_table(output, KIND, key, np.array(rows, TABLE))
            file = InputFile(path=source.name, size=1, sha256=source.name)
            unit = Unit(path=source.name, start=0, end=1, format="text", container="plain")
            fragments.append(
                Fragment(
                    key=key,
                    batch=UnitBatch(number=number, files=(file,), units=(unit,), source=source.name),
                    documents=len(rows),
                    size=offsets[-1],
                    counts={"read": len(rows), "documents": len(rows)},
                    ends=(offsets[-1],),
                )
            )
    return fragments


def settings_of(sources: Sequence[MixedSource]) -> list[Source]:
    """The sources as the plan takes them: in the order of their names."""
    return [
        Source(
            name=s.name,
            extraction=PLAIN,
            weight=s.weight,
            max_epochs=s.max_epochs,
            temperature=None if s.tenths is None else s.tenths / 10,
        )
        for s in sorted(sources, key=lambda source: source.name)
    ]


def documents_of(plan: ShardPlan, sources: Sequence[MixedSource], documents_a_fragment: int = 3) -> list[Document]:
    """The documents that a planned shard copies, in order."""
    by_name = {source.name: source.documents for source in sources}
    found: list[Document] = []
    for fragment, ranges in plan.pieces:
        first = fragment.batch.number * documents_a_fragment
        documents = by_name[fragment.batch.source][first : first + documents_a_fragment]
        starts = dict(zip(itertools.accumulate([0, *(size for _, _, size in documents)]), documents, strict=False))
        for start, end in ranges.tolist():
            while start < end:
                found.append(starts[start])
                start += starts[start][2]
            assert start == end
    return found


def planned(sources: Sequence[MixedSource], split: SplitOptions, output: Path) -> list[ShardPlan]:
    """The plan of sources whose fragments are written to a folder."""
    return plan_mix(write_fragments(sources, str(output)), split, settings_of(sources), str(output))


@st.composite
def mixes(draw: st.DrawFn) -> list[MixedSource]:
    """Sources of made-up documents, with weights or without."""
    count = draw(st.integers(1, 4))
    has_weights = draw(st.booleans())
    tenths = draw(st.sampled_from([None, None, 0, 3, 7, 10]))
    sources = []
    for place in range(count):
        sizes = draw(st.lists(st.integers(1, 60), min_size=1, max_size=12))
        hashes = draw(st.lists(st.integers(0, 2**64 - 1), min_size=len(sizes), max_size=len(sizes)))
        documents = [(f"{place}-{k}", hashed, size) for k, (hashed, size) in enumerate(zip(hashes, sizes, strict=True))]
        weight = draw(st.sampled_from([0.3, 1.0, 2.0, 5.0])) if has_weights else None
        sources.append(MixedSource(f"s{place}", weight, draw(st.sampled_from([1.0, 1.5, 2.0, 3.7])), documents, tenths))
    return sources


@given(sources=mixes(), held_out=st.integers(0, 3), shard_bytes=st.integers(20, 900), order=st.randoms())
@tries(150)
def test_the_plan_is_the_oracle_s(
    sources: list[MixedSource], held_out: int, shard_bytes: int, order: random.Random
) -> None:
    everything = sum(len(source.documents) for source in sources)
    out = oracle_mixing.hold_out(sources, held_out)
    if held_out > everything or any({name for name, _, _ in s.documents} <= out for s in sources):
        return  # refused, as other tests show
    split = SplitOptions(num_eval_articles=held_out, shard_size_mb=shard_bytes / MEGABYTE)
    with tempfile.TemporaryDirectory() as output:
        fragments = write_fragments(sources, output)
        order.shuffle(fragments)
        plans = plan_mix(fragments, split, settings_of(sources), output)
        counts = mix_counts(output)
    planned = {kind: [documents_of(p, sources) for p in plans if p.kind == kind] for kind in ("train", "eval")}
    train, evaluation = oracle_mixing.mix(sources, held_out=held_out, shard_bytes=shard_bytes, seed=SEED)
    assert planned == {"train": train, "eval": evaluation}
    for plan in plans:
        documents = documents_of(plan, sources)
        assert (plan.documents, plan.size) == (len(documents), sum(size for _, _, size in documents))
    check_invariants(sources, train, out, counts)


def check_invariants(
    sources: Sequence[MixedSource],
    train: Sequence[Sequence[Document]],
    out: set[str],
    counts: dict[str, dict[str, float]],
) -> None:
    """What must hold of every mix: the eval set, the caps, the shares, the distance of repeated documents."""
    taken = list(itertools.chain.from_iterable(train))
    assert not {name for name, _, _ in taken} & out
    times = collections.Counter(name for name, _, _ in taken)
    by_source = {s.name: [d for d in taken if d in s.documents] for s in sources}
    used = {name: sum(size for _, _, size in documents) for name, documents in by_source.items()}
    weights = {s.name: s.weight for s in sources}
    if sources[0].tenths is not None:
        sizes = {s.name: sum(size for name, _, size in s.documents if name not in out) for s in sources}
        weights = {s.name: (s.weight or 1) * sizes[s.name] ** (sources[0].tenths / 10) for s in sources}
    total = sum(weight or 0 for weight in weights.values())
    bound = sum(max(size for _, _, size in s.documents) / 2 for s in sources)
    for source in sources:
        left = [document for document in source.documents if document[0] not in out]
        assert all(times[name] <= -(-source.max_epochs // 1) for name, _, _ in left)
        assert counts[source.name]["used"] == len(by_source[source.name])
        assert counts[source.name]["bytes"] == used[source.name]
        assert counts[source.name]["held_out"] == len(source.documents) - len(left)
        if weights[source.name] is not None:
            share = (weights[source.name] or 0) / total
            assert abs(used[source.name] - share * sum(used.values())) <= bound
        else:
            assert abs(used[source.name] - source.max_epochs * sum(d[2] for d in left)) <= bound
        if len(left) > 1:
            assert all(one != other for one, other in itertools.pairwise(by_source[source.name]))


def even_source(name: str, weight: float | None, max_epochs: float, count: int, size: int) -> MixedSource:
    """A source of documents of one size, their hashes spread evenly."""
    documents = [(f"{name}{k}", k * (2**64 // count) ^ hash_of(name), size) for k in range(count)]
    return MixedSource(name, weight, max_epochs, documents)


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode().ljust(7, b"x")[:7], "big")


def test_every_shard_mirrors_the_mix(tmp_path: Path) -> None:
    sources = [
        even_source("wiki", 3, 1, 900, 100),
        even_source("books", 1, 4, 20, 1000),
        even_source("law", 2, 2, 400, 90),
    ]
    split = SplitOptions(num_eval_articles=0, shard_size_mb=12_000 / MEGABYTE)
    plans = planned(sources, split, tmp_path)
    train = [plan for plan in plans if plan.kind == "train"]
    assert len(train) > 8
    weights = {source.name: (source.weight or 0) / 6 for source in sources}
    for plan in train:
        sizes: collections.Counter[str] = collections.Counter()
        for fragment, ranges in plan.pieces:
            sizes[fragment.batch.source] += int((ranges[:, 1] - ranges[:, 0]).sum())
        for name, weight in weights.items():
            assert abs(sizes[name] - weight * plan.size) <= 1000, (plan.number, sizes)


def test_the_mix_is_as_large_as_the_caps_allow(tmp_path: Path) -> None:
    sources = [even_source("wiki", 3, 1, 90, 100), even_source("books", 1, 2, 10, 100)]
    planned(sources, SplitOptions(eval_fraction=0), tmp_path)
    counts = mix_counts(str(tmp_path))
    # Books are the bottleneck: 2 epochs of 1,000 bytes are a quarter of the mix.
    assert [(counts[s]["bytes"], counts[s]["epochs"], counts[s]["share"]) for s in ("wiki", "books")] == [
        (6000, 0.6667, 0.75),
        (2000, 2.0, 0.25),
    ]


def test_without_weights_each_source_is_taken_whole_as_often_as_it_may(tmp_path: Path) -> None:
    sources = [even_source("wiki", None, 1, 9, 100), even_source("books", None, 2.5, 10, 100)]
    planned(sources, SplitOptions(eval_fraction=0), tmp_path)
    counts = mix_counts(str(tmp_path))
    assert [(counts[s]["used"], counts[s]["epochs"]) for s in ("wiki", "books")] == [(9, 1.0), (25, 2.5)]


def test_a_source_of_weight_0_is_only_in_the_eval_set(tmp_path: Path) -> None:
    sources = [even_source("wiki", 1, 1, 20, 100), even_source("books", 0, 1, 20, 100)]
    split = SplitOptions(eval_fraction=0.3)
    planned(sources, split, tmp_path)
    counts = mix_counts(str(tmp_path))["books"]
    assert (counts["used"], counts["bytes"], counts["epochs"], counts["share"]) == (0, 0, 0.0, 0.0)
    assert 0 < counts["held_out"] < 20


def test_the_choice_of_a_partial_epoch_follows_the_seed_alone(tmp_path: Path) -> None:
    sources = [even_source("wiki", 1, 1, 50, 100), even_source("books", 1, 1, 5, 100)]
    split = SplitOptions(eval_fraction=0)

    def chosen(seed: int, fragment_size: int) -> set[Document]:
        output = str(tmp_path / f"{seed}-{fragment_size}")
        settings = [
            dataclasses.replace(s, extraction=dataclasses.replace(PLAIN, random_seed=seed))
            for s in settings_of(sources)
        ]
        plans = plan_mix(write_fragments(sources, output, fragment_size), split, settings, output)
        return {d for plan in plans for d in documents_of(plan, sources, fragment_size) if d[0].startswith("wiki")}

    assert len(chosen(1, 3)) == 5
    assert chosen(1, 3) == chosen(1, 50) == chosen(1, 1)
    assert chosen(1, 3) != chosen(2, 3)


# ---- refused


def test_a_source_that_gives_no_document_is_named(tmp_path: Path) -> None:
    sources = [even_source("wiki", 1, 1, 5, 100), MixedSource("books", 1, 1, [])]
    with pytest.raises(UnusableInputError, match=r"^sources\.books: books: there is no article in it"):
        planned(sources, SplitOptions(), tmp_path)


def test_a_source_that_is_held_out_whole_is_named(tmp_path: Path) -> None:
    sources = [
        MixedSource("wiki", 1, 1, [("w1", 2**63, 10), ("w2", 2**63 + 1, 10)]),
        MixedSource("books", 1, 1, [("b1", 1, 10), ("b2", 2, 10)]),
    ]
    with pytest.raises(UnusableInputError, match=r"^sources\.books: all 2 articles fall into the eval set"):
        planned(sources, SplitOptions(num_eval_articles=2), tmp_path)


def test_two_sources_of_the_same_content_are_refused(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("a.xml", "b.xml"))
    for path in (first, second):
        path.write_bytes(dump_files.dump([article(1, "A town."), article(2, "A river.")]))
    fragments = [
        dataclasses.replace(f, batch=dataclasses.replace(f.batch, source=name))
        for name, path in (("one", first), ("two", second))
        for f in make_fragments(path, tmp_path / "out")
    ]
    settings = [Source(name=name, extraction=PLAIN) for name in ("one", "two")]
    with pytest.raises(UnusableInputError, match=r"b\.xml of sources\.two has the content of .*a\.xml of sources\.one"):
        plan_mix(fragments, SplitOptions(eval_fraction=0), settings, str(tmp_path / "out"))


def test_what_is_known_by_a_store_s_checksum_is_compared_by_its_own(tmp_path: Path) -> None:
    sources = [MixedSource(name, None, 1.0, [(name, number, 9)]) for number, name in enumerate(("one", "two"))]
    fragments = [
        dataclasses.replace(f, batch=dataclasses.replace(f.batch, files=(dataclasses.replace(file, sha256=""),)))
        for f in write_fragments(sources, str(tmp_path))
        for file in f.batch.files
    ]
    settings = settings_of(sources), str(tmp_path)
    assert plan_mix([Digest("two", "a"), *fragments, Digest("one", "b")], SplitOptions(eval_fraction=0), *settings)
    with pytest.raises(UnusableInputError, match=r"two of sources\.two has the content of one of sources\.one"):
        plan_mix([Digest("two", "a"), *fragments, Digest("one", "a")], SplitOptions(eval_fraction=0), *settings)


# ---- fragments of several sources


def test_fragments_of_two_sources_share_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("A town.\n")
    file = input_file(path, date="")
    unit = Unit(path=file.path, start=0, end=file.size, format="text", container="plain")
    batches = [UnitBatch(number=0, files=(file,), units=(unit,), source=name) for name in ("", "a", "b")]
    assert len({fragment_key(PLAIN, batch) for batch in batches}) == 3
    fragments = [extract_batch(batch, PLAIN, str(tmp_path / "out")) for batch in reversed(batches)]
    assert [f.batch.source for f in in_order(fragments)] == ["", "a", "b"]


def test_duplicates_are_dropped_within_a_source_that_asks_for_it(tmp_path: Path) -> None:
    unique = dataclasses.replace(PLAIN, quality=QualityOptions(drop_duplicates=True, min_duplicate_words=3))
    output = tmp_path / "out"
    fragments = []
    for name, extraction in (("a", unique), ("b", PLAIN)):
        path = tmp_path / f"{name}.xml"
        path.write_bytes(dump_files.dump([article(k, "A town by a river.", f"{name} {k}.") for k in (1, 2, 3)]))
        fragments += [
            dataclasses.replace(f, batch=dataclasses.replace(f.batch, source=name))
            for f in make_fragments(path, output, extraction)
        ]
    settings = [Source(name="a", extraction=unique), Source(name="b", extraction=PLAIN)]
    plans = plan_mix(fragments, SplitOptions(eval_fraction=0), settings, str(output))
    assert sum(plan.sentences for plan in plans) == 4 + 6


def check_plans(expected: list[str], plans: list[ShardPlan]) -> None:
    assert sorted(str(described(plan)) for plan in plans) == expected


def described(plan: ShardPlan) -> list[object]:
    pieces = [(fragment.key, ranges.tolist()) for fragment, ranges in plan.pieces]
    return [plan.name, plan.documents, plan.size, pieces]


def test_fragments_in_any_order_give_the_same_plan_on_a_runner(tmp_path: Path) -> None:
    sources = [even_source("wiki", 3, 1, 90, 100), even_source("books", 1, 2, 10, 100)]
    split = SplitOptions(num_eval_articles=4, shard_size_mb=2000 / MEGABYTE)
    fragments = write_fragments(sources, str(tmp_path))
    expected = sorted(str(described(plan)) for plan in plan_mix(fragments, split, settings_of(sources), str(tmp_path)))
    assert len(expected) > 3
    step = PlanMix(split=split, sources=settings_of(sources), output=str(tmp_path))
    run_step(shuffled(fragments), step, functools.partial(check_plans, expected))
