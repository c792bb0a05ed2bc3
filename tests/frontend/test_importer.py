"""Shape arithmetic folds away; what cannot be compiled is listed whole, and bad files are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ansorpy.errors import ForeignFile, UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.frontend.onnx.reader import upgraded
from ansorpy.graph.ir import text
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import assert_same_as_onnxruntime, compiled, run_network
from tests.graph.nets import Net

RNG = np.random.default_rng(4)


def test_shape_arithmetic_becomes_constants() -> None:
    net = Net(x=(2, 3, 4))
    shape = net.op("Shape", "x")
    first = net.op("Gather", shape, net.constant(0, np.int64))
    rest = net.op("Div", net.op("Size", "x"), first)
    target = net.op(
        "Concat", *(net.op("Unsqueeze", v, net.constant([0], np.int64)) for v in (first, rest)),
        axis=0,
    )  # fmt: skip
    cast = net.op("Cast", net.op("Cast", target, to=TensorProto.FLOAT), to=TensorProto.INT64)
    model = net.model(net.op("Reshape", "x", cast))
    assert [n.op.label for n in load(model).nodes] == ["reshape"]
    assert_same_as_onnxruntime(model, RNG)


@pytest.mark.parametrize(
    "make",
    [
        node("ConstantOfShape", ["shape"], ["w"]), node("Expand", ["one", "shape"], ["w"]),
        node("Tile", ["two", "shape"], ["w"]), node("EyeLike", ["wide"], ["w"]),
    ],
    ids=lambda made: made.op_type,
)  # fmt: skip
def test_constants_beyond_memory_are_refused(make: onnx.NodeProto) -> None:
    constants = {
        "shape": np.array([10**6, 10**6]), "one": np.ones(1, np.float32),
        "two": np.ones((1, 2), np.float32),
    }  # fmt: skip
    nodes = [make, node("Add", ["x", "w"], ["y"])]
    model = graph_model(nodes, {"x": (1,), "wide": (10**6, 10**6)}, ["y"], constants)
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    [row] = [row for row in caught.value.rows if row.op == make.op_type]
    assert "GiB" in row.attribute and row.advice == "values that large must be inputs"


def test_constants_made_of_large_ones_may_be_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a library held 1 KiB: weights that a model has are transposed and converted."""
    monkeypatch.setattr("ansorpy.graph.ir.MOST_CONSTANT_BYTES", 1024)
    weight = RNG.standard_normal((40, 30)).astype(np.float16)
    nodes = [
        node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), node("Transpose", ["f"], ["t"]),
        node("MatMul", ["x", "t"], ["y"]),
    ]  # fmt: skip
    assert_same_as_onnxruntime(graph_model(nodes, {"x": (3, 30)}, ["y"], {"w": weight}), RNG)


@pytest.mark.parametrize(
    ("declared", "is_wrong"), [([4], False), ([7], True), ([4, 1], True), (["n"], False)]
)
def test_an_output_that_is_not_as_declared_is_mentioned(
    declared: list[int | str], is_wrong: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model = graph_model([node("Relu", ["x"], ["y"])], {"x": (4,)}, ["y"])
    info = helper.make_tensor_value_info("y", TensorProto.FLOAT, declared)
    model.graph.output[0].CopyFrom(info)
    load(model)
    assert ("output y has shape [4], though" in caplog.text) is is_wrong


def test_constant_nodes_and_repeated_values_are_constants() -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5])
    nodes = [
        node("Constant", [], ["shape"], value_ints=[3, 4]),
        node("ConstantOfShape", ["shape"], ["w"], value=value),
        node("Constant", [], ["s"], value_float=2.0),
        node("MatMul", ["x", "w"], ["m"]),
        node("Mul", ["m", "s"], ["y"]),
    ]
    assert_same_as_onnxruntime(graph_model(nodes, {"x": (2, 3)}, ["y"]), RNG)


def test_operators_without_importer_are_evaluated_on_constants() -> None:
    net = Net(x=(5,))
    steps = (net.constant(v, np.float32) for v in (0, 5, 1))
    y = net.op("Add", "x", net.op("Range", *steps))
    assert [n.op.label for n in load(net.model(y)).nodes] == ["add"]


