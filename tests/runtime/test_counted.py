"""Models whose outputs' sizes are counted by a run: in memory, as libraries, and as C files."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import ansorpy as ap
from ansorpy.errors import UsageError
from ansorpy.runtime.model import Model
from ansorpy.runtime.ports import CTensor
from ansorpy.runtime.status import Status
from tests.codegen.c.compiled import needs_cc
from tests.frontend.models import graph_model, node
from tests.runtime.programs import plain_model
from tests.runtime.test_sized import c_library, tensors

Rng = np.random.Generator
Array = np.ndarray
ROWS, COLUMNS = 6, 5


def chosen(rows: int | str = ROWS) -> ModelProto:
    """The rows of ``x`` whose sums are above 0, doubled, joined with themselves, and their places.

    Before they are known, the arena holds values of other calls at their largest sizes.
    """
    nodes = [
        node("ReduceSum", ["x", "one"], ["sums"], keepdims=0),
        node("Greater", ["sums", "zero"], ["keeps"]),
        node("Compress", ["x", "keeps"], ["kept"], axis=0),
        node("Add", ["kept", "kept"], ["twice"]),
        node("Softmax", ["twice"], ["shares"]),
        node("Concat", ["twice", "shares"], ["both"], axis=0),
        node("NonZero", ["keeps"], ["places"]),
        node("Shape", ["twice"], ["size"]),
    ]
    held = {"one": np.asarray([1]), "zero": np.asarray(0, np.float32)}
    types = {"places": TensorProto.INT64, "size": TensorProto.INT64}
    return graph_model(nodes, {"x": (rows, COLUMNS)}, ["both", "places", "size"], held, types=types)


def expected(x: Array) -> list[Array]:
    keeps = x.sum(axis=1) > 0
    twice = 2 * x[keeps]
    raised = np.exp(twice - twice.max(axis=1, keepdims=True, initial=-np.inf))
    shares = raised / raised.sum(axis=1, keepdims=True)
    return [np.concatenate([twice, shares]), np.asarray(np.nonzero(keeps)), np.asarray(twice.shape)]


def drawn(share: float, rng: Rng, rows: int = ROWS) -> Array:
    """Rows of which this share has a sum above 0."""
    x = np.abs(rng.standard_normal((rows, COLUMNS))).astype(np.float32)
    return x * np.where(rng.random((rows, 1)) < share, 1, -1).astype(np.float32)


def assert_right(model: Model, rng: Rng, rows: int = ROWS) -> None:
    for share in (0.5, 0.0, 1.0, 0.3):
        x = drawn(share, rng, rows)
        for got, want in zip(model.run(None, {"x": x}), expected(x), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_model_returns_outputs_of_the_sizes_it_counted(rng: Rng, tmp_path: Path) -> None:
    model = plain_model(chosen())
    assert_right(model, rng)
    assert [list(map(str, port.shape)) for port in model.get_outputs()][0] == [
        "2*kept.count", "5"
    ]  # fmt: skip
    loaded = ap.load(model.export(tmp_path / "net.so"))
    assert_right(loaded, rng)
    assert loaded.get_outputs() == model.get_outputs()
    assert [seconds >= 0 for _, seconds in model.profile({"x": drawn(0.5, rng)}, runs=2)]


def test_what_is_counted_may_depend_on_what_a_call_states(rng: Rng, tmp_path: Path) -> None:
    model = plain_model(chosen("rows"), dims={"rows": (1, 9)})
    loaded = ap.load(model.export(tmp_path / "net.so"))
    for rows in (1, 4, 9):
        assert_right(model, rng, rows)
        assert_right(loaded, rng, rows)


def test_a_run_that_counts_is_not_prepared(rng: Rng) -> None:
    model, x = plain_model(chosen()), drawn(0.5, rng)
    room = [np.zeros((2 * ROWS, COLUMNS), np.float32), np.zeros((1, ROWS), int), np.zeros(2, int)]
    with pytest.raises(UsageError, match="(?s)a run of model counts sizes, .*hint: call run"):
        model.prepare({"x": x}, room)
    for got, want in zip(model.run(None, {"x": x}, room), expected(x), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


class Stopping(np.ndarray):
    """An output that stops the call once it is computed, as Ctrl-C may."""

    def reshape(self, *given: Any, **options: Any) -> Any:
        raise KeyboardInterrupt


def test_a_stopped_call_leaves_room_for_the_results_of_the_next_one(rng: Rng) -> None:
    model = plain_model(chosen())
    both = np.zeros((2 * ROWS, COLUMNS), np.float32).view(Stopping)
    with pytest.raises(KeyboardInterrupt):
        model.run(["both"], {"x": drawn(0.0, rng)}, [both])
    assert_right(model, rng)


@needs_cc
@pytest.mark.parametrize("rows", [ROWS, "rows"])
def test_c_files_count_too(rows: int | str, rng: Rng, tmp_path: Path) -> None:
    ranges = {} if rows == ROWS else {"rows": (1, 9)}
    model = plain_model(chosen(rows), "c", dims=ranges)
    assert_right(model, rng)
    assert_right(ap.load(c_library(tmp_path, model)), rng)


def test_a_caller_in_c_gives_room_for_the_largest_size(rng: Rng, tmp_path: Path) -> None:
    library = ctypes.CDLL(str(plain_model(chosen()).export(tmp_path / "net.so")))
    assert library.net_init() == Status.OK
    x = drawn(0.5, rng)
    given, made = tensors([x.shape], [x]), (CTensor * 3)()
    size = ctypes.c_size_t()
    assert library.net_plan(given, made, 1, ctypes.byref(size)) == Status.OK
    assert [list(tensor.shape[:2]) for tensor in made][:2] == [[2 * ROWS, COLUMNS], [1, ROWS]]
    context = np.zeros(size.value, np.uint8)
    arrays = [np.zeros((2 * ROWS, COLUMNS), np.float32), np.zeros((1, ROWS), int), np.zeros(2, int)]
    made = tensors([a.shape for a in arrays], arrays)
    place = ctypes.c_void_p(context.ctypes.data)
    assert library.net_run(place, given, made, 1) == Status.OK
    for tensor, array, want in zip(made, arrays, expected(x), strict=True):
        assert tuple(tensor.shape[: want.ndim]) == want.shape
        found = array.reshape(-1)[: want.size].reshape(want.shape)
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    small = tensors([(ROWS, COLUMNS), (1, ROWS), (2,)], arrays)
    assert library.net_run(place, given, small, 1) == Status.TOO_SMALL
