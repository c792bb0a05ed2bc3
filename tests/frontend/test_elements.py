"""Arithmetic on sizes: what it gives at each size is what numpy gives there, or it is not given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorpy.frontend.onnx.elements import Elements, elements_of, evaluated, numbers_of
from ansorpy.frontend.onnx.ratio import Ratio
from ansorpy.graph.ops import Cast, Elementwise, Fn, Gather, Op, Reduce, ReduceKind, Reshape, Slice
from ansorpy.graph.ops.movement import Transpose
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Extent, Symbolic, dim
from ansorpy.ir.sizes import at, fixed

N, M = dim("n", 1, 24), dim("m", 0, 30, step=3)
assert isinstance(N, Symbolic) and isinstance(M, Symbolic)
SIZES = [{N.dims[0]: n, M.dims[0]: m} for n, m in ((1, 0), (2, 30), (7, 3), (24, 12), (13, 27))]
EXTENTS: list[Extent] = [N, M, N * 2 + 1, -N, N - 25, N + M, M // 3, 5, -3, 0, 1, N // 2, N * M + 2]


def held(*extents: Extent | Ratio) -> Elements:
    made = np.zeros(len(extents), object)
    made[:] = extents
    return made


def numbers_at(found: Elements, sizes: dict[Any, int]) -> list[float]:
    return [
        fixed(at(e.above, sizes)) / e.below if isinstance(e, Ratio) else fixed(at(e, sizes))
        for e in found.flat
    ]


def truncated(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.trunc(a / b))


BINARY: dict[Fn, Callable[..., Any]] = {
    Fn.ADD: np.add, Fn.SUB: np.subtract, Fn.MUL: np.multiply, Fn.DIV: truncated, Fn.MOD: np.mod,
    Fn.REMAINDER: np.fmod, Fn.MIN: np.minimum, Fn.MAX: np.maximum, Fn.EQUAL: np.equal,
    Fn.LESS: np.less, Fn.LESS_EQUAL: np.less_equal,
}  # fmt: skip
DECIDED = {Fn.ADD, Fn.SUB, Fn.MUL, Fn.MIN, Fn.MAX}


@pytest.mark.parametrize("fn", BINARY)
def test_functions_of_two_extents(fn: Fn) -> None:
    dtype = DType.BOOL if fn in (Fn.EQUAL, Fn.LESS, Fn.LESS_EQUAL) else DType.INT64
    known = 0
    for a in EXTENTS:
        for b in EXTENTS:
            found = evaluated(Elementwise(fn), [held(a), held(b)], dtype)
            known += found is not None
            for sizes in SIZES if found is not None else []:
                x, y = (np.asarray(fixed(at(e, sizes))) for e in (a, b))
                assert found is not None
                assert numbers_at(found, sizes) == [BINARY[fn](x, y)], (a, b, sizes)
    assert known == len(EXTENTS) ** 2 if fn in DECIDED else known > len(EXTENTS)


@pytest.mark.parametrize(
    ("op", "want"),
    [
        (Elementwise(Fn.NEG), lambda x: -x),
        (Elementwise(Fn.ABS), np.abs),
        (Reshape((3, 1)), lambda x: x.reshape(3, 1)),
        (Transpose((0,)), lambda x: x),
        (Slice((2,), (2,), (-1,)), lambda x: x[2:0:-1]),
        (Reduce(ReduceKind.SUM, (0,), False), lambda x: x.sum()),
        (Reduce(ReduceKind.PROD, (0,), True), lambda x: x.prod(keepdims=True)),
        (Reduce(ReduceKind.MIN, (0,), False), lambda x: x.min()),
        (Reduce(ReduceKind.MAX, (0,), False), lambda x: x.max()),
    ],
    ids=lambda value: str(value) if isinstance(value, Op) else "",
)
def test_operators_on_a_shape(op: Op, want: Callable[[NDArray[Any]], Any]) -> None:
    found = evaluated(op, [held(N, M - 12, N * 4)], DType.INT64)
    assert found is not None
    for sizes in SIZES:
        n, m = sizes.values()
        expected = np.asarray(want(np.asarray([n, m - 12, 4 * n])))
        assert found.shape == expected.shape
        assert numbers_at(found, sizes) == [*expected.flat]


def test_gathered_and_converted_sizes() -> None:
    found = evaluated(Gather(0), [held(N, M, 3), held(2, -3)], DType.INT64)
    assert found is not None and [*found] == [3, N]
    assert evaluated(Cast(DType.INT32), [held(N)], DType.INT32) is not None
    assert evaluated(Cast(DType.INT8), [held(N * 9)], DType.INT8) is None
    assert evaluated(Gather(0), [held(3, 4), held(M)], DType.INT64) is None


@pytest.mark.parametrize("scale", [2.0, 0.5, 0.375, 1.5, 8.0])
@pytest.mark.parametrize("fn", [Fn.FLOOR, Fn.CEIL])
def test_scaled_sizes_are_rounded_as_floats_are(scale: float, fn: Fn) -> None:
    _check_rounding(Fn.MUL, scale, fn)


@pytest.mark.parametrize("divisor", [2.0, 3.0, 7.0, 10.0, 32.0])
@pytest.mark.parametrize("fn", [Fn.FLOOR, Fn.CEIL])
def test_divided_sizes_are_rounded_as_floats_are(divisor: float, fn: Fn) -> None:
    _check_rounding(Fn.DIV, divisor, fn)


def _check_rounding(by: Fn, number: float, fn: Fn) -> None:
    size = dim("s", 0, 1 << 20)
    assert isinstance(size, Symbolic)
    real = evaluated(Cast(DType.FLOAT32), [held(size)], DType.FLOAT32)
    constant = elements_of(np.asarray([number], np.float32))
    assert real is not None and constant is not None
    product = evaluated(Elementwise(by), [real, constant], DType.FLOAT32)
    assert product is not None
    rounded = evaluated(Elementwise(fn), [product], DType.FLOAT32)
    assert rounded is not None
    found = evaluated(Cast(DType.INT64), [rounded], DType.INT64)
    assert found is not None
    sizes = np.unique(np.random.default_rng(3).integers(0, 1 << 20, 500)).astype(np.float32)
    exact = sizes * np.float32(number) if by is Fn.MUL else sizes / np.float32(number)
    want = np.floor(exact) if fn is Fn.FLOOR else np.ceil(exact)
    for s, value in zip(sizes, want, strict=True):
        assert fixed(at(found[0], {size.dims[0]: int(s)})) == value


def test_floats_that_round_are_not_followed() -> None:
    real = evaluated(Cast(DType.FLOAT32), [held(N)], DType.FLOAT32)
    assert real is not None
    for number in (0.1, 1e-9):
        tenth = elements_of(np.asarray([number], np.float32))
        assert tenth is not None
        assert evaluated(Elementwise(Fn.MUL), [real, tenth], DType.FLOAT32) is None
    third = evaluated(Elementwise(Fn.DIV), [real, held(Ratio(3))], DType.FLOAT32)
    assert third is not None
    assert evaluated(Elementwise(Fn.ADD), [third, real], DType.FLOAT32) is None
    assert evaluated(Cast(DType.FLOAT16), [held(N)], DType.FLOAT16) is None
    assert evaluated(Elementwise(Fn.EXP), [real], DType.FLOAT32) is None
    assert elements_of(np.asarray([np.inf], np.float32)) is None
    assert elements_of(np.zeros(5000, np.int64)) is None


def test_what_depends_on_no_size_is_a_constant() -> None:
    assert numbers_of(held(N, 3), DType.INT64) is None
    found = numbers_of(held(Ratio(3, 2), Ratio(4)), DType.FLOAT32)
    assert found is not None and found.dtype == np.float32 and [*found] == [1.5, 4.0]


@pytest.mark.parametrize(("kind", "largest"), [(ReduceKind.MIN, False), (ReduceKind.MAX, True)])
def test_extremes_of_sizes_as_floats(kind: ReduceKind, *, largest: bool) -> None:
    op, real = Reduce(kind, (0,), False), held(Ratio(N), Ratio(7))
    found = evaluated(op, [real], DType.FLOAT32)
    assert found is not None
    for sizes in SIZES:
        n = fixed(at(N, sizes))
        assert numbers_at(found, sizes) == [max(n, 7) if largest else min(n, 7)]
    assert evaluated(op, [held(Ratio(N, 3), Ratio(7))], DType.FLOAT32) is None
