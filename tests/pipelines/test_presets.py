"""Presets are values of options, each with its source; what is given beside one counts instead of it."""

import pytest

from pipelines import options, presets
from pipelines.build_options import BuildKeys
from pipelines.stage_options import EvalOptions, ExamplesOptions, ExtractOptions
from transforms.errors import UnusableInputError

GIVEN = {"input": ("text",), "output": "out", "vocab_file": "vocab.txt"}
SECTIONS = {"build": BuildKeys, "extract": ExtractOptions, "examples": ExamplesOptions, "eval": EvalOptions}


def made(**values: object) -> ExamplesOptions:
    return options.make(ExamplesOptions, GIVEN | values)


@pytest.mark.parametrize("name", presets.names())
def test_each_key_is_an_option_of_its_section_and_names_its_source(name: str) -> None:
    preset = presets.find(name)
    assert preset.follows
    for section, values in preset.values.items():
        known = options.options_of(SECTIONS[section])
        for option, value in values.items():
            assert known[option].kind.check(value, option) == value
            assert len(preset.sources[section][option]) > len(option) / 2


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


def test_an_unknown_preset() -> None:
    with pytest.raises(UnusableInputError, match="did you mean albert"):
        presets.find("alberto")
