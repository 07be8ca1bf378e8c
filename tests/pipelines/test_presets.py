"""Presets are values of options, each with its source; what is given beside one counts instead of it."""

import pytest

from maskmill.errors import UnusableInputError
from pipelines.building import build_options
from pipelines.building.build_options import BuildKeys
from pipelines.settings import options, presets, yaml_text
from pipelines.settings.stage_options import EvalOptions, ExamplesOptions, ExtractOptions, VocabularyStageOptions
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.train_stage import TrainStage

GIVEN = {"input": ("text",), "output": "out", "vocab_file": "vocab.txt"}
SECTIONS = {
    "build": BuildKeys,
    "extract": ExtractOptions,
    "vocabulary": VocabularyStageOptions,
    "examples": ExamplesOptions,
    "eval": EvalOptions,
}


def made(**values: object) -> ExamplesOptions:
    return options.make(ExamplesOptions, GIVEN | values)


@pytest.mark.parametrize("name", presets.names())
def test_each_key_is_an_option_of_its_section_and_names_its_source(name: str) -> None:
    preset = dict(presets.find(name))
    assert preset.pop(presets.FOLLOWS)
    for section, values in preset.items():
        known = options.options_of(SECTIONS[section])
        for option, (value, source) in values.items():
            assert known[option].kind.check(value, option) == value
            assert len(source) > len(option) / 2


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_alone_makes_examples(name: str) -> None:
    chosen = options.parameters(made(preset=name))
    for option, value in presets.values_of(name, "examples").items():
        assert chosen[option] == value


@pytest.mark.parametrize(
    ("name", "length", "predictions", "objective"),
    [
        ("bert-phase1", 128, 20, "nsp"),
        ("bert-phase2", 512, 76, "nsp"),
        ("mlperf", 512, 76, "nsp"),
        ("roberta", 512, 77, "mlm"),
        ("albert", 512, 77, "sop"),
        ("spanbert", 512, 77, "mlm"),
        ("modernbert", 1024, 308, "mlm"),
        ("group-texts", 512, 77, "blocks"),
    ],
)
def test_lengths_and_predictions(name: str, length: int, predictions: int, objective: str) -> None:
    chosen = made(preset=name)
    assert chosen.objective.objective == objective
    assert (chosen.masking.max_seq_length, chosen.masking.max_predictions_per_seq) == (length, predictions)


def test_what_is_given_counts_instead_of_the_preset() -> None:
    chosen = made(preset="roberta", max_seq_length=128, masked_lm_prob=0.3)
    assert chosen.masking.max_seq_length == 128
    assert chosen.masking.max_predictions_per_seq == 39


def test_the_mlperf_preset_reproduces_its_records() -> None:
    assert made(preset="mlperf").compat == "mlperf"


def test_defaults_of_bert_stay_without_a_preset() -> None:
    chosen = made()
    assert (chosen.masking.dupe_factor, chosen.masking.max_predictions_per_seq) == (10, 20)
    assert chosen.masking.short_seq_prob == 0.1


def test_dynamic_masks_use_each_document_once() -> None:
    assert made(dynamic_masking=True).masking.dupe_factor == 1


def test_spans_have_masks_that_readers_draw() -> None:
    assert made(format="spans").objective.dynamic_masking
    assert made(format="spans").masking.dupe_factor == 1


def test_an_unknown_preset() -> None:
    with pytest.raises(UnusableInputError, match="did you mean albert"):
        presets.find("alberto")


@pytest.mark.parametrize("name", presets.names())
def test_what_print_config_prints_for_a_preset_is_a_build_of_it(name: str) -> None:
    printed = yaml_text.parse(build_options.print_config(preset=name).encode(), where="x")
    printed["output"] = "out"
    printed["extract"]["input"] = "dump.xml"
    printed["examples"]["vocab_file"] = "vocab.txt"
    short = {"output": "out", "preset": name, "extract": {"input": "dump.xml"}, "examples": {"vocab_file": "vocab.txt"}}
    assert build_options.make_build(printed, where="x") == build_options.make_build(short, where="x")


@pytest.mark.parametrize("name", presets.names())
def test_print_config_names_the_source_of_each_value(name: str) -> None:
    printed = build_options.print_config(preset=name)
    sections = [values for section, values in presets.find(name).items() if section != presets.FOLLOWS]
    for source in (source for values in sections for _, source in values.values()):
        assert f"# of the preset: {source}" in printed


def build_of(**keys: object) -> build_options.BuildOptions:
    content = {"output": "out", "extract": {"input": "dump.xml"}, "examples": {"vocab_file": "vocab.txt"}}
    return build_options.make_build(content | keys, where="b.yaml")


def test_a_preset_counts_for_all_sections_of_a_build() -> None:
    build = build_of(preset="mlperf")
    assert build.compat == "mlperf"
    assert build[ExtractStage].split.num_eval_articles == 10000
    assert build[ExamplesStage].masking.max_predictions_per_seq == 76


def test_a_number_of_eval_articles_counts_instead_of_the_share_of_a_preset() -> None:
    build = build_of(preset="group-texts", extract={"input": "dump.xml", "num_eval_articles": 3})
    assert (build[ExtractStage].split.num_eval_articles, build[ExtractStage].split.eval_fraction) == (3, None)


def test_a_build_of_parquet_picks_no_eval_examples() -> None:
    build = build_of(examples={"vocab_file": "vocab.txt", "format": "parquet"})
    assert build.names == ["extract", "examples"]


def test_eval_examples_cannot_be_picked_of_mds() -> None:
    with pytest.raises(UnusableInputError, match="eval examples are picked from TFRecords, and the examples are mds"):
        build_of(examples={"vocab_file": "vocab.txt", "format": "mds"}, eval={"num_examples_to_pick": 3})


@pytest.mark.parametrize(
    "examples",
    [
        {"format": "parquet"},
        {"format": "mds"},
        {"dynamic_masking": True},
        {"feature_names": "v2"},
        {"bins": 2},
        {"pack": True},
    ],
    ids=str,
)
def test_a_training_reads_all_examples(examples: dict[str, object]) -> None:
    build = build_of(examples={"vocab_file": "vocab.txt"} | examples, train={"preset": "tiny"})
    assert list(build[TrainStage].input_file) == ["out/examples"]


def test_a_training_on_full_sentences_learns_no_pairs() -> None:
    build = build_of(examples={"vocab_file": "vocab.txt", "objective": "mlm"}, train={"preset": "tiny"})
    assert build[TrainStage].next_sentence_prediction is False
    with pytest.raises(UnusableInputError, match="next_sentence_prediction"):
        build_of(
            examples={"vocab_file": "vocab.txt", "objective": "mlm"},
            train={"preset": "tiny", "next_sentence_prediction": True},
        )


def test_a_key_that_is_no_preset() -> None:
    with pytest.raises(UnusableInputError, match="there is no such preset; did you mean roberta"):
        build_of(preset="robert")
