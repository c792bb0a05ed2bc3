"""Models with formal faults: onnxruntime runs them, so they are mended, and that is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from ansorpy.errors import ForeignFile, UnsupportedModel, UsageError
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.graph.executor import assert_same_as_onnxruntime, run_network
from tests.peer import peer

SHAPE = (2, 3)


def model(ir_version: int = 8) -> ModelProto:
    """``relu(x + w)``."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    held = numpy_helper.from_array(np.array([0.5, -1, 2], np.float32), "w")
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, SHAPE)], [info("y", TensorProto.FLOAT, SHAPE)],
        [held],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 8)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def old_format(made: ModelProto) -> None:
    made.ir_version = 3


def nameless(made: ModelProto) -> None:
    made.graph.name = ""


def twice(made: ModelProto) -> None:
    made.graph.initializer.append(made.graph.initializer[0])


def full_domain(made: ModelProto) -> None:
    made.graph.node[1].domain = "ai.onnx"


def unsorted(made: ModelProto) -> None:
    first, second = list(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend([second, first])


def untyped(made: ModelProto) -> None:
    made.graph.output[0].ClearField("type")


FAULTS: dict[Callable[[ModelProto], None], str] = {
    old_format: "initializers are missing from the inputs",
    nameless: "its graph has no name",
    twice: "initializers are given twice",
    full_domain: "its nodes name the domain ai.onnx",
    unsorted: "its nodes are not sorted",
    untyped: "outputs have no type",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("from_file", [False, True])
def test_formal_faults_are_mended(
    fault: Callable[[ModelProto], None], from_file: bool, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    made = model()
    fault(made)
    given, path = made.SerializeToString(), tmp_path / "net.onnx"
    path.write_bytes(given)
    network = partition(optimize(load(path if from_file else made)))
    assert f"a formal fault, which is mended: {FAULTS[fault]}" in caplog.text
    assert made.SerializeToString() == given, "the caller's model was changed"
    x = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    session = peer(given)
    [want] = session.run(None, {"x": x})
    [found] = run_network(network, {"x": x})
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_models_without_faults_are_taken_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    load(model())
    assert not caplog.records


def test_a_body_may_use_names_that_later_nodes_have(
    rng: np.random.Generator, caplog: pytest.LogCaptureFixture
) -> None:
    made = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[3, 4] x, bool c) => (float[3, 4] y) {
            a = If(c)<then_branch = t () => (r) { v = Neg(x)  r = Exp(v) },
                      else_branch = e () => (r) { v = Abs(x)  r = Sqrt(v) }>
            v = Sigmoid(x)
            y = Mul(v, a)
        }""")
    onnx.checker.check_model(made)
    assert_same_as_onnxruntime(made, rng)
    assert not caplog.records


def test_outputs_need_no_shapes_and_wrong_ones_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = model()
    made.graph.output[0].type.tensor_type.ClearField("shape")
    load(made)
    assert not caplog.records
    made = model()
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5
    load(made)
    assert "output y has shape [2, 3], though the model declares [5, 3]" in caplog.text


def test_an_input_without_a_shape_is_given_one() -> None:
    made = model()
    made.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UsageError, match="the model states no shape of the input x") as caught:
        load(made)
    assert caught.value.hint == "give it: --shape x=2x3 (shapes= in Python)"
    graph = load(made, shapes={"x": SHAPE})
    assert graph.types["x"].shape == SHAPE


def test_what_is_ambiguous_is_not_mended() -> None:
    different = model()
    different.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.float32), "w"))
    circle = model()
    circle.graph.node[0].input[1] = "y"
    for made in (different, circle):
        with pytest.raises(ForeignFile, match="the ONNX model is not valid"):
            load(made)


def test_types_that_contradict_each_other_are_refused() -> None:
    made = model()
    untyped(made)
    # The name is that of an input, which is no sparse tensor.
    values = numpy_helper.from_array(np.arange(3, dtype=np.float32), "x")
    places = numpy_helper.from_array(np.arange(3, dtype=np.int64))
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3]))
    with pytest.raises(ForeignFile, match="the ONNX model is not valid"):
        load(made)


def test_slopes_of_old_models_belong_to_channels() -> None:
    """Operator sets before 7 have no broadcasting from the last axis."""
    info = helper.make_tensor_value_info
    slopes = np.array([0.25, -0.5, 2], np.float32)
    graph = helper.make_graph(
        [helper.make_node("PRelu", ["x", "w"], ["y"])], "g",
        [info("x", TensorProto.FLOAT, (2, 3, 3)), info("w", TensorProto.FLOAT, (3,))],
        [info("y", TensorProto.FLOAT, (2, 3, 3))], [numpy_helper.from_array(slopes, "w")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3)
    onnx.checker.check_model(made)
    x = np.random.default_rng(1).standard_normal((2, 3, 3), np.float32)
    [found] = run_network(partition(optimize(load(made))), {"x": x})
    np.testing.assert_allclose(found, np.where(x < 0, slopes[:, None] * x, x), rtol=1e-6)


def of_set(operator: str, opset: int, sizes: Sequence[int], **attributes: Any) -> ModelProto:
    """*operator* on an image of six channels, and lists of *sizes* numbers that are constants."""
    rng = np.random.default_rng(opset)
    held = [numpy_helper.from_array(rng.uniform(0.5, 2, n).astype(np.float32), f"c{k}")
            for k, n in enumerate(sizes)]  # fmt: skip
    one = helper.make_node(operator, ["x", *(tensor.name for tensor in held)], ["y"], **attributes)
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (2, 6, 5, 4)) for n in "xy"]
    graph = helper.make_graph([one], "g", kinds[:1], kinds[1:], held)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


ONLY_ONNXRUNTIME = {
    "a norm in an older set": of_set("LayerNormalization", 11, (4, 4), epsilon=1e-3),
    "a norm just before": of_set("LayerNormalization", 16, (20, 20), axis=2),
    "groups with a scale each": of_set("GroupNormalization", 18, (3, 3), num_groups=3),
    "groups just before": of_set("GroupNormalization", 20, (2, 2), num_groups=2),
    "a threshold": of_set("ThresholdedRelu", 8, (), alpha=0.25),
}


@pytest.mark.parametrize("name", ONLY_ONNXRUNTIME)
def test_operators_of_sets_in_which_only_onnxruntime_has_them(name: str) -> None:
    made = ONLY_ONNXRUNTIME[name]
    for tensor in made.graph.initializer:
        if tensor.dims[0] == 20:  # a number for each element of the last two axes
            tensor.dims[:] = [5, 4]
    x = np.random.default_rng(3).standard_normal((2, 6, 5, 4), np.float32)
    [want] = peer(made).run(None, {"x": x})
    [found] = run_network(partition(optimize(load(made))), {"x": x})
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("made", [
    of_set("Gelu", 13, ()), of_set("GroupNormalization", 17, (3, 3), num_groups=3),
], ids=["gelu", "group"])  # fmt: skip
def test_operators_of_sets_in_which_nobody_has_them(made: ModelProto) -> None:
    with pytest.raises(ForeignFile, match="No Op registered for"):
        load(made)


def test_groups_with_other_statistics_or_of_unknown_number_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="stash_type=10"):
        load(of_set("GroupNormalization", 21, (6, 6), num_groups=3, stash_type=10))
    with pytest.raises(UnsupportedModel, match="num_groups=0"):
        load(of_set("GroupNormalization", 18, (3, 3)))
