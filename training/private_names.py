"""The private names of Keras and keras-hub that training uses: where they are, and what for.

Neither library offers another way to do these things. A private name may go in any release, so a test
(tests/training/test_training_private_names.py) says which one is gone before anything else fails because of it.
"""

import dataclasses
import importlib
import inspect
import re

_KERAS = "keras 3.15.1"
_KERAS_HUB = "keras-hub 0.32.0"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivateName:
    """A private attribute of a class of another library.

    `name` is CLASS.ATTRIBUTE in `module`, `seen_in` the newest release that is known to have it, and `used_for` what
    training needs it for.
    """

    module: str
    name: str
    seen_in: str
    used_for: str


def _of(module: str, class_name: str, seen_in: str, uses: dict[str, str]) -> tuple[PrivateName, ...]:
    """The entries of one class; `uses` gives the purpose by attribute."""
    return tuple(
        PrivateName(module=module, name=f"{class_name}.{attribute}", seen_in=seen_in, used_for=used_for)
        for attribute, used_for in uses.items()
    )


PRIVATE_NAMES = (
    *_of(
        "keras_hub.layers",
        "TransformerEncoder",
        _KERAS_HUB,
        {
            "_self_attention_layer": "training/model.py: to name the attention's weights and to set its dropout",
            "_self_attention_layer_norm": "training/model.py: to name its weights and to set its epsilon",
            "_self_attention_dropout": "training/model.py: to set hidden_dropout_prob",
            "_feedforward_intermediate_dense": "training/model.py: to name its weights and to set hidden_act",
            "_feedforward_output_dense": "training/model.py: to name its weights",
            "_feedforward_layer_norm": "training/model.py: to name its weights and to set its epsilon",
            "_feedforward_dropout": "training/model.py: to set hidden_dropout_prob",
        },
    ),
    *_of(
        "keras_hub.layers",
        "MaskedLMHead",
        _KERAS_HUB,
        {
            "_intermediate_dense": "training/model.py: to name its weights",
            "_intermediate_layer_norm": "training/model.py: to name its weights",
            "_bias": "training/model.py: to name it",
        },
    ),
    *_of(
        "keras.layers",
        "MultiHeadAttention",
        _KERAS,
        {
            "_dropout": "training/model.py: to set attention_probs_dropout_prob, by which Keras chooses its attention",
            "_dropout_layer": "training/model.py: to set attention_probs_dropout_prob, which this layer draws with",
        },
    ),
    *_of(
        "keras.optimizers",
        "Optimizer",
        _KERAS,
        {"_get_variable_index": "training/optimizers.py: to find the moments of a variable, also on several devices"},
    ),
    *_of(
        "keras.src.backend.tensorflow.optimizer",
        "TFOptimizer",
        _KERAS,
        {"_all_reduce_sum_gradients": "training/steps.py: to keep Keras from adding the devices' gradients once more"},
    ),
)


def missing() -> list[PrivateName]:
    """The private names that the installed libraries do not have (needs the extra [tensorflow])."""
    return [private for private in PRIVATE_NAMES if not _exists(private)]


def _exists(private: PrivateName) -> bool:
    """Whether a class has a method or attribute of this name, or sets one on its instances."""
    class_name, attribute = private.name.split(".")
    try:
        owner = getattr(importlib.import_module(private.module), class_name)
    except (ImportError, AttributeError):
        return False
    if hasattr(owner, attribute):
        return True
    assignment = re.compile(rf"\bself\.{attribute}\s*=[^=]")
    classes = (c for c in inspect.getmro(owner) if c is not object)
    return any(assignment.search(inspect.getsource(c)) for c in classes)
