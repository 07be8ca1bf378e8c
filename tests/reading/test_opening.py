"""Data sets are opened by their manifests, or by their first example, and checked before anything is read."""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.example_sets import setup_of, write_set
from data_sets.gold_examples import VOCABULARY
from made_up.tfrecords import write_records
from made_up.trained_tokenizers import trained
from oracles import pretraining as oracle
from servers import file_server

from maskmill.errors import UnusableInputError
from maskmill.masking.row_masks import RowMasker
from maskmill.reading.block_reader import Block, Rows
from maskmill.reading.byte_ranges import LocalRanges
from maskmill.reading.data_set import DataSet
from maskmill.reading.opening import open_data_set, reader_of

KINDS: dict[str, dict[str, Any]] = {
    "tfrecord": {},
    "gzip": {"packed": True},
    "v2": {"feature_names": "v2", "special_tokens_mask": True},
    "bins": {"objective": "sop", "bins": 3},
    "parquet": {"format": "parquet"},
    "mds": {"format": "mds"},
    "mds-bins": {"format": "mds", "bins": 2},
    "pack": {"objective": "nsp", "pack": True},
    "parquet-pack-dynamic": {"format": "parquet", "objective": "mlm", "pack": True, "dynamic_masking": True},
    "mds-dynamic": {"format": "mds", "dynamic_masking": True},
    "dynamic": {"objective": "mlm", "dynamic_masking": True},
}


def opened(path: str | Path, **options: Any) -> DataSet:
    return open_data_set(path, ranges=LocalRanges(), **options)


def read_rows(data_set: DataSet) -> Rows:
    """All rows, in the order of the files."""
    reader = reader_of(data_set, LocalRanges())
    into, row = Rows(data_set.columns, data_set.samples), 0
    for place, file in enumerate(data_set.files):
        for first in range(0, file.samples, reader.block_samples):
            block = Block(place, first, min(reader.block_samples, file.samples - first))
            wanted = np.arange(block.count)
            reader.decode(reader.fetch(block), block, wanted, wanted + row, into)
            row += block.count
    return into


@pytest.mark.parametrize("kind", KINDS)
def test_files_and_columns_are_those_of_the_manifest(kind: str, tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(**KINDS[kind]))
    made = json.loads(Path(path, "manifest.json").read_text())
    for split in ("train", "eval"):
        data_set = opened(path, split=split, checksums=True)
        assert data_set.samples == made["counts"][split]["examples"]
        assert sum(file.size or 0 for file in data_set.files) == made["counts"][split]["bytes"]
        assert (data_set.width, data_set.predictions, data_set.vocabulary_size) == (32, 5, 30522)
        assert data_set.special_ids == {"cls_id": 101, "sep_id": 102, "mask_id": 103, "pad_id": 0, "unknown_id": 100}
        assert [column.name for column in data_set.columns] == sorted(
            (entry["name"] for entry in made["schema"]),
            key=lambda name: {"input_word_ids": "input_ids", "input_type_ids": "segment_ids"}.get(name, name),
        )
        assert data_set.packed == ("pack" in kind)
        assert (data_set.mask_rules is not None) == ("dynamic" in kind)
        rows = read_rows(data_set)  # every value is in its column's range
        assert len(np.unique(rows.arrays["input_ids"])) > 10
        assert (rows.arrays["input_ids"][:, 0] == 101).all()


def test_a_build_is_opened_by_its_folder_and_picked_examples_by_theirs(tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(dynamic_masking=True, mask_unit="span", max_span=4), picked=7)
    assert opened(tmp_path).fingerprint == opened(path + "/").fingerprint == opened(tmp_path / "examples").fingerprint
    of_build, picked = opened(path, split="eval"), opened(tmp_path / "eval", split="eval", checksums=True)
    assert picked.samples == 7
    assert str(picked.mask_rules) == str(of_build.mask_rules)
    for field in ("columns", "width", "vocabulary_size", "special_ids", "packed", "predictions"):
        assert getattr(picked, field) == getattr(of_build, field)
    # Of older versions the manifest has nothing of this.
    made = json.loads((tmp_path / "eval" / "manifest.json").read_text())
    for name in ("examples", "format", "schema", "special_ids", "vocabulary", "vocabulary_size"):
        del made[name]
    (tmp_path / "eval" / "manifest.json").write_text(json.dumps(made))
    older = opened(tmp_path / "eval", split="eval", vocabulary_size=30522)
    assert (older.samples, older.width, older.vocabulary_size) == (7, 32, 30522)
    assert read_rows(older).arrays["input_ids"].tolist() == read_rows(picked).arrays["input_ids"].tolist()


