"""What moves out of loops: invariants and maps of rows before them, maps of results behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import ansorpy as ap
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.ir import Graph
from ansorpy.graph.passes.hoist_from_loops import hoist_from_loops
from ansorpy.graph.passes.sink_from_loops import sink_from_loops
from ansorpy.graph.regions import LoopRegion, Result
from tests.frontend.models import graph_model, node
from tests.frontend.test_loops import assert_same, expected, floats, looping

Rng = np.random.Generator


def loop_of(graph: Graph) -> LoopRegion:
    """The loop of a network that has one."""
    regions = {n.op.region for n in graph.nodes if isinstance(n.op, Result)}
    [region] = regions
    assert isinstance(region, LoopRegion)
    return region


def inner_ops(graph: Graph) -> list[str]:
    """What the body of the loop computes, in order."""
    return [n.op.label for n in loop_of(graph).body.nodes]


def outer_ops(graph: Graph) -> list[str]:
    return [n.op.label for n in graph.nodes if not isinstance(n.op, Result)]


def optimized(model: ModelProto, **arguments: Any) -> Graph:
    return optimize(load(model, **arguments))


def recurrent(body: str, rows: int | str = 7, **attributes: Any) -> ModelProto:
    """A Scan whose *body* maps ``h`` [2, 5] and ``x`` [2, 3] to ``g`` and ``y``."""
    text = f"step (float[2, 5] h, float[2, 3] x) => (float[2, 5] g, float y) {{ {body} }}"
    rng = np.random.default_rng(1)
    constants = {
        "w": floats(rng, 3, 5), "r": floats(rng, 5, 5) / 4, "v": floats(rng, 5, 4),
        "bias": floats(rng, 5), "axes": np.asarray([1]),
    }  # fmt: skip
    used = {name: c for name, c in constants.items() if name in text}
    return looping(
        text, {"h0": (2, 5), "xs": (rows, 2, 3), **({"state": (2, 5)} if "(state" in text else {})},
        ["h0", "xs"], ["last", "ys"], used, kind="Scan", num_scan_inputs=1, **attributes,
    )  # fmt: skip


def check(model: ModelProto, rng: Rng, rows: int = 7, **arguments: Any) -> Graph:
    """Compare *model* with onnxruntime; return its graph."""
    graph = optimized(model, **arguments)
    feeds = {"h0": floats(rng, 2, 5), "xs": floats(rng, rows, 2, 3), "state": floats(rng, 2, 5)}
    names = {i.name for i in model.graph.input}
    assert_same(partition(graph), model, {n: a for n, a in feeds.items() if n in names})
    return graph


@pytest.mark.parametrize("backwards", [0, 1])
def test_products_of_rows_are_one_product(backwards: int, rng: Rng) -> None:
    model = recurrent(
        """p = MatMul(x, w) \n b = Add(p, bias) \n q = MatMul(h, r) \n both = Add(b, q)
        g = Tanh(both) \n y = Identity(g)""", scan_input_directions=[backwards],
    )  # fmt: skip
    graph = check(model, rng)
    assert inner_ops(graph).count("matmul") == 1 and outer_ops(graph).count("matmul") == 1
    assert loop_of(graph).read == (bool(backwards),)
    assert inner_ops(graph) == ["matmul", "add", "tanh"]


def test_rows_of_any_number(rng: Rng) -> None:
    model = recurrent(
        "p = MatMul(x, w) \n q = MatMul(h, r) \n a = Add(p, q) \n g = Tanh(a) \n y = MatMul(g, v)",
        "t",
    )
    graph = optimized(model, dims={"t": (2, 3)})
    made = ap.compile(model, dims={"t": (2, 3)}, effort="none", threads=1)
    for rows in (2, 3):
        feeds = {"h0": floats(rng, 2, 5), "xs": floats(rng, rows, 2, 3)}
        for got, want in zip(made.run(None, feeds), expected(model, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    assert inner_ops(graph) == ["matmul", "add", "tanh"]
    assert outer_ops(graph).count("matmul") == 2


@pytest.mark.parametrize("backwards", [0, 1])
def test_products_of_results_are_behind_the_loop(backwards: int, rng: Rng) -> None:
    model = recurrent(
        """a = MatMul(h, r) \n p = MatMul(x, w) \n c = Add(a, p) \n g = Sigmoid(c)
        o = MatMul(g, v) \n y = Softmax(o)""", scan_output_directions=[backwards],
    )  # fmt: skip
    graph = check(model, rng)
    assert inner_ops(graph) == ["matmul", "add", "sigmoid"]
    assert loop_of(graph).written == (bool(backwards),)


def test_what_a_later_iteration_needs_stays(rng: Rng) -> None:
    model = recurrent(
        "a = MatMul(h, r) \n p = MatMul(x, w) \n c = Add(a, p) \n g = Softmax(c) \n y = Neg(g)"
    )
    graph = check(model, rng)
    assert inner_ops(graph)[:3] == ["matmul", "add", "softmax"]


def test_rows_that_no_iteration_needs_are_no_loop(rng: Rng) -> None:
    """What is read, and maps of it, are written without the loop."""
    model = recurrent(
        "p = MatMul(x, w) \n s = ReduceSum<keepdims=0>(p) \n y = Exp(s) \n g = Sin(h)"
    )
    graph = check(model, rng)
    assert inner_ops(graph) == ["sin"] and not loop_of(graph).written


def test_arithmetic_alone_stays_with_its_readers(rng: Rng) -> None:
    model = recurrent(
        """d = ReduceSum<keepdims=1>(h, axes) \n e = Mul(x, x)
        m = MatMul(h, r) \n g = Add(m, d) \n y = Mul(e, d)"""
    )  # fmt: skip
    graph = check(model, rng)
    assert "mul" in inner_ops(graph)


MOVES = {
    "reshape": "z = Constant<value_ints = [3, 2]>() \n t = Reshape(x, z)"
               "\n u = Transpose<perm = [1, 0]>(t)",
    "slices": "a, b = Split<axis = 1, num_outputs = 2>(x) \n u = Concat<axis = 1>(b, a)",
    "expand": "m = ReduceMax<keepdims = 1>(x, axes) \n z = Constant<value_ints = [4, 2, 3]>() \n"
              "e = Expand(m, z) \n k = Constant<value_ints = [0]>() \n"
              "u = ReduceMean<keepdims=0>(e, k)",
    "broadcast": "k = ReduceMean<keepdims = 0>(x, axes) \n n = Unsqueeze(k, axes) \n u = Add(n, x)",
    "softmax": "u = Softmax<axis = 0>(x)",
    "norm": "c = Constant<value_floats = [1.0, 2.0, 3.0]>() \n"
            "u = LayerNormalization<axis = -1>(x, c)",
    "places": "m = ArgMax<axis = 1, keepdims = 1>(x) \n f = Cast<to = 1>(m) \n u = Add(f, x)",
    "gather": "m = ArgMin<axis = 1, keepdims = 0>(x) \n u = Gather(w, m) \n"
              "k = Constant<value_ints = [0, 3]>()",
    "batch": "t = Unsqueeze(x, axes) \n n = Concat<axis = 1>(t, t) \n j = MatMul(n, w) \n"
             "k = Constant<value_ints = [1]>() \n l = ReduceSum<keepdims = 0>(j, k) \n u = Neg(l)",
    "left": "j = MatMul(left, x) \n u = Neg(j)",
    "both": "n = Transpose(x) \n u = MatMul(n, x)",
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_operators_on_all_rows(name: str, rng: Rng) -> None:
    """Whatever leads from a row to a product is done for all rows."""
    weight = "r" if name in ("gather", "batch") else "w"
    text = f"""step (float[2, 5] h, float[2, 3] x) => (float[2, 5] g, float y) {{
        {MOVES[name]}
        product = MatMul(u, {weight})
        part = Slice(product, zero, two)
        s = Sin(h)
        g = Mul(s, part)
        y = ReduceMax<keepdims = 0>(h)
    }}"""
    constants = {
        "w": floats(rng, 3, 5), "r": floats(rng, 5, 5), "axes": np.asarray([1]),
        "left": floats(rng, 2, 2), "zero": np.asarray([0]), "two": np.asarray([2]),
    }  # fmt: skip
    model = looping(
        text, {"h0": (2, 5), "xs": (6, 2, 3)}, ["h0", "xs"], ["last", "ys"],
        {n: c for n, c in constants.items() if n in text}, kind="Scan", num_scan_inputs=1,
    )  # fmt: skip
    model.opset_import[0].version = 18
    graph = check(model, rng, 6)
    assert "matmul" not in inner_ops(graph) and "matmul" in outer_ops(graph)


@pytest.mark.parametrize("limit", [1, 3, 6])
def test_invariants_of_a_loop_that_may_end(limit: int, rng: Rng) -> None:
    """They are computed once, whatever ends the loop; rows of it are mapped behind it."""
    body = """step (int64 i, bool c, float[2, 3] h) => (bool go, float[2, 3] g, float y) {
        s = MatMul(x, w)
        e = Exp(s)
        a = Add(h, e)
        g = Mul(a, half)
        y = MatMul(g, w)
        t = ReduceMax<keepdims = 0>(g)
        go = Less(t, most)
    }"""
    model = looping(
        body, {"n": (), "x": (2, 3), "h0": (2, 3)}, ["n", "", "h0"], ["last", "ys"],
        {"w": np.abs(floats(rng, 3, 3)), "half": np.float32(1.1), "most": np.float32(1e3)},
    )  # fmt: skip
    graph = optimized(model, bounds={"n": 6})
    assert inner_ops(graph) == ["add", "mul", "reduce_max", "less"]
    feeds = {"n": np.int64(limit), "x": floats(rng, 2, 3), "h0": floats(rng, 2, 3)}
    assert_same(partition(graph), model, feeds)


def test_rows_that_a_loop_picks_by_its_number(rng: Rng) -> None:
    """Exporters of programs write ``x[i]``, and arithmetic on ``i``."""
    body = """step (int64 i, bool c, float[2, 5] h) => (bool go, float[2, 5] g) {
        go = Identity(c)
        last = Sub(five, i)
        a = Gather(xs, i)
        b = Gather(xs, last)
        both = Add(a, b)
        p = MatMul(both, w)
        q = MatMul(h, r)
        s = Add(p, q)
        g = Tanh(s)
    }"""
    model = looping(
        body, {"xs": (6, 2, 3), "h0": (2, 5)}, ["n", "", "h0"], ["last"],
        {"w": floats(rng, 3, 5), "r": floats(rng, 5, 5), "n": np.asarray(6), "five": np.asarray(5)},
    )  # fmt: skip
    graph = optimized(model)
    assert inner_ops(graph) == ["matmul", "add", "tanh"]
    assert_same(partition(graph), model, {"xs": floats(rng, 6, 2, 3), "h0": floats(rng, 2, 5)})


def test_cheap_invariants_are_not_stored(rng: Rng) -> None:
    """A row that is repeated, or arithmetic that makes a large tensor of small ones, is not."""
    model = recurrent("k = Mul(state, state) \n z = Constant<value_ints = [9, 2, 5]>() \n"
                      "e = Expand(k, z) \n q = ReduceSum<keepdims=0>(e) \n"
                      "n = Mul(h, q) \n g = Tanh(n) \n y = ReduceMax<keepdims=0>(x)")  # fmt: skip
    graph = check(model, rng)
    assert inner_ops(graph) == ["mul", "tanh"]


def test_loops_in_loops(rng: Rng) -> None:
    """An invariant of both is computed before the outer one."""
    inner = parser.parse_graph(
        """inner (int64 j, bool d, float[4] v) => (bool d2, float[4] u) {
        d2 = Identity(d)
        m = MatMul(x, w)
        n = Add(v, m)
        k = MatMul(o, w)
        l = Add(n, k)
        u = Tanh(l)
    }"""
    )
    body = parser.parse_graph(
        "outer (int64 i, bool c, float[4] o) => (bool c2, float[4] p) { c2 = Identity(c) }"
    )
    body.node.append(node("Loop", ["five", "", "o"], ["p"], body=inner))
    model = graph_model(
        [node("Loop", ["many", "", "x"], ["y"], body=body)], {"x": (4,)}, ["y"],
        {"w": floats(rng, 4, 4), "five": np.asarray(5), "many": np.asarray(6)},
    )  # fmt: skip
    graph = optimized(model)
    outer = loop_of(graph)
    assert outer_ops(graph).count("matmul") == 1
    assert [n.op.label for n in outer.body.nodes].count("matmul") == 1
    assert "matmul" not in inner_ops(outer.body)
    assert_same(partition(graph), model, {"x": floats(rng, 4)})


def test_a_graph_without_loops_is_the_same_object() -> None:
    graph = load(graph_model([node("Neg", ["x"], ["y"])], {"x": (3,)}, ["y"]))
    assert hoist_from_loops(graph) is graph and sink_from_loops(graph) is graph
