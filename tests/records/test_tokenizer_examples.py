"""Examples of any tokenizer: BERT's gives the records of its vocab.txt; ids, words and padding are the tokenizer's."""

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from data_sets.example_rows import Row, rows_of
from data_sets.gold_examples import VOCABULARY
from made_up import trained_tokenizers
from oracles.line_joints import with_joints

from maskmill.example_shards.example_shards import ExamplesSetup, write_example_shard
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.row_masks import MaskedRows, RowMasker, draw_masks
from maskmill.records.examples import ExampleCounts, ExampleFile, write_example_files
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tokenizing import load_tokenization
from maskmill.text.text_files import describe_text_shard
from maskmill.tokenization.tokenized_text import LoadedTokenizer

MASKING = MaskingOptions(max_seq_length=24, max_predictions_per_seq=5, masked_lm_prob=0.3, unicode="15.1.0")
DOCUMENTS = [[*trained_tokenizers.LINES, *trained_tokenizers.LINES[k % 4 :]] for k in range(12)]
KINDS = ("bpe", "unigram")


def plan_of(form: str = "tfrecord", **objective: Any) -> ExamplesPlan:
    masking = dataclasses.replace(MASKING, dupe_factor=1, do_whole_word_mask=not objective)
    return ExamplesPlan(
        masking=masking,
        objective=ObjectiveOptions(**objective),
        format=FormatOptions(format=form, special_tokens_mask=True),  # type: ignore[arg-type]
    )


@functools.cache
def json_of(kind: str) -> str:
    return trained_tokenizers.bert(VOCABULARY) if kind == "bert" else trained_tokenizers.trained(kind)


def loaded_of(kind: str, folder: Path) -> LoadedTokenizer:
    """A tokenizer, or with "vocab.txt" BERT's vocabulary."""
    if kind == "vocab.txt":
        return load_tokenization(VOCABULARY, MASKING, is_tokenizer=False)
    (folder / "tokenizer.json").write_text(json_of(kind))
    return load_tokenization(f"{folder}/tokenizer.json", MASKING, is_tokenizer=True)


def write(kind: str, plan: ExamplesPlan, folder: Path) -> tuple[ExampleFile, ExampleCounts]:
    """Writes the examples of DOCUMENTS."""
    folder.mkdir(exist_ok=True)
    (folder / "text").write_text("\n\n".join("\n".join(lines) for lines in DOCUMENTS) + "\n")
    (file,), counts = write_example_files([f"{folder}/text"], [f"{folder}/out"], loaded_of(kind, folder), plan)
    return file, counts


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(),
        plan_of(objective="mlm", mask_unit="span", pack=True),
        plan_of("parquet", objective="sop", mask_unit="ngram"),
        plan_of("mds", objective="nsp", strict_labels=True, mask_unit="word"),
        plan_of(objective="mlm", dynamic_masking=True),
    ],
    ids=["nsp", "mlm packed", "sop", "nsp strict", "mlm dynamic"],
)
def test_berts_tokenizer_gives_the_records_of_its_vocabulary(plan: ExamplesPlan, tmp_path: Path) -> None:
    file, counts = write("vocab.txt", plan, tmp_path / "vocabulary")
    of_tokenizer, same_counts = write("bert", plan, tmp_path / "tokenizer")
    assert of_tokenizer.sha256 == file.sha256
    assert same_counts == counts
    assert counts.examples > 20


def pieces_of(kind: str) -> Iterator[tuple[int, int]]:
    """The ids of all lines, and whether each goes on a word, as the library gives them."""
    tokenizer = tokenizers.Tokenizer.from_str(json_of(kind))
    for line in itertools.chain(*map(with_joints, DOCUMENTS)):
        encoding = tokenizer.encode(line, add_special_tokens=False)
        yield from zip(encoding.ids, [0, *(a == b for a, b in itertools.pairwise(encoding.word_ids))], strict=True)


def dynamic_plan(form: str) -> ExamplesPlan:
    return plan_of(form, objective="blocks", dynamic_masking=True, mask_unit="whole_word")


