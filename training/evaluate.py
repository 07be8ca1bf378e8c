"""Evaluation: its interval, its metrics, and the expected result of an initial checkpoint.

This imports neither TensorFlow nor Keras.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from maskmill.storage import files

if TYPE_CHECKING:
    from training.inputs import Arrays
    from training.steps import Steps

# MLPerf's published initial checkpoint, on its evaluation set of 10,000 examples (its README, "Stopping criteria").
MLPERF_CHECKPOINT = "model.ckpt-28252"
MLPERF_INITIAL_ACCURACY = 0.34085
# A larger difference means another checkpoint, other data or another model than the expected accuracy was measured on.
_TOLERANCE = 0.005


def default_interval(batch: int) -> int:
    """Return examples between evaluations: floor(0.05 * (230.23 * batch + 3,000,000) / 25,000) * 25,000."""
    # Computed in integers (hundredths): a product of floats may fall just below a multiple of 25,000.
    return (5 * (23023 * batch + 300_000_000)) // (100 * 100 * 25_000) * 25_000


def is_due(step: int, batch: int, interval: int) -> bool:
    """Return whether this step reaches or passes a multiple of the interval, in examples trained on."""
    return step * batch // interval > (step - 1) * batch // interval


def evaluate(steps: "Steps", batches: "Callable[[], Iterator[Arrays]]") -> dict[str, float]:
    """Return the task's metrics by name over an evaluation set, whose batches `batches` reads.

    Raises:
      UnusableInputError: an example cannot be read or does not fit the model.
    """
    results: list[dict[str, np.ndarray]] = []
    computing: Mapping[str, Any] = {}
    for batch in batches():
        # The devices have this batch to compute while the results of the one before are read.
        made, computing = computing, steps.evaluate(batch)
        results += [_read(made)] if made else []
    return steps.task.metrics([*results, _read(computing)])


def _read(made: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in made.items()}


def expected_initial_accuracy(checkpoint: str | None, given: float | None) -> float | None:
    """Return the masked-LM accuracy that an initial checkpoint must have before training, or None if unknown.

    `given` is the user's expectation; without it, MLPerf's checkpoint is recognised by its name.
    """
    if given is None and checkpoint is not None and files.base_name(checkpoint).startswith(MLPERF_CHECKPOINT):
        return MLPERF_INITIAL_ACCURACY
    return given


def describe(metrics: dict[str, float], expected: float | None = None) -> str:
    """Return metrics on one line; with `expected`, also whether the masked-LM accuracy matches it."""
    text = ", ".join(f"{name.replace('_', ' ')} {value:.5f}" for name, value in metrics.items())
    if expected is None or "masked_lm_accuracy" not in metrics:
        return text
    verdict = "as expected" if abs(metrics["masked_lm_accuracy"] - expected) <= _TOLERANCE else "NOT as expected"
    return f"{text}; {verdict} of this initial checkpoint: masked lm accuracy {expected:.5f}"
