"""Operators on the bits of integers: defined for every operand, and alike wherever computed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import LoweringError, UsageError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Const, Function, Var
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Seq, Stmt
from ansorpy.ir.operators import BITWISE
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from tests.codegen.c.compiled import CompiledC, needs_cc
from tests.codegen.cuda.emulator import emulate, needs_compiler
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put

OPS = tuple(sorted(BITWISE, key=lambda op: op.name))
TYPES = tuple(dtype for dtype in DType if dtype.is_int)
LITERALS = (0, 1, 3, 7, 63, 64, 100, -1)


def edges(dtype: DType) -> tuple[Array, Array]:
    """Every pair of some numbers of *dtype*, its least and largest among them."""
    low, high = dtype.limits
    numbers = [low, high, 0, 1, 2, 5, 0x55, dtype.bits - 1, dtype.bits, dtype.bits + 1]
    numbers += [-1, -2, -5, -dtype.bits] if dtype.is_signed else []
    pairs = np.array(np.meshgrid(*[np.array(numbers, dtype.numpy)] * 2)).reshape(2, -1)
    return np.ascontiguousarray(pairs[0]), np.ascontiguousarray(pairs[1])


@cache
def exact(op: BinaryOp, a: int, b: int, dtype: DType) -> int:
    """What :class:`BinaryOp` says, in Python's integers, cut to *dtype*."""
    if op is BinaryOp.SHL:
        found = a << b if 0 <= b < dtype.bits else 0
    elif op is BinaryOp.SHR:
        found = a >> b if 0 <= b < dtype.bits else -1 if a < 0 else 0
    else:
        found = {BinaryOp.BIT_AND: a & b, BinaryOp.BIT_OR: a | b, BinaryOp.BIT_XOR: a ^ b}[op]
    return int(np.array(found % (1 << dtype.bits), np.uint64).astype(dtype.numpy))


def expected(op: BinaryOp, dtype: DType, a: Array, b: Array) -> Array:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([exact(op, x, y, dtype) for x, y in pairs], dtype.numpy)


def literals(dtype: DType) -> list[int]:
    low, high = dtype.limits
    return [n for n in LITERALS if low <= n <= high]


def applied(op: BinaryOp, dtype: DType, loops: str) -> Program:
    """A row for the operands of data, and one for each literal."""
    n, numbers = len(edges(dtype)[0]), literals(dtype)
    a, b = (buffer(name, n, dtype=dtype) for name in "ab")
    out = buffer("out", 1 + len(numbers), n, dtype=dtype)

    def body(i: Var) -> Stmt:
        operands = [at(b, i), *(Const(number, dtype) for number in numbers)]
        values = [Binary(op, at(a, i), operand) for operand in operands]
        return Seq(tuple(put(out, (row, i), value) for row, value in enumerate(values)))

    return program(nest(loops.format(n), body), [a, b], [out])


def in_rows(op: BinaryOp, dtype: DType, a: Array, b: Array) -> Array:
    operands = [b, *(np.full_like(a, number) for number in literals(dtype))]
    return np.stack([expected(op, dtype, a, operand) for operand in operands])


@pytest.mark.parametrize("loops", ["v{}", "s{}"])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_operand_is_defined(dtype: DType, op: BinaryOp, loops: str) -> None:
    source, (a, b) = applied(op, dtype, loops), edges(dtype)
    want = in_rows(op, dtype, a, b)
    verify(source)
    interpreted, got = empty(want.shape, dtype), empty(want.shape, dtype)
    run_program(source, [a, b, interpreted])
    Compiled(source)(a, b, got)
    np.testing.assert_array_equal(interpreted, want)
    np.testing.assert_array_equal(got, want)


def _all(loops: str) -> dict[str, Program]:
    return {
        f"{op.name}_{dtype.value}_{loops[0]}": applied(op, dtype, loops)
        for op in OPS for dtype in TYPES
    }  # fmt: skip


@needs_cc
def test_they_are_the_same_in_c(tmp_path: Path) -> None:
    compiled = CompiledC(_all("s{}") | _all("v{}"), tmp_path)
    for dtype in TYPES:
        a, b = edges(dtype)
        for op in OPS:
            want = in_rows(op, dtype, a, b)
            for kind in "sv":
                got = empty(want.shape, dtype)
                compiled(f"{op.name}_{dtype.value}_{kind}", [a, b, got])
                np.testing.assert_array_equal(got, want)


