"""Quotients and remainders of data: defined for every divisor, and alike wherever computed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir.builders import abs as absolute
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.expr import Binary, BinaryOp, Const, Expr, Var
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Seq, Stmt
from ansorpy.target import Target
from tests.budget import some
from tests.codegen.cuda.emulator import Emulated, emulate, needs_compiler
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put

OPS = (BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)
TYPES = tuple(dtype for dtype in DType if dtype.is_int)
DIVISORS = (0, -1, 1, 3, -4)


def edges(dtype: DType) -> tuple[Array, Array]:
    """Every pair of some numbers of *dtype*, its least and largest among them."""
    limits = np.iinfo(dtype.value)
    numbers = [limits.min, limits.max, limits.max - 1, 0, 1, 2, 5, 7]
    numbers += [-1, -2, -5, -7] if dtype.is_signed else []
    pairs = np.array(np.meshgrid(*[np.array(numbers, dtype.numpy)] * 2)).reshape(2, -1)
    return np.ascontiguousarray(pairs[0]), np.ascontiguousarray(pairs[1])


@cache
def exact(op: BinaryOp, a: int, b: int, dtype: DType) -> int:
    """What :class:`BinaryOp` says, in Python's integers, cut to *dtype*."""
    if b == 0:
        return 0
    if op is BinaryOp.FLOORMOD:
        return a % b
    towards_zero = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    found = a // b if op is BinaryOp.FLOORDIV else towards_zero
    return int(np.array(found % (1 << dtype.bits), np.uint64).astype(dtype.numpy))


def quotients(op: BinaryOp, dtype: DType, loops: str) -> Program:
    """A row of quotients by data, and one for each of DIVISORS."""
    n = len(edges(dtype)[0])
    a, b = (buffer(name, n, dtype=dtype) for name in "ab")
    out = buffer("out", 1 + len(DIVISORS), n, dtype=dtype)

    def body(i: Var) -> Stmt:
        divisors = [at(b, i), *(Const(number, dtype) for number in DIVISORS)]
        values = [Binary(op, at(a, i), divisor) for divisor in divisors]
        return Seq(tuple(put(out, (row, i), value) for row, value in enumerate(values)))

    return program(nest(loops.format(n), body), [a, b], [out])


def expected(op: BinaryOp, dtype: DType, a: Array, b: Array) -> Array:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([exact(op, x, y, dtype) for x, y in pairs], dtype.numpy)


def in_rows(op: BinaryOp, dtype: DType, a: Array, b: Array) -> Array:
    wrapped = np.array(DIVISORS).astype(dtype.numpy)
    divisors = [b, *(np.full_like(a, number) for number in wrapped)]
    return np.stack([expected(op, dtype, a, divisor) for divisor in divisors])


@pytest.mark.parametrize("loops", ["v{}", "s{}"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.value)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_divisor_is_defined(dtype: DType, op: BinaryOp, loops: str) -> None:
    source, (a, b) = quotients(op, dtype, loops), edges(dtype)
    want = in_rows(op, dtype, a, b)
    interpreted, got = empty(want.shape, dtype), empty(want.shape, dtype)
    run_program(source, [a, b, interpreted])
    Compiled(source)(a, b, got)
    np.testing.assert_array_equal(interpreted, want)
    np.testing.assert_array_equal(got, want)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    made = {
        f"{op.name}_{dtype.value}": quotients(op, dtype, "s{}") for op in OPS for dtype in TYPES
    }
    return emulate(made, tmp_path_factory.mktemp("division"))


@needs_compiler
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.value)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_divisor_is_defined_on_a_gpu(emulated: Emulated, dtype: DType, op: BinaryOp) -> None:
    a, b = edges(dtype)
    want = in_rows(op, dtype, a, b)
    got = empty(want.shape, dtype)
    emulated(f"{op.name}_{dtype.value}", [a, b, got])
    np.testing.assert_array_equal(got, want)


def as_index(op: BinaryOp) -> Program:
    """``out[i]`` = 1 at an index that is a quotient of data, brought inside."""
    a, b = (buffer(name, 144, dtype=DType.INT64) for name in "ab")
    table, out = buffer("table", 16, dtype=DType.INT64), buffer("out", 144, dtype=DType.INT64)

    def body(i: Var) -> Stmt:
        return put(out, (i,), at(table, Binary(op, at(a, i), at(b, i)) % 16))

    return program(nest("s144", body), [a, b, table], [out])


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.value)
def test_an_index_that_is_a_quotient_of_data(op: BinaryOp) -> None:
    a, b = edges(DType.INT64)
    table, got = np.arange(16), empty(a.shape, DType.INT64)
    Compiled(as_index(op))(a, b, table, got)
    np.testing.assert_array_equal(got, expected(op, DType.INT64, a, b) % 16)