def test_initializers_listed_as_inputs_are_constants() -> None:
    model = operator_model("Add", [(3,)], [np.ones(3, np.float32)])
    model.graph.input.append(helper.make_tensor_value_info("c0", TensorProto.FLOAT, [3]))
    assert load(model).inputs == ("x0",)


def test_all_unsupported_nodes_are_listed_at_once() -> None:
    net = Net(x=(1, 4, 6, 6))
    a = net.op("RegexFullMatch", net.relu("x"))
    b = net.op("ImageDecoder", net.op("MaxPool", "x", kernel_shape=[2, 2]))
    c = net.op("Pad", "x", net.constant([0] * 8, np.int64), mode="mirror")
    model = net.model(a, c)
    model.graph.output.append(helper.make_tensor_value_info(b, TensorProto.INT64, [4, None]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    model.graph.node.append(helper.make_node("Fused", [a], ["z"], domain="com.example"))
    model.graph.node[0].name = "first"
    with pytest.raises(UnsupportedModel, match="4 node") as caught:
        load(model)
    rows = {row.op: row for row in caught.value.rows}
    assert set(rows) == {"RegexFullMatch", "ImageDecoder", "Pad", "Fused"}
    assert {op: row.domain for op, row in rows.items() if row.domain} == {"Fused": "com.example"}
    assert rows["Pad"].attribute == "mode=mirror"
    assert rows["Pad"].shape.startswith("[1, 4, 6, 6]")
    assert caught.value.exit_code == 3
    said = str(caught.value)
    assert "com.example.Fused" in said
    assert all(f"\n  {row.advice}\n" in said for row in rows.values() if row.advice)
    assert max(map(len, said.splitlines())) < 120


def test_what_follows_a_refused_node_is_listed_though_its_shape_is_computed() -> None:
    net = Net(x=(2, 3))
    none = net.constant([0] * 4, np.int64)
    a = net.op("Pad", net.op("Expand", "x", net.op("Shape", "x")), none, mode="mirror")
    b = net.op("Pad", a, none, mode="mirror")
    with pytest.raises(UnsupportedModel) as caught:
        load(net.model(b))
    [row] = caught.value.rows
    assert row.count == 2


def test_a_node_with_an_operand_of_any_size_is_refused_at_once() -> None:
    """onnx's shape inference of a whole model would compute its values, element by element."""
    model = operator_model("LayerNormalization", [(2**31 - 1,)], [np.ones(8, np.float32)], axis=0)
    with pytest.raises(UnsupportedModel, match="LayerNormalization"):
        load(model)


@pytest.mark.parametrize("version", [-1, 0, 2**40])
def test_an_operator_of_an_impossible_version_is_refused(version: int) -> None:
    net = Net(x=(2, 3))
    model = net.model(net.relu("x"))
    model.graph.output[0].name = "z"
    model.graph.node.append(helper.make_node("Fused", ["x"], ["z"], domain="com.example"))
    model.opset_import.append(helper.make_opsetid("com.example", version))
    with pytest.raises(UnsupportedModel, match=r"com\.example\.Fused"):
        load(model)
    model.ir_version = 2**40
    with pytest.raises(UnsupportedModel, match=r"com\.example\.Fused"):
        load(model)


def test_what_no_output_needs_is_not_looked_at() -> None:
    net = Net(x=(1, 4, 6, 6))
    pooled = net.op("MaxPool", "x", kernel_shape=[2, 2])
    net.nodes[-1].output.append("places")
    net.op("Det", net.op("Cast", "places", to=TensorProto.FLOAT))
    assert [node.output for node in load(net.model(pooled)).nodes] == [pooled]


def test_a_logarithm_of_one_probability_is_0() -> None:
    """exp and its logarithm would leave nothing but what they round, which no check can judge."""
    graph = load(operator_model("LogSoftmax", [(3, 1)]))
    assert [node.op.label for node in graph.nodes] == ["sub"]


def test_equal_refusals_are_one_row() -> None:
    net = Net(x=(1, 2, 2))
    model = net.model(net.op("StringNormalizer", "x"), net.op("StringNormalizer", "x"))
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert [(row.node, row.count) for row in caught.value.rows] == [("stringnormalizer0", 2)]


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes", "blame"),
    [
        ("Conv", [(1, 2, 3, 3, 3, 3), (1, 2, 1, 1, 1, 1)], {}, "weight shape"),
        ("Softmax", [(3, 4)], {"axis": 5}, "axis=5"),
        ("Reshape", [(3, 4)], {}, "shape"),
    ],
)
def test_a_refusal_names_the_attribute(
    op_type: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], blame: str
) -> None:
    one = node(op_type, [f"x{i}" for i in range(len(shapes))], ["y"], **attributes)
    inputs: dict[str, tuple[int, ...]] = {f"x{i}": s for i, s in enumerate(shapes)}
    if op_type == "Reshape":
        one.input.append("s")
        info = [helper.make_tensor_value_info("s", TensorProto.INT64, [2])]
    else:
        info = []
    graph = helper.make_graph(
        [one], "g",
        [*(helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()),
         *info],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert blame in caught.value.rows[0].attribute


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_quotients_of_integers_are_rounded_towards_zero(kind: int) -> None:
    numbers = np.array([-9, -8, -1, 0, 1, 7, 9])
    kinds = dict.fromkeys(("x", "y", "z", "c"), kind)
    divisor = np.array(2, helper.tensor_dtype_to_np_dtype(kind))
    nodes = [node("Div", ["x", "y"], ["q"]), node("Div", ["q", "c"], ["z"])]
    model = graph_model(nodes, {"x": (7, 1), "y": (4,)}, ["z"], {"c": divisor}, types=kinds)
    x, y = (a.astype(divisor.dtype) for a in (numbers[:, None], np.array([-4, -1, 2, 3])))
    (got,) = run_network(compiled(model), {"x": x, "y": y})
    np.testing.assert_array_equal(got, np.trunc(np.trunc(x / y) / 2))


def test_integers_are_rounded_before_a_product() -> None:
    kinds = dict.fromkeys("xwyc", TensorProto.INT64)
    nodes = [node("Div", ["x", "c"], ["q"]), node("MatMul", ["q", "w"], ["y"])]
    shapes = {"x": (64, 2), "w": (2, 3)}
    model = graph_model(nodes, shapes, ["y"], {"c": np.array(2)}, types=kinds)
    assert_same_as_onnxruntime(model, RNG)


@pytest.mark.parametrize("given", [{}, {"k": -1}, {"k": 2, "dtype": TensorProto.DOUBLE}])
def test_an_identity_of_an_inputs_shape_is_a_constant(given: dict[str, Any]) -> None:
    nodes = [
        node("EyeLike", ["x"], ["eye"], **given),
        node("Cast", ["eye"], ["floats"], to=TensorProto.FLOAT),
        node("Add", ["x", "floats"], ["y"]),
    ]
    model = graph_model(nodes, {"x": (4, 3)}, ["y"])
    assert [n.op.label for n in load(model).nodes] == ["add"]
    assert_same_as_onnxruntime(model, RNG)


def test_integer_arithmetic_that_rounds_is_refused() -> None:
    model = graph_model([node("Relu", ["f"], ["g"])], {"f": (3,)}, ["g"])
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.INT64, [3]))
    model.graph.node.append(node("Mean", ["x", "x"], ["y"]))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, [None]))
    with pytest.raises(UnsupportedModel, match="element type int64"):
        load(model)


