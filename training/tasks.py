"""The tasks of a training: the losses and metrics of a model's outputs. Steps are in training/steps.py."""

from typing import Any, Protocol

import numpy as np
from keras import ops

from training.encoders import Tensors
from training.model import BuiltModel
from training.weights import NEXT_SENTENCE


class Task(Protocol):
    """A model with its losses and metrics.

    A loss is a sum over examples or predictions, divided by a weight that depends only on the batch. So the loss and
    gradient of a batch do not depend on its division into parts and devices.
    """

    built: BuiltModel

    def weights(self, batch: Tensors) -> dict[str, Any]:
        """Return the weight that divides the sum of each loss (float32 scalar); `epsilon` is added to it."""
        ...

    def sums(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        """Return the weighted sum of each loss over the batch (float32 scalar)."""
        ...

    def epsilon(self, loss: str) -> float:
        """Return the number that is added to the weight of a loss."""
        ...

    def evaluation(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        """Return a batch's data for the metrics: tensors [B] or [B, …], including the examples that pad it."""
        ...

    def metrics(self, batches: list[dict[str, np.ndarray]]) -> dict[str, float]:
        """Return the metrics of an evaluation set, from the results of `evaluation` for each of its batches."""
        ...


class PretrainingTask:
    """Masked LM and, if the model has the head, next-sentence prediction (google-research/bert run_pretraining.py).

    Batches have `masked_lm_positions` and `masked_lm_ids` [B, P] int32, `masked_lm_weights` [B, P] float32 and
    `next_sentence_labels` [B] int32; those of packed rows [B, M], negative where a row has no sequence. In evaluation,
    `example_weights` [B] float32 is 0 for examples that only fill up the last batch.
    """

    def __init__(self, built: BuiltModel) -> None:
        self.built = built
        self.next_sentence = NEXT_SENTENCE in {weight.name for weight in built.weights}

    def weights(self, batch: Tensors) -> dict[str, Any]:
        weights = {"masked_lm_loss": ops.sum(batch["masked_lm_weights"])}
        if self.next_sentence:
            weights["next_sentence_loss"] = ops.sum(_is_label(batch["next_sentence_labels"]))
        return weights

    def epsilon(self, loss: str) -> float:
        # get_masked_lm_output divides by sum(weights) + 1e-5, get_next_sentence_output by the number of examples.
        return 1e-5 if loss == "masked_lm_loss" else 0.0

    def sums(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        masked = cross_entropy(batch["masked_lm_ids"], outputs["masked_lm_logits"])
        sums = {"masked_lm_loss": ops.sum(masked * batch["masked_lm_weights"])}
        if self.next_sentence:
            labels = batch["next_sentence_labels"]
            losses = cross_entropy(ops.maximum(labels, 0), outputs["next_sentence_logits"])
            sums["next_sentence_loss"] = ops.sum(losses * _is_label(labels))
        return sums

    def evaluation(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        example_weights = batch["example_weights"]
        weights = batch["masked_lm_weights"] * ops.expand_dims(example_weights, -1)
        logits, labels = outputs["masked_lm_logits"], batch["masked_lm_ids"]
        parts = {
            "masked_lm_weight": ops.sum(weights, -1),
            "masked_lm_correct": ops.sum(_is_right(labels, logits) * weights, -1),
            "masked_lm_loss": ops.sum(cross_entropy(labels, logits) * weights, -1),
        }
        if self.next_sentence:
            logits, labels = outputs["next_sentence_logits"], batch["next_sentence_labels"]
            weights = _is_label(labels) * ops.reshape(example_weights, (-1,) + (1,) * (len(labels.shape) - 1))
            parts |= {
                "next_sentence_weight": weights,
                "next_sentence_correct": _is_right(labels, logits) * weights,
                "next_sentence_loss": cross_entropy(ops.maximum(labels, 0), logits) * weights,
            }
        return parts

    def metrics(self, batches: list[dict[str, np.ndarray]]) -> dict[str, float]:
        """Return `masked_lm_accuracy`, `masked_lm_loss`, `next_sentence_accuracy`, `next_sentence_loss`, as in
        metric_fn.
        """
        totals = {k: sum(float(np.sum(b[k], dtype=np.float64)) for b in batches) for k in batches[0]}
        metrics = {}
        for name in ("masked_lm", "next_sentence") if self.next_sentence else ("masked_lm",):
            weight = totals[f"{name}_weight"]
            metrics[f"{name}_accuracy"] = totals[f"{name}_correct"] / weight
            metrics[f"{name}_loss"] = totals[f"{name}_loss"] / weight
        return metrics


def cross_entropy(labels: Any, logits: Any) -> Any:
    """Return the cross entropy (float32 […]) of logits […, classes] and labels […]."""
    return ops.sparse_categorical_crossentropy(labels, ops.cast(logits, "float32"), from_logits=True)


def _is_label(labels: Any) -> Any:
    """Return 1.0 for a label, 0.0 for a placeholder (float32)."""
    return ops.cast(labels >= 0, "float32")


def _is_right(labels: Any, logits: Any) -> Any:
    """Return 1.0 if the most probable class is the label, else 0.0 (float32)."""
    return ops.cast(ops.equal(ops.argmax(logits, -1), ops.cast(labels, "int32")), "float32")
