"""Sizes that depend on data inside bodies of loops: each iteration counts them for itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, parser

import ansorpy as ap
from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.frontend.test_loops import expected, floats, looping
from tests.runtime.programs import plain_model
from tests.runtime.test_control import TARGETS

Rng = np.random.Generator

CHOOSING = """step (int64 i, bool c, float[3] v) => (bool go, float[3] w, float row) {
    go = Identity(c)
    above = Less(zero, v)
    places = NonZero(above)
    flat = Squeeze(places, axes)
    chosen = Gather(v, flat)
    row = ReduceSum<keepdims = 0>(chosen)
    shares = Softmax<axis = 0>(chosen)
    top = ReduceMax<keepdims = 0>(shares)
    k = Mul(row, half)
    d = Sub(v, k)
    w = Add(d, top)
}"""
"""Subtracts part of the sum of the positive elements, and adds the largest share of one."""
CONSTANTS = {"zero": np.float32(0), "half": np.float32(0.25), "axes": np.asarray([0])}


def assert_same(made: Any, model: ModelProto, feeds: Mapping[str, Any]) -> None:
    for got, want in zip(made.run(None, feeds), expected(model, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_each_iteration_chooses(target: str | None, tmp_path: Path, rng: Rng) -> None:
    model = looping(
        CHOOSING, {"n": (), "x": (3,)}, ["n", "", "x"], ["last", "rows"], CONSTANTS,
    )  # fmt: skip
    made = plain_model(model, target, bounds={"n": 9})
    library = ap.load(made.export(tmp_path / "net.so"))
    for trips in (1, 4, 9):
        feeds = {"n": np.int64(trips), "x": np.abs(floats(rng, 3)) - 0.3}
        assert_same(made, model, feeds)
        assert_same(library, model, feeds)
    x = floats(rng, 3)
    assert made.run(None, {"n": np.int64(0), "x": x})[1].shape == (0,)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_scan_of_any_length(target: str | None, rng: Rng) -> None:
    """Two loops with equal bodies; what they count has nothing to do with each other."""
    text = """step (float[5] s, float[t] x) => (float[5] u, float most) {
        above = Less(zero, x)
        kept = Compress<axis = 0>(x, above)
        twice = Concat<axis = 0>(kept, kept)
        padded = Concat<axis = 0>(twice, zeros)
        most = ReduceMax<keepdims = 0>(padded)
        u = Add(s, most)
    }"""
    body = parser.parse_graph(text)
    nodes = [
        node("Scan", ["s0", "xs"], ["middle", "first"], body=body, num_scan_inputs=1),
        node("Neg", ["xs"], ["ys"]),
        node("Scan", ["middle", "ys"], ["last", "second"], body=body, num_scan_inputs=1),
    ]
    held = {"zero": np.asarray(0, np.float32), "zeros": np.zeros(1, np.float32)}
    model = graph_model(
        nodes, {"s0": (5,), "xs": (6, "t")}, ["last", "first", "second"], held
    )  # fmt: skip
    made = plain_model(model, target, dims={"t": (1, 3)})
    for width in (1, 2, 3):
        assert_same(made, model, {"s0": floats(rng, 5), "xs": floats(rng, 6, width)})


@pytest.mark.parametrize("target", TARGETS)
def test_loops_and_branches_over_what_is_counted(target: str | None, rng: Rng) -> None:
    """A loop of as many iterations as an outer one counts, and a branch that reads what is kept."""
    inner = parser.parse_graph(
        """inner (int64 j, bool d, float[4] a) => (bool d2, float[4] b) {
        d2 = Identity(d)
        total = ReduceSum<keepdims = 0>(kept)
        b = Add(a, total)
    }"""
    )
    then = parser.parse_graph("then () => (float t) { t = ReduceSum<keepdims = 0>(kept) }")
    other = parser.parse_graph("other () => (float e) { e = ReduceSum<keepdims = 0>(filled) }")
    body = parser.parse_graph(
        """outer (int64 i, bool c, float[4] v) => (bool c2, float[4] w) {
        c2 = Identity(c)
        above = Less(zero, v)
        kept = Compress<axis = 0>(v, above)
        filled = Exp(kept)
        size = Size(kept)
        big = Less(size, two)
    }"""
    )
    body.node.extend([
        node("Loop", ["size", "", "v"], ["u"], body=inner),
        node("If", ["big"], ["z"], then_branch=then, else_branch=other),
        node("Sub", ["u", "z"], ["m"]), node("Tanh", ["m"], ["w"]),
    ])  # fmt: skip
    held = {"zero": np.asarray(0, np.float32), "two": np.asarray(2)}
    model = graph_model(
        [node("Loop", ["n", "", "x"], ["y"], body=body)], {"n": (), "x": (4,)}, ["y"], held,
        types={"n": TensorProto.INT64},
    )  # fmt: skip
    made = plain_model(model, target)
    for trips in (0, 1, 5, 8):
        assert_same(made, model, {"n": np.int64(trips), "x": floats(rng, 4)})


def test_iterations_that_an_inner_loop_counts(rng: Rng) -> None:
    """Rows of a loop that a condition ends, reduced in the body of another one."""
    inner = parser.parse_graph(
        """inner (int64 j, bool d, float a) => (bool d2, float b, float r) {
        b = Add(a, one)
        r = Mul(b, b)
        d2 = Less(b, most)
    }"""
    )
    body = parser.parse_graph(
        "outer (int64 i, bool c, float v) => (bool c2, float w) { c2 = Identity(c) }"
    )
    body.node.extend([
        node("Loop", ["ten", "", "v"], ["end", "squares"], body=inner),
        node("ReduceSum", ["squares"], ["sum"], keepdims=0), node("Mul", ["sum", "part"], ["w"]),
    ])  # fmt: skip
    held = {
        "one": np.asarray(1, np.float32), "most": np.asarray(5, np.float32), "ten": np.asarray(10),
        "part": np.asarray(0.02, np.float32),
    }  # fmt: skip
    model = graph_model(
        [node("Loop", ["n", "", "x"], ["y"], body=body)], {"n": (), "x": ()}, ["y"], held,
        types={"n": TensorProto.INT64},
    )  # fmt: skip
    made = plain_model(model)
    for trips in (1, 5, 6):
        assert_same(made, model, {"n": np.int64(trips), "x": np.asarray(rng.random(), "f")})


def test_open_sizes_do_not_leave_an_iteration() -> None:
    rows = CHOOSING.replace("row = ReduceSum<keepdims = 0>(chosen)", "row = Neg(chosen)")
    rows = rows.replace("k = Mul(row, half)", "k = Identity(half)")
    model = looping(rows, {"n": (), "x": (3,)}, ["n", "", "x"], ["last", "rows"], CONSTANTS)
    with pytest.raises(UnsupportedModel) as caught:
        plain_model(model, bounds={"n": 9})
    [row] = caught.value.rows
    assert row.attribute == "rows float32[places.count]"
    assert row.advice == "their sizes may not depend on data"


def test_a_size_that_cannot_be_chosen_is_not_asked_for() -> None:
    nodes = [node("NonZero", ["x"], ["places"]), node("Squeeze", ["places"], ["y"])]
    model = graph_model(nodes, {"x": (5,)}, ["y"], types={"y": TensorProto.INT64})
    with pytest.raises(UnsupportedModel, match="data decide about places.count"):
        load(model)
