"""Files and models that are broken in some way: one plain reason each, and what to do."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ansorpy.errors import ForeignFile, UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.reader import array_of, demand_consistent, without_weights
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import assert_same_as_onnxruntime, compiled, run_network

RNG = np.random.default_rng(11)


def product() -> ModelProto:
    weight = RNG.standard_normal((8, 5)).astype(np.float32)
    return graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (3, 8)}, ["y"], {"w": weight})


def external(location: str) -> ModelProto:
    """A product whose weight is in the file *location*."""
    model = product()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", location
    return model


@pytest.mark.parametrize("location", ["gone.bin", "/etc/hostname", "../up.bin", ""])
def test_weights_in_a_file_that_is_not_beside_the_model(tmp_path: Path, location: str) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(external(location).SerializeToString())
    with pytest.raises(ForeignFile, match=r"the weights of .*net.onnx cannot be read") as caught:
        load(path)
    assert caught.value.hint is not None and "copy those too" in caught.value.hint


@pytest.mark.parametrize("name", ["d.prototxt", "d.pbtxt", "d.textproto", "d.json"])
def test_text_in_a_format_that_onnx_expects_by_the_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('layer { bottom: "data" top: }')
    with pytest.raises(ForeignFile, match="is not an ONNX model: it has another format") as caught:
        load(tmp_path / name)
    assert "a library that ansorpy made" in str(caught.value.hint)


@pytest.mark.parametrize("held", [5, 100])
def test_weights_that_were_cut_short(tmp_path: Path, held: int) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(external("w.bin").SerializeToString())
    (tmp_path / "w.bin").write_bytes(bytes(held))
    with pytest.raises(ForeignFile, match=r"tensor name: w\) raw_data size .* is too small"):
        load(path)


def test_large_weights_that_were_cut_short(tmp_path: Path) -> None:
    path, model = tmp_path / "net.onnx", external("w.bin")
    model.graph.initializer[0].dims[1] = 1 << 14
    path.write_bytes(model.SerializeToString())
    (tmp_path / "w.bin").write_bytes(bytes(100))
    with pytest.raises(ForeignFile, match=r"initializer w: (.|\n)*cut short"):
        load(path)


def test_a_sparse_weight_with_places_beyond_its_shape() -> None:
    tensor = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "w"),
        numpy_helper.from_array(np.array([40])), [8, 5],
    )  # fmt: skip
    with pytest.raises(ForeignFile, match=r"initializer w: .*out of bounds"):
        array_of(tensor)


def test_a_sparse_weight_with_places_of_no_type() -> None:
    tensor = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "w"),
        numpy_helper.from_array(np.array([4])), [8, 5],
    )  # fmt: skip
    tensor.indices.data_type = -7
    with pytest.raises(ForeignFile, match=r"initializer w: .*not of type int64"):
        array_of(tensor)


def test_weights_in_a_file_of_their_own_are_read(tmp_path: Path) -> None:
    path, whole = tmp_path / "net.onnx", product()
    path.write_bytes(external("w.bin").SerializeToString())
    weight = numpy_helper.to_array(whole.graph.initializer[0])
    (tmp_path / "w.bin").write_bytes(weight.tobytes())
    [found] = load(path).constants.values()
    np.testing.assert_array_equal(found, weight)


def large_product() -> ModelProto:
    weight = RNG.standard_normal((300, 300)).astype(np.float32)
    return graph_model([node("MatMul", ["x", "w"], ["y"])], {"x": (3, 300)}, ["y"], {"w": weight})


@pytest.mark.parametrize("with_shape", [False, True])
def test_weights_are_more_than_onnx_checks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, with_shape: bool
) -> None:
    """Where the limit is 100 kB in place of 2 GiB: of an object, and of a file without shapes."""
    monkeypatch.setattr(onnx.checker, "MAXIMUM_PROTOBUF", 100_000)
    model = large_product()
    path = tmp_path / "net.onnx"
    if not with_shape:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    assert len(load(model).constants) == 1
    onnx.save(model, path, save_as_external_data=True, location="w.bin")
    assert len(load(path).constants) == 1


def test_large_weights_are_cut_short_too() -> None:
    model = large_product()
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    with pytest.raises(ForeignFile, match=r"initializer w: (.|\n)*cut short"):
        load(model)


def test_onnx_sees_large_weights_as_inputs() -> None:
    light = without_weights(large_product())
    assert [info.name for info in light.graph.input] == ["x", "w"]
    assert light.ByteSize() < 1000
    onnx.checker.check_model(light, full_check=True)


def test_functions_of_an_object_over_2_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(model: ModelProto) -> ModelProto:
        raise EncodeError("Failed to serialize proto")

    monkeypatch.setattr(onnx.inliner, "inline_local_functions", refuse)
    with pytest.raises(UnsupportedModel, match="only inline in up to 2 GiB") as caught:
        load(function_model("R"))
    assert caught.value.hint is not None and "save_as_external_data=True" in caught.value.hint


def test_a_missing_weight_is_named() -> None:
    model = product()
    del model.graph.initializer[:]
    with pytest.raises(ForeignFile, match="input 'w' of node.* is not output of any previous"):
        load(model)


def test_what_no_model_is_without(tmp_path: Path) -> None:
    model = operator_model("Relu", [(3,)])
    model.ClearField("ir_version")
    with pytest.raises(ForeignFile, match="has no format version"):
        load(model)
    del model.graph.output[:]
    model.ir_version = 8
    with pytest.raises(ForeignFile, match="no graph with outputs"):
        load(model)


@pytest.mark.parametrize("as_file", [False, True])
def test_outputs_may_leave_their_shapes_open(tmp_path: Path, as_file: bool) -> None:
    model = product()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    graph = load(path if as_file else model)
    assert graph.types[graph.outputs[0].value].shape == (3, 5)
    assert not model.graph.output[0].type.tensor_type.HasField("shape")


def test_outputs_of_one_name_are_refused() -> None:
    model = product()
    model.graph.output.append(model.graph.output[0])
    with pytest.raises(ForeignFile, match="several outputs are named y"):
        load(model)


def function_model(called: str) -> ModelProto:
    """x -> relu(2 x), through a function of the model that calls *called* of its domain."""
    body = [node("Add", ["a", "a"], ["s"]), node(called, ["s"], ["b"], domain="mine")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    twice = helper.make_function("mine", "Twice", ["a"], ["b"], body, opsets)
    relu = helper.make_function("mine", "R", ["a"], ["b"], [node("Relu", ["a"], ["b"])], opsets)
    graph = helper.make_graph(
        [node("Twice", ["x"], ["y"], domain="mine")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])],
    )  # fmt: skip
    return helper.make_model(graph, functions=[twice, relu], opset_imports=opsets, ir_version=8)


def test_functions_of_the_model_are_their_nodes() -> None:
    model = function_model("R")
    assert {n.op.label for n in load(model).nodes} == {"add", "relu"}
    assert_same_as_onnxruntime(model, RNG)


def calling_an_old_function(operator: NodeProto) -> ModelProto:
    """x -> relu(f(-x)) of opset 17, where f is *operator* of opset 11, called by a function."""
    old, new = ([helper.make_opsetid("", n), helper.make_opsetid("mine", 1)] for n in (11, 17))
    body = [node("Neg", ["a"], ["n"]), node("Old", ["n"], ["b"], domain="mine")]
    functions = [
        helper.make_function("mine", "New", ["a"], ["b"], body, new),
        helper.make_function("mine", "Old", ["a"], ["b"], [operator], old),
    ]
    graph = helper.make_graph(
        [node("New", ["x"], ["t"], domain="mine"), node("Relu", ["t"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    return helper.make_model(graph, functions=functions, opset_imports=new, ir_version=8)


def test_functions_of_other_operator_sets_are_converted() -> None:
    model = calling_an_old_function(node("Squeeze", ["a"], ["b"], axes=[1]))
    x = RNG.standard_normal((3, 1, 4)).astype(np.float32)
    (got,) = run_network(compiled(model), {"x": x})
    np.testing.assert_array_equal(got, np.maximum(-x[:, 0], 0))


def test_functions_that_cannot_be_converted_are_blamed() -> None:
    with pytest.raises(UnsupportedModel, match="functions .* to its operator set 17: ") as caught:
        load(calling_an_old_function(node("Loop", ["a"], ["b"])))
    assert caught.value.hint == "export all functions for one operator set"


def test_functions_in_a_file_with_weights_elsewhere(tmp_path: Path) -> None:
    model = function_model("R")
    model.graph.node[0].output[0] = "t"
    model.graph.node.append(node("Add", ["t", "w"], ["y"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "w"))
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    [found] = load(path).constants.values()
    np.testing.assert_array_equal(found, np.ones(4, np.float32))


def test_a_function_that_calls_itself_is_refused() -> None:
    with pytest.raises(ForeignFile, match="not valid.*recursive"):
        load(function_model("Twice"))


def test_an_output_of_another_type_than_declared_is_refused() -> None:
    model = operator_model("Relu", [(3, 4)])
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    with pytest.raises(UnsupportedModel, match="(?s)element type int32 .*the nodes give float32"):
        load(model)


def test_inputs_and_outputs_that_are_no_tensors_are_refused() -> None:
    graph = helper.make_graph(
        [node("Identity", ["s"], ["t"])], "g",
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [3])],
        [helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, [3])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(UnsupportedModel, match="(?s)input .* s +no tensor .*give the shapes"):
        load(model)


@pytest.mark.parametrize(
    ("op_type", "attributes", "blame"),
    [
        ("Conv", {"strides": [0, 1]}, "strides"),
        ("Conv", {"dilations": [1, -1]}, "dilations"),
        ("ConvTranspose", {"strides": [0, 1]}, "strides"),
        ("ConvTranspose", {"output_shape": [0, 9]}, "output_shape"),
        ("ConvTranspose", {"output_shape": [9]}, "output_shape"),
        ("MaxPool", {"kernel_shape": [0, 1]}, "kernel_shape"),
        ("Cast", {"to": 77}, "element type 77"),
        ("LpPool", {"kernel_shape": [1, 1], "p": 0}, "p=0"),
    ],
)
def test_attributes_out_of_range_are_blamed(
    op_type: str, attributes: dict[str, Any], blame: str
) -> None:
    weights = [np.ones((2, 2, 3, 3), np.float32)] if "Conv" in op_type else []
    model = operator_model("Relu", [(1, 2, 7, 7)], weights)
    model.graph.node[0].CopyFrom(node(op_type, ["x0", "c0"][: len(weights) + 1], ["y0"]))
    model.graph.node[0].attribute.extend(
        helper.make_attribute(name, value) for name, value in attributes.items()
    )
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert caught.value.rows[0].attribute.startswith(blame)


def test_constants_that_become_nan_warn_of_nothing() -> None:
    model = graph_model(
        [node("Sqrt", ["c"], ["s"]), node("Add", ["x", "s"], ["y"])],
        {"x": (2,)}, ["y"], {"c": np.array([-1, 4], np.float32)},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [held] = load(model).constants.values()
    assert np.isnan(held[0]) and held[1] == 2


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes", "said"),
    [
        ("MatMul", [(), (3,)], {}, "wrong rank"),
        ("Gemm", [(3,), (3, 4)], {}, "rank 2"),
        ("Gemm", [(2, 5, 6), (6, 4)], {}, "rank 2"),
        ("Gemm", [(6, 5, 2), (4, 6)], {"transA": 1, "transB": 1}, "rank 2"),
        ("Trilu", [(4,)], {}, "rank"),
        ("SpaceToDepth", [(1, 2, 4, 4, 4)], {"blocksize": 2}, "4-dimensional"),
    ],
)
def test_operands_of_ranks_that_no_operator_takes(
    op_type: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], said: str
) -> None:
    names = [f"x{i}" for i in range(len(shapes))]
    infos = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
        for n, s in zip(names, shapes, strict=True)
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node(op_type, names, ["y"], **attributes)], "g", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ForeignFile, match=f"not valid: .*{said}"):
        load(model)


def test_shapes_that_an_operator_does_not_take_are_refused() -> None:
    """The model leaves them open, so it is valid itself."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    graph = helper.make_graph([node("SpaceToDepth", ["x"], ["y"], blocksize=2)], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert load(model, shapes={"x": (1, 2, 4, 4)}).inputs == ("x",)
    with pytest.raises(UsageError, match="does not take inputs of these shapes: .*4-dimensional"):
        load(model, shapes={"x": (1, 2, 4, 4, 4)})