@pytest.mark.parametrize("unit", ["piece", "whole_word", "word", "ngram", "span"])
@pytest.mark.parametrize("vocabulary", ["vocab.txt", "tokenizer.json"])
def test_masks_are_drawn_by_the_rules_of_the_writer(unit: str, vocabulary: str, tmp_path: Path) -> None:
    file = VOCABULARY
    if vocabulary == "tokenizer.json":
        file = str(tmp_path / "mine.json")
        Path(file).write_text(trained("bpe"))
    shares = {"mask_share": 0.6, "random_share": 0.3, "keep_share": 0.1}
    shape = {"masked_lm_prob": 0.3, "max_ngram": 2, "max_span": 4, "span_probability": 0.4}
    setup = setup_of(file, dynamic_masking=True, mask_unit=unit, **shares, **shape)
    data_set = opened(write_set(tmp_path, setup))
    rules = RowMasker(setup.vocabulary(), setup.masking, setup.objective).rules
    assert data_set.mask_rules is not None
    for name, found, wanted in zip(rules._fields, data_set.mask_rules, rules, strict=True):
        np.testing.assert_array_equal(found, wanted, name)
    has_words = any(column.feature == "continuation_mask" for column in data_set.columns)
    assert has_words == (vocabulary == "tokenizer.json" and unit != "piece")
    assert data_set.special_ids == setup.vocabulary().special_ids
    pieces = next(column for column in data_set.columns if column.feature == "input_ids")
    assert pieces.fill == setup.vocabulary().pad_id


def test_whole_words_are_masked_where_an_older_option_says_so(tmp_path: Path) -> None:
    one = opened(write_set(tmp_path / "one", setup_of(dynamic_masking=True, do_whole_word_mask=True)))
    other = opened(write_set(tmp_path / "other", setup_of(dynamic_masking=True, mask_unit="whole_word")))
    assert str(one.mask_rules) == str(other.mask_rules)


def test_the_fingerprint_is_of_the_content_alone(tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(dynamic_masking=True))
    shutil.copytree(path, tmp_path / "copy")
    file = tmp_path / "copy" / "manifest.json"
    for place in (0, 1):
        old = f"part-0000{place}-of-00002.tfrecord"
        (tmp_path / "copy" / old).rename(tmp_path / "copy" / f"renamed-{place}")
        file.write_text(file.read_text().replace(f'"{old}"', f'"renamed-{place}"'))
    fingerprint = opened(path).fingerprint
    assert opened(tmp_path / "copy", checksums=True, vocab_file=VOCABULARY).fingerprint == fingerprint
    others = [
        opened(path, split="eval"),
        opened(write_set(tmp_path / "seed", setup_of(dynamic_masking=True, random_seed=1))),
        opened(write_set(tmp_path / "text", setup_of(dynamic_masking=True), words="badgers")),
        # The same files, but other masks.
        opened(write_set(tmp_path / "span", setup_of(dynamic_masking=True, mask_unit="span"))),
        opened(write_set(tmp_path / "less", setup_of(dynamic_masking=True, masked_lm_prob=0.1))),
    ]
    assert len({fingerprint, *(other.fingerprint for other in others)}) == 6


def edit(path: str, **entries: Any) -> None:
    """Changes entries of a manifest; None deletes one."""
    file = Path(path, "manifest.json")
    made = json.loads(file.read_text()) | entries
    file.write_text(json.dumps({name: value for name, value in made.items() if value is not None}))


