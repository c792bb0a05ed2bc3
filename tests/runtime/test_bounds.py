"""Sizes that depend on data and that a user bounds: of loops, ranges, and shapes in inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, save

import ansorpy as ap
from ansorpy.api.evaluate.engine import Ours
from ansorpy.cli.main import main
from ansorpy.errors import UnsupportedModel, UsageError
from ansorpy.size_bounds import AnyBound, Bound, bound_flag, bound_text, named_bound
from tests.frontend.models import graph_model, node
from tests.frontend.test_loops import expected, floats, looping
from tests.runtime.programs import plain_model
from tests.runtime.test_control import TARGETS, compiled

INT32, INT64 = TensorProto.INT32, TensorProto.INT64
Rng = np.random.Generator

COUNTING = """step (int64 i, bool c, float[3] v) => (bool go, float[3] w, float[3] row) {
    w = Add(v, step)
    row = Mul(w, w)
    s = ReduceMax<keepdims = 0>(w)
    go = Less(s, limit)
}"""
"""Adds 1 until the largest element reaches a limit, and gives squares."""


def counting(trips: str, begin: str = "") -> ModelProto:
    inputs = {"x": (3,), "limit": (), **({"n": ()} if trips else {})}
    return looping(
        COUNTING, inputs, [trips, begin, "x"], ["last", "rows"], {"step": np.float32(1)},
    )  # fmt: skip


def assert_same(made: Any, model: ModelProto, feeds: Mapping[str, Any]) -> None:
    arrays = {name: np.asarray(value) for name, value in feeds.items()}
    for got, want in zip(made.run(None, arrays), expected(model, arrays), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def refused(made: Any, feeds: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"out of its bounds: .*{said}") as caught:
        made.run(None, {name: np.asarray(value) for name, value in feeds.items()})
    assert caught.value.exit_code == 2 and "--bound" in (caught.value.hint or "")


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_whose_trip_count_is_bounded(target: str | None, tmp_path: Path, rng: Rng) -> None:
    model = counting("n")
    made = plain_model(model, target, bounds={"n": 7})
    library = ap.load(made.export(tmp_path / "net.so"))
    for trips, limit in ((0, 9.0), (1, 9.0), (7, 1e9), (7, 2.5), (5, -1e9)):
        feeds = {"n": np.int64(trips), "x": floats(rng, 3), "limit": np.float32(limit)}
        if trips:
            assert_same(made, model, feeds)
            assert_same(library, model, feeds)
        assert made.run(None, feeds)[1].shape[0] <= trips
    for trips in (8, -1, 2**40):
        feeds = {"n": np.int64(trips), "x": floats(rng, 3), "limit": np.float32(9)}
        refused(made, feeds, "n.size=0..7")
        refused(library, feeds, "n.size=0..7")


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_whose_rows_are_bounded(target: str | None, tmp_path: Path, rng: Rng) -> None:
    """Exactly as many iterations as the bound are right, one more is not."""
    model = counting("")
    made = plain_model(model, target, bounds={"rows": 5})
    library = ap.load(made.export(tmp_path / "net.so"))
    x = np.zeros(3, np.float32)
    for limit in (0.5, 1.5, 4.5):
        feeds = {"x": x + floats(rng, 3) * 0.1, "limit": np.float32(limit)}
        assert_same(made, model, feeds)
        assert_same(library, model, feeds)
    assert len(made.run(None, {"x": x, "limit": np.float32(5)})[1]) == 5
    for held in (made, library):
        refused(held, {"x": x, "limit": np.float32(5.5)}, "last.iterations=0..5")


def test_a_trip_count_that_is_no_bound_ends_a_bounded_loop(rng: Rng) -> None:
    model = counting("n")
    made = plain_model(model, bounds={"rows": 4})
    for trips in (1, 3, 4, 2**40):
        feeds = {"n": np.int64(trips), "x": -np.ones(3, np.float32), "limit": np.float32(2.5)}
        assert_same(made, model, feeds)
    refused(made, {"n": np.int64(5), "x": np.zeros(3, "f"), "limit": np.float32(99)}, "=0..4")
    assert made.run(None, {"n": np.int64(-3), "x": np.zeros(3, "f"), "limit": np.float32(9)})[
        1
    ].shape == (0, 3)


def test_an_endless_trip_count_is_none(rng: Rng) -> None:
    """Exporters write the largest int64 where only the condition ends a loop."""
    model = looping(
        COUNTING, {"x": (3,), "limit": ()}, ["most", "", "x"], ["last", "rows"],
        {"step": np.float32(1), "most": np.asarray(2**63 - 1)},
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match=r"--bound rows=N \(bounds= in Python\)"):
        compiled(model, None)
    made = plain_model(model, bounds={"rows": 6})
    assert_same(made, model, {"x": np.zeros(3, "f"), "limit": np.float32(3.5)})


@pytest.mark.parametrize("kind", [INT64, INT32, TensorProto.FLOAT, TensorProto.DOUBLE])
def test_a_range_of_data(kind: int) -> None:
    names = ["start", "limit", "delta"]
    nodes = [node("Range", names, ["r"]), node("Add", ["r", "start"], ["y"])]
    model = graph_model(
        nodes, dict.fromkeys(names, ()), ["y"], types=dict.fromkeys([*names, "y"], kind)
    )
    made = plain_model(model, bounds={"r": 13})
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for ends in ((0, 13, 1), (2, 15, 3), (7, -6, -2), (5, 5, 1), (5, 1, 2), (-3, 10, 1)):
        assert_same(made, model, dict(zip(names, np.asarray(ends, dtype), strict=True)))
    for ends in ((0, 14, 1), (0, -2000, -1), (0, 2**30, 1)):
        refused(made, dict(zip(names, np.asarray(ends, dtype), strict=True)), "r.count=0..13")


def shaped(
    op: str, operands: Sequence[str], size: str, count: int, **attributes: Any
) -> ModelProto:
    """``x`` [2, 3] and *operands* in one node, among them *size*, which only a run knows."""
    held = {"values": np.asarray([0, 1], np.float32), "zero": np.asarray([0])}
    held |= {"two": np.asarray([1, 1]), "floats": np.zeros(0, np.float32)}
    constants = {name: value for name, value in held.items() if name in operands}
    inputs = {"x": (1, 1, 2, 3) if op == "Resize" else (2, 3), "places": (2, 3)}
    inputs = {name: shape for name, shape in inputs.items() if name in operands}
    return graph_model(
        [node(op, list(operands), ["made"], **attributes), node("Neg", ["made"], ["y"])],
        {**inputs, size: () if count == 0 else (count,)}, ["y"], constants,
        types={size: INT64, "places": INT64},
    )  # fmt: skip


CASES: list[tuple[ModelProto, AnyBound, list[Any], list[Any]]] = [
    (shaped("ConstantOfShape", ["s"], "s", 2), [5, (1, 7)], [[5, 7], [0, 3], [2, 1]],
     [[6, 1], [1, 0]]),
    (shaped("Expand", ["x", "s"], "s", 3), [4, (2, 2), (3, 3)], [[4, 2, 3], [1, 2, 3]],
     [[1, 1, 3]]),
    (shaped("Tile", ["x", "s"], "s", 2), 5, [[1, 1], [5, 3], [2, 5]], [[6, 1], [1, -1]]),
    (shaped("OneHot", ["places", "s", "values"], "s", 0), (1, 11), [1, 4, 11], [0, 12]),
    (shaped("Slice", ["x", "s", "two"], "s", 2), 2, [[0, 0], [1, 0], [0, 1]], [[3, 0]]),
    (shaped("Resize", ["x", "", "", "s"], "s", 4, mode="linear"), [(1, 1), (1, 1), (1, 9), (3, 3)],
     [[1, 1, 2, 3], [1, 1, 9, 3], [1, 1, 5, 3]], [[1, 1, 10, 3], [1, 2, 1, 3]]),
    (shaped("Trilu", ["x", "s"], "s", 0), 3, [0, 1, 3], [4, -1]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[c[0].graph.node[0].op_type for c in CASES])
def test_shapes_that_only_a_run_knows(
    case: tuple[ModelProto, AnyBound, list[Any], list[Any]], rng: Rng
) -> None:
    model, bound, good, bad = case
    made = plain_model(model, bounds={"s": bound})
    feeds: dict[str, Any] = {
        i.name: floats(rng, *i.shape) if i.dtype == np.float32 else rng.integers(0, 4, i.shape)
        for i in made.get_inputs()
    }
    for value in good:
        assert_same(made, model, {**feeds, "s": np.asarray(value)})
    for value in bad:
        refused(made, {**feeds, "s": np.asarray(value)}, r"s\.size")
    for value in good[:1]:  # a run that failed leaves nothing behind
        assert_same(made, model, {**feeds, "s": np.asarray(value)})


@pytest.mark.parametrize(
    "attributes",
    [{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
     {"mode": "linear"}, {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
     {"mode": "cubic", "coordinate_transformation_mode": "half_pixel_symmetric"}],
    ids=lambda given: given["mode"] + given.get("coordinate_transformation_mode", ""),
)  # fmt: skip
def test_scales_that_only_a_run_knows(attributes: dict[str, str], rng: Rng) -> None:
    nodes = [
        node("Neg", ["s"], ["scales"]),
        node("Resize", ["x", "", "scales"], ["y"], **attributes),
    ]
    shape = (2, 3, 4, 10)
    model = graph_model(nodes, {"x": shape, "s": (4,)}, ["y"], opset=19)
    # Two axes take twice as long to compile.
    width = 1 if attributes["mode"] == "cubic" or "align_corners" in attributes.values() else 2
    made = plain_model(model, bounds={"scales": [(1, 1), (1, 1), (0, 4), (1, width)]})
    x = floats(rng, *shape)
    scales: list[list[float]] = [[1, 1, 1, 1], [1, 1, 2.25, 1.5], [1, 1, 0.5, 2], [1, 1, 4, 1.2]]
    if "align_corners" not in attributes.values():  # onnxruntime takes the rounded length there
        scales += [[1, 1, 0.3, 1.21], [1, 1, 3.9, 1.99]]
    for good in scales:
        good[3] = min(good[3], width)
        assert_same(made, model, {"x": x, "s": -np.asarray(good, np.float32)})
    for bad in ([1, 1, 5, 1], [1, 1, 0.2, 1], [1, 2, 1, 1], [1, 1.1, 1, 1], [1, 1, 1, 0.5]):
        refused(made, {"x": x, "s": -np.asarray(bad, np.float32)}, "scales.size")
    with pytest.raises(UnsupportedModel) as caught:
        compiled(model, None)
    assert "--bound scales=N" in caught.value.rows[0].advice


def test_a_size_that_nodes_compute() -> None:
    """Bounds name any tensor, and arithmetic on it is done on sizes."""
    nodes = [
        node("ReduceMax", ["lengths"], ["longest"], keepdims=0),
        node("Unsqueeze", ["longest", "zero"], ["one"]),
        node("Add", ["one", "one"], ["twice"]),
        node("Concat", ["two", "twice"], ["shape"], axis=0),
        node("Expand", ["x", "shape"], ["y"]),
    ]
    held = {"zero": np.asarray([0]), "two": np.asarray([2])}
    model = graph_model(
        nodes, {"lengths": (5,), "x": (2, 1)}, ["y"], held, types={"lengths": INT64}
    )  # fmt: skip
    made = plain_model(model, bounds={"longest": 9})
    x = np.asarray([[1.5], [2]], np.float32)
    for top in (0, 4, 9):
        assert_same(made, model, {"lengths": np.minimum(np.arange(5), top) * 0 + top, "x": x})
    refused(made, {"lengths": np.asarray([3, 10, 0, 0, 0]), "x": x}, "longest.size=0..9")


def test_bounds_in_a_search_of_the_command_line(tmp_path: Path) -> None:
    path, library = tmp_path / "net.onnx", tmp_path / "net.so"
    save(shaped("Tile", ["x", "s"], "s", 2), str(path))
    command = [str(path), "--threads", "1", "--db", str(tmp_path / "t.db")]
    assert (
        main(["compile", *command, "--effort", "none", "-o", str(library), "--bound", "s=4"]) == 0
    )
    assert main(["verify", *command, "--bound", "s=1..4"]) == 0
    np.save(tmp_path / "s.npy", np.asarray([2, 5]))
    assert main(["run", str(library), "--input", f"s={tmp_path / 's.npy'}"]) == 2
    np.save(tmp_path / "s.npy", np.asarray([2, 4]))
    assert main(["run", str(library), "--input", f"s={tmp_path / 's.npy'}"]) == 0
    assert main(["run", str(library), "--bound", "s=4"]) == 2
    engine = Ours(str(library), arguments={"threads": 1})
    whole = engine.outputs()["y"].copy()
    engine.run()
    np.testing.assert_array_equal(engine.outputs()["y"], whole)


@pytest.mark.parametrize("target", TARGETS)
def test_a_library_knows_the_bounds_of_its_inputs(target: str | None, tmp_path: Path) -> None:
    bound = ((2, 3), (5, 9))
    made = compiled(shaped("Tile", ["x", "s"], "s", 2), target, bounds={"s": bound})
    for held in (made, ap.load(made.export(tmp_path / "net.so"))):
        assert {port.name: port.bound for port in held.get_inputs()} == {"x": None, "s": bound}
        assert [port.bound for port in held.get_outputs()] == [None]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"gone": 3}, "there is no tensor 'gone' that could have a bound"),
        ({"x": 3}, r"x is float32\[2, 3\]"),
        ({"s": [1, 2, 3]}, r"s is int64\[2\] and cannot have 3 bounds"),
        ({"s": 0}, "s cannot be from 0 to 0"),
        ({"s": (5, 2)}, "s cannot be from 5 to 2"),
        ({"s": 1.5}, "1.5 is not a bound of s"),
        ({"s": "1..x"}, "'1..x' is not a bound of s"),
        ({"s": []}, r"\[\] is not a bound of s"),
        ({"s": b"8"}, "b'8' is not a bound of s"),
        ({"s": True}, "True is not a bound of s"),
    ],
)
def test_wrong_bounds(bounds: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compiled(shaped("Tile", ["x", "s"], "s", 2), None, bounds=bounds)


def test_a_bound_can_be_given_to_a_shell() -> None:
    assert bound_flag("some rows") == "--bound 'some rows=N' (bounds= in Python)"


def test_what_needs_no_bound_has_none() -> None:
    model = shaped("Tile", ["x", "s"], "s", 2)
    known = [node("Shape", ["x"], ["to"]), node("Expand", ["x", "to"], ["y"])]
    with pytest.raises(UsageError, match=r"(?s)^to is known when .*, .*leave out its bound"):
        compiled(graph_model(known, {"x": (2, 3)}, ["y"]), None, bounds={"to": 3})
    with pytest.raises(UsageError, match="there is no tensor 's'"):  # it is no input any more
        compiled(model, None, constants={"s": [1, 2]}, bounds={"s": 3})
    with pytest.raises(UsageError, match="rows=1..3 bounds a number of rows"):
        compiled(counting("n"), None, bounds={"rows": (1, 3)})


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (
            shaped("Tile", ["x", "s"], "s", 2),
            "--const s=VALUE (constants= in Python), or a bound: --bound s=N (",
        ),
        (counting("n"), "--const n=VALUE (constants= in Python), or a bound: --bound n=N ("),
        (counting(""), "known number of iterations at most, or a bound: --bound rows=N"),
    ],
    ids=["shape", "trips", "rows"],
)
def test_refusals_offer_a_bound(model: ModelProto, advice: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        compiled(model, None)
    assert advice in caught.value.rows[0].advice


def test_bounds_are_texts_on_the_command_line() -> None:
    wanted: dict[str, tuple[str, Bound]] = {
        "trip=100": ("trip", ((0, 100),)),
        "shape=1,3..3,1..640": ("shape", ((0, 1), (3, 3), (1, 640))),
    }
    for text, (name, bound) in wanted.items():
        assert named_bound(text) == (name, bound)
        assert named_bound(f"{name}={bound_text(bound, name)}") == (name, bound)
    with pytest.raises(UsageError, match="'7' is not a tensor and its bound"):
        named_bound("7")