@needs_compiler
def test_they_are_the_same_on_a_gpu(tmp_path: Path) -> None:
    emulated = emulate(_all("s{}"), tmp_path)
    for dtype in TYPES:
        a, b = edges(dtype)
        for op in OPS:
            want = in_rows(op, dtype, a, b)
            got = empty(want.shape, dtype)
            emulated(f"{op.name}_{dtype.value}_s", [a, b, got])
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("loop", ["s", "v"])
def test_an_index_may_be_made_of_bits(loop: str, tmp_path: Path) -> None:
    x, table = buffer("x", 37, dtype=DType.UINT8), buffer("t", 8, dtype=DType.INT32)
    out = buffer("out", 37, dtype=DType.INT32)

    def body(i: Var) -> Stmt:
        return put(out, (i,), at(table, ((at(x, i) >> 2) & 7).astype("int64") ^ (i & 1)))

    source = program(nest(f"{loop}37", body), [x, table], [out])
    numbers = np.arange(37, dtype=np.uint8) * 7
    held = np.arange(8, dtype=np.int32) ** 2
    want = held[((numbers >> 2) & 7) ^ (np.arange(37) & 1)]
    got, interpreted = empty((37,), DType.INT32), empty((37,), DType.INT32)
    run_program(source, [numbers, held, interpreted])
    Compiled(source)(numbers, held, got)
    np.testing.assert_array_equal(interpreted, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", [DType.FLOAT32, DType.BOOL], ids=str)
def test_only_integers_have_them(kind: DType) -> None:
    a, out = (buffer(name, 4, dtype=kind) for name in ("a", "out"))
    body = nest("s4", lambda i: put(out, (i,), Binary(BinaryOp.SHL, at(a, i), at(a, i))))
    with pytest.raises(LoweringError, match=f"<< of {kind.value} values is not defined"):
        verify(program(body, [a], [out]))
    x = placeholder((4,), kind, name="x")
    with pytest.raises(UsageError, match=rf"\^ of {kind.value} values is not defined"):
        compute((4,), lambda i: x[i] ^ x[i], name="y")


def test_they_print_as_in_python() -> None:
    i, j = Var("i"), Var("j")
    assert text((i & 3) << 2 | (j ^ i) >> 1) == "(i & 3) << 2 | (j ^ i) >> 1"
    assert text((i << 2) + 1) == "(i << 2) + 1"
    assert text(i + 1 << 2) == "i + 1 << 2"


HALF = (DType.FLOAT16, DType.BFLOAT16)


def bits_of(dtype: DType, loop: str) -> Program:
    """All bit patterns as numbers of *dtype*, and the bits of these."""
    x, out = buffer("x", 1 << 16, dtype=dtype), buffer("out", 1 << 16, dtype=DType.UINT16)
    body = nest(loop, lambda i: put(out, (i,), Call(Function.BITS, (at(x, i),))))
    return program(body, [x], [out])


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_the_bits_of_16_bit_floats(dtype: DType, tmp_path: Path) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    numbers = codes.view(dtype.numpy)
    known = ~np.isnan(numbers.astype(np.float32))
    for loop in ("v65536", "s65536"):
        source = bits_of(dtype, loop)
        got, interpreted = empty(codes.shape, DType.UINT16), empty(codes.shape, DType.UINT16)
        run_program(source, [numbers, interpreted])
        Compiled(source)(numbers, got)
        np.testing.assert_array_equal(interpreted, codes)
        np.testing.assert_array_equal(got[known], codes[known])


@pytest.mark.parametrize("loop", ["v65536", "s65536"])
def test_floats_of_16_bits(loop: str) -> None:
    x, out = buffer("x", 1 << 16, dtype=DType.UINT16), buffer("out", 1 << 16, dtype=DType.FLOAT16)
    body = nest(loop, lambda i: put(out, (i,), Call(Function.FROM_BITS, (at(x, i),))))
    codes = np.arange(1 << 16, dtype=np.uint16)
    got = empty(codes.shape, DType.FLOAT16)
    Compiled(program(body, [x], [out]))(codes, got)
    known = ~np.isnan(codes.view(np.float16))
    np.testing.assert_array_equal(got.view(np.uint16)[known], codes[known])
