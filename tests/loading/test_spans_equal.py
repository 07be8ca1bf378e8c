"""Spans give the batches of TFRecords whose masks the reader draws: the same arrays, in the same order."""

import dataclasses
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from data_sets.example_sets import setup_of, write_set
from data_sets.gold_examples import VOCABULARY
from hypothesis import given
from hypothesis import strategies as st
from made_up import trained_tokenizers
from properties import SEEDED, tries

import maskmill
from maskmill.loading.loader import Loader
from maskmill.masking.objective_options import ObjectiveOptions

Batch = dict[str, npt.NDArray[Any]]

# Lines that have no pieces, or fewer bytes than the file says, or more than a part of the text.
ODD_LINES = ["", "", " ", "\t \xa0", "\u200b", "\x00", "\r", "a\rb", "x" * 5000, "word " * 700, "苹果", "<mask> it"]
UNSPACED_LINES = ["苹果是水果。", "它。", "「一种」", "1。"]  # between which tokenizers see no space
OBJECTIVES: dict[str, dict[str, Any]] = {
    "nsp": {"objective": "nsp"},
    "strict nsp": {"objective": "nsp", "strict_labels": True},
    "mlm": {"objective": "mlm"},
    "mlm within documents": {"objective": "mlm", "cross_documents": False},
    "mlm cut": {"objective": "mlm", "full_sentences": False},
    "blocks": {"objective": "blocks"},
    "blocks with [SEP]": {"objective": "blocks", "block_separators": "sep"},
    "group_texts": {"objective": "blocks", "block_separators": "recipe", "block_remainder": "drop", "block_batch": 5},
    "sop": {"objective": "sop"},
}
TOKENIZERS = ("wordpiece", "bpe", "unigram")


def text_of(draw: random.Random) -> str:
    """Documents of a text shard, of real lines and odd ones."""
    words = " ".join(trained_tokenizers.LINES).split()
    lines = []
    for _ in range(draw.choice([1, 30, 200, 600])):
        if draw.random() < 0.1:
            lines.append(draw.choice(ODD_LINES))
        elif draw.random() < 0.2:
            lines.append(draw.choice(UNSPACED_LINES))
        else:
            lines.append(" ".join(draw.choices(words, k=draw.choice([1, 4, 12, 40]))))
        if draw.random() < 0.15:
            lines.append("")
    return "\n".join(["First line.", *lines]) + draw.choice(["", "\n", "\n\n"])


def vocabulary_of(kind: str, folder: Path) -> str:
    if kind == "wordpiece":
        return VOCABULARY
    path = folder / f"{kind}.json"
    path.write_text(trained_tokenizers.trained(kind))
    return str(path)


