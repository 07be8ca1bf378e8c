"""Text shards that are opened as a data set: the index of their rows is made once, and kept."""

import logging
import multiprocessing
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.example_sets import setup_of, write_set
from data_sets.gold_examples import VOCABULARY
from made_up import trained_tokenizers

import maskmill
from maskmill.errors import UnusableInputError
from maskmill.loading import text_indexes

NAMES = ("part-00000-of-00002", "part-00001-of-00002", "eval.txt")


@pytest.fixture(name="text")
def fixture_text(tmp_path: Path) -> Path:
    """A directory of text shards."""
    draw = random.Random(4)
    words = " ".join(trained_tokenizers.LINES).split()
    (tmp_path / "text").mkdir()
    for name in NAMES:
        lines = [" ".join(draw.choices(words, k=10)) + "\n" * (1 + (n % 7 == 6)) for n in range(120)]
        (tmp_path / "text" / name).write_text("".join(lines))
    return tmp_path / "text"


def opened(text: Path, **changes: Any) -> maskmill.Loader:
    options: dict[str, Any] = {
        "tokenizer": VOCABULARY,
        "objective": "mlm",
        "max_seq_length": 32,
        "batch_size": 8,
        "index_dir": text.parent / "index",
    }
    return maskmill.open(f"{text}/*", **options | changes)


def first_batch(loader: maskmill.Loader) -> dict[str, Any]:
    with loader:
        return next(iter(loader))


def open_in_process(text: Path) -> str:
    with opened(text) as loader:
        return loader.data_sets[0].path


def test_the_batches_are_those_of_examples(text: Path, tmp_path: Path) -> None:
    setup = setup_of(
        format="spans", objective="mlm", dynamic_masking=True, dupe_factor=1, unicode="15.1.0", short_seq_prob=0.0
    )
    texts = {name: (text / name).read_text() for name in NAMES}
    made = write_set(tmp_path / "made", setup, texts=texts)
    for split in ("train", "eval"):
        with maskmill.open(made, batch_size=8, split=split) as wanted, opened(text, split=split) as found:
            assert found.data_sets[0].fingerprint == wanted.data_sets[0].fingerprint
            for one, other in zip(found, wanted, strict=True):
                for name, array in other.items():
                    np.testing.assert_array_equal(one[name], array, strict=True)


def test_an_index_is_made_once(text: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, text_indexes.__name__):
        batches = [first_batch(opened(text)) for _ in range(3)]
        assert len(caplog.messages) == 1
        assert f"{text}: an index of its rows is written now, once, of 0 MB of text" in caplog.messages[0]
        np.testing.assert_array_equal(batches[0]["input_ids"], batches[2]["input_ids"])
        (index,) = (text.parent / "index").iterdir()
        next(index.glob("part-*.spans")).unlink()  # is noticed, and made again
        np.testing.assert_array_equal(first_batch(opened(text))["input_ids"], batches[0]["input_ids"])
        assert len(caplog.messages) == 2


def test_other_text_or_options_have_another_index(text: Path) -> None:
    paths = [opened(text).data_sets[0].path]
    paths.append(opened(text, max_seq_length=64).data_sets[0].path)
    paths.append(opened(text, examples={"masked_lm_prob": 0.3}).data_sets[0].path)
    paths.append(opened(text, objective="nsp", examples={"pack": True}).data_sets[0].path)
    (text / NAMES[0]).write_text("Now another sentence stands here.\n" * 30)
    paths.append(opened(text).data_sets[0].path)
    assert len(set(paths)) == len(paths)
    assert first_batch(opened(text, objective="sop", examples={"pack": True, "special_tokens_mask": True})).keys() >= {
        "cu_seqlens",
        "special_tokens_mask",
    }


def test_a_tokenizer_json(text: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(trained_tokenizers.trained("bpe"))
    batch = first_batch(opened(text, tokenizer=tmp_path / "tokenizer.json", examples={"mask_unit": "word"}))
    assert batch["input_ids"].shape == (8, 32)


def test_several_processes_make_one_index(text: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        paths = pool.map(open_in_process, [text] * 4, chunksize=1)
    assert len(set(paths)) == 1
    assert len(list((text.parent / "index").iterdir())) == 1


def test_text_may_move_with_its_index(text: Path, tmp_path: Path) -> None:
    path = opened(text).data_sets[0].path
    shutil.move(text, tmp_path / "moved")
    with pytest.raises(UnusableInputError, match="its rows are read from text, which is not there"):
        maskmill.open(path, batch_size=8)
    with maskmill.open(path, batch_size=8, text=tmp_path / "moved") as loader:
        next(iter(loader))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tokenizer": None}, "objective, examples and index_dir are for rows made of text; give tokenizer too"),
        ({"tokenizer": "nowhere.txt"}, "nowhere.txt: this input does not exist"),
        ({"examples": {"paack": True}}, r"paack: this is no option of rows .*; did you mean pack\?"),
        ({"examples": {"format": "mds"}}, r"format: this is no option of rows that are made when text is opened\."),
        ({"examples": {"pack": True, "bins": 2}}, "--pack fills rows, so --bins has no lengths to sort by"),
        ({"examples": {"dupe_factor": 2}}, "--dynamic_masking stores no masks, so --dupe_factor 2"),
        ({"index_dir": "gs://bucket/index"}, "gs://bucket/index: index_dir must be a directory of this machine"),
        ({"objective": "nps"}, "objective is 'nps'; it must be one of nsp, mlm, blocks, sop"),
        ({"max_seq_length": 3}, "max_seq_length 3"),
    ],
)
def test_what_cannot_be_used_is_said(text: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UnusableInputError, match=says):
        opened(text, **changes)


def test_no_text(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="nothing: this input does not exist"):
        maskmill.open(tmp_path / "nothing", tokenizer=VOCABULARY, batch_size=8, index_dir=tmp_path)
