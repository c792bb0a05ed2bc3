"""Loops and branches in compiled programs: run here, in libraries, and in C."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, parser

import ansorpy as ap
from ansorpy.errors import UsageError
from ansorpy.runtime.compiled import CompiledModel
from tests.frontend.models import graph_model, node
from tests.frontend.test_loops import SCAN, STEP, Feeds, expected, floats, growing, looping
from tests.frontend.test_loops import compiled as network_of
from tests.graph.executor import run_network
from tests.runtime.programs import plain_model

TARGETS = [
    None, pytest.param("c", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="no cc")),
]  # fmt: skip


def compiled(model: ModelProto, target: str | None, **arguments: Any) -> CompiledModel:
    """*model* with the kernels that users get; most tests need plain ones only."""
    return ap.compile(model, effort="none", threads=1, target=target, **arguments)


def assert_same(made: Any, model: ModelProto, feeds: Feeds) -> None:
    for got, want in zip(made.run(None, feeds), expected(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_ends_by_its_condition_or_by_its_number_of_iterations(
    target: str | None, tmp_path: Path, rng: np.random.Generator
) -> None:
    constants = {"weight": floats(rng, 3, 3), "bound": np.float32(0.3)}
    model = looping(
        STEP, {"n": (), "begin": (), "x": (5, 3)}, ["n", "begin", "x"], ["y"], constants
    )
    made = compiled(model, target)
    library = ap.load(made.export(tmp_path / "net.so"))
    for trips in (0, 1, 2, 9):
        for begin in (True, False):
            x = floats(rng, 5, 3)
            feeds = {"n": np.int64(trips), "begin": np.asarray(begin), "x": x}
            assert_same(made, model, feeds)
            assert_same(library, model, feeds)


@pytest.mark.parametrize("target", TARGETS)
def test_a_scan_of_any_length(target: str | None, tmp_path: Path, rng: np.random.Generator) -> None:
    model = looping(
        SCAN.replace("float[2, ", "float[b, "),
        {"h0": ("b", 5), "xs": ("t", "b", 3), "zs": ("t", 4)}, ["h0", "xs", "zs"],
        ["last", "outs", "others"],
        {"w": floats(rng, 3, 5), "r": floats(rng, 5, 5)}, kind="Scan", num_scan_inputs=2,
        scan_input_directions=[1, 0], scan_output_directions=[1, 0],
    )  # fmt: skip
    made = plain_model(model, target, dims={"t": (0, 30), "b": (1, 4)})
    library = ap.load(made.export(tmp_path / "net.so"))
    for steps, batch in ((0, 1), (1, 2), (7, 4), (30, 3)):
        feeds = {
            "h0": floats(rng, batch, 5), "xs": floats(rng, steps, batch, 3),
            "zs": floats(rng, steps, 4),
        }  # fmt: skip
        if steps:
            assert_same(made, model, feeds)
            assert_same(library, model, feeds)
        else:
            last, outs, _ = made.run(None, feeds)
            np.testing.assert_array_equal(last, feeds["h0"])
            assert outs.shape == (0, batch, 5)


@pytest.mark.parametrize("target", TARGETS)
def test_branches_in_a_loop(target: str | None, rng: np.random.Generator) -> None:
    then = parser.parse_graph("then () => (float[6] t) { t = Add(v, x) }")
    other = parser.parse_graph("other () => (float[6] f) { e = Neg(v) \n f = Mul(e, half) }")
    body = parser.parse_graph(
        """step (int64 i, bool c, float[6] v) => (bool c2, float[6] r) {
        c2 = Identity(c)
        s = ReduceSum<keepdims = 0>(v)
        small = Less(s, half)
    }"""
    )
    body.node.append(node("If", ["small"], ["r"], then_branch=then, else_branch=other))
    model = graph_model(
        [node("Sin", ["x"], ["start"]), node("Loop", ["n", "", "start"], ["y"], body=body)],
        {"n": (), "x": (6,)}, ["y"], {"half": np.asarray(0.5, np.float32)},
        types={"n": TensorProto.INT64},
    )  # fmt: skip
    made = plain_model(model, target)
    for trips in (0, 1, 5, 6):
        assert_same(made, model, {"n": np.int64(trips), "x": np.abs(floats(rng, 6))})
    if target is None:
        times = made.profile({"n": np.int64(50), "x": floats(rng, 6)}, runs=3)
        assert len(times) == len(made.profile({"n": np.int64(0), "x": floats(rng, 6)}, runs=1))


@pytest.mark.parametrize("target", TARGETS)
def test_iterations_draw_what_the_interpreter_draws(
    target: str | None, rng: np.random.Generator
) -> None:
    body = """step (int64 i, bool c) => (bool c2, float[61] row) {
        c2 = Identity(c)
        drawn = RandomUniformLike<seed = 3.0>(x)
        row = Add(drawn, x)
    }"""
    model = looping(body, {"x": (61,)}, ["trips", ""], ["y"], {"trips": np.int64(9)})
    feeds = {"x": floats(rng, 61)}
    made = plain_model(model, target).run(None, feeds)
    [wanted] = run_network(network_of(model), feeds)
    np.testing.assert_allclose(made[0], wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_over_rows_that_a_run_counts(
    target: str | None, tmp_path: Path, rng: np.random.Generator
) -> None:
    """The value that it carries has a counted extent, and what is behind it reads sizes anew."""
    body = parser.parse_graph(
        """step (int64 i, bool c, float[k, 5] v) => (bool c2, float[k, 5] r) {
        c2 = Identity(c)
        half = Constant<value = float {0.5}>()
        halved = Mul(v, half)
        r = Add(halved, kept)
    }"""
    )
    model = graph_model(
        [
            node("ReduceSum", ["x", "one"], ["sums"], keepdims=0),
            node("Greater", ["sums", "zero"], ["keeps"]),
            node("Compress", ["x", "keeps"], ["kept"], axis=0),
            node("Loop", ["n", "", "kept"], ["y"], body=body),
            node("Softmax", ["y"], ["shares"]),
            node("Concat", ["y", "shares"], ["both"], axis=0),
        ],
        {"n": (), "x": (6, 5)}, ["both"],
        {"one": np.asarray([1]), "zero": np.asarray(0, np.float32)},
        types={"n": TensorProto.INT64},
    )  # fmt: skip
    made = plain_model(model, target)
    library = ap.load(made.export(tmp_path / "net.so"))
    for trips in (0, 1, 4):
        x = floats(rng, 6, 5)
        for rows in (x, -np.abs(x), np.abs(x)):
            feeds = {"n": np.int64(trips), "x": rows}
            assert_same(made, model, feeds)
            assert_same(library, model, feeds)


@pytest.mark.parametrize("target", TARGETS)
def test_a_condition_decides_how_many_rows_there_are(target: str | None, tmp_path: Path) -> None:
    model = growing(9)
    made = plain_model(model, target)
    library = ap.load(made.export(tmp_path / "net.so"))
    for scale, rows in ((0.5, 9), (2, 6), (99, 1), (3, 4)):
        feeds = {"x": np.asarray([scale, 1, 0.25], np.float32)}
        assert_same(made, model, feeds)
        assert_same(library, model, feeds)
        assert made.run(["rows"], feeds)[0].shape == (rows, 3)


@pytest.mark.parametrize("target", TARGETS)
def test_loops_read_what_is_counted(
    target: str | None, tmp_path: Path, rng: np.random.Generator
) -> None:
    body = parser.parse_graph(
        """step (float total, int64[2] place) => (float after, float[3] row) {
        f = Cast<to = 1>(place)
        s = ReduceSum<keepdims = 0>(f)
        after = Add(total, s)
        row = Add(after, v)
    }"""
    )
    nodes = [
        node("Greater", ["x", "v"], ["above"]),
        node("NonZero", ["above"], ["places"]),
        node("Scan", ["zero", "places"], ["sum", "rows"], body=body, num_scan_inputs=1,
             scan_input_axes=[1]),
        node("Neg", ["rows"], ["y"]),
    ]  # fmt: skip
    model = graph_model(
        nodes, {"x": (4, 3), "v": (3,)}, ["sum", "y"], {"zero": np.zeros((), np.float32)}
    )
    made = plain_model(model, target)
    library = ap.load(made.export(tmp_path / "net.so"))
    for shift in (-9, 0, 0.5):
        feeds = {"x": floats(rng, 4, 3), "v": floats(rng, 3) + np.float32(shift)}
        assert_same(made, model, feeds)
        assert_same(library, model, feeds)
    total, rows = made.run(None, {"x": floats(rng, 4, 3), "v": np.full(3, 99, np.float32)})
    assert total == 0 and rows.shape == (0, 3)  # onnxruntime divides by zero


@pytest.mark.parametrize(
    ("kind", "rows", "direction"), [("LSTM", "batch", "reverse"), ("GRU", 3, "bidirectional")]
)
def test_recurrent_networks_of_any_length(
    kind: str, rows: int | str, direction: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    gates, ways = {"LSTM": 4, "GRU": 3}[kind], 1 + (direction == "bidirectional")
    names = ["x", "w", "r", "b", "n"]
    one = node(kind, names, ["y", "last"], hidden_size=6, direction=direction)
    held = {"w": floats(rng, ways, gates * 6, 5), "r": floats(rng, ways, gates * 6, 6),
            "b": floats(rng, ways, gates * 12)}  # fmt: skip
    model = graph_model(
        [one], {"x": ("steps", rows, 5), "n": (rows,)}, ["y", "last"], held,
        types={"n": TensorProto.INT32},
    )  # fmt: skip
    dims = {"steps": (1, 9), **({"batch": (1, 4)} if rows == "batch" else {})}
    made = compiled(model, None, dims=dims)
    library = ap.load(made.export(tmp_path / "net.so"))
    for steps, batch in ((1, 1), (9, 3), (4, 4)):
        batch = batch if rows == "batch" else int(rows)
        lengths = rng.integers(1, steps + 1, batch).astype(np.int32)
        feeds = {"x": floats(rng, steps, batch, 5), "n": lengths}
        assert_same(made, model, feeds)
        assert_same(library, model, feeds)


def test_gpus_are_refused() -> None:
    model = looping(STEP, {"n": (), "begin": (), "x": (5, 3)}, ["n", "begin", "x"], ["y"],
                    {"weight": np.ones((3, 3), np.float32), "bound": np.float32(1)})  # fmt: skip
    with pytest.raises(UsageError, match="no loops and branches over kernels"):
        ap.compile(model, effort="none", target="sm_90")
