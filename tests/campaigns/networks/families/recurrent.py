"""Recurrent networks with all their operands and attributes, of few steps and of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["RECURRENT"]

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
_ACTIVATIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
_FUNCTIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign")
_SINGLE = np.dtype(np.float32)


def whole(net: Growing) -> None:
    """States of all steps and the last ones, with lengths, first states and peepholes."""
    name = net.one_of(["GRU", "LSTM", "RNN"])
    steps = net.one_of([1, 2, 3, 5, 7]) if net.chance(0.9) else net.one_of([31, 270])
    batch, width, hidden = net.count(1, 3), net.count(1, 5), net.count(1, 5)
    if steps > 100:
        batch, hidden = 1, net.count(1, 3)
    direction = net.one_of(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    x = net.new_input([steps, batch, width], _SINGLE)
    w, r = (
        _held(net, ways, _GATES[name] * hidden, inner, scale=0.5) for inner in (width, hidden)
    )  # fmt: skip
    lengths = net.given(net.rng.integers(1, steps + 1, batch).astype(np.int32))
    operands: list[Value | None] = [
        x, w, r,
        _held(net, ways, 2 * _GATES[name] * hidden) if net.chance() else None,
        lengths if net.chance() else None,
        net.given(net.normal(ways, batch, hidden).astype(_SINGLE)) if net.chance() else None,
    ]  # fmt: skip
    if name == "LSTM":
        operands.append(operands[5] and net.given(net.normal(ways, batch, hidden).astype(_SINGLE)))
        operands.append(_held(net, ways, 3 * hidden) if net.chance() else None)
    outputs = net.count(1, 3 if name == "LSTM" else 2)
    given = _attributes(net, name, ways)
    net.several(name, *operands, outputs=outputs, hidden_size=hidden, direction=direction, **given)


def _attributes(net: Growing, name: str, ways: int) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if net.chance(0.4):
        count = _ACTIVATIONS[name] * ways
        given["activations"] = [net.one_of(_FUNCTIONS) for _ in range(count)]
        if name != "LSTM" or net.chance():
            given["activations"] = [net.one_of(["Sigmoid", "Tanh"]) for _ in range(count)]
    if net.chance(0.3):
        given["clip"] = float(net.uniform(0.5, 2.0))
    if name == "GRU" and net.chance():
        given["linear_before_reset"] = 1
    return given


def batch_first(net: Growing) -> None:
    """The layout of batches before steps, which onnxruntime has not."""
    name = net.one_of(["GRU", "LSTM", "RNN"])
    batch, steps, width, hidden = (net.count(1, n) for n in (3, 9, 5, 5))
    x = net.new_input([batch, steps, width], _SINGLE)
    w, r = (
        _held(net, 1, _GATES[name] * hidden, inner, scale=0.5) for inner in (width, hidden)
    )  # fmt: skip
    net.several(name, x, w, r, outputs=2, hidden_size=hidden, layout=1)


def _held(net: Growing, *shape: int, scale: float = 1.0) -> Value:
    return net.constant(scale * net.normal(*shape), _SINGLE)


RECURRENT: dict[Callable[[Growing], None], float] = {whole: 0.5, batch_first: 0.2}
