"""The ranking loss: which programs are compared, and that its gradients are those of the loss."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.dataset import Dataset, Training
from ansorpy.cost.ranking import pack_ranking, pairs_of


def training(rng: np.random.Generator, sizes: list[int], statements: int = 3) -> Training:
    data = Dataset()
    for number, size in enumerate(sizes):
        features = rng.random((size, 1 + number % statements, 2))
        seconds = rng.uniform(1, 5, size)
        seconds[: size // 7] = np.inf
        data.add(f"t{number}", features, rng.uniform(1, 5, size), seconds)
    return data.training()


@pytest.mark.parametrize("sizes", [[1], [2, 1, 7], [40, 3]])
def test_all_pairs_of_a_small_task_are_compared_once(
    rng: np.random.Generator, sizes: list[int]
) -> None:
    made = training(rng, sizes)
    pairs = pairs_of(made, 0)
    task = np.repeat(np.arange(len(sizes)), sizes)
    found = set(zip(pairs.faster.tolist(), pairs.slower.tolist(), strict=True))
    label = made.label
    expected = {
        (i, j)
        for i in range(len(label))
        for j in range(len(label))
        if task[i] == task[j] and label[i] > label[j] + 0.02
    }
    assert found == expected and len(found) == len(pairs.faster)


def test_a_task_weighs_as_much_as_it_has_programs(rng: np.random.Generator) -> None:
    sizes = [30, 5, 200]
    made = training(rng, sizes)
    pairs = pairs_of(made, 0)
    task = np.repeat(np.arange(len(sizes)), sizes)[pairs.faster]
    np.testing.assert_allclose(np.bincount(task, pairs.weight), sizes)


def test_large_tasks_are_sampled_the_same_way_each_time(rng: np.random.Generator) -> None:
    made = training(rng, [1000])
    pairs, again = pairs_of(made, 3), pairs_of(made, 3)
    assert 30_000 < len(pairs.faster) <= 256_000
    np.testing.assert_array_equal(pairs.slower, again.slower)
    assert (made.label[pairs.faster] > made.label[pairs.slower]).all()


def test_gradients_are_those_of_the_logistic_loss(rng: np.random.Generator) -> None:
    made = training(rng, [6, 4])
    pairs = pairs_of(made, 0)

    def loss(scores: Floats) -> float:
        total = np.add.reduceat(scores, made.starts)
        apart = total[pairs.faster] - total[pairs.slower]
        return float((pairs.weight * np.log1p(np.exp(-apart))).sum())

    scores = rng.normal(size=len(made.program))
    gradient, curvature = pack_ranking(made, 0)(scores, None)
    for row in range(len(scores)):
        step = np.zeros(len(scores))
        step[row] = 1e-5
        slope = (loss(scores + step) - loss(scores - step)) / 2e-5
        assert slope == pytest.approx(gradient[row], abs=1e-5)
    assert (curvature > 0).all()
