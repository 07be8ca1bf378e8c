"""What is checked before TensorFlow is imported, and that the checks change nothing."""

import json
from pathlib import Path

import pytest

from maskmill.errors import UnusableInputError
from training import preflight
from training.options import ConvertOptions, TrainOptions

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Options of a good training in an empty directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").write_bytes((4).to_bytes(8, "little") + bytes(12))
    return {"output_dir": "out/run", "input_file": ("examples",), "preset": "tiny"}


def names(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*"))


def test_good_options_pass_and_nothing_is_left(given, tmp_path):
    before = names(tmp_path)
    preflight.check(TrainOptions(**given))
    preflight.check(TrainOptions(**given | {"output_dir": str(tmp_path)}))
    preflight.check(TrainOptions(**given | {"output_dir": "gs://bucket/run", "input_file": ("gs://bucket/part-*",)}))
    assert names(tmp_path) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output_dir": "examples"}, "--output_dir examples: there is a file of this name"),
        ({"output_dir": "examples/run"}, "there is a file of this name"),
        ({"output_dir": "/proc/nothing"}, "nothing can be written there"),
        ({"input_file": ("gone",)}, "gone: no examples match"),
        ({"eval_file": (".",)}, r"\.: this directory has no manifest.json"),
        ({"input_file": ("ftp://bucket/examples",)}, "web addresses are neither read nor written"),
        ({"eval_file": ("text",)}, "text: this is no TFRecord of examples"),
        ({"input_file": ("x.tsv",)}, "TSV files go with --task classify"),
        ({"input_file": ("x.tsv",), "task": "classify"}, "give --vocab_file"),
        ({"init_checkpoint": "gone"}, "gone: there is no such checkpoint"),
        ({"init_checkpoint": "examples/x"}, "examples/x: there is no such checkpoint"),
        ({"init_checkpoint": "foo://x/y"}, "foo:// is unknown; give a local path, or one of"),
        ({"preset": None}, "No model was named"),
        ({"coordinator": "no-host.invalid:1"}, "there is no host no-host.invalid"),
    ],
)
def test_bad_files_are_one_sentence(given, tmp_path, changes, message):
    (tmp_path / "text").write_text("Anarchism is a political philosophy.\n")
    (tmp_path / "x.tsv").write_text("text\tlabel\n")
    before = names(tmp_path)
    with pytest.raises(UnusableInputError, match=message):
        preflight.check(TrainOptions(**given | changes))
    assert names(tmp_path) == before


@pytest.mark.parametrize("name", ["manifest.json", "examples/manifest.json"])
def test_a_data_set_is_named_by_its_directory(given, tmp_path, name):
    (tmp_path / "built" / name).parent.mkdir(parents=True)
    (tmp_path / "built" / name).write_text("{}")
    preflight.check(TrainOptions(**given | {"input_file": ("built",), "eval_file": ("https://host/built",)}))
    with pytest.raises(UnusableInputError, match="built: this data set is not the only thing that is named"):
        preflight.check(TrainOptions(**given | {"input_file": ("built", "examples")}))


def test_a_build_makes_its_examples_later(given):
    options = TrainOptions(**given | {"input_file": ("later/part-*",)})
    preflight.check(options, has_input=False)
    with pytest.raises(UnusableInputError, match="no examples match"):
        preflight.check(options)


def test_a_launchers_paths_are_those_of_other_machines(given):
    preflight.check(TrainOptions(**given | {"launcher": "slurm", "input_file": ("/elsewhere/part-*",)}))


def test_the_vocabulary_sets_a_presets_size_and_fits_a_configuration(given, tmp_path):
    vocabulary = str(DATA / "vocab.txt")
    assert preflight.named_model(TrainOptions(**given | {"vocab_file": vocabulary})).vocab_size == 30522
    larger = preflight.named_model(TrainOptions(**given | {"vocab_file": vocabulary, "vocab_size": 30528}))
    assert larger.vocab_size == 30528
    (tmp_path / "bert.json").write_text(json.dumps({"vocab_size": 500}))
    small = {"preset": None, "bert_config_file": "bert.json", "vocab_file": vocabulary}
    with pytest.raises(UnusableInputError, match="this vocabulary has 30522 tokens, but the model only 500"):
        preflight.named_model(TrainOptions(**given | small))
    # The model of a checkpoint is looked at later.
    assert preflight.named_model(TrainOptions(**given | {"preset": None, "init_checkpoint": "x"})) is None


@pytest.mark.parametrize("name", ["model.ckpt-1", "model.ckpt-1.index", "folder", "folder/"])
def test_checkpoints_are_found_by_prefix_file_or_directory(tmp_path, name):
    (tmp_path / "model.ckpt-1.index").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    preflight.check_checkpoint(str(tmp_path / "folder"))
    preflight.check_checkpoint(f"{tmp_path}/{name}")


def test_a_conversion_is_checked_without_leaving_anything(given, tmp_path):
    good = {"input": "examples", "output": "new/model.ckpt", "format": "tf1"}
    before = names(tmp_path)
    preflight.check_conversion(ConvertOptions(**good))
    assert names(tmp_path) == before
    for changes, message in (
        ({"input": "gone"}, "gone: there is no such checkpoint"),
        ({"output": "."}, r"--output \. is a directory; name the prefix"),
        ({"output": "examples/x"}, r"examples: this directory cannot be made \(.* is a file\)"),
        ({"bert_config_file": "examples"}, "examples: this model configuration is not JSON"),
        ({"output": "foo://b/x"}, "foo:// is unknown"),
    ):
        with pytest.raises(UnusableInputError, match=message):
            preflight.check_conversion(ConvertOptions(**good | changes))
    assert names(tmp_path) == before
