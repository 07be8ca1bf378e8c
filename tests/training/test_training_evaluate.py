"""When an evaluation is due, what it computes, and what is expected of an initial checkpoint."""

import pytest

from training import evaluate


def test_mlperfs_evaluation_intervals():
    # The table in MLPerf's README.
    table = {256: 150, 1024: 150, 1536: 150, 2048: 150, 3072: 175, 4096: 175, 8192: 225}
    assert {batch: evaluate.default_interval(batch) // 1000 for batch in table} == table


def test_an_evaluation_is_due_when_its_samples_are_passed():
    assert [s for s in range(1, 21) if evaluate.is_due(s, 32, 100)] == [4, 7, 10, 13, 16, 19]


def test_a_batch_larger_than_the_interval_is_evaluated_at_each_step():
    assert all(evaluate.is_due(step, 64, 32) for step in range(1, 5))


def test_what_is_expected_of_an_initial_checkpoint():
    assert evaluate.expected_initial_accuracy("gs://bucket/tf1_ckpt/model.ckpt-28252", None) == 0.34085
    assert evaluate.expected_initial_accuracy("model.ckpt-28252", 0.5) == 0.5
    assert evaluate.expected_initial_accuracy("bert_model.ckpt", None) is None
    assert evaluate.expected_initial_accuracy(None, None) is None


@pytest.mark.parametrize(
    ("accuracy", "verdict"), [(0.3409, "; as expected"), (0.3458, "; as expected"), (0.3459, "; NOT as expected")]
)
def test_the_verdict_has_a_tolerance(accuracy, verdict):
    assert verdict in evaluate.describe({"masked_lm_accuracy": accuracy}, 0.34085)


def test_metrics_are_described_on_one_line():
    assert evaluate.describe({"masked_lm_accuracy": 0.5, "loss": 2.0}) == "masked lm accuracy 0.50000, loss 2.00000"
    # Nothing is expected of the metrics of other tasks.
    assert evaluate.describe({"loss": 2.0}, 0.34085) == "loss 2.00000"