INDEX_TYPES = (DType.INT8, DType.UINT8, DType.INT32, DType.UINT32, DType.INT64)
OF_DATA: tuple[Callable[[Expr, Expr], Expr], ...] = (
    lambda i, j: (i * 3 + 1) % 10,
    lambda i, j: (i * 3 + 1) // 2 % 10,
    lambda i, j: (i + j) % 10,
    lambda i, j: (i + j) // 2 % 10,
    lambda i, j: (i - j * 5) // 7 % 10,
    lambda i, j: (i * 30 - j * 4) % 10,
    lambda i, j: (i * 6 + 4) // 4 % 10,
    lambda i, j: i % 10 * 5 // 5,
    lambda i, j: -i % 10,
    lambda i, j: absolute(i) // 3 % 10,
    lambda i, j: i // -3 % 10,
    lambda i, j: i * 3 % -10 + 9,
    lambda i, j: Binary(BinaryOp.DIV, i * 3 + 1, Const(2, DType.INT64)) % 10,
)


def parts(dtype: DType, seed: int) -> Array:
    """Numbers of *dtype* of every size, whose small multiples int64 holds."""
    rng = np.random.default_rng(seed)
    low, high = (max(min(end, 1 << 57), -(1 << 57)) for end in dtype.limits)
    far = rng.integers(low, high, 40, endpoint=True)
    near = rng.integers(-20 if low else 0, 20, 40)
    return np.concatenate([far, near, [low, high]]).astype(dtype.numpy)


def read_at(index: int, dtype: DType, kind: str) -> tuple[Program, list[Array], Array]:
    """``out[k] = table[OF_DATA[index](x[k], y[k])]``, its inputs and what comes out."""
    a, b = parts(dtype, 1), parts(dtype, 2)
    n = len(a)
    x, y = (buffer(name, n, dtype=dtype) for name in "xy")
    table, out = (buffer(name, size, dtype=DType.INT64) for name, size in (("t", 10), ("o", n)))

    def body(k: Var) -> Stmt:
        i, j = (at(source, k).astype(DType.INT64) for source in (x, y))
        return put(out, (k,), at(table, OF_DATA[index](i, j)))

    source = program(nest(f"{kind}{n}", body), [x, y, table], [out])
    arrays, want = [a, b, np.arange(10)], empty((n,), DType.INT64)
    run_program(source, [*arrays, want])
    return source, arrays, want


@pytest.mark.parametrize(
    ("index", "dtype", "kind"), some(product(range(len(OF_DATA)), INDEX_TYPES, "sv"))
)
def test_an_index_that_divides_arithmetic_on_data(index: int, dtype: DType, kind: str) -> None:
    source, arrays, want = read_at(index, dtype, kind)
    got = empty(want.shape, DType.INT64)
    Compiled(source)(*arrays, got)
    np.testing.assert_array_equal(got, want)


@needs_compiler
def test_an_index_divides_arithmetic_on_data_on_a_gpu(tmp_path: Path) -> None:
    made = {
        f"index{n}_{dtype.value}": read_at(n, dtype, "s")
        for n in range(len(OF_DATA)) for dtype in INDEX_TYPES
    }  # fmt: skip
    emulated = emulate({symbol: source for symbol, (source, _, _) in made.items()}, tmp_path)
    for symbol, (_, arrays, want) in made.items():
        got = empty(want.shape, DType.INT64)
        emulated(symbol, [*arrays, got])
        np.testing.assert_array_equal(got, want, err_msg=symbol)


def test_an_index_of_narrow_data_is_divided_unsigned() -> None:
    x, table, out = buffer("x", 64, dtype=DType.INT32), buffer("t", 10), buffer("out", 64)
    body = nest("s64", lambda i: put(out, (i,), at(table, at(x, i).astype("int64") * 3 % 10)))
    text = emit_llvm(program(body, [x, table], [out]), Target.parse("x86-64-v4"), "k")
    assert "urem" in text and "srem" not in text


