"""Loop and Scan: compiled as loops over the calls of their bodies, or unrolled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from ansorpy.graph.control import Loop
from ansorpy.graph.ir import text
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, run_network
from tests.peer import peer

__all__ = ["SCAN", "STEP", "Feeds", "assert_same", "compiled", "expected", "floats", "growing",
    "looping",
]  # fmt: skip

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
Shapes = Mapping[str, Sequence[int | str | None]]
Feeds = Mapping[str, Any]
"""Arrays, or numbers of numpy."""


def looping(
    body: str,
    inputs: Shapes,
    operands: Sequence[str],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    *,
    kind: str = "Loop",
    more: Sequence[Any] = (),
    results: Sequence[str] | None = None,
    **attributes: Any,
) -> ModelProto:
    """A model of one loop, whose *body* is a graph in onnx's text form, between *more* nodes."""
    graph = parser.parse_graph(body)
    looped = node(kind, list(operands), list(outputs), body=graph, **attributes)
    held = {name: np.asarray(value) for name, value in (constants or {}).items()}
    types = {"n": INT64, "begin": BOOL, "words": INT64, "starts": INT64}
    before = [m for m in more if not set(m.input) & set(outputs)]
    behind = [m for m in more if set(m.input) & set(outputs)]
    nodes = [*before, looped, *behind]
    return graph_model(nodes, inputs, list(results or outputs), held, types=types)


def expected(model: ModelProto, feeds: Feeds) -> list[Array]:
    session = peer(model)
    made = session.run(None, {name: np.asarray(value) for name, value in feeds.items()})
    return list(map(np.asarray, made))


