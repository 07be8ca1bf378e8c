"""A build's file: what --print_config prints loads, for every option, and flags count instead of the file."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import pytest

from maskmill.errors import UnusableInputError
from pipelines.building import build_options
from pipelines.settings import flags, yaml_text
from pipelines.settings.options import Kind, Option, options_of
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.registry import STAGES
from pipelines.stages.stage import Stage
from pipelines.stages.train_stage import TrainStage
from pipelines.stages.vocabulary_stage import VocabularyStage

CONTENT: dict[str, Any] = {"output": "o", "extract": {"input": "i"}, "examples": {"vocab_file": "v"}, "train": {}}

TEXTS = (
    "5e-05",
    "0123",
    "12:30",
    "2024-05-01",
    "yes",
    "null",
    "~",
    "1",
    "true",
    "a b",
    "ü",
    "'",
    "#",
    "- x",
    "[a",
    "x: y",
)


def samples(kind: Kind) -> list[Any]:
    """Values of a kind, those that YAML could take for something else among them."""
    if kind.choices is not None:
        values: list[Any] = list(kind.choices)
    elif kind.type is bool:
        values = [True, False]
    elif kind.type is int:
        values = [-(2**63) + 1, -1, 0, 7, 123, 2**63 - 1]
    elif kind.type is float:
        values = [5e-05, 1e-300, 0.1, 1.0, -0.0, 1e16, 1.7e308]
    else:
        values = list(TEXTS)
    if kind.is_list:
        values = [(value,) for value in values] + [tuple(values)]
    return [*values, None] if kind.optional else values


OPTIONS = [
    pytest.param(stage, option, id=f"{stage.name}-{option.name}")
    for stage in STAGES
    for option in build_options.options_of_section(stage).values()
]


@pytest.mark.parametrize(("stage", "option"), OPTIONS)
def test_every_option_reads_back_as_it_was_printed(stage: type[Stage[Any]], option: Option) -> None:
    for value in samples(option.kind):
        text = f"{stage.name}:\n  {option.name}: {yaml_text.write(value)}\n"
        read = yaml_text.parse(text.encode(), where="x")[stage.name][option.name]
        again = option.kind.check(read, option.name)
        assert again == value, text
        assert repr(again) == repr(value), text


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_printed_build_loads_as_the_same_build(stage: type[Stage[Any]]) -> None:
    own = {"vocabulary": {"kind": "bpe", "size": 640}, "examples": {}} if stage is VocabularyStage else {}
    build = build_options.make_build(CONTENT | {"train": {"preset": "tiny"}} | own, where="x")
    printed = yaml_text.parse(build_options.print_config(build).encode(), where="x")
    again = build_options.make_build(printed, where="x")
    assert again[stage] == build[stage]
    assert (again.output, again.compat) == (build.output, build.compat)


def test_the_printed_training_loads_with_its_defaults() -> None:
    lines = build_options.print_config().splitlines()
    start = next(place for place, line in enumerate(lines) if "training (extra [jax])" in line) + 1
    end = lines.index("", start)
    section = "\n".join(line.removeprefix("# ") for line in lines[start:end])
    content = CONTENT | yaml_text.parse(section.encode(), where="x")
    made = build_options.make_build(content, where="x")[TrainStage]
    assert made.learning_rate == 5e-05
    assert made == build_options.make_build(CONTENT, where="x")[TrainStage]


def test_the_printed_vocabulary_loads_beside_the_printed_examples() -> None:
    lines = build_options.print_config().splitlines()
    start = lines.index("# vocabulary:")
    end = next(place for place, line in enumerate(lines) if place > start and not line.startswith("#"))
    lines[start:end] = [line.removeprefix("# ") for line in lines[start:end]]
    content = yaml_text.parse("\n".join(lines).encode(), where="x")
    content["output"], content["extract"]["input"] = "o", "i"
    made = build_options.make_build(content, where="x")
    assert made[ExamplesStage].tokenizer == ("vocab_file", "o/vocabulary/vocab.txt")
    content["vocabulary"]["do_lower_case"] = False
    with pytest.raises(UnusableInputError, match=r"examples\.do_lower_case: a build decides this itself; leave it out"):
        build_options.make_build(content, where="x")


@pytest.mark.parametrize(
    ("preset", "kind", "size", "tokenizer"),
    [
        ("bert-phase1", "wordpiece", 30528, ("vocab_file", "o/vocabulary/vocab.txt")),
        ("roberta", "bpe", 50304, ("tokenizer_file", "o/vocabulary/tokenizer.json")),
        ("modernbert", "bpe", 50368, ("tokenizer_file", "o/vocabulary/tokenizer.json")),
    ],
)
def test_a_preset_has_its_kind_of_vocabulary(preset: str, kind: str, size: int, tokenizer: tuple[str, str]) -> None:
    content: dict[str, Any] = {"output": "o", "preset": preset, "extract": {"input": "i"}, "vocabulary": {}}
    made = build_options.make_build(content, where="x")
    decided = made[VocabularyStage].vocabulary.decided
    assert (decided.kind, decided.size, made[ExamplesStage].tokenizer) == (kind, size, tokenizer)
    del content["vocabulary"]
    without = build_options.make_build(content | {"examples": {"vocab_file": "v"}}, where="x")
    assert VocabularyStage not in without


# ---- flags


def value_of(build: build_options.BuildOptions, section: str, name: str) -> Any:
    options = build[build.named(section)]
    return functools.reduce(getattr, options_of(type(options))[name].path, options)


def test_a_flag_counts_instead_of_the_file() -> None:
    content = {"output": "o", "extract": {"input": "i"}, "examples": {"vocab_file": "v", "dupe_factor": 5}}
    overrides = {"examples.dupe_factor": 3, "output": "p", "extract.namespaces": (0, 14)}
    build = build_options.make_build(content, where="x", overrides=overrides)
    assert value_of(build, "examples", "dupe_factor") == 3
    assert value_of(build, "extract", "namespaces") == (0, 14)
    assert build[ExamplesStage].output == "p/examples"


def test_a_flag_can_give_what_the_file_leaves_out() -> None:
    overrides = {"output": "o", "extract.input": ("i",), "examples.vocab_file": "v", "train.preset": "tiny"}
    build = build_options.make_build({}, where="x", overrides=overrides)
    assert build[TrainStage].preset == "tiny"
    assert TrainStage not in build_options.make_build({k: v for k, v in CONTENT.items() if k != "train"}, where="x")


def test_every_option_of_a_section_is_a_flag() -> None:
    known = build_options.flags()
    assert {name for name in known if "." not in name} == {"output", "preset", "compat", "report", "on_event"}
    for stage in STAGES:
        for name in options_of(stage.options_class):
            assert (f"{stage.name}.{name}" in known) != (name in stage.decides)
    assert known["extract.from"].kind.is_list


def test_messages_name_the_line_or_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text("output: o\nextract:\n  input: i\nexamples:\n  vocab_file: v\n  dupe_factor: x\n")
    with pytest.raises(UnusableInputError, match=rf"{path}, line 6: examples.dupe_factor must be a whole number"):
        build_options.read_build(str(path))
    with pytest.raises(UnusableInputError, match=r"--examples\.dupe_factor must be a whole number"):
        build_options.read_build(str(path), {"examples.dupe_factor": "y"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a build is a mapping of sections"),
        ("output: o\nevall:\n", "line 2: there is no section 'evall'; did you mean eval"),
    ],
)
def test_what_is_no_build_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(text)
    with pytest.raises(UnusableInputError, match=message):
        build_options.read_build(str(path))


def test_a_misspelt_option_is_looked_for_in_every_section() -> None:
    with pytest.raises(UnusableInputError, match=r"did you mean --examples\.dupe_factor\?"):
        flags.parse(["--dupe_facter=1"], build_options.flags())


def test_a_section_that_is_no_mapping_stays_refused_with_a_flag() -> None:
    with pytest.raises(UnusableInputError, match="x: examples must be a mapping"):
        build_options.make_build(CONTENT | {"examples": []}, where="x", overrides={"examples.vocab_file": "v"})


def test_a_class_of_options_groups_only_options_that_it_has() -> None:
    for stage in STAGES:
        fields = {field.name for field in dataclasses.fields(stage.options_class)}
        assert set(getattr(stage.options_class, "GROUPS", {})) <= fields