@pytest.mark.parametrize("kind", ["s", "v"])
def test_loop_variables_divide_loop_variables(kind: str) -> None:
    out = buffer("out", 9, 9, 2, dtype=DType.INT64)

    def body(i: Var, j: Var) -> Stmt:
        values: list[Expr] = [(i - 4) // (j - 4), (i - 4) % (j - 4)]
        return Seq(tuple(put(out, (i, j, n), value) for n, value in enumerate(values)))

    source = program(nest(f"s9 {kind}9", body), [], [out])
    want, got = empty((9, 9, 2), DType.INT64), empty((9, 9, 2), DType.INT64)
    run_program(source, [want])
    Compiled(source)(got)
    np.testing.assert_array_equal(got, want)
    assert want[2, 4].tolist() == [0, 0]  # -2 by 0


def test_division_by_what_divides_everything_is_not_guarded() -> None:
    x, out = (buffer(name, 64, dtype=DType.INT32) for name in ("x", "out"))
    of_data = nest("s64", lambda i: put(out, (i,), at(x, i) // 7 + at(x, i) % 5))
    of_indices = nest("s8 s8", lambda i, j: put(out, (i * 8 + j,), at(x, i * 8 // (j + 1))))
    for body, corrections in ((of_data, 2), (of_indices, 1)):
        text = emit_llvm(program(body, [x], [out]), Target.parse("x86-64-v4"), "k")
        assert text.count("select") == corrections


FLOATS = tuple(dtype for dtype in DType if dtype.is_float)


def floats(dtype: DType) -> tuple[Array, Array]:
    """Every pair of special values, and random ones whose quotients are of every size."""
    rng = np.random.default_rng(3)
    named = [0.0, -0.0, 0.1, 1.0, -1.0, 3.0, -7.0, 0.75, 1e9, np.inf, -np.inf, np.nan]
    limits = ml_dtypes.finfo(dtype.numpy)
    named += [float(limits.smallest_subnormal), float(limits.max), -float(limits.max)]
    pairs = np.array(np.meshgrid(named, named)).reshape(2, -1)
    span = float(np.log2(float(limits.max))) - 1
    spread = rng.uniform(-1, 1, (2, 500)) * 2.0 ** rng.uniform(-span, span, (2, 500))
    close = rng.uniform(-9, 9, (2, 500))
    a, b = np.concatenate([pairs, spread, close], axis=1)
    with np.errstate(all="ignore"):
        b[-200:] = a[-200:] / np.rint(rng.uniform(1, 2**20, 200))  # near whole quotients
        return a.astype(dtype.numpy), b.astype(dtype.numpy)


def of_floats(op: BinaryOp, dtype: DType, loops: str) -> tuple[Program, Array, Array, Array]:
    a, b = floats(dtype)
    x, y, out = (buffer(name, len(a), dtype=dtype) for name in "xyz")
    body = nest(loops.format(len(a)), lambda i: put(out, (i,), Binary(op, at(x, i), at(y, i))))
    want = empty(a.shape, dtype)
    source = program(body, [x, y], [out])
    with np.errstate(all="ignore"):
        run_program(source, [a, b, want])
    return source, a, b, want


def assert_same_floats(got: Array, want: Array, which: str = "") -> None:
    """NaNs in the same places, equal numbers, and zeros of equal signs."""
    found, exact = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(found, exact, which)
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(exact[zero]), which)


@pytest.mark.parametrize("loops", ["v{}", "s{}"])
@pytest.mark.parametrize("op", OPS[1:], ids=lambda op: op.value)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_divide_as_in_numpy(dtype: DType, op: BinaryOp, loops: str) -> None:
    source, a, b, want = of_floats(op, dtype, loops)
    got = empty(a.shape, dtype)
    Compiled(source)(a, b, got)
    assert_same_floats(got, want)


def test_a_remainder_of_floats_is_exact() -> None:
    a, b = floats(DType.FLOAT64)
    known = np.isfinite(a) & np.isfinite(b) & (b != 0)
    got = of_floats(BinaryOp.FLOORMOD, DType.FLOAT64, "s{}")[3][known]
    exact = [float(Fraction(x) % Fraction(y)) for x, y in zip(a[known], b[known], strict=True)]
    np.testing.assert_array_equal(got, exact)


@needs_compiler
def test_floats_divide_as_in_numpy_on_a_gpu(tmp_path: Path) -> None:
    made = {
        f"{op.name}_{dtype.value}": of_floats(op, dtype, "s{}")
        for op in OPS[1:] for dtype in FLOATS
    }  # fmt: skip
    emulated = emulate({symbol: parts[0] for symbol, parts in made.items()}, tmp_path)
    for symbol, (_, a, b, want) in made.items():
        got = empty(want.shape, as_dtype(want.dtype))
        emulated(symbol, [a, b, got])
        assert_same_floats(got, want, symbol)