def text_of(rows: list[Row]) -> list[tuple[int, int]]:
    """The pieces of text of rows, and whether each goes on a word."""
    return [
        (piece, continues)
        for row in rows
        for piece, continues, is_special in zip(
            row["input_ids"], row["continuation_mask"], row["special_tokens_mask"], strict=True
        )
        if not is_special
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["tfrecord", "parquet", "mds"])
def test_rows_without_masks_tell_the_tokenizers_pieces_and_words(kind: str, form: str, tmp_path: Path) -> None:
    plan = dynamic_plan(form)
    file, counts = write(kind, plan, tmp_path)
    columns = plan.columns(loaded_of(kind, tmp_path).vocabulary, file.width)
    rows = rows_of(file, plan, columns)
    expected = list(pieces_of(kind))
    assert text_of(rows) == expected
    assert (counts.tokens, counts.words) == (len(expected), sum(not continues for _, continues in expected))
    special = loaded_of(kind, tmp_path).vocabulary.special_ids
    for row in rows:
        used = sum(row["input_mask"]) if "input_mask" in row else len(row["input_ids"])
        assert (row["input_ids"][0], row["input_ids"][used - 1]) == (special["cls_id"], special["sep_id"])
        assert set(row["input_ids"][used:]) <= {special["pad_id"]} == {1}
        assert row["special_tokens_mask"] == [1] + [0] * (used - 2) + [1] * (len(row["input_ids"]) - used + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_stored_masks_are_those_that_a_reader_draws_from_the_data_alone(kind: str, tmp_path: Path) -> None:
    static = plan_of(objective="blocks", mask_unit="whole_word")
    loaded = loaded_of(kind, tmp_path)
    file, _ = write(kind, dynamic_plan("tfrecord"), tmp_path)
    rows = rows_of(file, dynamic_plan("tfrecord"))
    stored = rows_of(write(kind, static, tmp_path)[0], static)
    count = len(rows)
    block = MaskedRows(
        input_ids=np.array([row["input_ids"] for row in rows], np.int32),
        lengths=np.array([sum(row["input_mask"]) for row in rows], np.int32),
        positions=np.zeros((count, MASKING.max_predictions_per_seq), np.int32),
        labels=np.zeros((count, MASKING.max_predictions_per_seq), np.int32),
        masked=np.zeros(count, np.int32),
        continues=np.array([row["continuation_mask"] for row in rows], np.uint8),
    )
    rules = RowMasker(loaded.vocabulary, static.masking, static.objective).rules
    draw_masks(rules, static.masking.random_seed, block, np.zeros(count, np.int64), np.arange(count))
    drawn = sorted(zip(*(array.tolist() for array in (block.input_ids, block.positions, block.labels)), strict=True))
    names = ("input_ids", "masked_lm_positions", "masked_lm_ids")
    assert sorted(tuple(row[name] for name in names) for row in stored) == drawn
    for continues, positions, masked in zip(
        block.continues.tolist(), block.positions.tolist(), block.masked, strict=True
    ):
        marked = set(positions[:masked])
        for position in range(2, len(continues)):
            assert not continues[position] or (position in marked) == (position - 1 in marked), "a word in part"
    assert max(block.masked) > 1


@pytest.mark.parametrize("unit", ["piece", None])
def test_words_are_not_told_where_no_mask_asks_for_them(unit: Any, tmp_path: Path) -> None:
    plan = plan_of("parquet", objective="mlm", dynamic_masking=True, mask_unit=unit)
    vocabulary = loaded_of("bpe", tmp_path).vocabulary
    assert "continuation_mask" not in [column.name for column in plan.columns(vocabulary, 24)]
    static = plan_of("parquet", objective="mlm", mask_unit="whole_word")
    assert "continuation_mask" not in [column.name for column in static.columns(vocabulary, 24)]


def test_pairs_are_padded_with_the_tokenizers_padding(tmp_path: Path) -> None:
    plan = plan_of()
    plan = dataclasses.replace(plan, masking=dataclasses.replace(plan.masking, max_seq_length=300))
    assert plan.is_exact
    file, counts = write("bpe", plan, tmp_path)
    padded = 0
    for row in rows_of(file, plan):
        padding = row["input_ids"][sum(row["input_mask"]) :]
        padded += len(padding)
        assert set(padding) <= {1}
        assert (row["input_ids"][0], row["special_tokens_mask"][-len(padding) - 1]) == (0, 1)
    assert padded == counts.padding_tokens
    assert padded


def test_a_shard_is_made_again_where_another_token_is_the_mask(tmp_path: Path) -> None:
    keys = []
    content = json_of("bpe")
    (tmp_path / "part-00000-of-00001").write_text("\n".join(DOCUMENTS[0]))
    shard = describe_text_shard((0, f"{tmp_path}/part-00000-of-00001"))
    for name, config in (("a", None), ("b", None), ("c", '{"mask_token": "!"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokenizer.json").write_text(content)
        if config is not None:
            (tmp_path / name / "tokenizer_config.json").write_text(config)
        setup = ExamplesSetup(
            vocab_file=f"{tmp_path}/{name}/tokenizer.json",
            vocab_sha256=hashlib.sha256(content.encode()).hexdigest(),
            masking=MASKING,
            one_seed=False,
            packed=False,
            is_tokenizer=True,
        )
        keys.append(write_example_shard(shard, setup, str(tmp_path / "out")).key)
    assert keys[0] == keys[1] != keys[2]