def assert_same(network: Network, model: ModelProto, feeds: Feeds) -> None:
    arrays = {name: np.asarray(value) for name, value in feeds.items()}
    for got, want in zip(run_network(network, arrays), expected(model, feeds), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def compiled(model: ModelProto, **arguments: Any) -> Network:
    return partition(optimize(load(model, **arguments)))


def floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


STEP = """step (int64 i, bool c, float[5, 3] v) => (bool go, float[5, 3] w) {
    p = MatMul(v, weight)
    w = Tanh(p)
    s = ReduceSum<keepdims = 0>(w)
    go = Less(s, bound)
}"""


@pytest.mark.parametrize("trips", [0, 1, 2, 7, 8])
def test_a_condition_on_data_ends_a_loop_of_at_most_so_many_iterations(
    trips: int, rng: np.random.Generator
) -> None:
    constants = {"weight": floats(rng, 3, 3), "bound": np.float32(0.3)}
    model = looping(
        STEP, {"n": (), "begin": (), "x": (5, 3)}, ["n", "begin", "x"], ["y"], constants
    )
    network = compiled(model)
    (loop,) = network.controls
    assert isinstance(loop, Loop) and loop.limit and loop.begins and loop.goes_on
    assert loop.stop - loop.start <= 3
    for begin in (True, False):
        for _ in range(3):
            feeds = {"n": np.int64(trips), "begin": np.asarray(begin), "x": floats(rng, 5, 3)}
            assert_same(network, model, feeds)


@pytest.mark.parametrize("trips", [0, 1, 3, 5, 6])
def test_rows_of_each_iteration_are_written_where_they_stay(
    trips: int, rng: np.random.Generator
) -> None:
    body = """step (int64 i, bool c, float[3] v) => (bool c2, float[3] w, float[3] row, float f) {
        c2 = Identity(c)
        w = Mul(v, x)
        row = Neg(w)
        f = Cast<to = 1>(i)
    }"""
    model = looping(
        body, {"x": (3,)}, ["trips", "", "x"], ["y", "rows", "numbers"],
        {"trips": np.int64(trips)},
        more=[node("Exp", ["rows"], ["e"])], results=["y", "e", "numbers", "rows"],
    )  # fmt: skip
    network = compiled(model)
    assert len(network.controls) == (trips > 4)
    assert_same(network, model, {"x": floats(rng, 3)})


def test_carried_values_may_change_places_and_stay(rng: np.random.Generator) -> None:
    body = """step (int64 i, bool c, float[4] a, float[4] b, float[4] k, float[4] o)
        => (bool c2, float[4] b2, float[4] a2, float[4] k2, float[4] o2) {
        c2 = Identity(c)
        b2 = Add(b, k)
        a2 = Identity(a)
        k2 = Identity(k)
        o2 = Identity(outer)
    }"""
    inputs = {name: (4,) for name in ("x", "z", "k0", "outer")}
    model = looping(
        body, inputs, ["trips", "", "x", "z", "k0", "x"], ["p", "q", "r", "s"],
        {"trips": np.int64(9)},
    )  # fmt: skip
    network = compiled(model)
    (loop,) = network.controls
    assert isinstance(loop, Loop) and len(loop.carried) == 3
    assert_same(network, model, {name: floats(rng, 4) for name in inputs})


def test_loops_and_branches_inside_each_other(rng: np.random.Generator) -> None:
    inner = """inner (int64 j, bool d, float[2, 3] u) => (bool d2, float[2, 3] u2, float[3] row) {
        d2 = Identity(d)
        first = Gather<axis = 0>(u, j)
        h = Add(u, first)
        u2 = Mul(h, half)
        row = Mul(first, x)
    }"""
    then = parser.parse_graph("then () => (float[2, 3] t) { t = Add(w, v) }")
    other = parser.parse_graph("other () => (float[2, 3] f) { f = Sub(w, half) }")
    body = parser.parse_graph(
        """outer (int64 i, bool c, float[2, 3] v) => (bool c2, float[2, 3] r) {
        c2 = Identity(c)
        two = Constant<value_int = 2>()
        zero = Constant<value_int = 0>()
        odd = Mod(i, two)
        is_odd = Greater(odd, zero)
    }"""
    )
    looped = node("Loop", ["two", "", "v"], ["w", "rows"], body=parser.parse_graph(inner))
    body.node.extend([
        looped, node("If", ["is_odd"], ["r"], then_branch=then, else_branch=other),
    ])  # fmt: skip
    outer = node("Loop", ["n", "", "start"], ["y"], body=body)
    held = {"half": np.asarray([[0.5]], np.float32)}
    model = graph_model(
        [node("Sin", ["x2"], ["start"]), outer, node("Cos", ["y"], ["z"])],
        {"n": (), "x": (3,), "x2": (2, 3)}, ["z", "y"], held, types={"n": INT64},
    )  # fmt: skip
    network = compiled(model)
    for trips in (0, 1, 4, 5):
        feeds = {"n": np.int64(trips), "x": floats(rng, 3), "x2": floats(rng, 2, 3)}
        assert_same(network, model, feeds)


SCAN = """step (float[2, 5] h, float[2, 3] x, float[4] z)
    => (float[2, 5] g, float[2, 5] out, float other) {
    p = MatMul(x, w)
    q = MatMul(h, r)
    both = Add(p, q)
    g = Tanh(both)
    out = Identity(g)
    other = ReduceSum<keepdims = 0>(z)
}"""


@pytest.mark.parametrize("steps", [1, 4, 11, 12])
@pytest.mark.parametrize("backwards", [0, 1])
def test_a_scan_over_rows(steps: int, backwards: int, rng: np.random.Generator) -> None:
    constants = {"w": floats(rng, 3, 5), "r": floats(rng, 5, 5) / 4}
    model = looping(
        SCAN, {"h0": (2, 5), "xs": (2, steps, 3), "zs": (4, steps)}, ["h0", "xs", "zs"],
        ["last", "outs", "others"], constants, kind="Scan", num_scan_inputs=2,
        scan_input_axes=[1, -1], scan_input_directions=[backwards, 1],
        scan_output_axes=[1, 0], scan_output_directions=[1 - backwards, 0],
    )  # fmt: skip
    network = compiled(model)
    assert len(network.controls) == (steps > 4)
    feeds = {"h0": floats(rng, 2, 5), "xs": floats(rng, 2, steps, 3), "zs": floats(rng, 4, steps)}
    assert_same(network, model, feeds)


@pytest.mark.parametrize(("batch", "steps"), [(3, 2), (7, 5)])
def test_a_scan_of_operator_set_8_has_a_batch(
    batch: int, steps: int, rng: np.random.Generator
) -> None:
    body = parser.parse_graph(
        """step (float[2] total, float[2] x) => (float[2] after, float[2] row) {
        after = Add(total, x)
        row = Mul(after, x)
    }"""
    )
    scan = node("Scan", ["", "t", "xs"], ["y", "rows"], body=body, num_scan_inputs=1,
                directions=[1])  # fmt: skip
    model = graph_model([scan], {"t": (batch, 2), "xs": (batch, steps, 2)}, ["y", "rows"], opset=8)
    network = compiled(model)
    assert len(network.controls) == (batch > 4) + (steps > 4)
    feeds = {"t": floats(rng, batch, 2), "xs": floats(rng, batch, steps, 2)}
    y, rows = run_network(network, feeds)
    total, backwards = feeds["t"], feeds["xs"][:, ::-1]
    sums = total[:, None] + np.cumsum(backwards, 1)
    np.testing.assert_allclose(y, sums[:, -1], rtol=1e-5)
    np.testing.assert_allclose(rows, sums * backwards, rtol=1e-5)


def test_the_body_of_a_scan_is_a_few_calls() -> None:
    constants = {"w": np.ones((3, 5), np.float32), "r": np.ones((5, 5), np.float32)}
    model = looping(
        SCAN, {"h0": (2, 5), "xs": (1000, 2, 3), "zs": (1000, 4)}, ["h0", "xs", "zs"],
        ["last", "outs", "others"], constants, kind="Scan", num_scan_inputs=2,
    )  # fmt: skip
    graph = load(model)
    assert "Loop(trips=1000, carried=1)" in text(graph)
    network = partition(optimize(graph))
    assert len(network.calls) <= 6
    weights = {w.name: w.weight for w in network.workloads()}
    assert sorted(weights.values()) == [1, 1, 1000, 1000]  # what needs only the rows is outside


def test_shapes_that_change_are_unrolled_where_the_length_is_known(
    rng: np.random.Generator,
) -> None:
    body = """step (int64 i, bool c, float[?, 2] v) => (bool c2, float[?, 2] w) {
        c2 = Identity(c)
        e = Exp(x)
        w = Concat<axis = 0>(v, e)
    }"""
    shapes = {"n": (), "x": (1, 2)}
    known = looping(body, {"x": (1, 2)}, ["trips", "", "x"], ["y"], {"trips": np.int64(6)})
    network = compiled(known)
    assert not network.controls
    assert_same(network, known, {"x": floats(rng, 1, 2)})
    open_ = looping(body, shapes, ["n", "", "x"], ["y"])
    with pytest.raises(UnsupportedModel) as caught:
        load(open_)
    assert caught.value.needs == ("n",)
    network = compiled(open_, constants={"n": 5})
    assert network.outputs[0].shape == (6, 2)


@pytest.mark.parametrize("trips", [3, 7])
def test_a_body_of_the_old_format_lists_its_constants_as_inputs(
    trips: int, rng: np.random.Generator
) -> None:
    body = """step (int64 i, bool c, float[2] v, float[2] k) => (bool go, float[2] w)
        <float[2] k = {0.5, -2.0}> {
        go = Identity(c)
        w = Mul(v, k)
    }"""
    model = looping(body, {"x": (2,)}, ["most", "", "x"], ["y"], {"most": trips})
    old = helper.make_model(model.graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)
    old.graph.input.append(helper.make_tensor_value_info("most", INT64, ()))
    assert_same(compiled(old), old, {"x": floats(rng, 2)})


def test_a_carried_sequence_needs_a_loop_of_known_length() -> None:
    body = """step (int64 i, bool c, seq(float[2]) v) => (bool go, seq(float[2]) w) {
        go = Identity(c)
        w = SequenceInsert(v, x)
    }"""
    first = node("SequenceConstruct", ["x"], ["first"])
    last = node("ConcatFromSequence", ["all"], ["y"], axis=0)
    model = looping(body, {"x": (2,)}, ["most", "", "first"], ["all"], {"most": 257},
                    more=[first, last], results=["y"])  # fmt: skip
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert caught.value.rows[0].advice == "the number of iterations must be known, and at most 256"


def test_a_carried_value_that_changes_is_refused() -> None:
    body = """step (int64 i, bool c, float[2] v) => (bool go, float[?] w) {
        w = Concat<axis = 0>(v, v)
        s = ReduceSum<keepdims = 0>(v)
        go = Less(s, s)
    }"""
    model = looping(body, {"x": (2,)}, ["", "", "x"], ["y"])
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    (row,) = caught.value.rows
    assert row.attribute == "a carried value"
    assert row.advice == (
        "it is float32[2] before an iteration and float32[4] after it; they must be equal"
    )


def test_what_the_body_refuses_is_said_once() -> None:
    info = helper.make_tensor_value_info
    inner = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("StringNormalizer", ["v"], ["w"])], "step",
        [info("i", INT64, ()), info("c", BOOL, ()), info("v", 1, (2,))],
        [info("c2", BOOL, ()), info("w", 1, (2,))],
    )  # fmt: skip
    loop = node("Loop", ["trips", "", "x"], ["y"], body=inner)
    model = graph_model([loop], {"x": (2,)}, ["y"], {"trips": np.asarray(9)})
    with pytest.raises(UnsupportedModel) as caught:
        load(model)
    assert [row.op for row in caught.value.rows] == ["StringNormalizer"]


