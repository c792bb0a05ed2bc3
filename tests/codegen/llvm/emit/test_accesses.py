"""Lanes that read and write contiguous, strided, periodic, scattered and guarded elements."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.codegen.llvm.emit.shuffles import windows
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    CompareOp,
    Expr,
    ReduceKind,
    Var,
    as_expr,
    const,
)
from ansorpy.ir.extents import dim
from ansorpy.ir.loops import Alloc, If, Scope, Seq
from ansorpy.schedule.lowering.program import Lowered
from ansorpy.target import Target
from tests.codegen.programs import (
    F32,
    Array,
    Compiled,
    add_to,
    at,
    buffer,
    empty,
    nest,
    program,
    put,
    random,
)
from tests.run_native import run_native

LENGTHS = [1, 2, 3, 8, 15, 16, 17, 24, 31, 33, 50, 300, 1029]


def read_through(
    index: Callable[[Any], Any], n: int, source_size: int, dtype: DType = F32
) -> tuple[Array, Array]:
    """``y[i] = x[index(i)]`` with i vectorized; returns the result and its numpy equivalent."""
    x, y = buffer("x", source_size, dtype=dtype), buffer("y", n, dtype=dtype)
    body = nest(f"v{n}", lambda i: put(y, (i,), at(x, index(i))))
    source, out = random((source_size,), dtype), empty((n,), dtype)
    Compiled(program(body, [x], [y]))(source, out)
    return out, source[[index(i) for i in range(n)]]


@pytest.mark.parametrize("dtype", list(DType), ids=str)
@pytest.mark.parametrize("n", [1, 5, 40])
def test_every_type_is_copied(dtype: DType, n: int) -> None:
    got, want = read_through(lambda i: i, n, n, dtype)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_strided_reads(n: int, stride: int) -> None:
    got, want = read_through(lambda i: i * stride + 1, n, (n - 1) * stride + 2)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("index", [lambda i: i // 3, lambda i: i % 5, lambda i: i % 4 * 7 + i // 4],
                         ids=["i // 3", "i % 5", "transposed"])  # fmt: skip
def test_periodic_reads(n: int, index: Any) -> None:
    got, want = read_through(index, n, 30 + n)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [7, 16, 45])
def test_reversed_read_and_scattered_write(n: int) -> None:
    x, y = buffer("x", n), buffer("y", 3 * n)
    body = nest(f"v{n}", lambda i: put(y, (i * 3,), at(x, (n - 1) - i)))
    source, out = random((n,)), empty((3 * n,))
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_array_equal(out[::3], source[::-1])
    assert np.isnan(out[1::3]).all()


@pytest.mark.parametrize("n", [5, 16, 37])
def test_gather_through_data(n: int) -> None:
    x, where, y = buffer("x", 50), buffer("w", n, dtype=DType.INT64), buffer("y", n)
    body = nest(f"v{n}", lambda i: put(y, (i,), at(x, at(where, i))))
    source, out = random((50,)), empty((n,))
    at_random = np.random.default_rng(0).integers(0, 50, n)
    Compiled(program(body, [x, where], [y]))(source, at_random, out)
    np.testing.assert_array_equal(out, source[at_random])


@pytest.mark.parametrize(("outer", "inner"), [(4, 4), (3, 5), (2, 16), (7, 1), (40, 32)])
def test_nested_vector_loops_are_one_space(outer: int, inner: int) -> None:
    x, y = buffer("x", inner, outer), buffer("y", outer, inner)
    body = nest(f"v{outer} v{inner}", lambda i, j: put(y, (i, j), at(x, j, i) + 1.0))
    source, out = random((inner, outer)), empty((outer, inner))
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_array_equal(out, source.T + 1)


def at_page_end(n: int) -> Array:
    """A float32 array whose last element is the last of a page, the next one not mapped."""
    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 3 * page)
    whole = np.frombuffer(area, np.uint8)
    libc = ctypes.CDLL(None)
    for guard in (whole.ctypes.data, whole.ctypes.data + 2 * page):
        assert libc.mprotect(ctypes.c_void_p(guard), page, 0) == 0
    return whole[2 * page - 4 * n : 2 * page].view(np.float32)


@pytest.mark.parametrize("n", [1, 3, 7, 17, 23, 31])
def test_tails_and_strides_touch_nothing_outside(n: int) -> None:
    x, s, y = buffer("x", n), buffer("s", 2 * n - 1), buffer("y", n)
    body = nest(f"v{n}", lambda i: put(y, (i,), at(x, i) + at(s, i * 2)))
    source, strided, out = at_page_end(n), at_page_end(2 * n - 1), at_page_end(n)
    source[...], strided[...] = random((n,)), random((2 * n - 1,), seed=1)
    Compiled(program(body, [x, s], [y]))(source, strided, out)
    np.testing.assert_array_equal(out, source + strided[::2])


@pytest.mark.parametrize("pad", [1, 3, 20])
@pytest.mark.parametrize("fill", [0.0, -1.5])
@pytest.mark.parametrize("kind", ["v", "s", "u"])
def test_a_guarded_read_touches_nothing_outside(pad: int, fill: float, kind: Any) -> None:
    n = 21
    x, y = buffer("x", n), buffer("y", n + 2 * pad)

    def padded(i: Var) -> Expr:
        inside = (i - pad >= 0) & (i - pad < n)
        return select(inside, at(x, i - pad), fill)

    body = nest(f"{kind}{n + 2 * pad}", lambda i: put(y, (i,), padded(i)))
    source, out = at_page_end(n), empty((n + 2 * pad,))
    source[...] = random((n,))
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_array_equal(out, np.pad(source, pad, constant_values=fill))


@pytest.mark.parametrize("loops", ["s5 s4 v24", "u5 s4 v24", "s5 u4 s24", "s5 s4 u24"])
def test_a_guard_known_outside_the_innermost_loop(loops: str) -> None:
    x, y = buffer("x", 3, 4, 24), buffer("y", 5, 4, 24)
    body = nest(
        loops,
        lambda i, j, k: put(
            y, (i, j, k), select((i >= 1) & (i < 4), at(x, i - 1, j, k), 0.0) * 2.0
        ),
    )
    source, out = random((3, 4, 24)), empty((5, 4, 24))
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_array_equal(out, np.pad(source, ((1, 1), (0, 0), (0, 0))) * 2)


@pytest.mark.parametrize("limit", [0, 1, 9, 16, 17, 30, 40])
@pytest.mark.parametrize("dtype", [F32, DType.BFLOAT16, DType.INT8], ids=str)
def test_an_if_that_differs_between_lanes(limit: int, dtype: DType) -> None:
    n = 40
    x, y = buffer("x", n, dtype=dtype), buffer("y", n, dtype=dtype)
    body = nest(f"v{n}", lambda i: If(i < limit, put(y, (i,), at(x, i)), None))
    source, out = random((n,), dtype), empty((n,), dtype)
    before = out.copy()
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_array_equal(out[:limit], source[:limit])
    assert out[limit:].tobytes() == before[limit:].tobytes()


@pytest.mark.parametrize("kind", list(ReduceKind), ids=lambda k: k.value)
@pytest.mark.parametrize("dtype", [F32, DType.INT32, DType.FLOAT64], ids=str)
@pytest.mark.parametrize("n", [1, 6, 16, 45])
def test_lanes_that_share_an_element_are_combined(kind: Any, dtype: DType, n: int) -> None:
    x, y = buffer("x", 3, n, dtype=dtype), buffer("y", 3, dtype=dtype)
    body = nest(f"s3 v{n}", lambda i, j: put(y, (i,), at(x, i, j), kind))
    source, out = random((3, n), dtype), random((3,), dtype, seed=1)
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    want = combine[kind.value](out, combine[kind.value].reduce(source, axis=1))
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_allclose(out, want, rtol=1e-4)


@pytest.mark.parametrize("n", [6, 32])
def test_lanes_that_share_in_groups_are_added_one_by_one(n: int) -> None:
    x, y = buffer("x", n), buffer("y", n // 2)
    body = nest(f"v{n}", lambda i: add_to(y, (i // 2,), at(x, i)))
    source, out = random((n,)), np.zeros(n // 2, np.float32)
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_allclose(out, source.reshape(-1, 2).sum(1), rtol=1e-6)


@pytest.mark.parametrize("n", [16, 21])
def test_an_element_is_not_touched_where_no_lane_accumulates(n: int) -> None:
    x, y = buffer("x", n), buffer("y", 4)
    body = nest(f"s4 v{n}", lambda i, j: If(i * 9 + j < 12, add_to(y, (i,), at(x, j)), None))
    source, out = random((n,)), np.full(4, -0.0, np.float32)
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_allclose(out, [source[:12].sum(), source[:3].sum(), 0, 0], rtol=1e-5)
    assert np.signbit(out[2:]).all()  # 0 added to -0 is 0


@pytest.mark.parametrize(
    "source_type", [F32, DType.INT32, DType.UINT8, DType.INT64, DType.BOOL], ids=str
)
@pytest.mark.parametrize("wanted", list(DType), ids=str)
def test_casts(source_type: DType, wanted: DType) -> None:
    n = 21
    x, y = buffer("x", n, dtype=source_type), buffer("y", n, dtype=wanted)
    body = nest(f"v{n}", lambda i: put(y, (i,), Cast(wanted, at(x, i))))
    source, out = random((n,), source_type), empty((n,), wanted)
    if not wanted.is_signed and not wanted.is_float:
        source = np.abs(source)
    Compiled(program(body, [x], [y]))(source, out)
    np.testing.assert_array_equal(out, source.astype(wanted.numpy))


@pytest.mark.parametrize("op", [BinaryOp.FLOORDIV, BinaryOp.FLOORMOD])
@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64, DType.UINT8], ids=str)
def test_division_of_data_rounds_down(op: BinaryOp, dtype: DType) -> None:
    n = 45
    x, d, y = (buffer(name, n, dtype=dtype) for name in "xdy")
    body = nest(f"v{n}", lambda i: put(y, (i,), Binary(op, at(x, i), at(d, i))))
    source, divisor, out = random((n,), dtype), random((n,), dtype, seed=1), empty((n,), dtype)
    divisor[divisor == 0] = 2
    Compiled(program(body, [x, d], [y]))(source, divisor, out)
    exact = np.floor_divide if op is BinaryOp.FLOORDIV else np.mod
    np.testing.assert_array_equal(out, exact(source, divisor))


def test_index_arithmetic_of_negative_values_rounds_down() -> None:
    y = buffer("y", 23, dtype=DType.INT64)
    body = nest("s23", lambda i: put(y, (i,), (i - 11) // 4 * 100 + (i - 11) % 4))
    out = empty((23,), DType.INT64)
    Compiled(program(body, [], [y]))(out)
    i = np.arange(23) - 11
    np.testing.assert_array_equal(out, i // 4 * 100 + i % 4)


def test_full_vectors_need_no_mask() -> None:
    x, y = buffer("x", 64), buffer("y", 64)
    source = program(nest("v64", lambda i: put(y, (i,), at(x, i))), [x], [y])
    text = emit_llvm(source, Target.parse("x86-64-v4"), "k")
    assert text.count("load <16 x float>") == 4
    assert "masked" not in text


def test_a_local_row_is_padded_instead_of_masked() -> None:
    x, y = buffer("x", 20, 21), buffer("y", 21)
    tile = buffer("tile", 21, scope=Scope.LOCAL)
    body = Alloc(tile, Seq((
        nest("v21", lambda j: put(tile, (j,), const(0.0, F32))),
        nest("s20 v21", lambda i, j: add_to(tile, (j,), at(x, i, j))),
        nest("v21", lambda j: put(y, (j,), at(tile, j))),
    )))  # fmt: skip
    whole = program(body, [x], [y])
    text = emit_llvm(whole, Target.parse("x86-64-v4"), "k")
    assert text.count("call void @llvm.masked.store") == 1
    source, out = random((20, 21)), empty((21,))
    Compiled(whole)(source, out)
    np.testing.assert_allclose(out, source.sum(0), rtol=1e-5, atol=1e-5)


def test_windows_stay_inside_the_range() -> None:
    assert windows([0, 2, 4, 6], 4) == [(0, 4), (3, 4)]
    assert windows([5, 5, 6, 6], 4) == [(5, 2)]
    assert windows([0, 100, 200, 300, 400], 8) is None


@pytest.mark.parametrize("n", [0, 1, 20, 31])
def test_masked_lanes_of_a_tile_leave_its_next_row_alone(n: int) -> None:
    size = dim("n", 0, 31)
    a, b, c = buffer("A", 2, 31), buffer("B", size), buffer("C", 2, 31)
    tile = buffer("tile", 2, 31, scope=Scope.LOCAL)
    body = Alloc(tile, Seq((
        nest("u2 v31", lambda i, j: put(tile, (i, j), at(a, i, j))),
        nest("v16", lambda j: If(
            Compare(CompareOp.LT, j + 16, as_expr(size)), put(tile, (0, j + 16), at(b, j)), None
        )),
        nest("u2 v31", lambda i, j: put(c, (i, j), at(tile, i, j))),
    )))  # fmt: skip
    data = {"A": random((2, 31)), "B": random((n,), seed=1)}
    whole = program(body, [a, b], [c])
    [got] = run_native(Lowered(whole, None), data, sizes={whole.dims[0]: n})
    data["A"][0, 16:n] = data["B"][: max(n - 16, 0)]
    np.testing.assert_array_equal(got, data["A"])
