"""The learning rate at each step."""

import numpy as np
import pytest
from training_helpers import BACKEND

from training.optimizers import WarmupPolynomialDecay

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the gold traces hold the rates on both backends")


def test_the_warm_up_may_begin_before_step_0():
    # MLPerf's published run: 287 steps of warm-up from step -76, 600 steps.
    rate = 0.00288293
    schedule = WarmupPolynomialDecay(
        learning_rate=rate, num_train_steps=600, num_warmup_steps=287, start_warmup_step=-76, poly_power=1.0
    )
    for step, wanted in ((0, rate * 76 / 287), (210, rate * 286 / 287), (211, rate * (1 - 211 / 600)), (600, 0.0)):
        assert float(schedule(step)) == pytest.approx(wanted, rel=1e-6)


def test_a_warm_up_may_begin_later():
    schedule = WarmupPolynomialDecay(
        learning_rate=1.0, num_train_steps=100, num_warmup_steps=10, start_warmup_step=5, poly_power=1.0
    )
    assert float(schedule(5)) == 0.0
    assert float(schedule(10)) == pytest.approx(0.5)
    assert float(schedule(15)) == pytest.approx(0.85)


def test_the_power_shapes_the_decay():
    square = WarmupPolynomialDecay(learning_rate=1.0, num_train_steps=10, poly_power=2.0)
    np.testing.assert_allclose([float(square(s)) for s in (0, 5, 10)], [1.0, 0.25, 0.0])


def test_the_rate_stays_0_after_the_last_step():
    schedule = WarmupPolynomialDecay(learning_rate=1.0, num_train_steps=10)
    assert [float(schedule(s)) for s in (10, 11, 1000)] == [0.0, 0.0, 0.0]
