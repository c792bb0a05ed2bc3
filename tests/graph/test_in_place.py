"""Arenas in which results lie over operands: smaller, and still the same results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import assume, given
from hypothesis.strategies import integers
from onnx import ModelProto

from ansorpy.graph.in_place import in_place
from ansorpy.graph.network import Network
from tests.budget import examples
from tests.graph.executor import assert_same_as_onnxruntime, compiled
from tests.graph.nets import Net


def everything(network: Network) -> dict[str, tuple[tuple[int, int], ...]]:
    """As if every kernel could write over any of its operands."""
    return {
        call.key: tuple((i, o) for o in range(len(call.outputs)) for i in range(len(call.inputs)))
        for call in network.calls
    }


def overlaps(network: Network) -> set[tuple[str, str]]:
    """Values of the arena that share bytes while both are alive, the earlier one first."""
    lives, at = network.lifetimes(), network.arena.offsets
    return {
        (a, b)
        for a, first in lives.items()
        for b, second in lives.items()
        if a != b and first.first <= second.first and first.overlaps(second)
        and at[a] < at[b] + second.size_bytes and at[b] < at[a] + first.size_bytes
    }  # fmt: skip


def residual(depth: int) -> ModelProto:
    """Convolutions whose input is added to their result, one after another; the last is pooled."""
    net = Net(x=(1, 16, 6, 6))
    value = net.relu(net.conv("x", 16, 16, 3))
    for _ in range(depth):
        inner = net.relu(net.conv(value, 16, 16, 3))
        value = net.relu(net.op("Add", net.conv(inner, 16, 16, 3), value))
    return net.model(net.op("GlobalMaxPool", value))


def test_a_residual_is_written_over() -> None:
    model = residual(3)
    network = compiled(model)
    # Of the last kernels of each block, the residual may be overwritten: it is operand number 1.
    allowed = {call.key: ((1, 0),) for call in network.calls if len(call.inputs) == 2}
    smaller = in_place(network, allowed)
    one = network.lifetimes()[network.calls[0].outputs[0]].size_bytes
    assert allowed and (network.arena.bytes, smaller.arena.bytes) == (3 * one, 2 * one)
    assert all(smaller.arena.offsets[a] == smaller.arena.offsets[b] for a, b in overlaps(smaller))
    assert len(overlaps(smaller)) == 3 and not overlaps(network)
    assert_same_as_onnxruntime(model, np.random.default_rng(5), smaller)


def test_what_is_read_later_or_twice_or_in_part_stays() -> None:
    net = Net(x=(1, 16, 6, 6))
    a = net.relu(net.conv("x", 16, 16, 3))
    b = net.op("Tanh", net.conv(a, 16, 16, 3))
    later = net.op("Concat", net.op("GlobalMaxPool", a), net.op("GlobalMaxPool", b), axis=1)
    network = compiled(net.model(later))
    found = in_place(network, everything(network))
    kept = [pair for pair in overlaps(found) if found.calls[0].outputs[0] in pair]
    assert not kept


def test_nothing_allowed_changes_nothing() -> None:
    network = compiled(residual(1))
    assert in_place(network, {}) is network
    assert in_place(network, {call.key: () for call in network.calls}) is network


@examples(40)
@given(seed=integers(0, 2**32 - 1))
def test_only_what_dies_with_the_call_is_shared(seed: int) -> None:
    """Random chains and joins: a value shares bytes with its maker's operand only."""
    rng = np.random.default_rng(seed)
    net = Net(x=(1, 16, 4, 4))
    values = [net.conv("x", 16, 16, 1)]
    for _ in range(int(rng.integers(2, 7))):
        one, other = (values[int(n)] for n in rng.integers(len(values), size=2))
        value = net.conv(one, 16, 16, 3)
        values.append(net.op("Add", value, other) if rng.random() < 0.6 else value)
    network = compiled(net.model(net.op("GlobalMaxPool", values[-1])))
    allowed: Mapping[str, tuple[tuple[int, int], ...]] = everything(network)
    found = in_place(network, allowed)
    assert found.arena.bytes <= network.arena.bytes
    makers = {call.outputs[0]: call for call in found.calls}
    shared = overlaps(found)
    assume(shared)
    for earlier, later in shared:
        assert found.arena.offsets[earlier] == found.arena.offsets[later]
        assert earlier in makers[later].inputs
        assert found.lifetimes()[earlier].last == found.lifetimes()[later].first
