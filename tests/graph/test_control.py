"""Loops and branches over the calls of a network: their parts, and memory under them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, parser

from ansorpy.frontend.onnx import load
from ansorpy.graph import Network
from ansorpy.graph.control import Branch, Inside, Loop, Spans, nested, runs_of
from ansorpy.graph.in_place import in_place
from ansorpy.graph.optimize import optimize
from ansorpy.graph.partition import partition
from ansorpy.graph.regions import Result, with_bodies
from tests.frontend.models import graph_model, node
from tests.frontend.test_loops import assert_same, compiled, floats
from tests.graph.test_in_place import everything, overlaps


def chained(depth: int, width: int) -> ModelProto:
    """A loop whose body has a loop and a branch between kernels that use values from outside."""
    then = parser.parse_graph("then () => (float[W, W] t) { t = MatMul(c, outer) }")
    other = parser.parse_graph("other () => (float[W, W] f) { g = MatMul(b, c) \n f = Tanh(g) }")
    inner = """inner (int64 j, bool d, float[W, W] u) => (bool d2, float[W, W] u2) {
        d2 = Identity(d)
        p = MatMul(u, b)
        u2 = Softmax<axis = -1>(p)
    }"""
    body = parser.parse_graph(
        """body (int64 i, bool c0, float[W, W] v, float s)
            => (bool go, float[W, W] w, float s2, float row) {
        a = MatMul(v, outer)
        b = Softmax<axis = -1>(a)
        one = Constant<value_float = 1.0>()
        s2 = Add(s, one)
        row = ReduceMax<keepdims = 0>(b)
        most = Constant<value_float = 9.0>()
        go = Less(s, most)
        small = Less(row, half)
    }"""
    )
    del body.output[3]
    looped = node("Loop", ["n", "", "a"], ["c"], body=parser.parse_graph(inner))
    chosen = node("If", ["small"], ["w"], then_branch=then, else_branch=other)
    body.node.extend([looped, chosen])
    outer = node("Loop", ["depth", "", "x", "zero"], ["y", "count"], body=body)
    nodes = [
        node("MatMul", ["x", "x"], ["xx"]), node("Softmax", ["xx"], ["outer"]), outer,
        node("Add", ["y", "outer"], ["z"]),
    ]  # fmt: skip
    for graph in (then, other, body):
        for info in (*graph.input, *graph.output):
            for dim in info.type.tensor_type.shape.dim:
                dim.dim_value = width
    held = {
        "depth": np.asarray(depth), "zero": np.zeros((), np.float32),
        "half": np.asarray(0.3, np.float32),
    }  # fmt: skip
    return graph_model(
        nodes, {"x": (width, width), "n": ()}, ["z", "count"], held,
        types={"n": TensorProto.INT64},
    )  # fmt: skip


@pytest.mark.parametrize("depth", [5, 6, 20])
def test_memory_is_shared_as_far_as_loops_allow(depth: int, rng: np.random.Generator) -> None:
    model = chained(depth, 4)
    network = compiled(model)
    assert not overlaps(network)
    smaller = in_place(network, everything(network))
    assert smaller.controls == network.controls
    for trips in (0, 1, 6):
        feeds = {"x": floats(rng, 4, 4), "n": np.int64(trips)}
        assert_same(network, model, feeds)
        assert_same(smaller, model, feeds)


def test_what_is_inside_is_a_part(rng: np.random.Generator) -> None:
    network = compiled(chained(7, 3))
    parts = nested(len(network.calls), network.controls)
    (outer,) = [part for part in parts if isinstance(part, Inside)]
    inner, branch = [part for part in outer.parts if isinstance(part, Inside)]
    assert isinstance(outer.control, Loop) and isinstance(inner.control, Loop)
    assert isinstance(branch.control, Branch)
    assert outer.control.trips == 7 and inner.control.limit == "n"
    assert flat(parts) == list(range(len(network.calls)))
    within = outer.control.start, inner.control.start
    assert [runs_of(call, network.controls) for call in (0, *within)] == [1, 7, 7 * 16]


def flat(parts: tuple[int | Inside[Loop | Branch], ...]) -> list[int]:
    found = [[part] if isinstance(part, int) else flat(part.parts) for part in parts]
    return [number for one in found for number in one]


def test_ranges_of_equal_length_nest_in_the_order_given() -> None:
    outer, inner, behind = Spans(1, 3), Spans(1, 3), Spans(3, 4)
    first, around, last, rest = nested(5, [outer, inner, behind])
    assert (first, rest) == (0, 4)
    assert isinstance(around, Inside) and around.control is outer
    (within,) = around.parts
    assert isinstance(within, Inside) and within.control is inner and within.parts == (1, 2)
    assert isinstance(last, Inside) and last.control is behind and last.parts == (3,)


def test_passes_change_bodies() -> None:
    graph = load(chained(7, 3))
    outputs = [o.name for node_ in with_bodies(graph, optimize).nodes
               for body in node_.op.bodies for o in body.outputs]  # fmt: skip
    assert outputs == ["made.0", "made.1", "made.2"] * 2
    plain = load(graph_model([node("Neg", ["x"], ["y"])], {"x": (2,)}, ["y"]))
    assert with_bodies(plain, optimize) is plain
    results = [n.op for n in optimize(graph).nodes if isinstance(n.op, Result)]
    assert len({result.region for result in results}) == 1 and len(results) == 2


def test_operands_that_are_parts_are_copied_and_dense_ones_are_not(
    rng: np.random.Generator,
) -> None:
    body = parser.parse_graph(
        """body (int64 i, bool c, float[2, 16] v) => (bool c2, float[2, 16] w) {
        c2 = Identity(c)
        w = Add(v, left)
    }"""
    )
    nodes = [
        node("Exp", ["x"], ["e"]), node("Split", ["e"], ["left", "right"], axis=1),
        node("Neg", ["e"], ["n"]), node("Loop", ["trips", "", "right"], ["y"], body=body),
        node("Concat", ["n", "y"], ["z"], axis=1),
    ]  # fmt: skip
    model = graph_model(nodes, {"x": (2, 32)}, ["z", "e"], {"trips": np.asarray(8)})
    network: Network = partition(optimize(load(model)))
    assert_same(network, model, {"x": floats(rng, 2, 32)})
