"""The contract of a stage: the list of all stages, and what a run does with each of them."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import pytest
import yaml

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.options import option
from maskmill.storage import files, manifest, progress
from pipelines.building import build, build_options
from pipelines.commands import cli
from pipelines.running.runner import ProgressLine
from pipelines.running.workload import Workload
from pipelines.settings.options import options_of
from pipelines.stages import registry as stages
from pipelines.stages.checks import Checked
from pipelines.stages.registry import GRAPH_STAGES, STAGES, BuildSoFar, StageEntry
from pipelines.stages.stage import Stage, run_stages

IN_MEMORY = ("--direct_num_workers=1",)
KIND = "numbers"


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumbersOptions:
    output: str = option(help="directory of the numbers")
    count: int = option(3, help="how many numbers")

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UnusableInputError(f"--count must be 1 or more, not {self.count}.")


def check_numbers(options: NumbersOptions, *, is_first: bool) -> Checked:
    return Checked(options=options, workload=Workload(input_bytes=0, pieces=options.count, paths=(options.output,)))


def write_number(number: int, output: str) -> int:
    files.write_bytes(files.join(output, f"number-{number}"), str(number).encode())
    return number


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumbersStage(Stage[NumbersOptions]):
    """Input: nothing. Output: whole numbers, each written to a file."""

    name: ClassVar[str] = "numbers"

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return pipeline | "Count" >> beam.Create(range(self.options.count))

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        written = elements | "Write" >> beam.Map(write_number, self.output)
        return written, [written]

    def close(self, elements: Sequence[Any]) -> None:
        names = [{"name": f"number-{number}"} for number in sorted(elements)]
        counts = {"numbers": {"sum": sum(elements)}}
        manifest.write_manifest(
            self.output, stage=self.name, parameters=self.parameters, inputs=[], shards=names, counts=counts
        )

    def progress(self) -> list[ProgressLine]:
        return [ProgressLine(label="numbers", output=self.output, kind=KIND)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoublesStage(NumbersStage):
    """Input: whole numbers. Output: their doubles."""

    name: ClassVar[str] = "doubles"

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return Stage.source(self, pipeline)

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        return super().expand(elements | "Double" >> beam.Map(lambda number: 2 * number))


def numbers(output: Path, count: int = 3) -> NumbersStage:
    return NumbersStage.of(check_numbers(NumbersOptions(output=str(output), count=count), is_first=True))


def doubles(output: Path) -> DoublesStage:
    return DoublesStage.of(check_numbers(NumbersOptions(output=str(output)), is_first=False))


def test_each_stage_reads_what_the_one_before_gives(tmp_path: Path) -> None:
    manifests = run_stages([numbers(tmp_path / "a"), doubles(tmp_path / "b")], IN_MEMORY)
    assert list(manifests) == ["numbers", "doubles"]
    assert manifests["doubles"]["counts"] == {"numbers": {"sum": 6}}
    assert sorted(p.name for p in (tmp_path / "b").glob("number-*")) == ["number-0", "number-2", "number-4"]
    assert manifests["numbers"] == json.loads((tmp_path / "a" / "manifest.json").read_text())


def test_every_option_but_the_output_is_in_the_manifest(tmp_path: Path) -> None:
    assert run_stages([numbers(tmp_path / "a", 5)], IN_MEMORY)["numbers"]["parameters"] == {"count": 5}


def test_no_stage_runs_if_one_of_them_may_not_use_its_directory(tmp_path: Path) -> None:
    run_stages([numbers(tmp_path / "b")], IN_MEMORY)
    with pytest.raises(UnusableInputError, match="belongs to 'numbers'"):
        run_stages([numbers(tmp_path / "a"), doubles(tmp_path / "b")], IN_MEMORY)
    assert not list((tmp_path / "a").glob("number-*"))


def test_a_directory_made_with_other_options_is_refused(tmp_path: Path) -> None:
    run_stages([numbers(tmp_path / "a")], IN_MEMORY)
    with pytest.raises(UnusableInputError, match=r"made with other parameters \(count=3, now 4\)"):
        run_stages([numbers(tmp_path / "a", 4)], IN_MEMORY)


def test_a_stage_that_reads_another_s_output_cannot_be_the_first(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="TypeError: doubles reads what another stage makes"):
        run_stages([doubles(tmp_path / "b")], IN_MEMORY)


# ---- the list


def test_a_new_stage_needs_only_a_module_and_an_entry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = StageEntry(
        name="numbers",
        options=NumbersOptions,
        checks=f"{__name__}:check_numbers",
        implementation=f"{__name__}:NumbersStage",
        decided={"output": lambda so_far: so_far.folder("numbers")},
    )
    for module in (stages, build_options, build):
        monkeypatch.setattr(module, "STAGES", (entry,))
    assert "  # how many numbers\n  count: 3" in build_options.print_config()
    config = tmp_path / "build.yaml"
    config.write_text(yaml.safe_dump({"output": str(tmp_path / "out"), "numbers": {"count": 4}}))
    assert cli.main(["build", str(config), *IN_MEMORY]) == 0
    assert capsys.readouterr().out.startswith(f"numbers: {tmp_path}/out/numbers\n  numbers  6 sum\non disk: ")
    config.write_text(yaml.safe_dump({"output": str(tmp_path / "out"), "numbers": {"count": 0}}))
    with pytest.raises(UnusableInputError, match="--count must be 1 or more, not 0"):
        build_options.read_build(str(config))


@pytest.mark.parametrize("entry", GRAPH_STAGES, ids=lambda entry: entry.name)
def test_every_entry_agrees_with_its_stage(entry: StageEntry) -> None:
    stage = entry.load()
    assert stage.name == entry.name
    assert issubclass(stage, Stage)
    assert set(entry.decided) < set(options_of(entry.options))
    assert not getattr(stage, "__abstractmethods__", None)
    assert "output" in entry.decided


def test_training_is_not_a_stage_of_the_graph() -> None:
    (train,) = [entry for entry in STAGES if entry.name == "train"]
    with pytest.raises(ValueError, match="train is no stage of the graph"):
        train.load()


def test_each_stage_finds_its_input_where_the_one_before_put_it() -> None:
    content = {"output": "o", "extract": {"input": "i"}, "examples": {"vocab_file": "v", "packed": True}, "train": {}}
    options = build_options.make_build(content, where="x").stages
    assert options["examples"].input == (options["extract"].output,) == ("o/text",)
    assert options["train"].input_file == ("o/examples",)
    assert options["train"].eval_file == ("o/eval/eval.tfrecord",)
    assert options["train"].vocab_file == "v"
    assert BuildSoFar(output="gs://b/o", compat="none", stages={}).folder("text") == "gs://b/o/text"
    build = build_options.make_build(content | {"extract": {"from": "t"}}, where="x")
    assert (build.texts, build.stages["examples"].input, "extract" in build.stages) == (("t",), ("t",), False)
    assert build.stages["train"] == options["train"]


@pytest.mark.parametrize(
    ("section", "values", "sentence"),
    [
        ("extract", {"shard_size_mb": 0}, "--shard_size_mb must be positive"),
        ("extract", {"num_eval_articles": 1, "eval_fraction": 0.5}, "exclude each other"),
        ("extract", {"max_documents": 0}, "--max_documents must be 1 or more"),
        ("extract", {"min_letter_share": 2}, "--min_letter_share must be between 0 and 1"),
        ("extract", {"text_column": ""}, "text_column is empty"),
        ("extract", {"headings": "some"}, "x: extract.headings must be one of drop, keep"),
        ("examples", {"max_seq_length": 4}, "max_seq_length 4"),
        ("examples", {"masked_lm_prob": 0}, "masked_lm_prob 0.0"),
        ("examples", {"dupe_factor": 0}, "dupe_factor 0"),
        ("train", {"train_batch_size": 0}, "--train_batch_size is 0"),
    ],
)
def test_the_checks_of_every_step_run_when_a_build_is_read(
    section: str, values: dict[str, object], sentence: str
) -> None:
    content: dict[str, Any] = {"output": "o", "extract": {"input": "i"}, "examples": {"vocab_file": "v"}}
    content[section] = content.get(section, {}) | values
    with pytest.raises(UnusableInputError, match=sentence):
        build_options.make_build(content, where="x")


def test_the_display_reads_the_work_that_a_step_announces(tmp_path: Path) -> None:
    assert progress.announced(str(tmp_path), KIND) is None
    progress.announce(str(tmp_path), KIND, pieces=3, size=70)
    assert progress.announced(str(tmp_path), KIND) == progress.Announced(pieces=3, bytes=70)