def test_constants_are_computed_when_a_loop_reads_only_these() -> None:
    body = """step (int64 i, bool c, float[2] v) => (bool c2, float[2] w, float[2] row) {
        c2 = Identity(c)
        w = Add(v, one)
        row = Mul(w, w)
    }"""
    model = looping(
        body, {"x": (2,)}, ["trips", "", "one"], ["y", "rows"],
        {"trips": np.int64(7), "one": np.ones(2, np.float32)},
        more=[node("Add", ["y", "x"], ["z"])], results=["z", "rows"],
    )  # fmt: skip
    graph = load(model)
    assert [n.op.label for n in graph.nodes] == ["add"]
    rows = next(graph.constants[o.value] for o in graph.outputs if o.name == "rows")
    np.testing.assert_array_equal(rows[:, 0], np.arange(2, 9.0) ** 2)


def test_sizes_may_be_open(rng: np.random.Generator) -> None:
    model = looping(
        SCAN.replace("float[2, ", "float[b, "),
        {"h0": ("b", 5), "xs": ("t", "b", 3), "zs": ("t", 4)}, ["h0", "xs", "zs"],
        ["last", "outs", "others"],
        {"w": floats(rng, 3, 5), "r": floats(rng, 5, 5)}, kind="Scan", num_scan_inputs=2,
    )  # fmt: skip
    network = compiled(model, dims={"t": (0, 30), "b": (1, 4)})
    (loop,) = network.controls
    assert isinstance(loop, Loop) and str(loop.trips) == "t"


