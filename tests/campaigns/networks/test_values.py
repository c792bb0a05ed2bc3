"""What random networks may contain, and how far results may be from exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable, allowed_error


@pytest.fixture
def net(rng: np.random.Generator) -> Growing:
    return Growing(rng, np.dtype(np.float32), 21, strict=True)


@pytest.mark.parametrize(
    ("op_type", "array", "why"),
    [
        ("Floor", [3.0] * 20, "decided by rounding"),
        ("Sign", [0.5, 1e-30], None),
        ("Log", [1.0, -1.0], "not finite"),
        ("Exp", [40.0], "large"),
        ("Relu", [-1.0], "is zero"),
    ],
)
def test_values_that_hide_or_make_a_difference(
    net: Growing, op_type: str, array: Any, why: str | None
) -> None:
    x = net.constant(np.array(array))
    if why is None:
        net.add(op_type, x)
        return
    with pytest.raises(Unstable, match=why):
        net.add(op_type, x)


def test_flags_that_rounding_decides_are_unstable(net: Growing) -> None:
    x = net.constant(np.array([1.0, 2.0]))
    y = net.add("Sub", net.add("Add", x, net.constant(0.1)), net.constant(0.1))
    with pytest.raises(Unstable, match="depends on rounding"):
        net.add("Equal", x, y)


def test_errors_grow_where_a_sum_cancels(net: Growing) -> None:
    x = net.new_input([64])
    large = net.add("Add", x, net.constant(1000.0))
    plain, cancelled = (
        net.add("Mul", x, net.constant(3.0)),
        net.add("Sub", large, net.constant(999.5)),
    )
    size = np.abs(plain.exact).max()
    assert 2.0**-24 < (allowed_error(plain) / size).max() < 1e-5
    assert 1e-4 < allowed_error(cancelled).max() < 1e-2


def test_float16_may_be_off_by_more(rng: np.random.Generator) -> None:
    errors = []
    for kind in (np.float16, np.float32, np.float64):
        net = Growing(rng, np.dtype(kind), 21, strict=True)
        total = net.add("ReduceSum", net.new_input([3, 50]), net.ints(1))
        errors.append(float(allowed_error(total).max()))
    assert errors[0] > 1e3 * errors[1] > 1e6 * errors[2]


def test_bodies_round_their_own_values(net: Growing) -> None:
    """What comes out of a branch is off by a rounding to 16 bits inside it."""
    x = net.fed(np.linspace(0.5, 1.5, 7, dtype=np.float32))
    nodes = [
        helper.make_node("Cast", [x.name], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["half"], ["back"], to=TensorProto.FLOAT),
    ]
    kinds = {"half": TensorProto.FLOAT16, "back": TensorProto.FLOAT}
    half, back = (helper.make_tensor_value_info(n, kind, (7,)) for n, kind in kinds.items())
    body = helper.make_graph(nodes, "body", [], [back], value_info=[half])
    flag = net.fed(np.asarray(True))
    node = net.node("If", [flag], then_branch=body, else_branch=body)
    (made,) = net.chain([node], [flag, x], dtype=x.dtype)
    assert 2.0**-12 < allowed_error(made).max() < 2.0**-4