def test_an_older_data_set_asks_for_its_vocabulary_where_masks_are_drawn(tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(dynamic_masking=True))
    now = opened(path)
    edit(path, vocabulary=None, special_ids=None, vocabulary_size=None)
    with pytest.raises(UnusableInputError, match=r"masks are drawn with the vocabulary.*vocab\.txt\) as vocab_file\.$"):
        opened(path)
    (tmp_path / "other.txt").write_text("[MASK]\n[CLS]\n[SEP]\n[UNK]\nfox\n")
    with pytest.raises(UnusableInputError, match=r"other\.txt: the examples .* made with another vocabulary"):
        opened(path, vocab_file=tmp_path / "other.txt")
    assert opened(path, vocab_file=VOCABULARY) == now


def test_a_vocabulary_of_the_other_kind_is_left_aside(tmp_path: Path) -> None:
    """As training names it: perhaps a tokenizer.json with the pieces of the vocab.txt that the examples have."""
    path = write_set(tmp_path, setup_of(dynamic_masking=True))
    (tmp_path / "tokenizer.json").write_text(trained("bpe"))
    assert opened(path, vocab_file=tmp_path / "tokenizer.json") == opened(path)
    edit(path, vocabulary=None)
    with pytest.raises(UnusableInputError, match="made with another vocabulary"):
        opened(path, vocab_file=tmp_path / "tokenizer.json")


def test_a_vocabulary_may_lie_elsewhere(tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(dynamic_masking=True))
    whole = opened(path)
    edit(path, vocabulary=None)
    with file_server.serve() as server:
        server.files = {"vocab.txt": Path(VOCABULARY).read_bytes()}
        assert opened(path, vocab_file=f"{server.url}/vocab.txt").fingerprint == whole.fingerprint


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


PART = "part-00001-of-00002.tfrecord"
DAMAGES: dict[str, tuple[str, Callable[[Path], None], dict[str, Any], str]] = {
    "missing": (PART, Path.unlink, {}, f"{PART}: this file does not exist; check"),
    "cut": (PART, cut, {}, rf"{PART}: this file has [\d,]+ bytes, but [\d,]+ are in the manifest; fetch"),
    "flipped": (PART, flip, {"checksums": True}, f"{PART}: the content of this file is not what was written"),
    "index": (f"{PART}.idx", flip, {"checksums": True}, rf"{PART}\.idx: the content of this file is not what was"),
    "vocabulary": ("vocab.txt", flip, {}, r"vocab\.txt: this copy of the vocabulary is not what was written"),
    "manifest": ("manifest.json", cut, {}, r"manifest\.json: this is no manifest of maskmill, or it is damaged; run"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_damaged_is_named(kind: str, tmp_path: Path) -> None:
    name, damage, options, message = DAMAGES[kind]
    path = write_set(tmp_path, setup_of(dynamic_masking=True))
    damage(Path(path, name))
    with pytest.raises(UnusableInputError, match=message):
        opened(path, **options)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"schema": [{"name": "input_ids"}]}, r"entry of this manifest is missing .*\(KeyError: 'shape'\); run the"),
        ({"shards": [{"name": "x", "kind": "train", "examples": 1}]}, r"\(KeyError: 'bytes'\); run the command that"),
        ({"stage": "extract"}, "examples: this directory belongs to 'extract' and has no examples; name the directory"),
        ({"shards": []}, "examples: this data set has no examples; make some from more text"),
    ],
    ids=["schema", "shards", "stage", "empty"],
)
def test_what_is_wrong_with_a_manifest_is_said(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of())
    edit(path, **entries)
    with pytest.raises(UnusableInputError, match=message):
        opened(path)


def test_what_does_not_fit_the_model_is_refused(tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of())
    assert opened(path, max_seq_length=32, vocabulary_size=30522) == opened(path, vocabulary_size=30528)
    with pytest.raises(UnusableInputError, match="rows have up to 32 pieces, but the model takes at most 31"):
        opened(path, max_seq_length=31)
    with pytest.raises(UnusableInputError, match="its vocabulary has 30,522 ids, but the model's has only 30,521"):
        opened(path, vocabulary_size=30521)
    with pytest.raises(UnusableInputError, match="has no split 'test', only 'train' and 'eval'; choose one"):
        opened(path, split="test")


