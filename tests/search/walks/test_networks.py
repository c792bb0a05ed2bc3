"""Networks: gradients are those of finite differences, and training reduces the error."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.cost.nest_view import Floats
from ansorpy.search.walks.networks import Adadelta, Adam, Perceptrons


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_gradients_are_slopes(rectified: bool, shared: bool, rng: np.random.Generator) -> None:
    net = Perceptrons((3, 5, 4, 2), 3, rng, rectified=rectified)
    inputs = rng.normal(size=(7, 3) if shared else (3, 7, 3))
    pull = rng.normal(size=(3, 7, 2))

    def loss() -> float:
        return float((net(inputs) * pull).sum())

    found, by_input = net.gradients(net.layers(inputs), pull)
    for at, weight in [*zip(found, net.weights, strict=True), (by_input, inputs)]:
        for place in [tuple(rng.integers(weight.shape)) for _ in range(6)]:
            kept, step = weight[place], 1e-6
            weight[place] = kept + step
            above = loss()
            weight[place] = kept - step
            slope = (above - loss()) / (2 * step)
            weight[place] = kept
            mine = at[(slice(None), *place)].sum() if at.ndim > len(place) else at[place]
            assert mine == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("rule", [Adam(0.01), Adadelta(1.0)])
def test_training_fits_a_product(rule: Adam | Adadelta, rng: np.random.Generator) -> None:
    net = Perceptrons((2, 16, 1), 1, rng)
    inputs = rng.uniform(-1, 1, size=(200, 2))
    goal: Floats = (inputs[:, 0] * inputs[:, 1])[None, :, None]
    errors = []
    for _ in range(600):
        layers = net.layers(inputs)
        errors.append(float(((layers[-1] - goal) ** 2).mean()))
        rule.step(net.weights, net.gradients(layers, 2 * (layers[-1] - goal) / 200)[0])
    assert errors[-1] < 0.3 * errors[0]
