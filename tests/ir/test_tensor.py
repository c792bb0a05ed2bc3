"""Definitions as people type them: what is taken, and what is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, Compare, Const, Expr, Select
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.serialize import structural_hash
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State

X = placeholder((4, 8), name="x")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32", "int64"])
def test_indices_of_any_integer_type_gather(kind: str) -> None:
    rows = placeholder((5,), kind, name="rows")
    y = compute((5, 8), lambda i, j: X[rows[i], j], name="y")
    rng = np.random.default_rng(3)
    x, at = rng.standard_normal((4, 8), np.float32), rng.integers(0, 4, 5).astype(kind)
    found = np.zeros((5, 8), np.float32)
    run_program(lower(State.initial(ComputeDAG([y], [X, rows]))).run, [x, at, found])
    np.testing.assert_array_equal(found, x[at.astype(np.int64)])


@pytest.mark.parametrize("kind", ["float32", "bool"])
def test_other_indices_are_refused(kind: str) -> None:
    at = placeholder((4,), kind, name="at")
    with pytest.raises(TypeError, match=f"an index must be an integer, got {kind}"):
        compute((4,), lambda i: X[at[i], 0], name="y")


def test_axes_of_others_are_refused() -> None:
    k = reduce_axis(8, name="k")
    with pytest.raises(ValueError, match="y uses k, which are neither its axes nor reduced over"):
        compute((4,), lambda i: X[i, k], name="y")
    other = reduce_axis(8, name="other")
    with pytest.raises(ValueError, match="y uses k"):
        compute((4,), lambda i: b.sum(X[i, k], axis=other), name="y")


@pytest.mark.parametrize("body", ["text", None, [1.0]])
def test_a_body_is_an_expression_or_a_number(body: Any) -> None:
    with pytest.raises(TypeError, match="is neither an expression nor a number"):
        compute((4,), lambda i: body, name="y")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", 128), ("uint8", 256), ("uint8", -1), ("uint64", -1), ("int64", 1 << 63),
        ("int32", 0.5), ("int64", float("inf")), ("int16", float("nan")), ("bool", 2),
        ("bool", 0.5),
    ],
)  # fmt: skip
def test_constants_that_a_type_does_not_have(kind: str, value: float) -> None:
    x = placeholder((4,), kind, name="x")
    with pytest.raises(ValueError, match=f"{kind} cannot represent"):
        compute((4,), lambda i: x[i] + value, name="y")


@pytest.mark.parametrize(("kind", "value"), [("int8", -128), ("uint8", 255), ("int32", 2.0)])
def test_constants_that_a_type_has(kind: str, value: float) -> None:
    x = placeholder((4,), kind, name="x")
    body = compute((4,), lambda i: x[i] + value, name="y").body
    assert isinstance(body, Binary) and isinstance(body.b, Const)
    assert body.dtype is DType(kind) and body.b.value == value and type(body.b.value) is int


def test_a_number_beside_a_condition_is_true_or_false() -> None:
    held = placeholder((4,), "bool", name="held")
    cond = held[0].equal(1)
    assert isinstance(cond, Compare) and isinstance(cond.b, Const) and cond.b.value is True
    with pytest.raises(ValueError, match="bool cannot represent 2"):
        held[0] & 2


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: placeholder((0, 3), name="z"), ValueError, "at least 1"),
        (lambda: placeholder(cast(Any, (2.5,)), name="z"), TypeError, "z: .* number, got 2.5"),
        (lambda: placeholder(cast(Any, "44"), name="z"), TypeError, "z: .* number, got '4'"),
        (lambda: placeholder((4,), cast(Any, None), name="z"), ValueError, "element type None"),
        (lambda: placeholder((4,), cast(Any, 7), name="z"), ValueError, "element type 7"),
        (lambda: placeholder((4,), "float33", name="z"), ValueError, "'float33'; there are"),
        (lambda: reduce_axis(0, name="k"), ValueError, "at least 1"),
        (lambda: reduce_axis(cast(Any, 2.5), name="k"), TypeError, "k: .* number, got 2.5"),
        (lambda: reduce_axis(cast(Any, (0, 8)), name="k"), TypeError, "give it alone"),
        (lambda: b.sum(X[0, 0], axis=cast(Any, 0)), TypeError, "0 is not an axis; reduce_axis"),
        (lambda: np.exp(cast(Any, X[0, 0])), TypeError, "numpy.exp takes arrays, .* ap.exp"),
        (lambda: cast(Any, np.add)(X[0, 0], X[0, 1], dtype=object), TypeError, "takes arrays"),
        (lambda: np.add.reduce(cast(Any, X[0, 0])), TypeError, "takes arrays"),
        (lambda: np.ones(2) * cast(Any, X[0, 0]), TypeError, "is neither an expression nor"),
        (
            lambda: compute((4,), lambda i: b.maximum(X[i, i], i), name="z"),
            TypeError, "z: the second operand is int64, not float32; convert with .astype",
        ),
        (lambda: compute((4, 4), lambda i: X[i, i], name="z"), TypeError, "takes 1 indices"),
        (lambda: placeholder((4,), name=cast(Any, None)), TypeError, "a name is a text, got None"),
        (
            lambda: compute((4,), lambda i: X[i, 0], name="z", names=("i", "j")),
            TypeError, "z: 2 axes are named, the shape has 1",
        ),
        (
            lambda: compute((4,), lambda i: X[i, 0], name="z", attrs=cast(Any, {"flops": 1.0})),
            TypeError, "z: attrs are given by ap.Attrs",
        ),
        (lambda: b.exp(cast(Any, X)), TypeError, "<Tensor x: .*> is neither an expression nor"),
        (lambda: b.sum(cast(Any, X), axis=()), TypeError, "<Tensor x: .*> is neither an expr"),
        (lambda: b.sum(X[0, 0], axis=cast(Any, "k")), TypeError, "'k' is not an axis; reduce_axis"),
        (lambda: b.all_of(), TypeError, "at least one condition"),
    ],
)  # fmt: skip
def test_wrong_shapes_and_types(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    "write",
    [
        lambda i: b.select(cast(Any, X[i, 0]) == 2.0, 1.0, 0.0),
        lambda i: (X[i, 0] > 0.0) & (cast(Any, X[i, 0]) == 2.0),
        lambda i: b.all_of(cast(Any, X[i, 0]) != 2.0, X[i, 0] > 0.0),
        lambda i: X[i, 0] * (i == 2),
        lambda i: i == 2,
        lambda i: b.max(cast(Any, X[i, 0]) == 2.0, axis=reduce_axis(8, name="k")),
        lambda i: b.exp(cast(Any, X[i, 0]) == 2.0),
        lambda i: b.sigmoid(cast(Any, X[i, 0]) == 2.0),
        lambda i: b.maximum(cast(Any, X[i, 0]) == 2.0, X[i, 1]),
        lambda i: b.minimum(X[i, 1], cast(Any, X[i, 0]) == 2.0),
        lambda i: b.select(i < 2, cast(Any, X[i, 0]) == 2.0, 0.0),
        lambda i: b.select(i < 2, X[i, 1], cast(Any, X[i, 0]) == 2.0),
        lambda i: X[i == 2, 0],
        lambda i: b.argmax((4,), lambda j, k: cast(Any, X[j, k]) == 2.0, 4, name="a")[i],
    ],
)
def test_what_double_equals_gives_is_no_expression(write: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"write a\.equal\(b\) or a\.not_equal\(b\)"):
        compute((4,), write, name="y")


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda x: b.maximum(0.5, x), [0.5, 1.0]),
        (lambda x: b.minimum(cast(Any, np.float32(0.5)), x), [0.0, 0.5]),
        (lambda x: b.exp(0.0) + x, [1.0, 2.0]),
        (lambda x: b.sigmoid(0.0) + x, [0.5, 1.5]),
        (lambda x: b.sum(1.0, axis=reduce_axis(3, name="k")), [3.0, 3.0]),
    ],
)
def test_numbers_stand_where_expressions_do(
    write: Callable[..., Any], expected: list[float]
) -> None:
    x = placeholder((2,), name="x")
    made = compute((2,), lambda i: write(x[i]), name="y")
    [found] = run_dag(ComputeDAG([made]), {"x": np.arange(2, dtype=np.float32)})
    assert found.dtype == np.float32 and found.tolist() == expected


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: 2 ** x, lambda x, y: x ** y, lambda x, y: 3 << x, lambda x, y: 300 >> x,
        lambda x, y: 6 & x, lambda x, y: 9 | y, lambda x, y: 5 ^ y, lambda x, y: ~x,
        lambda x, y: np.int64(7) * x, lambda x, y: np.int32(7) // y, lambda x, y: np.int64(9) - x,
        lambda x, y: np.int8(3) ** x, lambda x, y: y % np.int64(4), lambda x, y: np.int64(6) & x,
        lambda x, y: b.select(~(x < y), x, y) if isinstance(x, Expr) else np.maximum(x, y),
        lambda x, y: b.select(cast(Any, np.int64(3) <= x), x, y) if isinstance(x, Expr)
        else np.where(x >= 3, x, y),
    ],
)  # fmt: skip
def test_operators_are_those_of_numpy(write: Callable[[Any, Any], Any]) -> None:
    given = {"x": np.array([0, 2, 5, 3]), "y": np.array([7, 1, 4, 3])}
    x, y = (placeholder((4,), "int64", name=name) for name in given)
    made = compute((4,), lambda i: write(x[i], y[i]), name="z")
    [found] = run_dag(ComputeDAG([made]), given)
    assert found.tolist() == np.asarray(write(given["x"], given["y"])).tolist()


@pytest.mark.parametrize("kind", ["int8", "uint8", "uint64", "int32"])
def test_an_integer_turned_over_is_that_of_numpy(kind: str) -> None:
    given = np.arange(4).astype(kind)
    x = placeholder((4,), kind, name="x")
    [found] = run_dag(ComputeDAG([compute((4,), lambda i: ~x[i], name="y")]), {"x": given})
    assert found.dtype == given.dtype and found.tolist() == (~given).tolist()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.int32(3), DType.INT64), (np.int64((1 << 24) + 1), DType.INT64),
        (np.array(7), DType.INT64), (np.float32(0.5), DType.FLOAT32),
        (np.array(0.5), DType.FLOAT32), (np.bool_(True), DType.BOOL),
    ],
)  # fmt: skip
def test_scalars_of_numpy_have_the_type_of_their_python_number(value: Any, kind: DType) -> None:
    body = compute((4,), lambda i: b.select(i < 2, value, value), name="y").body
    assert isinstance(body, Select) and isinstance(body.then, Const)
    assert body.dtype is kind and body.then.value == value.item()


def test_a_long_chain_of_stages_knows_its_type() -> None:
    last: Tensor = X
    for n in range(1200):
        before = last
        last = compute((4, 8), lambda i, j, t=before: t[i, j] + 1.0, name=f"s{n}", names="ij")
    assert last.dtype is DType.FLOAT32


def test_extents_of_numpy_are_integers() -> None:
    k = reduce_axis(cast(Any, np.prod((2, 3))), name="k")
    x = placeholder(cast(Any, (np.int64(4), 6)), name="x")
    dag = ComputeDAG([compute((4,), lambda i: b.sum(x[i, k], axis=k), name="y")])
    [found] = run_dag(dag, {"x": np.ones((4, 6), np.float32)})
    assert found.tolist() == [6.0] * 4 and structural_hash(dag)
