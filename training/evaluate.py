"""Evaluation: how often, on what, and what is expected of an initial checkpoint."""

from collections.abc import Callable, Iterator
from typing import Any

from training.inputs import Arrays
from transforms.storage import files

# MLPerf's published initial checkpoint, on its evaluation set of 10,000 examples (its README, "Stopping criteria").
MLPERF_CHECKPOINT = "model.ckpt-28252"
MLPERF_INITIAL_ACCURACY = 0.34085
# Beyond this the checkpoint, the data or the model is another than the expectation's.
_TOLERANCE = 0.005


def default_interval(batch: int) -> int:
    """Examples between evaluations for a global batch: floor(0.05 * (230.23 * batch + 3,000,000) / 25,000) * 25,000."""
    # In whole numbers (hundredths), as a float product may fall just below a multiple.
    return (5 * (23023 * batch + 300_000_000)) // (100 * 100 * 25_000) * 25_000


def is_due(step: int, batch: int, interval: int) -> bool:
    """Whether the samples trained passed a multiple of the interval in this step."""
    return step * batch // interval > (step - 1) * batch // interval


def evaluate(steps: Any, batches: Callable[[], Iterator[Arrays]]) -> dict[str, float]:
    """The task's metrics over an evaluation set."""
    parts = []
    for batch in batches():
        steps.task.check(batch)
        parts.append(steps.evaluate(batch))
    return dict(steps.task.metrics(parts))


def expected_initial_accuracy(checkpoint: str | None, given: float | None) -> float | None:
    """The masked-LM accuracy that a known initial checkpoint has before training; None where it is not known."""
    if given is None and checkpoint is not None and files.base_name(checkpoint).startswith(MLPERF_CHECKPOINT):
        return MLPERF_INITIAL_ACCURACY
    return given


def describe(metrics: dict[str, float], expected: float | None = None) -> str:
    """Metrics on one line, with what was expected of the masked-LM accuracy where that is known."""
    text = ", ".join(f"{name.replace('_', ' ')} {value:.5f}" for name, value in metrics.items())
    if expected is None or "masked_lm_accuracy" not in metrics:
        return text
    verdict = "as expected" if abs(metrics["masked_lm_accuracy"] - expected) <= _TOLERANCE else "NOT as expected"
    return f"{text}; {verdict} of this initial checkpoint: masked lm accuracy {expected:.5f}"