def data_sets_of(draw: random.Random, folder: Path, kind: str, objective: dict[str, Any]) -> list[str]:
    """The same data set as TFRecords and as spans."""
    length = draw.choice([16, 40, 128])
    options: dict[str, Any] = dict(objective)
    if objective["objective"] != "blocks":
        options |= draw.choice([{}, {"pack": True}, {"bins": draw.choice([2, 3])}])
    if draw.random() < 0.4:
        options["mask_unit"] = draw.choice(["whole_word", "word", "ngram", "span"])
    if objective["objective"] in ("nsp", "sop"):
        options["short_seq_prob"] = draw.choice([0.0, 0.1, 0.5])
    options |= {
        "dynamic_masking": True,
        "dupe_factor": 1,
        "max_seq_length": length,
        "max_predictions_per_seq": max(1, length // 6),
        "random_seed": draw.randrange(100),
        "special_tokens_mask": draw.random() < 0.5,
        "feature_names": draw.choice(["google", "v2"]),
    }
    texts = {f"part-{n:05}-of-00003": text_of(draw) for n in range(3)}
    vocabulary = vocabulary_of(kind, folder)
    return [
        write_set(folder, setup_of(vocabulary, format=name, **options), texts=texts, folder=name)
        for name in ("tfrecord", "spans")
    ]


def assert_same(found: Iterator[Batch], expected: Iterator[Batch], count: int) -> None:
    for one, other in itertools.islice(zip(found, expected, strict=True), count):
        assert list(one) == list(other)
        for name, array in other.items():
            np.testing.assert_array_equal(one[name], array, err_msg=name, strict=True)


def assert_equal_loaders(draw: random.Random, stored: Loader, spans: Loader) -> None:
    """Compares what any reader of two loaders gets, from their start and from a place that one of them tells."""
    assert spans.spec == stored.spec
    for _ in range(2):
        ranks = draw.choice([ranks for ranks in range(1, 9) if stored.options.batch_size % ranks == 0])
        workers = draw.choice([1, 1, 2, 3, 4])
        place = {"ranks": ranks, "rank": draw.randrange(ranks), "workers": workers, "worker": draw.randrange(workers)}
        one, other = spans.with_options(**place), stored.with_options(**place)
        assert_same(one.endless(), other.endless(), draw.choice([3, 20]))
        state = other.state_dict() if draw.random() < 0.5 else one.state_dict()
        for loader in (stored, spans):
            loader.load_state_dict(state)


def check(draw: random.Random, folder: Path, kind: str, objective: dict[str, Any]) -> None:
    paths = data_sets_of(draw, folder, kind, objective)
    with maskmill.open(paths[0], batch_size=1, tail="pad") as loader:
        packed = loader.data_sets[0].packed
    options: dict[str, Any] = {
        "batch_size": draw.choice([8, 24, 30, 35]),
        "seed": draw.randrange(100),
        "window": draw.choice([20, 300, 16384]),
        "shuffle": draw.random() < 0.9,
        "tail": draw.choice(["pad", "carry", "repeat"]),
        "features": draw.choice(["google", "v2", *([] if packed else ["huggingface"])]),
        "with_samples": draw.random() < 0.5,
    }
    with maskmill.open(paths[0], **options) as stored, maskmill.open(paths[1], **options) as spans:
        assert spans.data_sets[0].fingerprint == stored.data_sets[0].fingerprint
        assert_equal_loaders(draw, stored, spans)


@tries(60, **SEEDED)
@given(seed=st.integers(0, 1 << 30))
def test_any_data_set_has_equal_batches(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    draw = random.Random(seed)
    objective = OBJECTIVES[draw.choice(list(OBJECTIVES))]
    check(draw, tmp_path_factory.mktemp("set"), draw.choice(TOKENIZERS), objective)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_and_tokenizer(kind: str, objective: str, tmp_path: Path) -> None:
    for seed in range(8):
        (tmp_path / f"{seed}").mkdir()
        check(random.Random(f"{seed} {kind} {objective}"), tmp_path / f"{seed}", kind, OBJECTIVES[objective])


def test_mixes_have_equal_batches(tmp_path: Path) -> None:
    draw = random.Random(7)
    made = []
    for name in ("nsp", "strict nsp"):
        (tmp_path / name).mkdir()
        options = {"dynamic_masking": True, "dupe_factor": 1, **OBJECTIVES[name]}
        texts = {"part-00000-of-00001": text_of(draw), "part-00001-of-00002": text_of(draw)}
        made.append([
            write_set(tmp_path / name, setup_of(format=form, **options), texts=texts, folder=form)
            for form in ("tfrecord", "spans")
        ])  # fmt: skip
    mixes: list[list[str]] = [list(paths) for paths in zip(*made, strict=True)]
    stored, spans, both = (
        maskmill.mix([(paths[0], 0.7), (paths[1], 0.3)], batch_size=8, seed=3, window=100)
        for paths in (*mixes, [mixes[0][0], mixes[1][1]])
    )
    for loader in (spans, both):
        assert_same(iter(loader), iter(stored.with_options()), 40)


def test_rows_of_any_numbers_are_equal(tmp_path: Path) -> None:
    objective = dataclasses.asdict(ObjectiveOptions(objective="sop", pack=True, dynamic_masking=True))
    text = {"part-00000-of-00001": text_of(random.Random(3)) * 3}
    paths = [
        write_set(tmp_path, setup_of(format=name, dupe_factor=1, **objective), texts=text, folder=name)
        for name in ("tfrecord", "spans")
    ]
    stored, spans = (maskmill.open(path, batch_size=4) for path in paths)
    for samples in ([5, 0, -1, 5, 2], [-1, -1], [stored.data_sets[0].samples - 1]):
        one, other = spans.rows_of(samples, epoch=2), stored.rows_of(samples, epoch=2)
        assert_same(iter([one]), iter([other]), 1)