GROWING = """step (int64 i, bool c, float[3] v) => (bool go, float[3] w, float[3] row, int64 j) {
    w = Mul(v, x)
    row = Neg(w)
    j = Identity(i)
    s = ReduceMax<keepdims = 0>(w)
    go = Less(s, most)
}"""


def growing(trips: int) -> ModelProto:
    """A loop of at most *trips* iterations, all of whose rows are results."""
    model = looping(
        GROWING, {"x": (3,)}, ["trips", "", "x"], ["y", "rows", "numbers"],
        {"most": np.float32(100), "trips": np.int64(trips)},
        more=[node("ReduceSum", ["rows"], ["sums"], keepdims=0)],
        results=["y", "sums", "rows", "numbers"],
    )  # fmt: skip
    model.graph.output[3].type.tensor_type.elem_type = INT64
    return model


def test_a_condition_decides_how_many_rows_there_are() -> None:
    model = growing(9)
    network = compiled(model)
    assert len(network.controls) == 1 and len(network.counts) == 1
    for scale, rows in ((0.5, 9), (2, 6), (99, 1), (3, 4)):
        feeds = {"x": np.asarray([scale, 1, 0.25], np.float32)}
        assert_same(network, model, feeds)
        assert run_network(network, feeds)[2].shape == (rows, 3)


