"""The command that a summary ends with, `next:`, is one that runs: it follows the build's preset, sizes and splits."""

import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, VOCAB

from pipelines.building import next_step
from pipelines.commands import cli
from pipelines.settings import flags, options, presets
from pipelines.settings.stage_options import EvalOptions, ExamplesOptions, ExtractOptions
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.stage import Stage
from pipelines.stages.train_stage import TrainStage
from training import inputs, preflight, settings
from training.options import TrainOptions

MODELS = {"mlperf": "large", "roberta": "roberta-base", "albert": "albert-base", "modernbert": "modernbert-base"}
WORDS = "the early history of this town has been told in many books and by some of its own people"


@pytest.fixture(name="text", scope="module")
def fixture_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of documents of plain text."""
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    words = WORDS.split()
    sentences = [f"In {n} {' '.join(words[n % 7 : 7 + n % 11])}." for n in range(100, 1300)]
    path.write_text("\n\n".join("\n".join(sentences[k : k + 20]) for k in range(0, 1200, 20)) + "\n")
    return path


def next_command(printed: str) -> list[str]:
    """The words of the command that a summary names."""
    (line,) = re.findall(r"^next: +(.*)$", printed, re.MULTILINE)
    return shlex.split(line)


def check_training(words: list[str], output_dir: Path) -> TrainOptions:
    """Runs all checks of `maskmill train` that need no backend; returns its options."""
    program, command, *arguments = words
    assert (program, command) == ("maskmill", "train")
    line = flags.parse(arguments, cli.COMMANDS["train"].flags)
    chosen: TrainOptions = options.from_flags(TrainOptions, {**line.values, "output_dir": str(output_dir)})
    preflight.check(chosen)
    model = preflight.named_model(chosen)
    assert model is not None
    inputs.find_pretraining_examples(chosen, model, next_sentence=settings.predicts_next_sentence(chosen, model))
    return chosen


def build_file(folder: Path, text: Path, preset: str, *, held_out: int, **sections: Any) -> Path:
    """The file of a small build by a preset, with so many documents held out."""
    is_mlperf = preset == "mlperf"
    keys = {
        "output": str(folder / "out"),
        "preset": preset,
        "report": "off",
        "extract": {"input": str(DUMP if is_mlperf else text), "num_eval_articles": held_out},
        "examples": {"vocab_file": str(VOCAB), **({} if is_mlperf else {"dupe_factor": 1})},
        "eval": {"num_examples_to_pick": 5},
    }
    path = folder / "build.yaml"
    path.write_text(yaml.safe_dump({name: value for name, value in (keys | sections).items() if value is not None}))
    return path


@pytest.mark.builds
@pytest.mark.parametrize(
    ("preset", "held_out"),
    # The reference refuses to pick examples of no eval set.
    [(preset, held_out) for preset in presets.names() for held_out in (6, 0) if (preset, held_out) != ("mlperf", 0)],
)
def test_what_a_build_by_a_preset_prints_passes_the_checks_of_a_training(
    preset: str, held_out: int, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build_file(tmp_path, text, preset, held_out=held_out)
    assert cli.main(["build", str(path), *IN_MEMORY]) == 0
    chosen = check_training(next_command(capsys.readouterr().out), tmp_path / "run")
    assert chosen.preset == MODELS.get(preset, "base")
    assert bool(chosen.eval_file) == bool(held_out)


def test_a_build_without_an_eval_set_names_none(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = build_file(tmp_path, text, "modernbert", held_out=0)
    assert cli.main(["build", str(path), *IN_MEMORY]) == 0
    chosen = check_training(next_command(capsys.readouterr().out), tmp_path / "run")
    assert (chosen.preset, chosen.eval_file) == ("modernbert-base", ())


@pytest.mark.builds
@pytest.mark.parametrize(
    "given",
    [
        ["--max_seq_length=600", "--max_predictions_per_seq=20"],
        ["--preset=roberta", "--max_seq_length=1024"],
        ["--preset=roberta", "--objective=nsp", "--nodynamic_masking"],
        ["--preset=albert", "--bins=2", "--dupe_factor=1"],
        ["--preset=modernbert", "--format=mds"],
        ["--preset=spanbert", "--format=spans"],
        ["--format=parquet", "--objective=blocks"],
        ["--packed"],
    ],
    ids=" ".join,
)
def test_what_examples_print_passes_the_checks_of_a_training(
    given: list[str], text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = str(tmp_path / "my text")
    assert cli.main(["extract", f"--input={text}", f"--output={shards}", "--num_eval_articles=5", *IN_MEMORY]) == 0
    program, command, *words = next_command(capsys.readouterr().out)
    line = flags.parse(words, cli.COMMANDS["examples"].flags)
    assert (program, command, line.values["input"]) == ("maskmill", "examples", (shards,))
    output = str(tmp_path / "examples")
    assert cli.main(["examples", f"--input={shards}", f"--output={output}", f"--vocab_file={VOCAB}", *given]) == 0
    chosen = check_training(next_command(capsys.readouterr().out), tmp_path / "run")
    assert chosen.eval_file == (output,)


def test_a_build_that_stops_names_the_command_that_goes_on(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build_file(tmp_path, text, "bert-phase1", held_out=3)
    own = [f"--output={tmp_path}/my out", "--examples.max_seq_length=64", "--examples.special_tokens_mask"]
    assert cli.main(["build", str(path), *own, "--until=extract", *IN_MEMORY]) == 0
    program, *words = next_command(capsys.readouterr().out)
    assert program == "maskmill"
    assert cli.main(words) == 0
    chosen = check_training(next_command(capsys.readouterr().out), tmp_path / "run")
    assert chosen.input_file == (f"{tmp_path}/my out/examples",)
    assert not (tmp_path / "out").exists()


# ---- without a run


def examples_of(**given: Any) -> ExamplesOptions:
    values = ExamplesOptions.completed({"input": ("t",), "output": "e", "vocab_file": "v", **given})
    made: ExamplesOptions = options.make(ExamplesOptions, values)
    return made


def manifests(train: int, held_out: int, picked: int = 0) -> dict[str, Any]:
    return {
        "e": {"counts": {"train": {"examples": train}, "eval": {"examples": held_out}}},
        "p": {"counts": {"eval": {"picked": picked}}},
    }


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ({}, "--preset=base"),
        ({"preset": "mlperf"}, "--preset=large"),
        ({"max_seq_length": 513, "max_predictions_per_seq": 20}, "--preset=modernbert-base"),
        ({"preset": "albert", "max_seq_length": 8192}, "--preset=modernbert-base"),
        ({"preset": "roberta", "objective": "sop"}, "--preset=base"),
        ({"preset": "modernbert", "max_seq_length": 128}, "--preset=modernbert-base"),
        ({"preset": "modernbert", "max_seq_length": 8193}, "--bert_config_file=CONFIGURATION"),
    ],
)
def test_the_model_takes_rows_of_this_length(given: dict[str, Any], model: str) -> None:
    assert model in shlex.split(next_step.of({ExamplesStage: examples_of(**given)}, manifests(9, 0)))


@pytest.mark.parametrize(
    ("given", "made", "expected"),
    [
        ({}, manifests(9, 4, 2), "p/eval.tfrecord"),
        ({}, manifests(9, 4, 0), None),  # --num_examples_to_pick 0
        ({}, manifests(9, 0, 0), None),
        ({"dynamic_masking": True}, manifests(9, 4, 2), "e"),
        ({"dynamic_masking": True}, manifests(9, 0), None),
    ],
)
def test_an_eval_set_is_named_if_there_is_one(
    given: dict[str, Any], made: dict[str, Any], expected: str | None
) -> None:
    stages: dict[type[Stage[Any]], Any] = {ExamplesStage: examples_of(**given), EvalStage: EvalOptions(output="p")}
    words = shlex.split(next_step.of(stages, made))
    assert [word for word in words if "eval_file" in word] == ([f"--eval_file={expected}"] if expected else [])


def test_nothing_follows_where_there_is_nothing_to_train_with() -> None:
    extract = ExtractOptions(input=("a dump.xml",), output="my text")
    assert next_step.of({ExamplesStage: examples_of()}, manifests(0, 5)) == ""
    assert next_step.of({ExtractStage: extract, TrainStage: None}, {}) == ""


@pytest.mark.parametrize("compat", ["none", "mlperf", "google"])
def test_examples_reproduce_the_records_of_the_program_whose_text_was_reproduced(compat: Any) -> None:
    extract = dataclasses.replace(ExtractOptions(input=("a dump.xml",), output="my text"), compat=compat)
    _, command, *words = shlex.split(next_step.of({ExtractStage: extract}, {}))
    line = flags.parse(words, cli.COMMANDS[command].flags)
    assert options.from_flags(ExamplesOptions, line.values).compat == compat
