"""The plan of text shards: boundaries, eval set, what is left without duplicates, the same plan for any order."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.shard_builds import ONE_UNIT, PLAIN, article, make_fragments, shuffled, write_dump
from data_sets.steps import run_step
from hypothesis import given
from hypothesis import strategies as st
from made_up import dump_files

from maskmill.errors import UnusableInputError
from maskmill.storage import progress
from maskmill.text_shards.fragments import Fragment, read_ranges
from maskmill.text_shards.options import ExtractionOptions, QualityOptions, SplitOptions
from maskmill.text_shards.planning import MEGABYTE, ShardPlan, count_shares, plan_text_shards, shares_of
from transforms.text_shards import PlanTextShards

UNIQUE = dataclasses.replace(PLAIN, quality=QualityOptions(drop_duplicates=True, min_duplicate_words=4))

REPEATED = "The same sentence stands here."
# Every third page has nothing of its own, every fifth one begins as others do.
DOCUMENTS = {
    i: [*([REPEATED] if i % 3 == 0 or i % 5 == 0 else []), *([f"Town {i} has {i} bridges."] if i % 3 else [])]
    for i in range(1, 31)
}
PAGES = [article(number, *paragraphs) for number, paragraphs in DOCUMENTS.items()]
NO_EVAL = SplitOptions(eval_fraction=0, shard_size_mb=300 / MEGABYTE)
SOME_EVAL = SplitOptions(num_eval_articles=7, shard_size_mb=300 / MEGABYTE)


def share_numbers(sizes: Sequence[int], shard_bytes: int, piece: int = 1000) -> list[int]:
    """The share of each document, whose sizes come in pieces."""
    total = sum(sizes)
    pieces = [np.array(sizes[i : i + piece], np.int32) for i in range(0, max(1, len(sizes)), piece)]
    return np.concatenate([*shares_of(pieces, total, count_shares(total, shard_bytes))]).tolist()


@given(st.lists(st.integers(1, 500), min_size=1, max_size=200), st.integers(1, 2000))
def test_a_document_belongs_to_the_shard_in_whose_share_it_starts(sizes: list[int], shard_bytes: int) -> None:
    numbers = share_numbers(sizes, shard_bytes)
    shares = -(-sum(sizes) // shard_bytes)
    assert numbers == [sum(sizes[:i]) * shares // sum(sizes) for i in range(len(sizes))]
    assert share_numbers(sizes, shard_bytes, piece=3) == numbers
    for number in set(numbers):
        in_shard = [size for size, share in zip(sizes, numbers, strict=True) if share == number]
        # A shard is over the size by less than its last document.
        assert sum(in_shard[:-1]) <= shard_bytes


def test_no_document_is_in_one_share() -> None:
    assert count_shares(0, 100) == 1
    assert share_numbers([], 100) == []


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dump(tmp_path_factory.mktemp("dump"), PAGES)


def planned_text(plan: ShardPlan, extraction: ExtractionOptions, output: Path) -> str:
    return b"".join(read_ranges(plan.pieces, {"": extraction}, str(output))).decode()


def written(documents: Sequence[Sequence[str]]) -> str:
    return "".join("\n".join(sentences) + "\n\n" for sentences in documents)


def unpacked(plan: ShardPlan) -> dict[str, Any]:
    """A plan in values that can be compared."""
    pieces = [(fragment, ranges.tolist()) for fragment, ranges in plan.pieces]
    return {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)} | {"pieces": pieces}


def test_all_documents_stand_in_order_in_even_shards(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path)
    assert len(fragments) > 5
    *train, evaluation = plan_text_shards(fragments, NO_EVAL, PLAIN, str(tmp_path))
    texts = [planned_text(plan, PLAIN, tmp_path) for plan in train]
    assert "".join(texts) == written(list(DOCUMENTS.values()))
    assert [plan.name for plan in train] == [f"part-{i:05d}-of-{len(train):05d}" for i in range(len(train))]
    assert [plan.number for plan in train] == list(range(len(train)))
    for plan, text in zip(train, texts, strict=True):
        assert (plan.size, plan.documents) == (len(text), text.count("\n\n"))
        assert plan.sentences == text.count("\n") - plan.documents
        assert plan.size <= 300 + 60
        assert plan.inputs == {str(dump): fragments[0].batch.files[0].sha256}
    assert (evaluation.name, evaluation.kind, evaluation.documents, evaluation.pieces) == ("eval.txt", "eval", 0, ())


def test_the_eval_set_is_left_out_of_the_training_text(dump: Path, tmp_path: Path) -> None:
    plans = plan_text_shards(make_fragments(dump, tmp_path), SOME_EVAL, PLAIN, str(tmp_path))
    texts = {kind: [planned_text(p, PLAIN, tmp_path) for p in plans if p.kind == kind] for kind in ("train", "eval")}
    assert sum(plan.documents for plan in plans if plan.kind == "eval") == 7
    held_out = "".join(texts["eval"]).split("\n\n")[:-1]
    trained = "".join(texts["train"]).split("\n\n")[:-1]
    everything = written(list(DOCUMENTS.values())).split("\n\n")[:-1]
    assert sorted(held_out + trained) == sorted(everything)
    # An eval set larger than a shard is cut, too.
    small = dataclasses.replace(SOME_EVAL, shard_size_mb=100 / MEGABYTE)
    names = [plan.name for plan in plan_text_shards(make_fragments(dump, tmp_path), small, PLAIN, str(tmp_path))]
    assert {"eval-00000-of-00003.txt", "eval-00002-of-00003.txt"} <= set(names)


def test_the_plan_announces_its_shards(dump: Path, tmp_path: Path) -> None:
    plans = plan_text_shards(make_fragments(dump, tmp_path), SOME_EVAL, PLAIN, str(tmp_path))
    size = len(written(list(DOCUMENTS.values())))
    assert progress.announced(str(tmp_path), "text") == progress.Announced(pieces=len(plans), bytes=size)


def test_only_the_first_documents_are_taken(dump: Path, tmp_path: Path) -> None:
    options = dataclasses.replace(NO_EVAL, max_documents=11)
    for extraction in (PLAIN, UNIQUE):
        output = tmp_path / str(extraction.quality.drop_duplicates)
        plans = plan_text_shards(make_fragments(dump, output, extraction), options, extraction, str(output))
        text = "".join(planned_text(plan, extraction, output) for plan in plans)
        documents = {number: DOCUMENTS[number] for number in range(1, 12)}
        assert text == written(list((first_only(documents) if extraction is UNIQUE else documents).values()))


def first_only(documents: dict[int, list[str]]) -> dict[int, list[str]]:
    """The documents of which something is left when the repeated sentence stays in the first of them alone."""
    left, seen = {}, False
    for number, sentences in documents.items():
        rest = [sentence for sentence in sentences if sentence != REPEATED or not seen]
        seen = seen or REPEATED in sentences
        if rest:
            left[number] = rest
    return left


@pytest.mark.parametrize("unit_bytes", [50, 300, ONE_UNIT])
def test_the_plan_counts_without_the_paragraphs_that_are_dropped(unit_bytes: int, dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path, UNIQUE, unit_bytes)
    plans = plan_text_shards(fragments, NO_EVAL, UNIQUE, str(tmp_path))
    texts = [planned_text(plan, UNIQUE, tmp_path) for plan in plans]
    # Of page 3 the sentence stays; pages 6, 9, … have nothing else and are gone.
    assert "".join(texts) == written(list(first_only(DOCUMENTS).values()))
    assert [plan.size for plan in plans] == [len(text) for text in texts]
    assert [plan.documents for plan in plans] == [text.count("\n\n") for text in texts]
    assert [plan.sentences for plan in plans] == [text.count("\n") - text.count("\n\n") for text in texts]


def test_a_document_of_which_only_the_title_is_left_is_gone(tmp_path: Path) -> None:
    extraction = dataclasses.replace(UNIQUE, keep_titles=True)
    pages = [article(1, REPEATED), article(2, REPEATED), article(3, REPEATED, "But not alone.")]
    fragments = make_fragments(write_dump(tmp_path, pages), tmp_path / "out", extraction)
    (train, _) = plan_text_shards(fragments, SplitOptions(eval_fraction=0), extraction, str(tmp_path / "out"))
    expected = [["Article 1", REPEATED], ["Article 3", "But not alone."]]
    assert planned_text(train, extraction, tmp_path / "out") == written(expected)
    assert (train.documents, train.sentences) == (2, 4)


def test_no_document_left_is_one_sentence(tmp_path: Path) -> None:
    path = write_dump(tmp_path, [article(1, ""), article(2, "")])
    with pytest.raises(UnusableInputError, match=r"No article is left of .*dump\.xml after the filters \(.*empty 2, "):
        plan_text_shards(make_fragments(path, tmp_path / "out"), NO_EVAL, PLAIN, str(tmp_path / "out"))
    other = tmp_path / "other.xml"
    other.write_bytes(path.read_bytes())
    fragments = [*make_fragments(path, tmp_path / "two"), *make_fragments(other, tmp_path / "two")]
    with pytest.raises(UnusableInputError, match="No article is left of 2 files after the filters"):
        plan_text_shards(fragments, NO_EVAL, PLAIN, str(tmp_path / "two"))


def test_what_left_no_document_is_named(tmp_path: Path) -> None:
    path = write_dump(tmp_path, [article(1, "Short."), article(2, "Short, too.")])
    strict = dataclasses.replace(PLAIN, quality=QualityOptions(min_characters=1000))
    fragments = make_fragments(path, tmp_path / "out", strict)
    with pytest.raises(UnusableInputError, match=r"\(read 2, too short 2\); check the input and --min_characters\.$"):
        plan_text_shards(fragments, NO_EVAL, strict, str(tmp_path / "out"))
    empty = write_dump(tmp_path, [])
    with pytest.raises(UnusableInputError, match=r"dump\.xml: there is no article in it; check .* --input_format\."):
        plan_text_shards(make_fragments(empty, tmp_path / "none"), NO_EVAL, PLAIN, str(tmp_path / "none"))


def test_more_shards_than_anyone_wants_are_refused() -> None:
    with pytest.raises(UnusableInputError, match=r"--shard_size_mb 0\.5 makes 6,000,000 shards .*give a larger size"):
        count_shares(3 * 10**6 * MEGABYTE, 0.5 * MEGABYTE)


@pytest.mark.parametrize(
    ("count", "message"),
    [(30, "All 30 articles fall into the eval set; hold out fewer."), (31, "31 is more than the 30 articles")],
)
def test_an_eval_set_of_everything_is_one_sentence(count: int, message: str, dump: Path, tmp_path: Path) -> None:
    options = dataclasses.replace(NO_EVAL, eval_fraction=None, num_eval_articles=count)
    with pytest.raises(UnusableInputError, match=message):
        plan_text_shards(make_fragments(dump, tmp_path), options, PLAIN, str(tmp_path))


def check_plans(expected: list[dict[str, Any]], plans: list[ShardPlan]) -> None:
    assert sorted(map(unpacked, plans), key=lambda plan: plan["name"]) == expected


@pytest.mark.parametrize("extraction", [PLAIN, UNIQUE])
def test_fragments_in_any_order_give_the_same_plan(extraction: ExtractionOptions, dump: Path, tmp_path: Path) -> None:
    fragments: list[Fragment] = make_fragments(dump, tmp_path, extraction)
    plans = plan_text_shards(fragments, SOME_EVAL, extraction, str(tmp_path))
    expected = sorted(map(unpacked, plans), key=lambda plan: plan["name"])
    assert len(expected) > 2
    step = PlanTextShards(split=SOME_EVAL, extraction=extraction, output=str(tmp_path))
    run_step(shuffled(fragments), step, functools.partial(check_plans, expected))


def test_where_no_document_is_left_the_first_reason_of_rejection_is_given(tmp_path: Path) -> None:
    path = write_dump(tmp_path, [dump_files.page(1, "Bad", "<b/>").replace("&lt;", "<")])
    with pytest.raises(
        UnusableInputError, match=r"; the first was rejected because the text has markup of XML in it\)"
    ):
        plan_text_shards(make_fragments(path, tmp_path / "out"), NO_EVAL, PLAIN, str(tmp_path / "out"))
