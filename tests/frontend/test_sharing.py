"""Constants that several nodes, layers, steps or iterations read are made, and kept, once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize
from ansorpy.graph.ir import Graph
from tests.frontend.microsoft.beside import model_of, normal
from tests.frontend.models import graph_model, node
from tests.frontend.test_attention import FOUR
from tests.frontend.test_classical_models import forest
from tests.frontend.test_classical_models import model as classical_model
from tests.frontend.test_gru import recurrent
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def assert_no_copies(graph: Graph) -> None:
    """Require that no two constants are equal."""
    held = [(a.dtype, a.shape, a.tobytes()) for a in graph.constants.values()]
    assert len({*held}) == len(held)


def activated(net: Net) -> list[str]:
    return [net.op(kind, "x") for kind in ("Tanh", "Sigmoid", "Exp")]


def same_weights() -> Net:
    """A weight that is stored transposed."""
    net = Net(x=(3, 5))
    weight = net.normal(7, 5)
    net.op("Sum", *(net.op("Gemm", x, weight, transB=1) for x in activated(net)))
    return net


def same_projections() -> Net:
    """Two weights that always multiply the same data, which passes join."""
    net = Net(x=(6, 8))
    weights, row = [net.normal(8, 16) for _ in range(2)], net.normal(16)
    pairs = [
        [net.op("Add", net.op("MatMul", x, weight), row) for weight in weights]
        for x in activated(net)
    ]
    net.op("Sum", *(net.op("MatMul", q, net.op("Transpose", k, perm=[1, 0])) for q, k in pairs))
    return net


def same_scales() -> Net:
    """A scale that passes fold into the weight before it."""
    net = Net(x=(3, 4))
    weight, scale = net.normal(4, 5), net.normal(5)
    net.op(
        "Sum", *(net.op("Mul", net.op("MatMul", x, weight), scale) for x in activated(net))
    )  # fmt: skip
    return net


@pytest.mark.parametrize("make", [same_weights, same_projections, same_scales])
def test_what_several_nodes_do_to_a_weight_is_done_once(
    make: Callable[[], Net], rng: np.random.Generator
) -> None:
    net = make()
    model = net.model(net.nodes[-1].output[0])
    graph = optimize(load(model))
    assert_no_copies(graph)
    assert all(array.flags.c_contiguous for array in graph.constants.values())
    assert_same_as_onnxruntime(model, rng)


def looped() -> ModelProto:
    """A loop that is unrolled, and whose body has constants of both kinds."""
    rng = np.random.default_rng(2)
    shift = numpy_helper.from_array(rng.standard_normal(5, np.float32))
    nodes = [
        node("Identity", ["c"], ["c2"]), node("Constant", [], ["shift"], value=shift),
        node("MatMul", ["v", "weight"], ["p"]), node("Add", ["p", "shift"], ["w"]),
    ]  # fmt: skip
    kinds = {"i": TensorProto.INT64, "c": TensorProto.BOOL, "c2": TensorProto.BOOL}
    shapes = {"v": [3, 5], "w": [3, 5]}
    inputs, outputs = (
        [helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), shapes.get(n, []))
         for n in names] for names in (("i", "c", "v"), ("c2", "w"))
    )  # fmt: skip
    weight = numpy_helper.from_array(rng.standard_normal((5, 5), np.float32), "weight")
    body = helper.make_graph(nodes, "step", inputs, outputs, [weight])
    loop = node("Loop", ["trips", "", "x"], ["y"], body=body)
    return graph_model([loop], {"x": (3, 5)}, ["y"], {"trips": np.asarray(4)})


def layers() -> ModelProto:
    """Two causal attentions over the same keys."""
    nodes = [node("Attention", ["q", "k", "v"], ["a"], is_causal=1),
             node("Attention", ["a", "k", "v"], ["y"], is_causal=1)]  # fmt: skip
    return graph_model(nodes, {**FOUR, "v": FOUR["k"]}, ["y"], None, 23)


def trees() -> ModelProto:
    given = forest("target", np.random.default_rng(3), [0], 5)
    return classical_model("TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, **given)


def quantized_steps() -> ModelProto:
    rng = np.random.default_rng(4)

    def weights(rows: int) -> np.ndarray:
        return rng.integers(-127, 128, (1, rows, 24)).astype(np.int8)

    operands = {
        "x": normal(0, 4, 3, 5), "w": weights(5), "r": weights(6), "b": normal(1, 1, 48),
        "lengths": None, "h": None, "c": None, "p": None,
        "w_scale": rng.uniform(0.002, 0.003, 1).astype(np.float32), "w_zero": np.zeros(1, np.int8),
        "r_scale": rng.uniform(0.003, 0.004, 1).astype(np.float32), "r_zero": np.ones(1, np.int8),
    }  # fmt: skip
    held = [name for name, array in operands.items() if array is not None and name != "x"]
    return model_of("DynamicQuantizeLSTM", operands, {"y": TensorProto.FLOAT}, held, hidden_size=6)


@pytest.mark.parametrize(
    "make",
    [looped, layers, trees, quantized_steps, lambda: recurrent("GRU"), lambda: recurrent("RNN")],
    ids=["loop", "attention", "trees", "quantized", "gru", "rnn"],
)
def test_what_is_repeated_reads_the_same_constants(make: Callable[[], ModelProto]) -> None:
    assert_no_copies(load(make()))