def test_a_result_of_negative_size_is_refused() -> None:
    net = Net(x=(3, 4))
    model = net.model(net.relu(net.op("Pad", "x", net.constant([0, 0, -4, 0], np.int64))))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    with pytest.raises(UnsupportedModel, match=r"negative sizes: \[-1, 4\]"):
        load(model)


@pytest.mark.parametrize(
    ("op_type", "name", "constants"),
    [
        ("BatchNormalization", "epsilon", [np.arange(1.0, 4.0)] * 4),
        ("LayerNormalization", "epsilon", [np.ones(5)]),
        ("LeakyRelu", "alpha", []),
        ("HardSigmoid", "alpha", []),
        ("Selu", "gamma", []),
    ],
)
def test_a_default_is_the_value_that_a_model_would_hold(
    op_type: str, name: str, constants: list[np.ndarray]
) -> None:
    """Attributes are float32; the numbers that operators' descriptions give are not."""
    default = onnx.defs.get_schema(op_type, 17).attributes[name].default_value.f
    weights = [array.astype(np.float32) for array in constants]
    written_out: dict[str, Any] = {name: default}
    left_out, written = (
        load(operator_model(op_type, [(2, 3, 5)], weights, **given)) for given in ({}, written_out)
    )
    assert text(left_out) == text(written)
    for constant, array in left_out.constants.items():
        np.testing.assert_array_equal(array, written.constants[constant])


