"""Numbers that become 16-bit floats are rounded once, alike wherever computed."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Var
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Seq, Stmt
from ansorpy.target import Target
from tests.codegen.cuda.emulator import emulate, needs_compiler
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put

HALF = (DType.FLOAT16, DType.BFLOAT16)
WIDE = (DType.FLOAT64, DType.INT32, DType.UINT32, DType.INT64, DType.UINT64)


def near_ties(source: DType, wanted: DType) -> Array:
    """Numbers of *source* half-way between those of *wanted*, and their closest neighbours."""
    rng = np.random.default_rng(7)
    count = {DType.FLOAT16: 0x7C00, DType.BFLOAT16: 0x7F80}[wanted]
    every = np.arange(count, dtype=np.uint16).view(wanted.numpy).astype(np.float64)
    halves = (every[:-1] + every[1:]) / 2
    chosen = np.concatenate([every[-3:], halves[:3], halves[-3:], rng.choice(halves, 1500)])
    if source is DType.FLOAT64:
        apart = [np.nextafter(chosen, end) for end in (np.inf, 0)]
        named = [0.0, 1e300, 1e-300, 5e-324, 65519.9999, 65520.0, 3.3961e38, np.inf, np.nan]
        found = np.concatenate([chosen, *apart, named])
        return np.concatenate([found, -found])
    low, high = source.limits
    whole = [int(x) for x in chosen if 1 << 8 < x <= high]
    signs = (1, -1) if low else (1,)
    numbers = [s * (x + off) for x in whole for off in (-1, 0, 1) for s in signs]
    return np.array([x for x in numbers if low <= x <= high] + [low, high], source.numpy)


def nearest(x: float | int, wanted: DType) -> float:
    """The number of *wanted* that is nearest to *x*, the even one of two, by exact arithmetic."""
    if x != x or abs(x) in (0, float("inf")):
        return float(x)
    fraction, least = (10, -24) if wanted is DType.FLOAT16 else (7, -133)
    size = abs(Fraction(x))
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - fraction, least)
    found = round(size / unit) * unit
    limit = 65504 if wanted is DType.FLOAT16 else float.fromhex("0x1.fep127")
    return (1 if x > 0 else -1) * (float(found) if found <= limit else float("inf"))


@cache
def rounded(source: DType, wanted: DType) -> tuple[Array, Array]:
    """Numbers of *source*, and what *wanted* has for them."""
    values = near_ties(source, wanted)
    return values, np.array([nearest(v, wanted) for v in values.tolist()])


def cast(source: DType, wanted: DType, loop: str) -> tuple[Program, Array, Array]:
    values, want = rounded(source, wanted)
    n = len(values)
    x, out = buffer("x", n, dtype=source), buffer("out", n, dtype=wanted)
    body = nest(f"{loop}{n}", lambda i: put(out, (i,), at(x, i).astype(wanted)))
    return program(body, [x], [out]), values, want


@pytest.mark.parametrize("loop", ["s", "v"])
@pytest.mark.parametrize("wanted", HALF, ids=str)
@pytest.mark.parametrize("source", WIDE, ids=str)
def test_wide_numbers_are_rounded_once(source: DType, wanted: DType, loop: str) -> None:
    made, values, want = cast(source, wanted, loop)
    got, interpreted = empty(values.shape, wanted), empty(values.shape, wanted)
    Compiled(made)(values, got)
    run_program(made, [values, interpreted])
    np.testing.assert_array_equal(interpreted.astype(np.float64), want)
    np.testing.assert_array_equal(got.astype(np.float64), want)


@needs_compiler
def test_wide_numbers_are_rounded_once_on_a_gpu(tmp_path: Path) -> None:
    made = {
        f"{source.value}_{wanted.value}": cast(source, wanted, "s")
        for source in WIDE for wanted in HALF
    }  # fmt: skip
    emulated = emulate({symbol: parts[0] for symbol, parts in made.items()}, tmp_path)
    for symbol, (source, values, want) in made.items():
        got = empty(values.shape, source.params[-1].buffer.dtype)
        emulated(symbol, [values, got])
        np.testing.assert_array_equal(got.astype(np.float64), want, symbol)


@pytest.mark.parametrize("source", [DType.FLOAT32, DType.INT16, DType.UINT8], ids=str)
def test_what_float32_has_is_rounded_directly(source: DType) -> None:
    text = emit_llvm(cast_of_one(source), Target.host(), "k")
    assert "double" not in text


def cast_of_one(source: DType) -> Program:
    x, out = buffer("x", 4, dtype=source), buffer("out", 4, dtype=DType.FLOAT16)
    return program(nest("s4", lambda i: put(out, (i,), at(x, i).astype("float16"))), [x], [out])


NUMBERS = (0.1, -0.3, 1e-9, 1 + 2.0**-8 + 2.0**-40, 65519.0, 7e4, -1e39)


def compared(dtype: DType, loop: str) -> tuple[Program, Array, Array]:
    """Whether the constants are at most, and at least, themselves as elements."""
    values = np.array([nearest(x, dtype) for x in NUMBERS]).astype(dtype.numpy)
    n = len(values)
    x, out = buffer("x", n, dtype=dtype), buffer("out", n, 2 * n, dtype=DType.INT32)

    def body(i: Var) -> Stmt:
        constants = [Const(number, dtype) for number in NUMBERS]
        bits: list[Expr] = [at(x, i) >= c for c in constants] + [at(x, i) <= c for c in constants]
        counts = [select(bit, Const(1, DType.INT32), 0) for bit in bits]
        return Seq(tuple(put(out, (i, n), count) for n, count in enumerate(counts)))

    source = program(nest(f"{loop}{n}", body), [x], [out])
    return source, values, np.concatenate([values[:, None] >= values, values[:, None] <= values], 1)


@pytest.mark.parametrize("loop", ["s", "v"])
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_constants_are_those_of_their_type(dtype: DType, loop: str) -> None:
    source, values, want = compared(dtype, loop)
    got, interpreted = empty(want.shape, DType.INT32), empty(want.shape, DType.INT32)
    Compiled(source)(values, got)
    run_program(source, [values, interpreted])
    np.testing.assert_array_equal(interpreted, want)
    np.testing.assert_array_equal(got, want)


@needs_compiler
def test_constants_are_those_of_their_type_on_a_gpu(tmp_path: Path) -> None:
    made = {dtype.value: compared(dtype, "s") for dtype in HALF}
    emulated = emulate({symbol: parts[0] for symbol, parts in made.items()}, tmp_path)
    for symbol, (_, values, want) in made.items():
        got = empty(want.shape, DType.INT32)
        emulated(symbol, [values, got])
        np.testing.assert_array_equal(got, want)
