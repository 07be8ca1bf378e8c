"""Model configurations, from google-research's and Hugging Face's files and from presets."""

import dataclasses
import json

import pytest

from maskmill.errors import UnusableInputError
from training import config

# Hugging Face's file of a ModernBERT.
THEIRS = '{"vocab_size": 9, "model_type": "modernbert", "transformers_version": "5", %s}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "bert_config.json: this model configuration is not JSON"),
        ("[]", "has no vocab_size"),
        ('{"vocab_size": 9, "hidden_act": "swish"}', "hidden_act is 'swish'"),
        (
            '{"vocab_size": 9, "hidden_size": 10, "num_attention_heads": 3}',
            "10 is not a multiple of num_attention_heads",
        ),
        ('{"vocab_size": 9, "model_type": "gpt2"}', "only bert, roberta, albert, modernbert encoders"),
        ('{"vocab_size": 9, "hidden_dropout_prob": 1.5}', "hidden_dropout_prob is 1.5"),
        ('{"vocab_size": "many"}', "vocab_size is 'many': it must be a whole number"),
        ('{"vocab_size": 9, "hidden_size": 768.5}', "hidden_size is 768.5: it must be a whole number"),
        (
            '{"vocab_size": 9, "num_hidden_layers": 1000000000}',
            "num_hidden_layers is 1000000000: it must be at least 1",
        ),
        ('{"vocab_size": 9, "layer_norm_eps": "tiny"}', "layer_norm_eps is 'tiny': it must be a number"),
        ('{"vocab_size": 9, "layer_norm_eps": -1}', "layer_norm_eps is -1: it must be above 0"),
        ('{"vocab_size": 9, "initializer_range": NaN}', "initializer_range is nan: it must be a number"),
        ('{"vocab_size": 9, "position_embedding_type": "relative_key"}', "only models with absolute positions"),
        ("[" * 100000, "this model configuration is not JSON"),
        ('{"vocab_size": 9, "embedding_size": 128}', "differs from hidden_size 768; only ALBERT's may"),
        ('{"vocab_size": 9, "num_hidden_groups": 5}', "12 is not a multiple of num_hidden_groups 5"),
        ('{"vocab_size": 9, "num_hidden_groups": 1, "inner_group_num": 2}', "inner_group_num is 2; only 1"),
        (THEIRS % '"norm_bias": true', "norm_bias is True; only False can be trained"),
        (THEIRS % '"classifier_pooling": "mean"', "classifier_pooling is 'mean'; only 'cls'"),
        (THEIRS % '"layer_types": ["sliding_attention", "full_attention"]', "layer_types does not repeat itself"),
        (
            THEIRS % '"rope_parameters": {"full_attention": {"rope_type": "yarn"}}',
            "rope_type is 'yarn'; only 'default'",
        ),
        (THEIRS % '"local_attention": 1', "local_attention is 1: it must be at least 2"),
        (THEIRS % '"hidden_size": 36, "num_attention_heads": 12', "rotary positions need heads of an even size"),
        ('{"vocab_size": 0}', "vocab_size is 0"),
    ],
)
def test_bad_model_configurations(text, message):
    with pytest.raises(UnusableInputError, match=message):
        config.from_json(text, where="bert_config.json")


def test_unknown_keys_are_passed_over():
    model = config.from_json('{"vocab_size": 9, "hidden_size": 24, "directionality": "bidi"}', where="x")
    assert model == config.ModelConfig(vocab_size=9, hidden_size=24)


def test_presets_have_berts_sizes():
    sizes = {"tiny": (2, 128, 2), "base": (12, 768, 12), "large": (24, 1024, 16)}
    for name, (layers, width, heads) in sizes.items():
        model = config.from_preset(name)
        assert (model.num_hidden_layers, model.hidden_size, model.num_attention_heads) == (layers, width, heads)
        assert model.intermediate_size == 4 * width
    assert config.from_preset("tiny", vocab_size=1000).vocab_size == 1000
    assert config.from_preset("roberta-base").model_type == "roberta"
    with pytest.raises(UnusableInputError, match="there is no such preset; choose one of tiny, mini"):
        config.from_preset("huge")


def test_gelu_means_another_function_to_hugging_face():
    google = config.from_json('{"vocab_size": 9, "hidden_act": "gelu"}', where="bert_config.json")
    theirs = config.from_json('{"vocab_size": 9, "hidden_act": "gelu", "architectures": ["BertModel"]}', where="x")
    assert (google.hidden_act, theirs.hidden_act) == ("gelu", "gelu_erf")
    assert google.to_hugging_face()["hidden_act"] == "gelu_new"


@pytest.mark.parametrize("name", ["tiny", "roberta-base", "albert-base", "modernbert-large"])
def test_both_forms_give_the_same_model_again(name):
    model = dataclasses.replace(config.from_preset(name), hidden_dropout_prob=0.2)
    for form in (model.to_google(), model.to_hugging_face()):
        assert config.from_json(json.dumps(form), where="x") == model


def test_hugging_face_counts_robertas_padding_positions():
    model = config.from_preset("roberta-base")
    form = model.to_hugging_face()
    assert form["max_position_embeddings"] == model.max_position_embeddings + 2 == 514
    assert form["architectures"] == ["RobertaForMaskedLM"]
    # Positions are counted from the one after the padding's id.
    first = dataclasses.replace(model, position_offset=1).to_hugging_face()
    assert (first["max_position_embeddings"], first["pad_token_id"]) == (513, 0)
    assert config.from_json(json.dumps(first), where="x") == dataclasses.replace(model, position_offset=1)
    assert config.from_json(json.dumps(form | {"pad_token_id": None}), where="x") == model


def test_a_bert_config_has_no_keys_that_the_reference_does_not_know():
    form = config.from_preset("base").to_google()
    assert "model_type" not in form
    assert "layer_norm_eps" not in form
    assert config.from_preset("roberta-base").to_google()["model_type"] == "roberta"
