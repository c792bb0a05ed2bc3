"""Inputs that become constants of a model, and those that must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ansorpy.constants import constant_flags
from ansorpy.errors import UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.pinned import with_constants
from ansorpy.graph import optimize, partition
from tests.frontend.models import graph_model, node
from tests.graph.executor import run_network


def summed(shape: tuple[int | str | None, ...] = (1,)) -> ModelProto:
    """The sum of a matrix over axes that an input states, times a number that another states."""
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 5)),
        helper.make_tensor_value_info("axes", TensorProto.INT64, shape),
        helper.make_tensor_value_info("times", TensorProto.FLOAT, ()),
    ]
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
        helper.make_node("Mul", ["s", "times"], ["y"]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "summed", infos, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("axes", [[0], [-1]])
def test_a_model_whose_input_is_known(axes: list[int]) -> None:
    model, x = summed(), np.random.default_rng(0).standard_normal((3, 5), np.float32)
    network = partition(optimize(load(model, constants={"axes": axes})))
    assert [info.name for info in network.inputs] == ["x", "times"]
    [found] = run_network(network, {"x": x, "times": np.array(1.5, np.float32)})
    given = {"x": x, "axes": np.array(axes), "times": np.array(1.5, np.float32)}
    results: Any = ReferenceEvaluator(model).run(None, given)
    [want] = results
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_what_must_be_known_is_named() -> None:
    with pytest.raises(UnsupportedModel) as caught:
        load(summed())
    assert caught.value.needs == ("axes",)
    [row] = caught.value.rows
    assert (row.op, row.attribute) == ("ReduceSum", "axes")
    flag = "--const axes=VALUE (constants= in Python)"
    assert row.advice == f"give its value: {flag}"
    assert caught.value.hint == f"the nodes need inputs that are known when you compile: {flag}"


def test_flags_can_be_given_to_a_shell() -> None:
    said = "--const k=VALUE --const 'some axes=VALUE' (constants= in Python)"
    assert constant_flags(["k", "some axes"]) == said


def test_what_depends_on_data_cannot_be_stated() -> None:
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 5000))]
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("Cast", ["top"], ["k"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["k", "zero"], ["shape"]),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    zero = helper.make_tensor("zero", TensorProto.INT64, (1,), [0])
    graph = helper.make_graph(nodes, "g", infos, [output], [zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(UnsupportedModel, match="must be a constant or follow from") as caught:
        load(model)
    assert caught.value.needs == ()


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"axis": [0]}, "there is no input 'axis' that could be constant"),
        ({"axes": [0.5]}, r"input 'axes' is int64, which does not hold \[0.5\]"),
        ({"axes": [1 << 80]}, r"\[1208925819614629174706176\] is no value of input 'axes'"),
        (
            {"axes": [0, 1]},
            r"'axes' has shape \[1\], so its value cannot have \[2\]\nhint: .* axes=@axes.npy",
        ),
        ({"axes": "all"}, "'all' is no value of input 'axes'\nhint: give numbers of int64"),
        ({"axes": ["0"]}, r"\['0'\] is no value of input 'axes'"),
        ({"times": b"1"}, "b'1' is no value of input 'times'"),
        ({"times": 1e300}, r"input 'times' is float32, which does not hold 1e\+300"),
        ({"times": (1 << 24) + 1}, r"input 'times' is float32, which does not hold 16777217"),
        ({"times": [[1]]}, r"input 'times' has shape \[\], so its value cannot have \[1, 1\]"),
    ],
)
def test_what_is_no_value_of_an_input(constants: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(summed(), constants=constants)


def test_some_exporters_write_a_negative_size_for_an_open_one() -> None:
    model = load(summed((-1,)), constants={"axes": [0, 1]})
    assert [model.types[output.value].shape for output in model.outputs] == [()]


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("value", [0.1, np.float64(1) / 3, np.inf, np.nan])
def test_decimals_are_rounded_to_the_type_of_the_input(kind: int, value: float) -> None:
    graph = graph_model([node("Mul", ["x", "times"], ["y"])], {"x": (3,), "times": ()}, ["y"])
    for info in (*graph.graph.input, *graph.graph.output):
        info.type.tensor_type.elem_type = kind
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    [tensor] = with_constants(graph, {"times": value}).graph.initializer
    held = numpy_helper.to_array(tensor)
    assert held.dtype == dtype
    want = np.asarray(value).astype(dtype)
    np.testing.assert_array_equal(held.astype(np.float32), want.astype(np.float32))


def test_axes_without_a_size_take_any_value() -> None:
    for axes in ([0], [0, 1]):
        assert load(summed(("n",)), constants={"axes": axes}).inputs == ("x", "times")