def records(count: int) -> list[bytes]:
    """Examples as a fine-tuning task has them."""
    return [oracle.encode_example({"input_ids": [k, 2, 300], "label_ids": [k], "score": [0.5]}) for k in range(count)]


def test_records_without_a_manifest_have_the_columns_of_their_first_example(tmp_path: Path) -> None:
    write_records(tmp_path / "a.tfrecord", records(300))
    (tmp_path / "b.tfrecord.gz").write_bytes(gzip.compress((tmp_path / "a.tfrecord").read_bytes()))
    write_records(tmp_path / "c.tfrecord", [])
    for name in ("vocab.txt", "rejected.jsonl", "README.md"):
        (tmp_path / name).write_text("beside the examples")
    for path in (f"{tmp_path}/*", f"{tmp_path}/a*, {tmp_path}/b.tfrecord.gz,{tmp_path}/?.tfrecord"):
        data_set = opened(path, vocabulary_size=301)
        assert [(Path(file.path).name, file.samples) for file in data_set.files] == [
            ("a.tfrecord", 300),
            ("b.tfrecord.gz", 300),
        ]
        assert [(c.name, c.width, c.dtype.name, c.low, c.high) for c in data_set.columns] == [
            ("input_ids", 3, "uint16", 0, 300),
            ("label_ids", 1, "int32", None, None),
            ("score", 1, "float32", None, None),
        ]
        rows = read_rows(data_set)
        assert rows.arrays["label_ids"][:, 0].tolist() == [*range(300), *range(300)]
        assert (data_set.width, data_set.predictions, data_set.mask_rules) == (3, 0, None)
    one = opened(tmp_path / "a.tfrecord")
    (tmp_path / "elsewhere").mkdir()
    again = write_records(tmp_path / "elsewhere" / "d", records(300))
    assert opened(again).fingerprint == one.fingerprint
    write_records(Path(again), [*records(299), records(1)[0]])
    assert opened(again).fingerprint != one.fingerprint


def test_records_of_a_data_set_are_read_without_its_manifest(tmp_path: Path) -> None:
    for kind in ("tfrecord", "v2", "pack"):
        path = write_set(tmp_path / kind, setup_of(**KINDS[kind]))
        whole = opened(path)
        bare = opened(f"{path}/part-*.tfrecord", vocab_file=VOCABULARY)
        assert [file.index for file in bare.files] == [file.index for file in whole.files]
        assert (bare.packed, bare.special_ids) == (whole.packed, whole.special_ids)
        expected, rows = read_rows(whole), read_rows(bare)
        assert rows.arrays.keys() == expected.arrays.keys()
        for name, array in expected.arrays.items():
            np.testing.assert_array_equal(rows.arrays[name], array)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nothing",
            r"nothing: this is neither a data set \(a directory with a manifest\.json\) nor a file of examples",
        ),
        ("folder", r"folder: this is neither a data set"),
        ("*.tfrecord", r"\*\.tfrecord: no examples match; check the path\.$"),
        ("empty", r"empty: there is no example in these files; name others\.$"),
        ("text", r"text: .*no TFRecord"),
        ("x.parquet", r"x\.parquet: only TFRecords can be read without a manifest; name the directory of the data set"),
        (",", "No data set was named: give its directory, or TFRecords"),
        ("", "No data set was named: give its directory, or TFRecords"),
    ],
    ids=["nothing", "folder", "glob", "empty", "text", "parquet", "comma", "no-name"],
)
def test_what_is_no_data_set_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("These are no records, but plain sentences.\n" * 9)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnusableInputError, match=message):
        opened(name if name in (",", "") else f"{tmp_path}/{name}")


def test_opening_imports_neither_beam_nor_a_framework_nor_arrow(tmp_path: Path) -> None:
    path = write_set(tmp_path, setup_of(dynamic_masking=True))
    program = (
        "import sys; from maskmill.reading.opening import *; from maskmill.reading.byte_ranges import LocalRanges\n"
        f"reader_of(open_data_set({path!r}, ranges=LocalRanges()), LocalRanges())\n"
        "print(sorted({'apache_beam', 'tensorflow', 'torch', 'jax', 'pyarrow', 'tokenizers', 'google.cloud.storage'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
