"""A softmax whose rows may be no numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import partition
from ansorpy.graph.choices import Choices
from ansorpy.graph.ops import Softmax
from ansorpy.graph.optimize import arrange, simplify
from ansorpy.graph.passes.fuse_attention import WAYS
from ansorpy.graph.passes.fuse_guarded_softmax import fuse_guarded_softmax
from tests.graph.executor import assert_same_as_onnxruntime, run_network
from tests.graph.nets import Net


def guarded(net: Net, scores: str, otherwise: float = 0.0) -> str:
    softmax = net.op("Softmax", scores, axis=-1)
    return net.op("Where", net.op("IsNaN", softmax), net.constant(otherwise), softmax)


def attention() -> ModelProto:
    """With a mask whose second row leaves nothing."""
    net = Net(q=(2, 3, 8), k=(2, 8, 5), v=(2, 5, 4))
    mask = np.zeros((3, 5))
    mask[1], mask[2, 3:] = -np.inf, -np.inf
    scores = net.op("Add", net.op("MatMul", "q", "k"), net.constant(mask))
    return net.model(net.op("MatMul", guarded(net, scores), "v"))


def test_rows_that_are_masked_altogether_give_zeros() -> None:
    model = attention()
    network = assert_same_as_onnxruntime(model, np.random.default_rng(3))
    assert [c.name for c in network.calls] == ["attention_2x3x4"]
    rng = np.random.default_rng(3)
    feeds = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in network.inputs}
    (y,) = run_network(network, feeds)
    assert not y[:, 1].any() and y[:, 0].all()


def test_as_three_kernels_too() -> None:
    model = attention()
    graph = simplify(load(model))
    asked = Choices()
    arrange(graph, asked)
    other = partition(arrange(graph, Choices(dict.fromkeys(asked.asked, list(WAYS)[1]))))
    assert len(other.calls) == 3
    assert_same_as_onnxruntime(model, np.random.default_rng(3), other)


@pytest.mark.parametrize("otherwise", [0.0, 0.5])
def test_only_zeros_are_a_guard(otherwise: float) -> None:
    net = Net(x=(3, 5))
    model = net.model(guarded(net, "x", otherwise))
    assert_same_as_onnxruntime(model, np.random.default_rng(3))
    ops = [node.op for node in fuse_guarded_softmax(load(model)).nodes]
    assert (ops == [Softmax((1,), guarded=True)]) == (otherwise == 0.0)
