"""Random generators: their numbers are their own, so shapes, ranges and means are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["RANDOM"]

_DEVIATIONS = 8.0
"""Of the mean of many numbers: no generator is ever as far off."""


def uniform(net: Growing) -> None:
    """All numbers are between the bounds."""
    low, high = -0.5, float(net.uniform(0.5, 2.0))
    given: dict[str, Any] = {"low": low, "high": high, **_seed(net)}
    drawn, operands = _drawn(net, ("RandomUniform", "RandomUniformLike"), given)
    _between(net, [drawn], drawn.output[0], operands, low, high)


def normal(net: Growing) -> None:
    """The mean of all numbers is close to that of the distribution."""
    mean, scale = float(net.normal()), float(net.uniform(0.5, 2.0))
    given: dict[str, Any] = {"mean": mean, "scale": scale, **_seed(net)}
    drawn, operands = _drawn(net, ("RandomNormal", "RandomNormalLike"), given)
    found = net.node("ReduceMean", [drawn.output[0]], keepdims=0)
    far = _DEVIATIONS * scale
    _between(net, [drawn, found], found.output[0], operands, mean - far, mean + far)


def coins(net: Growing) -> None:
    """Numbers with probabilities of 0 and 1 are known."""
    flags = net.given(net.rng.random(net.shape()) < 0.5)
    sure = net.node("Cast", [flags], to=TensorProto.FLOAT)
    drawn = net.node("Bernoulli", [sure.output[0]], **_seed(net))
    net.chain([sure, drawn], [flags], dtype=np.dtype(np.float32))


def classes(net: Growing) -> None:
    """Where all but one class are impossible, that one is drawn."""
    rows, many = net.count(1, 5), net.count(1, 7)
    scores = np.full((rows, many), -1e4, np.float32)
    scores[np.arange(rows), net.rng.integers(0, many, rows)] = 0.0
    drawn = net.given(scores)
    kind = net.one_of([TensorProto.INT32, TensorProto.INT64])
    node = net.node("Multinomial", [drawn], sample_size=net.count(1, 9), dtype=kind, **_seed(net))
    net.chain([node], [drawn])


def dropped(net: Growing) -> None:
    """In training, elements that are not dropped are scaled; of none, all remain."""
    x = net.pick()
    ratio = net.constant(np.asarray(0.0, np.float32), np.float32)
    mode = net.constant(np.asarray(True))
    net.several("Dropout", x, ratio, mode, outputs=2)


def kept(net: Growing) -> None:
    """Without training, nothing is dropped, and the mask says so."""
    net.several("Dropout", net.pick(), outputs=2)


def _seed(net: Growing) -> dict[str, Any]:
    return {"seed": float(net.count(0, 9))} if net.chance() else {}


def _drawn(
    net: Growing, names: tuple[str, str], given: dict[str, Any]
) -> tuple[NodeProto, list[Value]]:
    """A generator of float32, of a shape that it is given or that an operand has."""
    if net.chance():
        x = net.pick()
        return net.node(names[1], [x], dtype=TensorProto.FLOAT, **given), [x]
    return net.node(names[0], [], shape=net.shape(1), dtype=TensorProto.FLOAT, **given), []


def _between(
    net: Growing, nodes: list[NodeProto], name: str, operands: list[Value], low: float, high: float
) -> None:
    bounds = [net.constant(np.asarray(end, np.float32), np.float32) for end in (low, high)]
    above = net.node("LessOrEqual", [bounds[0], name])
    below = net.node("LessOrEqual", [name, bounds[1]])
    both = net.node("And", [above.output[0], below.output[0]])
    net.chain([*nodes, above, below, both], [*operands, *bounds])


RANDOM: dict[Callable[[Growing], None], float] = {
    uniform: 0.3, normal: 0.3, coins: 0.2, classes: 0.2, dropped: 0.2, kept: 0.2
}  # fmt: skip
