"""Operators on constants alone are computed when the model is read, as onnxruntime does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.frontend.test_operators import CASES
from tests.graph.executor import Array, assert_same_as_onnxruntime

RNG = np.random.default_rng(8)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def on_constants(
    op_type: str, operands: list[Array | None], *, opset: int = 17, outputs: int = 1, **given: Any
) -> ModelProto:
    """The operator on constants, its last output added to an input."""
    held = {f"c{n}": a for n, a in enumerate(operands) if a is not None}
    names = ["" if a is None else f"c{n}" for n, a in enumerate(operands)]
    made = [*[""] * (outputs - 1), "made"]
    nodes = [node(op_type, names, made, **given), node("Add", ["made", "x"], ["y"])]
    return graph_model(nodes, {"x": ()}, ["y"], held, opset)


MODELS = {
    "old_softmax": on_constants("Softmax", [normal(3, 4, 5)], opset=9, axis=1),
    "large_log_softmax": on_constants("LogSoftmax", [100 * normal(3, 17)]),
    "global_average": on_constants("GlobalAveragePool", [normal(2, 3, 4, 5)]),
    "average_ceil": on_constants(
        "AveragePool", [normal(1, 2, 7, 7)], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1
    ),
    "lrn": on_constants("LRN", [normal(1, 4, 3, 3)], size=5, alpha=0.5),
    "transposed": on_constants(
        "ConvTranspose", [normal(1, 6, 4, 3), normal(6, 2, 3, 2)], group=3, strides=[2, 3],
        output_padding=[1, 2],
    ),
    "grouped": on_constants("Conv", [normal(1, 6, 5, 5), normal(4, 3, 3, 3), normal(4)], group=2),
    "lstm": on_constants(
        "LSTM", [normal(3, 2, 5), normal(1, 16, 5), normal(1, 16, 4), normal(1, 32)], outputs=3,
        hidden_size=4, clip=0.2, activations=["Relu", "Tanh", "Softsign"],
    ),
    "gelu": on_constants("Gelu", [normal(5, 3)], opset=20),
    "layer_norm": on_constants("LayerNormalization", [normal(3, 5), normal(5), normal(5)]),
    "divided": on_constants("Div", [normal(3, 5), np.abs(normal(5)) + 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_they_are_computed_when_read(name: str, rng: np.random.Generator) -> None:
    assert {n.op.label for n in load(MODELS[name]).nodes} <= {"reshape", "add"}
    assert_same_as_onnxruntime(MODELS[name], rng)


@pytest.mark.parametrize("case", [name for name, m in CASES.items() if len(m.graph.output) == 1])
def test_every_operator_gives_the_same_on_constants(case: str, rng: np.random.Generator) -> None:
    single = CASES[case].graph
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in single.input}
    held = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    held |= {tensor.name: numpy_helper.to_array(tensor) for tensor in single.initializer}
    added = node("Add", [single.output[0].name, "z"], ["sum"])
    opset = CASES[case].opset_import[0].version
    model = graph_model([*single.node, added], {"z": ()}, ["sum"], held, opset)
    assert_same_as_onnxruntime(model, rng)


SIZES = {"first": 0, "two": 2, "four": 4}


def test_shapes_are_computed_with_integers_and_with_nothing(rng: np.random.Generator) -> None:
    """Slices without elements, joined again, and quotients rounded down: none of it is a kernel."""
    constants: dict[str, Array] = {name: np.asarray([n]) for name, n in SIZES.items()}
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "two", "two", "first"], ["nothing"]),
        node("Div", ["shape", "two"], ["half"]),
        node("Concat", ["nothing", "half", "four"], ["wanted"], axis=0),
        node("Reshape", ["x", "wanted"], ["y"]),
    ]
    network = assert_same_as_onnxruntime(graph_model(nodes, {"x": (6, 2)}, ["y"], constants), rng)
    assert network.outputs[0].shape == (3, 1, 4)


def test_older_operator_sets_have_attributes_where_newer_ones_have_operands(
    rng: np.random.Generator,
) -> None:
    nodes = [
        node("Slice", ["c"], ["nothing"], starts=[2], ends=[2], axes=[0]),
        node("Concat", ["nothing", "c"], ["all"], axis=0),
        node("TopK", ["all"], ["largest", "places"], k=2),
        node("Cast", ["places"], ["floats"], to=TensorProto.FLOAT),
        node("Mul", ["largest", "floats"], ["both"]),
        node("Add", ["x", "both"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (3, 2)}, ["y"], {"c": normal(3, 5)}, opset=9)
    assert_same_as_onnxruntime(model, rng)


def test_what_we_refuse_is_not_left_to_another_implementation() -> None:
    operands = [normal(3, 2, 5), normal(1, 16, 5), normal(1, 16, 4)]
    model = on_constants("LSTM", [*operands], hidden_size=4, activations=["Tanh"], outputs=3)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(UnsupportedModel, match="activations="):
        load(model)


@pytest.mark.parametrize(
    "places", [np.array([1, 3, 11]), np.array([[0, 1], [0, 3], [2, 3]])], ids=["flat", "full"]
)
@pytest.mark.parametrize("is_node", [False, True])
def test_sparse_constants_are_filled_up_with_zeros(
    places: Array, is_node: bool, rng: np.random.Generator
) -> None:
    model = graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (2, 3), "w": (3, 4)}, ["y"])
    del model.graph.input[1]
    values = numpy_helper.from_array(normal(3), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(places), [3, 4])
    if is_node:
        model.graph.node.insert(0, node("Constant", [], ["w"], sparse_value=sparse))
    else:
        model.graph.sparse_initializer.append(sparse)
    network = assert_same_as_onnxruntime(model, rng)
    assert [info.name for info in network.inputs] == ["x"]
