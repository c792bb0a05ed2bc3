"""Gaussian-process regression."""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.search.gaussian_process import Points, matern, posterior


def points(rng: np.random.Generator, n: int) -> Points:
    return Points(rng.random((n, 3)), rng.integers(2, size=n))


def test_it_interpolates_and_is_uncertain_elsewhere() -> None:
    rng = np.random.default_rng(0)
    observed = points(rng, 20)
    values: Floats = np.sin(3 * observed.x[:, 0]) + 1.0 * observed.group
    found = posterior(observed, values, observed, 1.5)
    np.testing.assert_allclose(found.mean * values.std() + values.mean(), values, atol=1e-3)
    assert (found.deviation < 0.01).all()
    far = Points(np.full((1, 3), 50.0), np.array([0]))
    other = posterior(observed, values, far, 1.5)
    assert abs(other.mean[0]) < 1e-6 and other.deviation[0] > 0.999


def test_it_predicts_a_smooth_function() -> None:
    rng = np.random.default_rng(1)
    observed, new = points(rng, 80), points(rng, 40)

    def truth(at: Points) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return at.x[:, 0] ** 2 - at.x[:, 1] + 0.5 * at.group

    found = posterior(observed, truth(observed), new, 1.5)
    predicted = found.mean * truth(observed).std() + truth(observed).mean()
    assert np.corrcoef(predicted, truth(new))[0, 1] > 0.98


def test_an_assumed_observation_changes_deviations_as_a_real_one_does() -> None:
    rng = np.random.default_rng(2)
    observed, new = points(rng, 10), points(rng, 30)
    values = rng.random(10)
    found = posterior(observed, values, new, 1.5)
    mean = found.mean.copy()
    found.assume(4)
    more = Points(
        np.concatenate([observed.x, new.x[4:5]]), np.concatenate([observed.group, new.group[4:5]])
    )
    again = posterior(more, np.append(values, 0.5), new, 1.5)
    np.testing.assert_allclose(found.variance, again.variance, atol=1e-4)
    np.testing.assert_array_equal(found.mean, mean)
    assert found.deviation[4] < 0.01


def test_groups_are_one_apart() -> None:
    one = Points(np.zeros((2, 2)), np.array([0, 1]))
    np.testing.assert_allclose(one.distances(one), [[0, 1], [1, 0]])
    assert matern(np.array([0.0]), 1.5)[0] == 1