def test_an_output_of_another_stated_shape_is_no_fault_of_the_inputs() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 3, 3))
    graph = helper.make_graph([node("SpaceToDepth", ["x"], ["y"], blocksize=2)], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    demand_consistent(model, {"x": (1, 2, 4, 4)})  # y is (1, 8, 2, 2) then
    with pytest.raises(UsageError, match="4-dimensional"):
        demand_consistent(model, {"x": (1, 2, 4, 4, 4)})


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_weights_of_recurrences_have_three_dimensions(op_type: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type] * 3
    model = operator_model(op_type, [(2, 1, 4), (gates, 4), (1, gates, 3)], hidden_size=3)
    with pytest.raises(UnsupportedModel, match="(?s)input 1 of shape .* must have 3 dimensions"):
        load(model)


def test_an_output_that_nothing_computes_is_refused() -> None:
    model = product()
    model.graph.node.append(node("Thing", ["x"], ["unused"]))  # the checker knows no such operator
    model.graph.output[0].name = "z"
    with pytest.raises(ForeignFile, match="nothing computes the output 'z'"):
        load(model)


def test_an_attribute_that_only_a_function_has_is_refused() -> None:
    model = operator_model("Cast", [(2, 3)], to=1)
    model.graph.node[0].attribute[0].ref_attr_name = "kind"
    with pytest.raises(ForeignFile, match="attribute to of a Cast refers to 'kind'"):
        load(model)


def test_recurrent_weights_that_do_not_fit_are_refused() -> None:
    weights = [np.ones(shape, np.float32) for shape in ((1, 9, 4), (1, 8, 3))]
    model = operator_model("GRU", [(5, 2, 4)], weights, hidden_size=3)
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert "(1, 9, 4) and (1, 9, 3)" in str(caught.value)


def test_sizes_beside_an_empty_one_may_be_too_large() -> None:
    model = operator_model("Neg", [(0, 1 << 40, 1 << 40)])
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert "its sizes are too large" in str(caught.value)
