from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Function
from ansorpy.ir.interpret import dag as dag_module
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from tests.ir.oracle import random_inputs
from tests.ir.workloads import ALL, conv, gather, integers, matmul, reshape, scalar, softmax


def test_matmul_and_relu() -> None:
    dag = matmul()
    v = random_inputs(dag)
    np.testing.assert_allclose(run_dag(dag, v)[0], np.maximum(v["x"] @ v["w"], 0), rtol=1e-5)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_convolution(stride: int) -> None:
    dag = conv(stride=stride)
    v = random_inputs(dag)
    padded = np.pad(v["x"], ((1, 1), (1, 1), (0, 0))).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (0, 1))[::stride, ::stride]
    want = np.einsum("hvckl,klcf->hvf", windows, v["w"]) + v["bias"]
    found = run_dag(dag, v)[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run_dag(dag, v, DType.FLOAT64)[0], want, rtol=1e-12)


def test_softmax_gather_reshape_scalar_and_integers() -> None:
    dag = softmax()
    x = random_inputs(dag)["x"]
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(run_dag(dag, {"x": x})[0], e / e.sum(1, keepdims=True), rtol=1e-5)
    dag = gather()
    v = random_inputs(dag)
    np.testing.assert_array_equal(run_dag(dag, v)[0], v["table"][v["index"]])
    dag = reshape()
    x = random_inputs(dag)["x"]
    np.testing.assert_array_equal(run_dag(dag, {"x": x})[0], x.T * 2)
    dag = scalar()
    x = random_inputs(dag)["x"]
    np.testing.assert_allclose(run_dag(dag, {"x": x})[0], np.prod(x), rtol=1e-5)
    dag = integers()
    x = np.random.default_rng(1).integers(-128, 128, (5, 9)).astype(np.int8)
    total, best = run_dag(dag, {"x": x})
    np.testing.assert_array_equal(total, x.sum(1, dtype=np.int32))
    np.testing.assert_array_equal(best, x.argmax(1))
    assert total.dtype == np.int32 and best.dtype == np.int64


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_the_place_of_an_extreme_is_that_of_a_nan_where_there_is_one(dtype: str) -> None:
    nan, inf = np.nan, np.inf
    rows = np.array([[3, nan, 5, nan], [nan] * 4, [7, 7, -inf, inf], [2, 1, 1, 2]])
    x = placeholder((4, 4), dtype, name="x")
    values = rows.astype(x.dtype.numpy)

    def places(build: Callable[..., ComputeOp], **options: bool) -> list[int]:
        best = build((4,), lambda i, k: x[i, k], 4, name="best", **options)
        found: list[int] = run_dag(ComputeDAG([best]), {x: values})[0].tolist()
        return found

    assert places(b.argmax) == [1, 0, 3, 0] == np.argmax(rows, 1).tolist()
    assert places(b.argmin) == [1, 0, 2, 1] == np.argmin(rows, 1).tolist()
    assert places(b.argmax, last=True) == [3, 3, 3, 3]
    assert places(b.argmin, last=True) == [3, 3, 2, 2]


