"""``If``: the branch that a constant condition takes is translated in place, or both compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.models import graph_model, node
from tests.frontend.test_loops import expected
from tests.frontend.test_narrow import assert_same_as_reference, model_of, stored
from tests.graph.executor import Array, assert_same_as_onnxruntime, run_network

Branch = tuple[Sequence[NodeProto], dict[str, Array]]


def branching(condition: str, output: str, then: Branch, other: Branch) -> NodeProto:
    """An ``If``; each branch has nodes and constants, and gives what its last node makes."""
    bodies = {
        name: helper.make_graph(
            nodes, name, [],
            [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, key) for key, array in held.items()],
        )
        for name, (nodes, held) in (("then_branch", then), ("else_branch", other))
    }  # fmt: skip
    return node("If", [condition], [output], **bodies)


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def squeezing(x: str, output: str, prefix: str) -> list[NodeProto]:
    """``x.squeeze(1)`` as TorchScript exports it: the axis goes if it has one element."""
    then: Branch = [node("Squeeze", [x, "axis"], [f"{prefix}_a"])], {}
    other: Branch = [node("Identity", [x], [f"{prefix}_b"])], {}
    return [
        node("Shape", [x], [f"{prefix}_shape"]),
        node("Gather", [f"{prefix}_shape", "axis"], [f"{prefix}_size"], axis=0),
        node("Equal", [f"{prefix}_size", "axis"], [f"{prefix}_is_one"]),
        branching(f"{prefix}_is_one", output, then, other),
    ]


@pytest.mark.parametrize("size", [1, 3])
def test_a_squeeze_is_decided_by_the_shape(size: int, rng: np.random.Generator) -> None:
    nodes = [node("Exp", ["x"], ["e"]), *squeezing("e", "s", "p"), node("Neg", ["s"], ["y"])]
    model = graph_model(nodes, {"x": (2, "n", 4)}, ["y"], {"axis": ints(1)})
    network = partition(optimize(load(model, dims={"n": size})))
    assert_same_as_onnxruntime(model, rng, network)
    assert network.outputs[0].shape == ((2, 4) if size == 1 else (2, 3, 4))


@pytest.mark.parametrize("dims", [None, {"n": (1, 9)}], ids=["assumed", "stated"])
def test_a_squeeze_that_a_size_decides_needs_that_size(dims: dict[str, Any] | None) -> None:
    """Whether or not somebody stated its range: none is assumed so that one branch is possible."""
    nodes = [node("Exp", ["x"], ["e"]), *squeezing("e", "s", "p"), node("Neg", ["s"], ["y"])]
    model = graph_model(nodes, {"x": (2, "n", 4)}, ["y"], {"axis": ints(1)})
    with pytest.raises(UnsupportedModel) as caught:
        load(model, dims=dims)
    (row,) = caught.value.rows
    assert (row.op, row.attribute) == ("If", "condition")
    said = "for example with --dim n=1 (dims= in Python), or a range that decides it"
    assert row.advice == f"choose one size, {said}"
    (output,) = load(model, dims={"n": (2, 9)}).outputs
    assert output.name == "y"


@pytest.mark.parametrize("empty", [0, 1], ids=["then", "else"])
@pytest.mark.parametrize("counted", [True, False])
def test_a_branch_may_give_nothing(empty: int, counted: bool, rng: np.random.Generator) -> None:
    """As detectors are exported: no boxes if there is none, else those that are kept."""
    nothing: Branch = [node("Identity", ["none"], ["n"])], {"none": np.zeros((0, 3), np.float32)}
    keeps = [node("Compress", ["x", "big"], ["kept"], axis=0)] if counted else []
    some: Branch = [*keeps, node("Neg", ["kept" if counted else "x"], ["m"])], {}
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0, axes=[0, 1]),
        node("Greater", ["most", "one"], ["above"]),
        node("ReduceMax", ["x"], ["row"], keepdims=0, axes=[1]),
        node("Greater", ["row", "half"], ["big"]),
        branching("above", "y", *((nothing, some) if empty == 0 else (some, nothing))),
        node("Concat", ["y", "x"], ["z"], axis=0),
    ]  # fmt: skip
    held = {"one": np.asarray(1, np.float32), "half": np.asarray(0.3, np.float32)}
    model = graph_model(nodes, {"x": (4, 3)}, ["y", "z"], held)
    network = partition(optimize(load(model)))
    for scale in (0.5, 1.5):
        x = (scale * rng.random((4, 3))).astype(np.float32)
        for got, want in zip(
            run_network(network, {"x": x}), expected(model, {"x": x}), strict=True
        ):
            np.testing.assert_array_equal(got, want)


def test_equal_branches_of_many_nodes_count_apart() -> None:
    """The graphs of their bodies are gone when later ones take their memory."""

    def of_kept(fn: str) -> Branch:
        return [node("Compress", ["x", "big"], ["kept"], axis=0), node(fn, ["kept"], ["r"])], {}

    nodes = [
        node("ReduceMax", ["x"], ["row"], keepdims=0, axes=[1]),
        node("Greater", ["row", "half"], ["big"]),
        node("ReduceMax", ["row"], ["most"], keepdims=0),
        node("Greater", ["most", "half"], ["above"]),
        *(branching("above", f"y{n}", of_kept("Neg"), of_kept("Exp")) for n in range(60)),
    ]
    names = [f"y{n}" for n in range(60)]
    model = graph_model(nodes, {"x": (4, 3)}, names, {"half": np.asarray(0.3, np.float32)})
    assert [output.name for output in load(model).returned] == names


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_branches_may_use_the_same_names_and_have_branches(
    outer: bool, inner: bool, rng: np.random.Generator
) -> None:
    def scaled(x: str, factor: float) -> Branch:
        constants = {"w": np.full(4, factor, np.float32)}
        return [node("Mul", [x, "w"], ["m"]), node("Add", ["m", "x"], ["r"])], constants

    nested = branching("inner", "n", scaled("e", 5), scaled("x", 7))
    nodes = [
        node("Exp", ["x"], ["e"]),
        branching("outer", "a", scaled("e", 2), scaled("x", 3)),
        branching("outer", "b", ([nested, node("Neg", ["n"], ["r"])], {}), scaled("a", 4)),
        node("Sub", ["a", "b"], ["y"]),
    ]
    held: dict[str, Array] = {"outer": np.asarray(outer), "inner": np.asarray([inner])}
    assert_same_as_onnxruntime(graph_model(nodes, {"x": (3, 4)}, ["y"], held), rng)


def test_a_branch_may_give_values_from_outside_and_constants(rng: np.random.Generator) -> None:
    table: dict[str, Array] = {"t": rng.standard_normal((2, 3)).astype(np.float32)}
    passing = branching("yes", "p", ([node("Identity", ["x"], ["i"])], {}),
                        ([node("Identity", ["t"], ["i"])], table))  # fmt: skip
    giving = branching("no", "g", ([node("Identity", ["x"], ["i"])], {}),
                       ([node("Exp", ["t"], ["i"])], table))  # fmt: skip
    nodes = [passing, giving, node("Add", ["p", "g"], ["y"])]
    held: dict[str, Array] = {"yes": np.asarray(True), "no": np.asarray(False)}
    assert_same_as_onnxruntime(graph_model(nodes, {"x": (2, 3)}, ["y"], held), rng)


def test_a_branch_may_give_constants_of_narrow_types(rng: np.random.Generator) -> None:
    weight = stored("FLOAT8E4M3FN", (10,), rng, "q")
    branch: Branch = [node("Constant", [], ["q"], value=weight)], {}
    one = branching("yes", "n", branch, branch)
    for attribute in one.attribute:
        attribute.g.output[0].type.tensor_type.elem_type = TensorProto.FLOAT8E4M3FN
    nodes = [one, node("Cast", ["n"], ["w"], to=TensorProto.FLOAT)]
    yes = numpy_helper.from_array(np.asarray(True), "yes")
    assert_same_as_reference(model_of(nodes, [yes]), rng)


def test_a_condition_computed_at_run_time_chooses_between_compiled_branches(
    rng: np.random.Generator,
) -> None:
    held: dict[str, Array] = {"zero": np.zeros((), np.float32), "t": np.ones((2, 3), np.float32)}
    other: Branch = (
        [node("Exp", ["e"], ["p"]), node("Mul", ["p", "w"], ["q"])],
        {"w": np.full(3, 2, np.float32)},
    )
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Less", ["most", "zero"], ["below"]),
        node("Sin", ["x"], ["e"]),
        branching("below", "y", ([node("Neg", ["x"], ["n"])], {}), other),
        branching("below", "z", ([node("Identity", ["t"], ["n"])], {}), other),
        node("Cos", ["y"], ["c"]),
    ]
    model = graph_model(nodes, {"x": (2, 3)}, ["c", "z", "y"], held)
    network = partition(optimize(load(model)))
    assert len(network.controls) == 2
    for sign in (-1, 1):
        x = sign * np.abs(rng.standard_normal((2, 3))).astype(np.float32)
        for got, want in zip(
            run_network(network, {"x": x}), expected(model, {"x": x}), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_branches_that_give_other_shapes_need_a_known_condition() -> None:
    def model(condition: str) -> ModelProto:
        nodes = [
            node("ReduceMax", ["x"], ["most"], keepdims=0),
            node("Less", ["most", "zero"], ["below"]),
            branching(
                condition, "y", ([node("Flatten", ["x"], ["n"])], {}),
                ([node("Exp", ["x"], ["e"])], {}),
            ),
        ]  # fmt: skip
        shapes = {"x": (2, 3, 1), "given": ()}
        held: dict[str, Array] = {"zero": np.zeros((), np.float32)}
        return graph_model(nodes, shapes, ["y"], held, types={"given": TensorProto.BOOL})

    with pytest.raises(UnsupportedModel) as caught:
        load(model("below"))
    (row,) = caught.value.rows
    assert row.attribute == ("condition, as the branches give float32[2, 3] and float32[2, 3, 1]")
    with pytest.raises(UnsupportedModel) as caught:
        load(model("given"))
    assert caught.value.needs == ("given",)


@pytest.mark.parametrize("domain", ["", "com.example"])
def test_only_the_branch_that_is_taken_has_to_be_supported(
    domain: str, rng: np.random.Generator
) -> None:
    strange = node("StringNormalizer" if not domain else "Fused", ["x"], ["d"], domain=domain)
    good: Branch = [node("ReduceMax", ["x"], ["d"], keepdims=0)], {}
    bad: Branch = [strange], {}

    def model(yes: bool) -> TensorProto:
        nodes = [branching("yes", "y", bad, good), node("Exp", ["y"], ["z"])]
        made = graph_model(nodes, {"x": (2, 2)}, ["z"], {"yes": np.asarray(yes)})
        made.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        return made

    assert [n.op.label for n in load(model(False)).nodes] == ["reduce_max", "exp"]
    with pytest.raises(UnsupportedModel) as caught:
        load(model(True))
    assert [(row.domain, row.op) for row in caught.value.rows] == [(domain, strange.op_type)]


def test_a_branch_in_an_unrolled_loop_reads_what_each_iteration_made(
    rng: np.random.Generator,
) -> None:
    """It counts what it keeps, and its only operand is the same in each iteration."""
    then = parser.parse_graph(
        """then () => (float[4] r) {
        m = Greater(s, zero)
        k = Compress<axis = 0>(s, m)
        t = ReduceSum<keepdims = 0>(k)
        r = Add(s, t)
    }"""
    )
    other = parser.parse_graph("other () => (float[4] e) { e = Identity(s) }")
    body = parser.parse_graph(
        "step (int64 i, bool c, float[4] s) => (bool c2, float[4] s2) { c2 = Identity(c) }"
    )
    body.node.append(node("If", ["flag"], ["s2"], then_branch=then, else_branch=other))
    loop = node("Loop", ["trips", "", "x"], ["y"], body=body)
    held: dict[str, Array] = {"trips": np.asarray(2), "zero": np.asarray(0, np.float32)}
    types = {"flag": TensorProto.BOOL}
    model = graph_model([loop], {"x": (4,), "flag": ()}, ["y"], held, types=types)
    network = partition(optimize(load(model)))
    for flag in (True, False):
        feeds = {"x": rng.standard_normal(4).astype(np.float32), "flag": np.asarray(flag)}
        [got] = run_network(network, feeds)
        np.testing.assert_allclose(got, expected(model, feeds)[0], rtol=1e-5)


@pytest.mark.parametrize("in_branch", [True, False])
def test_an_output_that_is_not_computed_is_refused(
    in_branch: bool, rng: np.random.Generator
) -> None:
    """In inference, a BatchNormalization has no new mean."""
    names = ("scale", "bias", "mean", "var")
    held = {name: rng.uniform(0.5, 1.5, 3).astype(np.float32) for name in names}
    norm = node("BatchNormalization", ["x", *names], ["n", "m", "v"])
    same = node("Identity", ["m"], ["t"])
    nodes = [norm, same]
    if in_branch:
        nodes = [branching("c", "t", (nodes, {}), ([node("Identity", ["z"], ["o"])], {}))]
    inputs = {"x": (2, 3, 4), "z": (3,), "c": ()}
    model = graph_model(nodes, inputs, ["t"], held, 15, {"c": TensorProto.BOOL})
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    [row] = caught.value.rows
    assert (row.op, row.attribute) == ("BatchNormalization", "output 1")
