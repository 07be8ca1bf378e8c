"""The contract of a stage: the list of all stages, and what a run does with each of them."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import apache_beam as beam
import pytest

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.options import option
from maskmill.storage import files, manifest
from pipelines.building import build_options
from pipelines.settings.options import options_of
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.graph import run_stages
from pipelines.stages.mix_stage import MixStage
from pipelines.stages.registry import GRAPH_STAGES, STAGES
from pipelines.stages.stage import Build, GraphStage, Stage
from pipelines.stages.train_stage import TrainStage

IN_MEMORY = ("--direct_num_workers=1",)
KIND = "numbers"


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumbersOptions:
    output: str = option(help="directory of the numbers")
    count: int = option(3, help="how many numbers")

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UnusableInputError(f"--count must be 1 or more, not {self.count}.")


def write_number(number: int, output: str) -> int:
    files.write_bytes(files.join(output, f"number-{number}"), str(number).encode())
    return number


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumbersStage(GraphStage[NumbersOptions]):
    """Input: nothing. Output: whole numbers, each written to a file."""

    name: ClassVar[str] = "numbers"
    options_class: ClassVar[type] = NumbersOptions

    @classmethod
    def check(cls, options: NumbersOptions, *, is_first: bool) -> Self:
        return cls(options=options, pieces=options.count)

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

    def progress(self) -> Mapping[str, str]:
        return {"numbers": KIND}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoublesStage(NumbersStage):
    """Input: whole numbers. Output: their doubles."""

    name: ClassVar[str] = "doubles"

    def source(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return GraphStage.source(self, pipeline)

    def expand(self, elements: beam.PCollection) -> tuple[beam.PCollection, Sequence[beam.PCollection]]:
        return super().expand(elements | "Double" >> beam.Map(lambda number: 2 * number))


def numbers(output: Path, count: int = 3) -> NumbersStage:
    return NumbersStage.check(NumbersOptions(output=str(output), count=count), is_first=True)


def doubles(output: Path) -> DoublesStage:
    return DoublesStage.check(NumbersOptions(output=str(output)), is_first=False)


def test_each_stage_reads_what_the_one_before_gives(tmp_path: Path) -> None:
    results = run_stages([numbers(tmp_path / "a"), doubles(tmp_path / "b")], IN_MEMORY)
    assert list(results) == ["numbers", "doubles"]
    assert results["doubles"].made["counts"] == {"numbers": {"sum": 6}}
    assert sorted(p.name for p in (tmp_path / "b").glob("number-*")) == ["number-0", "number-2", "number-4"]
    assert results["numbers"].made == json.loads((tmp_path / "a" / "manifest.json").read_text())


def test_every_option_but_the_output_is_in_the_manifest(tmp_path: Path) -> None:
    assert run_stages([numbers(tmp_path / "a", 5)], IN_MEMORY)["numbers"].made["parameters"] == {"count": 5}


def test_no_stage_runs_if_one_of_them_may_not_use_its_directory(tmp_path: Path) -> None:
    run_stages([numbers(tmp_path / "b")], IN_MEMORY)
    with pytest.raises(UnusableInputError, match="belongs to 'numbers'"):
        run_stages([numbers(tmp_path / "a"), doubles(tmp_path / "b")], IN_MEMORY)
    assert not list((tmp_path / "a").glob("number-*"))


def test_a_stage_that_reads_another_s_output_cannot_be_the_first(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="TypeError: doubles reads what another stage makes"):
        run_stages([doubles(tmp_path / "b")], IN_MEMORY)


# ---- the list


def test_the_stages_are_in_the_order_of_the_data() -> None:
    assert [stage.name for stage in STAGES] == ["extract", "vocabulary", "examples", "eval", "train"]
    assert [stage.name for stage in GRAPH_STAGES] == ["extract", "vocabulary", "examples", "eval"]


@pytest.mark.parametrize("stage", [*STAGES, MixStage], ids=lambda stage: stage.__name__)
def test_every_stage_agrees_with_itself(stage: type[Stage[Any]]) -> None:
    names = set() if stage is MixStage else set(options_of(stage.options_class))
    assert stage is MixStage or set(stage.decides) < names
    assert set(stage.places) <= {*names, "output"}
    assert not getattr(stage, "__abstractmethods__", None)
    (base,) = stage.__orig_bases__  # type: ignore[attr-defined]
    assert get_args(base) == (stage.options_class,)


def test_a_build_decides_what_its_stages_say() -> None:
    content = {"output": "o", "extract": {"input": "i"}, "vocabulary": {}, "train": {}}
    build = build_options.make_build(content, where="x")
    of_vocabulary = {"vocab_file", "tokenizer_file", "do_lower_case"}
    for stage in STAGES:
        more = of_vocabulary if stage is ExamplesStage else set()
        assert set(stage.decisions(build)) == {*stage.decides} | more


def test_each_stage_finds_its_input_where_the_one_before_put_it() -> None:
    content = {"output": "o", "extract": {"input": "i"}, "examples": {"vocab_file": "v", "packed": True}, "train": {}}
    options = build_options.make_build(content, where="x")
    assert options[ExamplesStage].input == (options[ExtractStage].output,) == ("o/text",)
    assert options[TrainStage].input_file == ("o/examples",)
    assert options[TrainStage].eval_file == ("o/eval/eval.tfrecord",)
    assert options[TrainStage].vocab_file == "v"
    assert Build(output="gs://b/o", compat="none").folder("text") == "gs://b/o/text"
    build = build_options.make_build(content | {"extract": {"from": "t"}}, where="x")
    assert (build.texts, build[ExamplesStage].input, ExtractStage in build) == (("t",), ("t",), False)
    assert build[TrainStage] == options[TrainStage]


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