@pytest.mark.parametrize("make", ALL)
def test_the_chunk_size_changes_nothing(
    make: Callable[[], ComputeDAG], monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = make()
    v = random_inputs(dag)
    whole = run_dag(dag, v, DType.FLOAT64)
    monkeypatch.setattr(dag_module, "contract", lambda op, values: None)
    monkeypatch.setattr(dag_module, "CHUNK", 10)
    for a, c in zip(whole, run_dag(dag, v, DType.FLOAT64), strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-12, atol=1e-14)


def test_axes_that_an_operand_does_not_have_repeat_or_multiply() -> None:
    x, y = placeholder((3,), name="x"), placeholder((4,), name="y")
    k, r = reduce_axis(4, name="k"), reduce_axis(5, name="r")
    z = compute((2, 3), lambda i, j: b.sum(x[j] * y[3 - k], (k, r)), name="z")
    v = random_inputs(ComputeDAG([z], [x, y]))
    want = np.broadcast_to(v["x"] * v["y"].sum() * 5, (2, 3))
    np.testing.assert_allclose(run_dag(ComputeDAG([z]), v)[0], want, rtol=1e-4, atol=1e-5)


X = placeholder((64,), name="x")


@pytest.mark.parametrize(
    ("fn", "want"),
    [
        (Function.EXP, np.exp), (Function.TANH, np.tanh), (Function.FLOOR, np.floor),
        (Function.CEIL, np.ceil), (Function.ROUND, np.rint), (Function.ABS, np.abs),
        (Function.SIN, np.sin), (Function.COS, np.cos), (Function.NEG, np.negative),
    ],
)  # fmt: skip
def test_functions(fn: Function, want: Callable[[np.ndarray], np.ndarray]) -> None:
    dag = ComputeDAG([compute((64,), lambda i: Call(fn, (X[i],)), name="y")])
    v = random_inputs(dag)
    np.testing.assert_allclose(run_dag(dag, v)[0], want(v["x"]), rtol=1e-6)


def _of(fn: Callable[[Expr], Expr], dtype: str, values: list[float]) -> np.ndarray:
    x = placeholder((len(values),), dtype, name="x")
    dag = ComputeDAG([compute(x.shape, lambda i: fn(x[i]), name="y")])
    return run_dag(dag, {x: np.array(values, dtype=x.dtype.numpy)})[0]


def test_conventions_at_the_edges() -> None:
    assert _of(lambda x: x / 3, "int32", [7, -7]).tolist() == [2, -2]
    assert _of(lambda x: x // 3, "int32", [7, -7]).tolist() == [2, -3]
    assert _of(lambda x: x % 3, "int32", [7, -7]).tolist() == [1, 2]
    assert _of(lambda x: x.astype("int32"), "float32", [2.7, -2.7]).tolist() == [2, -2]
    assert _of(lambda x: x.astype("bool"), "float32", [0.5, 0.0]).tolist() == [True, False]
    assert _of(b.round, "float32", [0.5, 1.5, -0.5]).tolist() == [0, 2, 0]
    assert np.isnan(_of(lambda x: b.maximum(x, 0.0), "float32", [np.nan])).all()
    assert _of(lambda x: x * 100, "int8", [3]).tolist() == [44]
    np.testing.assert_allclose(_of(b.erf, "float32", [0.5]), 0.5204999, rtol=1e-6)
    np.testing.assert_allclose(_of(b.rsqrt, "float16", [4.0]), 0.5)
    assert _of(lambda x: x + 1.0, "bfloat16", [256.0]).astype(float).tolist() == [256.0]
    assert _of(lambda x: Binary(BinaryOp.POW, x, x), "float64", [3.0]).tolist() == [27.0]
    np.testing.assert_allclose(_of(lambda x: Call(Function.FMA, (x, x, x)), "float32", [3.0]), 12)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_integers_are_divided_towards_zero_to_the_ends_of_their_type(dtype: DType) -> None:
    bits = dtype.bits - dtype.is_signed
    values = np.arange(-(1 << bits) if dtype.is_signed else 0, 1 << bits).astype(dtype.numpy)
    divisors = values[(values != 0) & (values.astype(int) != -1)]
    x, y = placeholder(values.shape, dtype, name="x"), placeholder(divisors.shape, dtype, name="y")
    z = compute(
        (*values.shape, *divisors.shape), lambda i, j: Binary(BinaryOp.DIV, x[i], y[j]), name="z"
    )
    (found,) = run_dag(ComputeDAG([z], [x, y]), {"x": values, "y": divisors})
    exact = np.trunc(values[:, None] / divisors.astype(float))
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found, exact)


def test_pieces_of_approximations() -> None:
    one = _of(lambda x: Call(Function.BITS, (x,)), "float32", [1.0, -0.0])
    assert one.dtype == np.uint32
    assert one.tolist() == [0x3F800000, 0x80000000]
    back = _of(lambda x: Call(Function.FROM_BITS, (x,)), "uint64", [0x3FF0000000000000])
    assert back.dtype == np.float64
    assert back.tolist() == [1.0]
    for kind, least in (("float32", 2.0**-149), ("float64", 2.0**-1074)):
        exponent = float(np.log2(least))
        scaled = _of(lambda x: Call(Function.SCALE, (x * 0.0 + 0.75, x)), kind, [3.0, exponent])
        assert scaled.tolist() == [6.0, least]
    almost = [1.0 + 2.0**-30]
    square = _of(lambda x: Call(Function.FMA, (x, x, x * 0.0 - 1.0 - 2.0**-29)), "float64", almost)
    assert square.tolist() == [2.0**-60]


def test_what_a_selection_does_not_take_is_not_read() -> None:
    x = placeholder((4,), name="x")
    v = {"x": np.arange(4, dtype=np.float32)}
    shifted = compute((4,), lambda i: b.select(i >= 1, x[i - 1], -1.0), name="y")
    assert run_dag(ComputeDAG([shifted]), v)[0].tolist() == [-1, 0, 1, 2]
    bad = compute((4,), lambda i: x[i - 1], name="y")
    with pytest.raises(UsageError, match='"x" is read at -1 in dimension 0'):
        run_dag(ComputeDAG([bad]), v)


def test_shared_sub_expressions_are_computed_once() -> None:
    def doubled(i: Expr) -> Expr:
        e = x[i] * 0.5
        for _ in range(10):
            e = e + e
        return e

    x = placeholder((2,), name="x")
    found = run_dag(ComputeDAG([compute((2,), doubled, name="y")]), {x: np.ones(2, np.float32)})
    assert found[0].tolist() == [2.0**9] * 2


def test_inputs_are_checked() -> None:
    dag = matmul()
    v = random_inputs(dag)
    with pytest.raises(UsageError, match='no array for input "w"'):
        run_dag(dag, {"x": v["x"]})
    with pytest.raises(UsageError, match=r'"w" has shape \(7, 3\), got \(3, 7\)'):
        run_dag(dag, {**v, "w": v["w"].T})
    with pytest.raises(UsageError, match='"w" is float32, got float64'):
        run_dag(dag, {**v, "w": v["w"].astype(np.float64)})
    with pytest.raises(UsageError, match="in the declared types or in float64"):
        run_dag(dag, v, DType.FLOAT16)
