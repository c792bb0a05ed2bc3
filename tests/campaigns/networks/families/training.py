"""Training: statistics of a batch, steps of optimisers, losses with what they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.families.products import image
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable, Value

__all__ = ["TRAINING"]

_SINGLE = np.dtype(np.float32)


def batch_norm(net: Growing) -> None:
    """Normalisation by the batch's own mean and variance, and running ones."""
    x = image(net)
    c = x.shape[1]
    spread = x.exact.std(axis=(0, *range(2, x.rank)))
    if (spread < 0.1 * np.abs(x.exact).max()).any():
        raise Unstable("the elements of a channel are alike")
    scale, bias = net.constant(net.uniform(0.5, 1.5, c)), net.constant(net.normal(c))
    mean, var = net.constant(net.normal(c)), net.constant(net.uniform(0.5, 1.5, c))
    net.several(
        "BatchNormalization", x, scale, bias, mean, var, outputs=3, training_mode=1,
        momentum=float(net.uniform(0.1, 0.95)),
    )  # fmt: skip


def adam(net: Growing) -> None:
    """The rate that follows from the number of the step is one number for all elements."""
    given = {"alpha": 0.9, "beta": 0.8, "epsilon": 0.01, "norm_coefficient": 0.002}
    _step(net, "ai.onnx.preview.training.Adam", 2, {**given, "norm_coefficient_post": 0.0})


def adagrad(net: Growing) -> None:
    given = {"norm_coefficient": 0.001, "epsilon": 0.01, "decay_factor": 0.1}
    _step(net, "ai.onnx.preview.training.Adagrad", 1, given)


def momentum(net: Growing) -> None:
    mode = net.one_of(["standard", "nesterov"])
    given = {"norm_coefficient": 0.001, "alpha": 0.95, "beta": 0.1, "mode": mode}
    _step(net, "ai.onnx.preview.training.Momentum", 1, given)


def _step(net: Growing, name: str, states: int, given: dict[str, Any]) -> None:
    """New values of one or two tensors and of the *states* of each, from gradients."""
    rate = net.given(np.asarray(0.1, _SINGLE))
    count = net.given(np.asarray(net.count(0, 5)))
    shapes = [net.shape(0, 3) for _ in range(net.count(1, 2))]
    groups = [[net.new_input(shape, _SINGLE) for shape in shapes] for _ in range(2)]
    for _ in range(states):
        groups.append([net.given(net.uniform(0.1, 1.0, *s).astype(_SINGLE)) for s in shapes])
    operands = [rate, count, *(value for group in groups for value in group)]
    net.several(name, *operands, outputs=(1 + states) * len(shapes), **given)


def masked_loss(net: Growing) -> None:
    """Losses that pass some labels over, with the logarithms that they come from."""
    n, c = net.count(1, 5), net.count(2, 6)
    more = [net.count(1, 4) for _ in range(net.count(0, 2))]
    labels = net.rng.integers(0, c, (n, *more))
    labels.flat[0] = 1
    held, passed = net.given(labels), net.one_of([0, c, -1])
    if passed != 0:
        skipped = np.where(net.rng.random(labels.shape) < 0.3, passed, labels)
        skipped.flat[0] = 1
        held = net.given(skipped)
    scores = net.new_input([n, c, *more])
    weights = [net.constant(net.uniform(0.5, 1.5, c))] if net.chance() else []
    how: dict[str, Any] = {
        "reduction": net.one_of(["none", "mean", "sum"]), "ignore_index": passed
    }  # fmt: skip
    if net.chance():
        net.several("SoftmaxCrossEntropyLoss", scores, held, *weights, outputs=2, **how)
    else:
        chances: Value = net.add("LogSoftmax", scores, axis=1)
        net.add("NegativeLogLikelihoodLoss", chances, held, *weights, **how)


TRAINING: dict[Callable[[Growing], None], float] = {
    batch_norm: 0.5, adam: 0.2, adagrad: 0.2, momentum: 0.2, masked_loss: 0.4
}  # fmt: skip
