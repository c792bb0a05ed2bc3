"""Posteriors of learning curves."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.tasks.learning_curves import Sampler, log_power


def test_a_curve_rises_to_its_asymptote() -> None:
    [values] = log_power(np.array([[2.0, 3.0, -0.5]]), np.array([1.0, np.exp(3.0), 1e12]))
    assert values == pytest.approx([2 / (1 + np.exp(1.5)), 1.0, 2.0], rel=1e-4)


def test_more_points_make_the_prediction_more_certain_and_right() -> None:
    truth = np.array([[1.3, 3.0, -0.9]])
    deviations = []
    for n in (2, 8, 32):
        x = 8.0 * np.arange(1, n + 1, dtype=np.float64)
        rng = np.random.default_rng(n)
        y = log_power(truth, x)[0] + 0.002 * rng.standard_normal(n)
        later = Sampler().fit(x, y, 3.0, rng).at(x[-1] + 8)
        deviations.append(float(later.std()))
        [[expected]] = log_power(truth, x[-1:] + 8)
        assert later.mean() == pytest.approx(expected, abs=max(3 * deviations[-1], 0.01))
    assert deviations[0] > deviations[1] > 4 * deviations[2]


def test_no_curve_exceeds_the_bound() -> None:
    x, y = np.array([8.0]), np.array([1.0])
    found = Sampler().fit(x, y, 1.5, np.random.default_rng(0))
    assert (found.at(1e9) <= 1.5).all() and found.at(1e9).std() > 0.05