@pytest.mark.parametrize(
    "content", [b"", b"hello, this is not a model", b"\x7fELF\x02\x01\x01", bytes(range(256)) * 8]
)
def test_a_file_that_is_not_onnx_is_foreign(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(ForeignFile, match="is not an ONNX model"):
        load(path)


def test_a_truncated_model_is_foreign(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(operator_model("Relu", [(3, 4)]).SerializeToString()[:-9])
    with pytest.raises(ForeignFile):
        load(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ForeignFile, match="cannot read"):
        load(tmp_path / "none.onnx")
    with pytest.raises(ForeignFile, match="cannot read"):
        load(tmp_path)


def test_an_invalid_model_is_refused_by_the_checker() -> None:
    model = operator_model("Relu", [(3, 4)])
    model.graph.node[0].input[0] = "nowhere"
    with pytest.raises(ForeignFile, match="not valid"):
        load(model)


def test_a_model_from_a_file_equals_the_object(tmp_path: Path) -> None:
    model = operator_model("Relu", [(3, 4)])
    onnx.save(model, tmp_path / "net.onnx")
    assert load(tmp_path / "net.onnx").nodes == load(model).nodes


def test_old_models_are_upgraded_and_recent_ones_are_left_alone() -> None:
    old = operator_model("Relu", [(3, 4)], opset=6)
    assert upgraded(old).opset_import[0].version > 6
    assert len(load(old).nodes) == 1
    recent = operator_model("Relu", [(3, 4)], opset=9)
    assert upgraded(recent) is recent


def test_old_operators_are_not_taken_for_new_ones() -> None:
    """Add of operator set 6 has an axis; beside an unknown operator, onnx converts nothing."""
    nodes = [
        node("Add", ["x", "b"], ["y"], broadcast=1, axis=0),
        node("Thing", ["x"], ["unused"]),
    ]
    model = graph_model(nodes, {"x": (3, 3), "b": (3,)}, ["y"], opset=6)
    with pytest.raises(UnsupportedModel, match="set 6 is too old .*: it does not know Thing"):
        load(model)


def test_a_model_newer_than_onnx_is_refused() -> None:
    model = operator_model("Relu", [(3, 4)])
    model.opset_import[0].version = 999
    with pytest.raises(UnsupportedModel, match="operator set 999"):
        upgraded(model)


@pytest.mark.parametrize("kind", ["COMPLEX64", "STRING"])
def test_constants_of_other_element_types_are_refused_in_the_table(kind: str) -> None:
    net = Net(x=(2,))
    y = net.op("Add", "x", net.op("Cast", "narrow", to=TensorProto.FLOAT))
    model = net.model(y)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(y, TensorProto.FLOAT, [2]))
    values: list[Any] = ["1", "2"] if kind == "STRING" else [1, 2]
    held = helper.make_tensor("narrow", getattr(TensorProto, kind), [2], values)
    model.graph.initializer.append(held)
    model.opset_import[0].version, model.ir_version = 21, 10
    with pytest.raises(UnsupportedModel, match=f"initializer .*element type {kind}"):
        load(model)


def test_a_folded_result_of_another_element_type_is_refused_in_the_table() -> None:
    net = Net(x=(2,))
    words = net.op("Cast", net.normal(2), to=TensorProto.STRING)
    y = net.op("Add", "x", net.op("Cast", words, to=TensorProto.FLOAT))
    model = net.model(y)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(y, TensorProto.FLOAT, [2]))
    model.opset_import[0].version, model.ir_version = 21, 10
    with pytest.raises(UnsupportedModel, match="Cast .*element type (object|str)"):
        load(model)


def test_a_string_input_is_refused() -> None:
    model = operator_model("Relu", [(3, 4)])
    model.graph.input.append(helper.make_tensor_value_info("s", TensorProto.STRING, [3]))
    with pytest.raises(UnsupportedModel, match=r"STRING(?s:.*)turn texts into numbers outside"):
        load(model)
