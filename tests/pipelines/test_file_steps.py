"""The stages as steps of somebody else's pipeline: they write what `maskmill build` writes, on each runner."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import apache_beam as beam
import cloudpickle
import pytest
import yaml
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from command_runs.commands import DUMP, VOCAB, digests
from data_sets.steps import STRICT, check_elements

import maskmill
from maskmill.errors import UnusableInputError
from pipelines.commands import cli
from pipelines.running.local_runner import LocalRunner
from transforms import ExtractText, LearnVocabulary, PickEvalExamples, WriteExampleShards, WriteTransformFn

RUNNERS: Mapping[str, Callable[[], beam.runners.PipelineRunner]] = {
    "FnApiRunner": FnApiRunner,
    "LocalRunner": lambda: LocalRunner(2),
}
EXTRACT = {"num_eval_articles": 7, "shard_size_mb": 0.5}
EXAMPLES = {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2}
EVAL = {"num_examples_to_pick": 20}


def strict(runner: str = "FnApiRunner") -> beam.Pipeline:
    return beam.Pipeline(runner=RUNNERS[runner](), options=PipelineOptions(list(STRICT)))


def files_of(folder: Path) -> dict[str, str]:
    """The digests of a build's files by name, but for records of finished work."""
    return {name: digest for name, digest in digests(folder).items() if "/.maskmill" not in f"/{name}"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `maskmill build` writes to `data`."""
    folder = tmp_path_factory.mktemp("built")
    sections = {"extract": {"input": str(DUMP), **EXTRACT}, "examples": EXAMPLES, "eval": EVAL}
    (folder / "build.yaml").write_text(yaml.safe_dump({"output": "data", "report": "off", **sections}))
    here = os.getcwd()
    os.chdir(folder)
    try:
        assert cli.main(["build", "build.yaml", "--quiet"]) == 0
    finally:
        os.chdir(here)
    return folder / "data"


@pytest.mark.parametrize("runner", RUNNERS)
def test_they_write_the_files_and_manifests_of_a_build(
    runner: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with strict(runner) as pipeline:
        texts = pipeline | ExtractText(str(DUMP), "data/text", **EXTRACT)
        shards = texts | WriteExampleShards("data/examples", input="data/text", **EXAMPLES)
        picked = shards | PickEvalExamples("data/eval", **EVAL)
        check_elements(texts, lambda found: None if len(found) > 2 else pytest.fail(f"{found}"), "Texts")
        check_elements(picked, lambda found: None if found[0].picked == 20 else pytest.fail(f"{found}"), "Picked")
    assert files_of(tmp_path / "data") == files_of(built)
    assert maskmill.verify("data").is_right
    assert len(next(iter(maskmill.open("data/examples", batch_size=2)))["input_ids"]) == 2


def test_a_vocabulary_is_that_of_the_command_and_text_can_be_read_again(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = str(built / "text")
    assert cli.main(["vocabulary", f"--input={text}", "--output=made/words", "--size=2048", "--quiet"]) == 0
    with strict() as pipeline:
        pipeline | LearnVocabulary("again/words", input=text, size=2048)
    assert files_of(tmp_path / "again") == files_of(tmp_path / "made")
    with strict() as pipeline:
        pipeline | WriteExampleShards("again/examples", input=(text,), vocab_file="again/words/vocab.txt")
    assert json.loads(Path("again/examples/manifest.json").read_text())["parameters"]["input"] == [text]
    assert maskmill.verify("again/examples").is_right


def test_files_of_tensorflow_need_its_extra(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnusableInputError, match=r"needs tensorflow; install it: pip install 'maskmill\[tensorflow\]'"):
        strict() | WriteTransformFn(str(tmp_path / "words"), input=str(built / "text"), size=2048)


def test_mistakes_are_said_before_the_pipeline_runs(built: Path, tmp_path: Path) -> None:
    text = str(tmp_path / "text")
    with pytest.raises(UnusableInputError, match="there is no such option; did you mean language"):
        ExtractText(str(DUMP), text, langage="en")
    with pytest.raises(UnusableInputError, match="WriteExampleShards: --vocab_file is missing"):
        WriteExampleShards(text)
    with pytest.raises(UnusableInputError, match="no-such-dump"):
        strict() | ExtractText("no-such-dump.xml", text)
    with pytest.raises(UnusableInputError, match="made with other parameters"):
        strict() | ExtractText(str(DUMP), str(built / "text"), lists="drop")
    texts = strict() | ExtractText(str(DUMP), text)
    with pytest.raises(UnusableInputError, match="belongs to 'extract'"):
        texts | LearnVocabulary(text)


@pytest.mark.parametrize("dumps", [pickler.dumps, cloudpickle.dumps])
def test_they_are_picklable(dumps: Callable[[object], bytes], tmp_path: Path) -> None:
    for step in (
        ExtractText(str(DUMP), str(tmp_path)),
        LearnVocabulary(str(tmp_path)),
        WriteTransformFn(str(tmp_path)),
        WriteExampleShards(str(tmp_path), **EXAMPLES),
        PickEvalExamples(str(tmp_path)),
    ):
        assert dumps(step)
