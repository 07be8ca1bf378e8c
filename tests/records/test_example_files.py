"""Examples of any objective in any format: the same rows in each, in bins or not, and counts that are those of rows."""

import dataclasses
import functools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from data_sets.example_rows import Row, rows_of
from data_sets.gold_examples import VOCABULARY, unpacked
from oracles import pretraining as oracle

from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.examples import ExampleCounts, ExampleFile, write_example_files, write_examples
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tokenizing import wordpiece
from maskmill.tokenization.vocabulary import load_vocabulary

MASKING = MaskingOptions(max_seq_length=64, max_predictions_per_seq=10, dupe_factor=2, short_seq_prob=0.3)
PADDING, CLS, SEP, MASK = 0, 101, 102, 103
LINES = 150  # of the text

# Options of objectives by a name for the tests.
OBJECTIVES: dict[str, dict[str, Any]] = {
    "nsp": {},
    "nsp-strict": {"strict_labels": True},
    "nsp-spans": {"mask_unit": "span", "pack": True},
    "mlm": {"objective": "mlm", "mask_unit": "whole_word"},
    "mlm-packed": {"objective": "mlm", "cross_documents": False, "pack": True},
    "mlm-dynamic": {"objective": "mlm", "dynamic_masking": True},
    "mlm-packed-dynamic": {"objective": "mlm", "cross_documents": False, "pack": True, "dynamic_masking": True},
    "blocks": {"objective": "blocks", "block_separators": "sep", "mask_unit": "word"},
    "blocks-dropped": {"objective": "blocks", "block_remainder": "drop", "block_batch": 1},
    "sop": {"objective": "sop", "mask_unit": "ngram"},
}


def plan_of(name: str, **changes: Any) -> ExamplesPlan:
    """The plan of an objective; changes are of ObjectiveOptions or FormatOptions."""
    fields = {field.name for field in dataclasses.fields(FormatOptions)}
    return ExamplesPlan(
        masking=MASKING,
        objective=ObjectiveOptions(**OBJECTIVES[name], **{k: v for k, v in changes.items() if k not in fields}),
        format=FormatOptions(**{k: v for k, v in changes.items() if k in fields}),
    )


def write(plan: ExamplesPlan, directory: Path, **how: bool) -> tuple[list[ExampleFile], ExampleCounts]:
    """Writes the examples of a text of some documents."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = Path(unpacked("cleanup/eval.txt", directory)).read_text().splitlines()[:LINES]
    (directory / "text").write_text("\n".join(lines) + "\n\nOne.\n\nTwo words.\n")
    bins = plan.objective.bins
    prefixes = [f"{directory}/out" if bins is None else f"{directory}/out.bin-{n}" for n in range(bins or 1)]
    return write_example_files(
        [f"{directory}/text"], prefixes, wordpiece(load_vocabulary(VOCABULARY), plan.masking), plan, **how
    )


@functools.cache
def default_rows(directory: Path, name: str) -> tuple[list[Row], ExampleCounts]:
    """The rows of an objective as a TFRecord with all columns."""
    plan = plan_of(name, special_tokens_mask=True)
    (file,), counts = write(plan, directory)
    return rows_of(file, plan), counts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `default_rows` writes."""
    return tmp_path_factory.mktemp("made")


def without_padding(row: Row) -> Row:
    """A row as it is stored where the reader draws the masks."""
    used = sum(row["input_mask"])
    cut = ("input_ids", "segment_ids", "special_tokens_mask", "sequence_ids", "position_ids")
    return {name: v[:used] if name in cut else v for name, v in row.items() if name != "input_mask"}


