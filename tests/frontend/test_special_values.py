"""Rows with infinities and values that are no numbers, against ONNX's definitions and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import Array, compiled, run_network

NAN, INF = np.nan, np.inf
ROWS = np.array(
    [
        [5, 1, 1, 5, 2], [1, NAN, 3, NAN, 0], [NAN, 1, 2, 3, 4], [0, 1, 2, 3, NAN], [NAN] * 5,
        [0, NAN, -INF, INF, 7], [-INF] * 5, [INF] * 5, [0, 1, INF, 2, 3], [0, -INF, 1, INF, -INF],
        [-INF, 2, -INF, 1, 2],
    ],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
def test_the_place_of_an_extreme_is_that_of_a_nan_where_there_is_one(
    op_type: str, last: int
) -> None:
    model = operator_model(op_type, [ROWS.shape], axis=1, select_last_index=last)
    info = onnx.helper.make_tensor_value_info("y0", TensorProto.INT64, (len(ROWS), 1))
    model.graph.output[0].CopyFrom(info)
    (want,) = ReferenceEvaluator(model).run(None, {"x0": ROWS})
    (got,) = run_network(compiled(model), {"x0": ROWS})
    np.testing.assert_array_equal(got, want)


def test_what_is_gathered_at_the_place_of_a_nan_is_the_nan() -> None:
    nodes = [
        node("ArgMax", ["x"], ["at"], axis=1),
        node("GatherElements", ["x", "at"], ["y"], axis=1),
    ]
    (got,) = run_network(compiled(graph_model(nodes, {"x": ROWS.shape}, ["y"])), {"x": ROWS})
    np.testing.assert_array_equal(got[:, 0], ROWS.max(axis=1))


def _log_sum_exp(x: Array) -> Array:
    """As numpy defines it for pairs: infinite where the largest is."""
    return np.logaddexp.reduce(x, axis=1, keepdims=True)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_logarithm_of_a_sum_of_exponentials_may_be_infinite(keepdims: int) -> None:
    model = operator_model("ReduceLogSumExp", [ROWS.shape], axes=[1], keepdims=keepdims)
    (got,) = run_network(compiled(model), {"x0": ROWS})
    with np.errstate(invalid="ignore"):
        want = _log_sum_exp(ROWS)
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-6)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_shares_of_an_infinite_sum_are_no_numbers(op_type: str) -> None:
    model = operator_model(op_type, [ROWS.shape])
    (got,) = run_network(compiled(model), {"x0": ROWS})
    with np.errstate(invalid="ignore", divide="ignore"):
        (want,) = ReferenceEvaluator(model).run(None, {"x0": ROWS})
    np.testing.assert_allclose(got, np.asarray(want, np.float32), rtol=1e-5)


@pytest.mark.parametrize("given", [{}, {"min": 0.0}, {"max": 2.0}])
def test_bounds_of_an_older_clip_are_finite(given: dict[str, Any]) -> None:
    model = operator_model("Clip", [ROWS.shape], opset=9, **given)
    (got,) = run_network(compiled(model), {"x0": ROWS})
    (want,) = ReferenceEvaluator(model).run(None, {"x0": ROWS})
    np.testing.assert_array_equal(got, want)
