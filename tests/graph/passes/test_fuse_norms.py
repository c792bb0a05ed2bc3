"""Norms written in small operators become one; what only looks like one does not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph.ops import LayerNorm
from ansorpy.graph.passes.fuse_norms import fuse_norms
from tests.frontend.models import graph_model
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net

SHAPE = (2, 3, 8)


def norm(
    net: Net, *, power: float | None = 2.0, reciprocal: bool = False, centred: bool = True,
    axes: tuple[int, int] = (-1, -1), offset: float = 1e-3,
) -> str:  # fmt: skip
    """A norm of ``x``; *axes* are those of the mean and of the variance."""
    d = net.op("Sub", "x", net.op("ReduceMean", "x", axes=[axes[0]])) if centred else "x"
    square = net.op("Mul", d, d) if power is None else net.op("Pow", d, net.constant(power))
    variance = net.op("ReduceMean", square, axes=[axes[1]])
    # onnxruntime takes another epsilon from the other order of a quotient.
    terms = (net.constant(offset), variance) if reciprocal else (variance, net.constant(offset))
    root = net.op("Sqrt", net.op("Add", *terms))
    if reciprocal:
        return net.op("Mul", net.op("Reciprocal", root), d)
    return net.op("Div", d, root)


def found(net: Net, *outputs: str) -> list[LayerNorm]:
    graph = fuse_norms(load(net.model(*outputs)))
    return [node.op for node in graph.nodes if isinstance(node.op, LayerNorm)]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("reciprocal", [True, False])
@pytest.mark.parametrize("power", [2.0, None])
def test_a_norm_becomes_one_operator(
    centred: bool, reciprocal: bool, power: float | None
) -> None:  # fmt: skip
    net = Net(x=SHAPE)
    y = norm(net, centred=centred, reciprocal=reciprocal, power=power)
    scaled = net.op("Add", net.op("Mul", y, net.normal(8)), net.normal(8))
    [op] = found(net, scaled)
    assert (op.axes, op.centred) == ((2,), centred) and np.isclose(op.epsilon, 1e-3)
    network = assert_same_as_onnxruntime(net.model(scaled), np.random.default_rng(5))
    assert len(network.calls) == 1, "scale and offset are its epilogue"


@pytest.mark.parametrize("centred", [True, False])
def test_a_norm_of_half_precision_becomes_one_operator(centred: bool) -> None:
    net = Net(x=SHAPE)
    y = norm(net, centred=centred)
    held = {name: array.astype(np.float16) for name, array in net.constants.items()}
    types = dict.fromkeys(("x", y), TensorProto.FLOAT16)
    model = graph_model(net.nodes, net.inputs, [y], held, types=types)
    [op] = [node.op for node in fuse_norms(load(model)).nodes]
    assert isinstance(op, LayerNorm) and op.centred == centred


def test_what_else_reads_the_parts_keeps_them() -> None:
    net = Net(x=SHAPE)
    y = norm(net)
    difference = next(n.output[0] for n in net.nodes if n.op_type == "Sub")
    model = net.model(y, net.relu(difference))
    assert len(found(net, y, difference)) == 1
    assert_same_as_onnxruntime(model, np.random.default_rng(5))


@pytest.mark.parametrize("other", [{"power": 4.0}, {"axes": (-1, 1)}, {"axes": (1, -1)}])
def test_another_power_or_axis_is_no_norm(other: dict[str, object]) -> None:
    net = Net(x=SHAPE)
    y = norm(net, **other)  # type: ignore[arg-type]
    assert not any(op.centred for op in found(net, y))
    assert_same_as_onnxruntime(net.model(net.op("Abs", y)), np.random.default_rng(5))


def test_a_sum_is_no_mean() -> None:
    net = Net(x=SHAPE)
    total = net.op("ReduceSum", net.op("Mul", "x", "x"), net.constant([-1], np.int64))
    root = net.op("Sqrt", net.op("Add", total, net.constant(1.0)))
    assert found(net, net.op("Div", "x", root)) == []


def test_a_norm_of_an_image_follows_its_stored_order() -> None:
    net = Net(x=(2, 3, 5, 4))
    image = net.relu(net.conv("x", 3, 4, 3))
    scale, offset = net.normal(5, 4), net.normal(5, 4)
    y = net.op("LayerNormalization", image, scale, offset, axis=2)
    assert_same_as_onnxruntime(net.model(y, image), np.random.default_rng(5))