@pytest.mark.parametrize("form", ["parquet", "mds"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_all_formats_have_the_same_rows(name: str, form: str, made: Path, tmp_path: Path) -> None:
    expected, counts = default_rows(made, name)
    plan = plan_of(name, special_tokens_mask=True, format=form)
    (file,), own_counts = write(plan, tmp_path)
    rows = rows_of(file, plan)
    if plan.objective.dynamic_masking:
        expected = [without_padding(row) for row in expected]
    assert rows == expected
    assert file.examples == len(rows) > 20
    padding = None if plan.objective.dynamic_masking and not plan.objective.pack else counts.padding_tokens
    assert own_counts == dataclasses.replace(counts, padding_tokens=padding)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_counts_are_those_of_the_rows(name: str, made: Path) -> None:
    rows, counts = default_rows(made, name)
    objective = plan_of(name).objective
    used = sum(sum(row["input_mask"]) for row in rows)
    assert counts.examples == len(rows)
    assert counts.padding_tokens == MASKING.max_seq_length * len(rows) - used
    special = sum(sum(row["special_tokens_mask"]) for row in rows) - counts.padding_tokens
    assert (counts.special_tokens, counts.example_tokens) == (special, used - special)
    labels = [label for row in rows for label in row.get("next_sentence_labels", [])]
    assert counts.random_next == (sum(labels) if objective.objective == "nsp" else None)
    assert counts.swapped == (sum(labels) if objective.objective == "sop" else None)
    weights = [weight for row in rows for weight in row.get("masked_lm_weights", [])]
    assert counts.masked_positions == (None if objective.dynamic_masking else sum(weights))
    assert (counts.sequences, counts.unpacked_padding_tokens) == (
        (sum(max(row["sequence_ids"]) for row in rows), MASKING.max_seq_length * counts.sequences - used)
        if objective.pack and counts.sequences
        else (None, None)
    )
    assert (counts.dropped_tokens is not None) == (name == "blocks-dropped")
    assert (counts.split_sentences is not None) == (objective.objective == "mlm")
    assert counts.single_document_shards == (0 if objective.strict_labels else None)
    assert None not in counts.by_name.values()
    assert not counts.unused_tokens or objective.objective in ("nsp", "sop") or counts.dropped_tokens


def test_a_single_document_has_no_random_pair_under_strict_labels(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("A fox.\nAnother fox.\nIt runs.\n" * 30)
    plan = plan_of("nsp-strict")
    loaded = wordpiece(load_vocabulary(VOCABULARY), plan.masking)
    _, counts = write_example_files([f"{tmp_path}/text"], [f"{tmp_path}/out"], loaded, plan)
    assert (counts.documents, counts.single_document_shards, counts.random_next) == (1, 1, 0)


@pytest.mark.parametrize("unit", [None, "piece", "whole_word"])
def test_the_exact_path_gives_the_references_bytes(unit: Any, tmp_path: Path) -> None:
    plan = plan_of("nsp", mask_unit=unit)
    assert plan.is_exact
    (file,), counts = write(plan, tmp_path)
    masking = dataclasses.replace(MASKING, do_whole_word_mask=unit == "whole_word")
    vocabulary = load_vocabulary(VOCABULARY)
    (reference, index), expected = write_examples([f"{tmp_path}/text"], [f"{tmp_path}/reference"], vocabulary, masking)
    assert file.index is not None
    assert (file.sha256, file.index.sha256, counts) == (reference.sha256, index.sha256, expected)


def test_other_objectives_and_shares_are_not_exact() -> None:
    assert [name for name in OBJECTIVES if plan_of(name).is_exact] == ["nsp"]
    names = ("mask_share", "random_share", "keep_share")
    for shares in ((0.9, 0.05, 0.05), (0.8, 0.2, 0.0)):
        assert not plan_of("nsp", **dict(zip(names, shares, strict=True))).is_exact


def test_v2_names_change_names_only(made: Path, tmp_path: Path) -> None:
    plan = plan_of("nsp", feature_names="v2", special_tokens_mask=True)
    (file,), _ = write(plan, tmp_path)
    names = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"}
    expected, _ = default_rows(made, "nsp")
    rows = rows_of(file, plan)
    assert rows == [{names.get(name, name): values for name, values in row.items()} for row in expected]
    (record, *_) = oracle.split_tfrecord(Path(file.path).read_bytes())
    assert list(oracle.decode_example(record)) == sorted(rows[0])


@pytest.mark.parametrize("form", ["tfrecord", "parquet", "mds"])
@pytest.mark.parametrize("name", ["nsp", "mlm", "sop", "mlm-dynamic"])
def test_bins_deal_the_same_rows_by_length(name: str, form: str, made: Path, tmp_path: Path) -> None:
    plan = plan_of(name, bins=3, special_tokens_mask=True, format=form)
    written, counts = write(plan, tmp_path)
    expected, all_counts = default_rows(made, name)
    widths = (22, 43, 64)
    found = []
    assert len({file.bin for file in written}) > 1
    for file in written:
        assert file.bin is not None
        assert file.width == widths[file.bin]
        rows = rows_of(file, plan)
        assert file.examples == len(rows)
        for row in rows:
            if plan.is_padded:
                assert len(row["input_ids"]) == file.width
                row = without_padding(row)
            assert file.width - 22 < len(row["input_ids"]) <= file.width
            found.append(row)
    assert Counter(map(repr, found)) == Counter(repr(without_padding(row)) for row in expected)
    assert counts.examples == all_counts.examples
    if plan.is_padded:
        padded = sum(file.width * file.examples for file in written)
        assert counts.padding_tokens == padded - counts.example_tokens - counts.special_tokens
    else:
        assert counts.padding_tokens is None


@pytest.mark.parametrize("form", ["tfrecord", "parquet", "mds"])
def test_a_text_without_rows_has_no_file(form: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Too short for a block.\n")
    plan = plan_of("blocks-dropped", format=form)
    loaded = wordpiece(load_vocabulary(VOCABULARY), plan.masking)
    written, counts = write_example_files([f"{tmp_path}/text"], [f"{tmp_path}/out"], loaded, plan)
    assert (written, counts.examples) == ([], 0)
    assert counts.unused_tokens == counts.dropped_tokens == counts.tokens > 0
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_masks_stand_where_the_weights_say(made: Path) -> None:
    """A row's ids, with its labels put back, have no [MASK] and keep [CLS] and [SEP]; nothing stands after them."""
    for name in OBJECTIVES:
        rows, _ = default_rows(made, name)
        for row in rows:
            ids = list(row["input_ids"])
            masked = int(sum(row.get("masked_lm_weights", [])))
            assert ids.count(MASK) <= masked
            pairs = zip(row.get("masked_lm_positions", [])[:masked], row.get("masked_lm_ids", []), strict=False)
            for position, label in pairs:
                assert label not in (CLS, SEP)
                ids[position] = label
            used = sum(row["input_mask"])
            special = [int(piece in (CLS, SEP)) for piece in ids[:used]] + [1] * (len(ids) - used)
            assert row["special_tokens_mask"] == special
            assert MASK not in ids
            assert ids[used:] == [PADDING] * (len(ids) - used)