BAGS = """step (int64 i, bool c) => (bool c2, float[5] row) {
    c2 = Identity(c)
    start = Gather<axis = 0>(starts, i)
    end = Gather<axis = 0>(ends, i)
    first = Unsqueeze(start, zero)
    last = Unsqueeze(end, zero)
    chosen = Slice(words, first, last, zero)
    rows = Gather<axis = 0>(table, chosen)
    row = REDUCE
}"""


@pytest.mark.parametrize(
    "reduction",
    [
        "ReduceSum<keepdims = 0>(rows, zero)",
        "ReduceMean<axes = [0], keepdims = 0>(rows)",
        "ReduceMax<axes = [0], keepdims = 0>(rows)",
    ],
)
@pytest.mark.parametrize("bags", [3, 7, "b"])
def test_bags_of_rows_whose_sizes_are_data(
    bags: int | str, reduction: str, rng: np.random.Generator
) -> None:
    """As TorchScript exports EmbeddingBag: an iteration for each bag, which reads its own rows."""
    more = [
        node("Shape", ["starts"], ["count"]), node("Squeeze", ["count", "zero"], ["trips"]),
        node("Shape", ["words"], ["all"]), node("Concat", ["starts", "all"], ["ends_0"], axis=0),
        node("Slice", ["ends_0", "one", "most", "zero"], ["ends"]),
    ]  # fmt: skip
    model = looping(
        BAGS.replace("REDUCE", reduction), {"words": (12,), "starts": (bags,)}, ["trips", ""],
        ["y"], {"zero": np.array([0]), "one": np.array([1]), "most": np.array([1 << 40]),
                "table": floats(rng, 9, 5)}, more=more,
    )  # fmt: skip
    network = compiled(model, dims={"b": (1, 40)} if bags == "b" else None)
    assert len(network.controls) == (bags != 3)
    if bags != "b":
        starts = np.sort(rng.choice(np.arange(1, 12), int(bags) - 1, replace=False))
        feeds = {"words": rng.integers(0, 9, 12), "starts": np.array([0, *starts])}
        assert_same(network, model, feeds)


def test_slices_of_the_same_ends_have_one_size(rng: np.random.Generator) -> None:
    """As those of the words of a bag and of their weights."""
    nodes = [
        node("Slice", ["words", "starts", "n1", "zero"], ["chosen"]),
        node("Gather", ["table", "chosen"], ["rows"], axis=0),
        node("Slice", ["weights", "starts", "n1", "zero"], ["shares"]),
        node("Unsqueeze", ["shares", "one"], ["column"]),
        node("Mul", ["rows", "column"], ["y"]),
    ]
    held = {"zero": np.array([0]), "one": np.array([1]), "table": floats(rng, 9, 5)}
    types = {"words": INT64, "starts": INT64, "n1": INT64}
    shapes = {"words": (12,), "weights": (12,), "starts": (1,), "n1": (1,)}
    model = graph_model(nodes, shapes, ["y"], held, types=types)
    del model.graph.value_info[:]
    network = compiled(model)
    for first, end in ((2, 7), (0, 12), (5, 5)):
        feeds = {
            "words": rng.integers(0, 9, 12), "weights": floats(rng, 12),
            "starts": np.array([first]), "n1": np.array([end]),
        }  # fmt: skip
        assert_same(network, model, feeds)
