"""A model's configuration: from google-research's `bert_config.json`, Hugging Face's `config.json`, or a preset.

The activation "gelu" means the tanh approximation in google-research's files and the exact function in Hugging Face's.
Here "gelu" is the approximation and "gelu_erf" the exact function.
"""

import dataclasses
import json
import math
from typing import Any

from maskmill.errors import UnusableInputError

MODEL_TYPES = ("bert", "roberta", "albert", "modernbert")
ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")
_FROM_HUGGING_FACE = {"gelu": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "gelu_fast": "gelu"}
_TO_HUGGING_FACE = {"gelu": "gelu_new", "gelu_erf": "gelu"}
# The id of RoBERTa's padding.
_ROBERTA_PADDING = 1
# Larger sizes are mistakes; the largest models have vocabularies of a few million tokens.
_LARGEST_SIZE = 2**24
_SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size", "position_offset", "num_hidden_groups",
    "global_attn_every_n_layers", "local_attention",
)  # fmt: skip
# The fields that only one kind of model has.
_ALBERT_FIELDS = ("embedding_size", "num_hidden_groups")
_MODERN_FIELDS = ("global_attn_every_n_layers", "local_attention", "global_rope_theta", "local_rope_theta")
# The names of fields in Hugging Face's files of ModernBERT.
_MODERN_NAMES = {
    "hidden_act": "hidden_activation",
    "layer_norm_eps": "norm_eps",
    "hidden_dropout_prob": "mlp_dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
# The only values of these fields of ModernBERT's files that are supported.
_MODERN_FIXED: dict[str, tuple[Any, ...]] = {
    "norm_bias": (False,), "attention_bias": (False,), "mlp_bias": (False,), "decoder_bias": (True,),
    "classifier_bias": (False,), "classifier_pooling": ("cls",), "tie_word_embeddings": (True,),
}  # fmt: skip
_LAYER_KINDS = ("full_attention", "sliding_attention")

# The name of a google-research model's configuration, beside its checkpoint.
BERT_CONFIG = "bert_config.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """An encoder's sizes, under the names of google-research/bert's BertConfig (modeling.py).

    `model_type` is "bert", "roberta", "albert" or "modernbert". `max_position_embeddings` counts the usable positions;
    for RoBERTa it is 512, where Hugging Face's files say 514. `position_offset` is the difference: the row of position
    0 in the position table of Hugging Face's RoBERTa, the one after the id of its padding. BERT has no use for it.

    ALBERT has the embeddings' own width `embedding_size`, and `num_hidden_groups` layers that share their weights.
    In ModernBERT every `global_attn_every_n_layers`-th layer sees all tokens, with rotary positions of base
    `global_rope_theta`; the others see `local_attention // 2` tokens to each side, with `local_rope_theta`.

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
    embedding_size: int | None = None
    num_hidden_groups: int = 1
    global_attn_every_n_layers: int = 3
    local_attention: int = 128
    global_rope_theta: float = 160_000.0
    local_rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        if self.model_type not in MODEL_TYPES:
            raise UnusableInputError(
                f"model_type is {self.model_type!r}: only {', '.join(MODEL_TYPES)} encoders can be trained."
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
        for name in ("initializer_range", "layer_norm_eps", "global_rope_theta", "local_rope_theta"):
            if self._number(name) <= 0:
                raise UnusableInputError(f"{name} is {getattr(self, name)}: it must be above 0.")
        if self.hidden_size % self.num_attention_heads:
            raise UnusableInputError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}."
            )

        if self.model_type != "albert" and self.embedding_width != self.hidden_size:
            raise UnusableInputError(
                f"embedding_size {self.embedding_size} differs from hidden_size {self.hidden_size}; only ALBERT's may."
            )
        if self.num_hidden_layers % self.num_hidden_groups:
            raise UnusableInputError(
                f"num_hidden_layers {self.num_hidden_layers} is not a multiple of num_hidden_groups "
                f"{self.num_hidden_groups}."
            )
        if self.model_type == "modernbert" and (self.hidden_size // self.num_attention_heads) % 2:
            raise UnusableInputError("rotary positions need heads of an even size; change num_attention_heads.")
        if self.local_attention < 2:
            raise UnusableInputError(f"local_attention is {self.local_attention}: it must be at least 2.")

    @property
    def embedding_width(self) -> int:
        """The width of the embeddings."""
        return self.embedding_size or self.hidden_size

    @property
    def has_segments(self) -> bool:
        """True if the model distinguishes two segments; such models also predict next sentences."""
        return self.model_type in ("bert", "albert")

    def _number(self, name: str) -> float:
        """Return the value of a field that must be a finite number."""
        value = getattr(self, name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise UnusableInputError(f"{name} is {value!r}: it must be a number.")
        return value

    def to_google(self) -> dict[str, Any]:
        """Return the content of a `bert_config.json`, without fields that BERT lacks and default values."""
        return self._without_defaults(
            "model_type", "layer_norm_eps", "position_offset", *_ALBERT_FIELDS, *_MODERN_FIELDS
        )

    def to_settings(self) -> dict[str, Any]:
        """Return the fields that a run's result depends on; `position_offset` does not affect it."""
        values = self._without_defaults(*_ALBERT_FIELDS, *_MODERN_FIELDS)
        del values["position_offset"]
        return values

    def _without_defaults(self, *names: str) -> dict[str, Any]:
        """Return all fields except those of these names that have their default value."""
        values = dataclasses.asdict(self)
        return {n: value for n, value in values.items() if n not in names or value != _DEFAULTS[n]}

    def to_hugging_face(self) -> dict[str, Any]:
        """Return the content of a Hugging Face `config.json` of this model with its pre-training heads."""
        values = dataclasses.asdict(self)
        values["hidden_act"] = _TO_HUGGING_FACE.get(self.hidden_act, self.hidden_act)
        values["torch_dtype"] = "float32"
        offset = values.pop("position_offset")
        if self.model_type == "modernbert":
            for ours, theirs in _MODERN_NAMES.items():
                values[theirs] = values.pop(ours)
            values |= {"embedding_dropout": values["mlp_dropout"], "pad_token_id": 0}
            values["classifier_activation"] = values["hidden_activation"]
            gone: tuple[str, ...] = ("type_vocab_size", *_ALBERT_FIELDS)
        else:
            gone = _MODERN_FIELDS if self.model_type == "albert" else (*_MODERN_FIELDS, *_ALBERT_FIELDS)
        values = {name: value for name, value in values.items() if name not in gone}
        if self.model_type in ("albert", "modernbert"):
            kind = "AlbertForPreTraining" if self.model_type == "albert" else "ModernBertForMaskedLM"
            return values | {"architectures": [kind]}
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


def _albert(layers: int, width: int) -> dict[str, Any]:
    sizes = _bert(layers, width) | {"vocab_size": 30000, "model_type": "albert", "embedding_size": 128}
    return sizes | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _modern(layers: int, width: int, inner: int) -> dict[str, Any]:
    sizes = _bert(layers, width) | {"vocab_size": 50368, "intermediate_size": inner, "model_type": "modernbert"}
    sizes |= {"hidden_act": "gelu_erf", "layer_norm_eps": 1e-5, "max_position_embeddings": 8192}
    return sizes | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


# BERT's sizes: google-research/bert's README (the smaller models are those of Turc et al. 2019). ALBERT's: version 2 in
# google-research/albert's README. ModernBERT's: arXiv:2412.13663.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": _bert(2, 128),
    "mini": _bert(4, 256),
    "small": _bert(4, 512),
    "medium": _bert(8, 512),
    "base": _bert(12, 768),
    "large": _bert(24, 1024),
    "roberta-base": _roberta(12, 768),
    "roberta-large": _roberta(24, 1024),
    "albert-base": _albert(12, 768),
    "albert-large": _albert(24, 1024),
    "modernbert-base": _modern(22, 768, 1152),
    "modernbert-large": _modern(28, 1024, 2624),
}


def from_preset(name: str, *, vocab_size: int | None = None) -> ModelConfig:
    """Return the configuration of a preset, with another vocabulary size if one is given.

    Raises:
      UnusableInputError: there is no such preset.
    """
    if name not in PRESETS:
        raise UnusableInputError(f"--preset {name}: there is no such preset; choose one of {', '.join(PRESETS)}.")
    return ModelConfig(**(PRESETS[name] | ({} if vocab_size is None else {"vocab_size": vocab_size})))


def from_json(text: str | bytes, *, where: str) -> ModelConfig:
    """Read a `bert_config.json` or Hugging Face's `config.json`.

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
    is_theirs = "architectures" in values or "transformers_version" in values
    if values.get("model_type") == "modernbert" and is_theirs:
        values = _of_modern_bert(values, where)
    known = {k: v for k, v in values.items() if k in _DEFAULTS}
    if not is_theirs and "num_hidden_groups" in values:
        known["model_type"] = "albert"  # google-research's file does not say it
    if is_theirs:
        activation = values.get("hidden_act", "gelu")
        known["hidden_act"] = _FROM_HUGGING_FACE.get(str(activation), activation)
        if values.get("model_type") == "roberta":
            positions, padding = values.get("max_position_embeddings", 514), values.get("pad_token_id")
            if not isinstance(padding, int) or padding < 0:
                padding = _ROBERTA_PADDING
            known["position_offset"] = padding + 1
            if isinstance(positions, int):
                known["max_position_embeddings"] = positions - padding - 1
    if values.get("inner_group_num", 1) != 1:
        raise UnusableInputError(f"{where}: inner_group_num is {values['inner_group_num']}; only 1 can be trained.")
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


def _of_modern_bert(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return Hugging Face's configuration of a ModernBERT under our names.

    Raises:
      UnusableInputError: it has a value that cannot be trained here.
    """
    for name, allowed in _MODERN_FIXED.items():
        if name in values and values[name] not in allowed:
            raise UnusableInputError(f"{where}: {name} is {values[name]!r}; only {allowed[0]!r} can be trained.")
    ours = values | {name: values[theirs] for name, theirs in _MODERN_NAMES.items() if theirs in values}
    layers = values.get("layer_types")
    if isinstance(layers, list):
        every = next((i for i, kind in enumerate(layers) if i and kind == _LAYER_KINDS[0]), len(layers))
        if layers != [_LAYER_KINDS[bool(i % every)] for i in range(len(layers))]:
            raise UnusableInputError(f"{where}: layer_types does not repeat itself; such a model cannot be trained.")
        ours["global_attn_every_n_layers"] = every
    ropes = values.get("rope_parameters")
    for kind, name in zip(_LAYER_KINDS, ("global_rope_theta", "local_rope_theta"), strict=True):
        rope = ropes.get(kind) if isinstance(ropes, dict) else None
        if isinstance(rope, dict):
            if rope.get("rope_type", "default") != "default":
                raise UnusableInputError(f"{where}: rope_type is {rope['rope_type']!r}; only 'default' can be trained.")
            ours[name] = rope.get("rope_theta", ours.get(name, _DEFAULTS[name]))
    return {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "layer_norm_eps": 1e-5} | ours
