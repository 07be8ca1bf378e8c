"""A model's configuration: from google-research's `bert_config.json`, Hugging Face's `config.json`, or a preset.

The activation "gelu" means the tanh approximation in google-research's files and the exact function in Hugging Face's.
Here "gelu" is the approximation and "gelu_erf" the exact function.
"""

import dataclasses
import json
import math
from typing import Any

from maskmill.errors import UnusableInputError

ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")
_FROM_HUGGING_FACE = {"gelu": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "gelu_fast": "gelu"}
_TO_HUGGING_FACE = {"gelu": "gelu_new", "gelu_erf": "gelu"}
# The id of RoBERTa's padding.
_ROBERTA_PADDING = 1
# Sizes beyond this are mistakes; the largest models have vocabularies of a few million tokens.
_LARGEST_SIZE = 2**24
_SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size", "position_offset",
)  # fmt: skip

# The name of a google-research model's configuration, beside its checkpoint.
BERT_CONFIG = "bert_config.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """An encoder's sizes, under the names of google-research/bert's BertConfig (modeling.py).

    `model_type` is "bert" or "roberta". `max_position_embeddings` counts the usable positions; for RoBERTa it is 512,
    where Hugging Face's files say 514. `position_offset` is the difference: the row of position 0 in the position
    table of Hugging Face's RoBERTa, the one behind the id of its padding. BERT has no use for it.

    Raises:
      UnusableInputError: no model can have these values.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    model_type: str = "bert"
    position_offset: int = _ROBERTA_PADDING + 1

    def __post_init__(self) -> None:
        if self.model_type not in ("bert", "roberta"):
            raise UnusableInputError(
                f"model_type is {self.model_type!r}: only bert and roberta encoders can be trained."
            )
        if self.hidden_act not in ACTIVATIONS:
            raise UnusableInputError(f"hidden_act is {self.hidden_act!r}: it must be one of {', '.join(ACTIVATIONS)}.")
        for name in _SIZES:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise UnusableInputError(f"{name} is {value!r}: it must be a whole number.")
            if not 1 <= value <= _LARGEST_SIZE:
                raise UnusableInputError(f"{name} is {value}: it must be at least 1 and at most {_LARGEST_SIZE:,}.")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= self._number(name) < 1:
                raise UnusableInputError(f"{name} is {getattr(self, name)}: it must be in [0, 1).")
        for name in ("initializer_range", "layer_norm_eps"):
            if self._number(name) <= 0:
                raise UnusableInputError(f"{name} is {getattr(self, name)}: it must be above 0.")
        if self.hidden_size % self.num_attention_heads:
            raise UnusableInputError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}."
            )

    def _number(self, name: str) -> float:
        """The value of a field that must be a finite number."""
        value = getattr(self, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise UnusableInputError(f"{name} is {value!r}: it must be a number.")
        return value

    def to_google(self) -> dict[str, Any]:
        """The content of a `bert_config.json`, without what BERT has not and what is as usual."""
        values = dataclasses.asdict(self)
        for name in ("model_type", "layer_norm_eps", "position_offset"):
            if values[name] == _DEFAULTS[name]:
                del values[name]
        return values

    def to_hugging_face(self) -> dict[str, Any]:
        """The content of a Hugging Face `config.json` of this model with its pre-training heads."""
        values = dataclasses.asdict(self)
        values["hidden_act"] = _TO_HUGGING_FACE.get(self.hidden_act, self.hidden_act)
        values["torch_dtype"] = "float32"
        offset = values.pop("position_offset")
        if self.model_type == "roberta":
            values["max_position_embeddings"] += offset
            values |= {"type_vocab_size": 1, "pad_token_id": offset - 1, "bos_token_id": 0, "eos_token_id": 2}
            return values | {"architectures": ["RobertaForMaskedLM"]}
        return values | {"architectures": ["BertForPreTraining"]}


_DEFAULTS = {f.name: f.default for f in dataclasses.fields(ModelConfig)}


def _bert(layers: int, width: int) -> dict[str, Any]:
    return {
        "vocab_size": 30522,
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
    }


def _roberta(layers: int, width: int) -> dict[str, Any]:
    sizes = _bert(layers, width) | {"vocab_size": 50265, "type_vocab_size": 1}
    return sizes | {"hidden_act": "gelu_erf", "layer_norm_eps": 1e-5, "model_type": "roberta"}


# BERT's sizes: google-research/bert's README (the smaller models are those of Turc et al. 2019).
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _bert(2, 128),
    "mini": _bert(4, 256),
    "small": _bert(4, 512),
    "medium": _bert(8, 512),
    "base": _bert(12, 768),
    "large": _bert(24, 1024),
    "roberta-base": _roberta(12, 768),
    "roberta-large": _roberta(24, 1024),
}


def from_preset(name: str, *, vocab_size: int | None = None) -> ModelConfig:
    """The configuration of a preset, with another vocabulary size if one is given.

    Raises:
      UnusableInputError: there is no such preset.
    """
    if name not in PRESETS:
        raise UnusableInputError(f"--preset {name}: there is no such preset; choose one of {', '.join(PRESETS)}.")
    return ModelConfig(**(PRESETS[name] | ({} if vocab_size is None else {"vocab_size": vocab_size})))


def from_json(text: str | bytes, *, where: str) -> ModelConfig:
    """Reads a `bert_config.json` or Hugging Face's `config.json`.

    Hugging Face's file is recognised by its key `architectures` or `transformers_version`. `where` names the file in
    messages.

    Raises:
      UnusableInputError: it is not JSON, it has no vocabulary size, or it describes another kind of model.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusableInputError(f"{where}: this model configuration is not JSON ({error}).") from None
    if not isinstance(values, dict) or "vocab_size" not in values:
        raise UnusableInputError(f"{where}: this model configuration has no vocab_size.")
    known = {k: v for k, v in values.items() if k in _DEFAULTS}
    if "architectures" in values or "transformers_version" in values:
        activation = values.get("hidden_act", "gelu")
        known["hidden_act"] = _FROM_HUGGING_FACE.get(str(activation), activation)
        if values.get("model_type") == "roberta":
            positions, padding = values.get("max_position_embeddings", 514), values.get("pad_token_id")
            if not isinstance(padding, int) or padding < 0:
                padding = _ROBERTA_PADDING
            known["position_offset"] = padding + 1
            if isinstance(positions, int):
                known["max_position_embeddings"] = positions - padding - 1
    embedding_size = values.get("embedding_size")
    if embedding_size not in (None, known.get("hidden_size", _DEFAULTS["hidden_size"])):
        raise UnusableInputError(
            f"{where}: embedding_size {embedding_size} differs from hidden_size; models with factorised embeddings "
            "(ALBERT) cannot be trained."
        )
    positions_type = values.get("position_embedding_type", "absolute")
    if positions_type != "absolute":
        raise UnusableInputError(
            f"{where}: position_embedding_type is {positions_type!r}; only models with absolute positions can be "
            "trained."
        )
    try:
        return ModelConfig(**known)
    except UnusableInputError as error:
        raise UnusableInputError(f"{where}: {error}") from None
