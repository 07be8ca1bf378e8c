"""The manifest of example shards, the indexes of MDS, and what is swept."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_runs.commands import digests
from data_sets.example_sets import NAMES, setup_of, texts_of, write_set
from data_sets.gold_examples import VOCABULARY
from data_sets.mds_reader import read_mds
from made_up.trained_tokenizers import trained

from maskmill.errors import RunFailedError
from maskmill.example_shards.example_shards import ExamplesSetup
from maskmill.storage import manifest

SETUP = setup_of()
BINS = setup_of(objective="sop", bins=3)
PARQUET = setup_of(format="parquet")
MDS = setup_of(format="mds")
MDS_BINS = setup_of(objective="sop", bins=3, format="mds")


def build(directory: Path, setup: ExamplesSetup, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """Writes and closes the examples of some text shards; returns the manifest."""
    return manifest.read_manifest(write_set(directory, setup, texts=texts_of(names), folder="out"))


@pytest.mark.parametrize(
    "setup", [SETUP, BINS, PARQUET, MDS, MDS_BINS], ids=["tfrecord", "bins", "parquet", "mds", "mds-bins"]
)
def test_the_manifest_lists_every_file_as_it_is(setup: ExamplesSetup, tmp_path: Path) -> None:
    made = build(tmp_path, setup)
    assert made["format"] == setup.format.format
    listed: dict[str, tuple[int | None, str]] = {}
    for shard in made["shards"]:
        described = manifest.files_of_shard(shard)
        assert sum(file["bytes"] for file in described) == shard["bytes"]
        assert sum(file["examples"] for file in described) == shard["examples"]
        listed |= {file["name"]: (file["bytes"], file["sha256"]) for file in described}
        listed |= {file["index"]: (None, file["index_sha256"]) for file in described if "index" in file}
        assert ("files" in shard) == (setup.objective.bins is not None)
    listed[made["vocabulary"]["name"]] = (made["vocabulary"]["bytes"], made["vocabulary"]["sha256"])
    there = digests(tmp_path / "out", manifests=False)
    indexes = {name for name in there if name.endswith(("index.json", "README.md"))}
    assert {name: sha256 for name, (_, sha256) in listed.items()} == {
        n: s for n, s in there.items() if n not in indexes
    }
    for name, (size, _) in listed.items():
        assert size in (None, (tmp_path / "out" / name).stat().st_size)
    assert [shard["kind"] for shard in made["shards"]] == ["train", "train", "eval"]


def test_a_card_says_which_parquet_files_are_of_which_split(tmp_path: Path) -> None:
    build(tmp_path, PARQUET)
    card = (tmp_path / "out" / "README.md").read_text()
    (config,) = yaml.safe_load(card.strip("-\n"))["configs"]
    assert config["data_files"] == [
        {"split": "train", "path": ["part-00000-of-00002.parquet", "part-00001-of-00002.parquet"]},
        {"split": "test", "path": ["eval.txt.parquet"]},
    ]


def test_other_formats_have_no_card(tmp_path: Path) -> None:
    build(tmp_path, SETUP)
    assert not (tmp_path / "out" / "README.md").exists()


def test_a_shard_of_one_file_is_described_as_ever(tmp_path: Path) -> None:
    (shard, *_) = build(tmp_path, SETUP)["shards"]
    assert shard["name"] == f"{NAMES[0]}.tfrecord"
    assert shard["index"] == f"{NAMES[0]}.tfrecord.idx"
    assert {"kind", "bytes", "sha256", "random_seed", "inputs", "examples", "documents"} < set(shard)
    assert "files" not in shard


def test_files_of_bins_say_how_wide_they_are(tmp_path: Path) -> None:
    made = build(tmp_path, BINS)
    assert made["shards"][0]["name"] == NAMES[0]
    for shard in made["shards"]:
        assert {(file["bin"], file["width"]) for file in shard["files"]} <= {(0, 11), (1, 22), (2, 32)}
    shapes = {entry["name"]: entry["shape"] for entry in made["schema"]}
    assert (shapes["input_ids"], shapes["masked_lm_ids"]) == ([None], [5])


@pytest.mark.parametrize(("setup", "kind"), [(SETUP, "int64"), (PARQUET, "uint16"), (MDS, "uint16")])
def test_the_schema_has_the_types_of_the_format(setup: ExamplesSetup, kind: str, tmp_path: Path) -> None:
    schema = {entry["name"]: entry for entry in build(tmp_path, setup)["schema"]}
    assert (schema["input_ids"]["dtype"], schema["input_ids"]["shape"]) == (kind, [32])


@pytest.mark.parametrize(
    ("setup", "folders"), [(MDS, [""]), (MDS_BINS, ["bin-0", "bin-1", "bin-2"])], ids=["one", "bins"]
)
def test_each_folder_of_mds_has_an_index_of_its_shards_in_order(
    setup: ExamplesSetup, folders: list[str], tmp_path: Path
) -> None:
    made = build(tmp_path, setup)
    samples = 0
    for kind, names in (("train", NAMES[:2]), ("eval", NAMES[2:])):
        for folder in (tmp_path / "out" / kind / name for name in folders):
            if not folder.is_dir():
                continue  # no row is so short
            shards = json.loads((folder / "index.json").read_text())["shards"]
            found = [shard["raw_data"]["basename"] for shard in shards]
            assert found == [f"{name}.00000.mds" for name in names if f"{name}.00000.mds" in found]
            samples += len(read_mds(folder))
    assert samples == made["counts"]["train"]["examples"] + made["counts"]["eval"]["examples"]


@pytest.mark.parametrize(
    "setup", [SETUP, BINS, PARQUET, MDS, MDS_BINS], ids=["tfrecord", "bins", "parquet", "mds", "mds-bins"]
)
def test_what_older_builds_left_is_swept_and_nothing_else(setup: ExamplesSetup, tmp_path: Path) -> None:
    build(tmp_path, setup)
    before = digests(tmp_path / "out")
    out = tmp_path / "out"
    for name in ("train", "eval", *setup.plan.folders):
        (out / name).mkdir(parents=True, exist_ok=True)
    stale = ["old.tfrecord", "old.bin-7.tfrecord.idx", "old.tfrecord.gz", "old.parquet"]
    stale += [f"{folder}/old.00000.mds" for folder in setup.plan.folders]
    kept = ["README.md", "old.mds", "index.json", "train/notes.txt", "eval/data.parquet"]
    kept += [] if setup.plan.folders else ["train/theirs.00000.mds", "train/index.json"]
    for name in (*stale, *kept):
        (out / name).write_text("another build's, or a user's")
    build(tmp_path, setup)
    after = digests(out)
    assert after == before | {name: after[name] for name in kept}
    build(tmp_path, setup, NAMES[:1])
    fewer = digests(out, manifests=False)
    of_all = ("index.json", "vocab.txt")
    assert [name for name in fewer if name not in kept and NAMES[0] not in name and not name.endswith(of_all)] == []
    assert not [name for name in fewer if name.startswith("eval/") and name not in kept]


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json"])
def test_a_copy_of_the_vocabulary_lies_beside_the_examples(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"mine-{name}"
    file.write_text(Path(VOCABULARY).read_text() if name == "vocab.txt" else trained("bpe"))
    setup, out = setup_of(str(file)), tmp_path / "out"
    made = build(tmp_path, setup)
    content = file.read_bytes()
    assert (out / name).read_bytes() == content
    assert made["vocabulary"] == {"name": name, "bytes": len(content), "sha256": setup.vocab_sha256}
    assert (made["special_ids"], made["vocabulary_size"]) == (setup.vocabulary().special_ids, setup.vocabulary().size)
    written = (out / name).stat().st_mtime_ns
    build(tmp_path, setup)
    assert (out / name).stat().st_mtime_ns == written
    (out / name).write_text("damaged")
    build(tmp_path, setup)
    assert (out / name).read_bytes() == content
    file.write_bytes(content + b"\n")
    with pytest.raises(RunFailedError, match=rf"mine-{name}: this vocabulary has changed since the examples were made"):
        build(tmp_path, setup)


def test_picked_examples_have_what_their_readers_need_too(tmp_path: Path) -> None:
    write_set(tmp_path, setup_of(dynamic_masking=True, mask_unit="ngram"), picked=3)
    made, picked = (manifest.read_manifest(str(tmp_path / stage)) for stage in ("examples", "eval"))
    same = ("format", "schema", "special_ids", "vocabulary", "vocabulary_size")
    assert {name: picked[name] for name in same} == {name: made[name] for name in same}
    assert (picked["examples"]["mask_unit"], picked["parameters"]) == ("ngram", {"num_examples_to_pick": 3})
    assert digests(tmp_path / "eval").keys() == {"eval.tfrecord", "manifest.json", "vocab.txt"}
