"""Floats that become integers: those out of range and NaN too, alike wherever computed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast, Var
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Stmt
from ansorpy.target import Target
from tests.codegen.cuda.emulator import Emulated, emulate, needs_compiler
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put

FLOATS = tuple(dtype for dtype in DType if dtype.is_float)
INTS = tuple(dtype for dtype in DType if dtype.is_int)
SIZES = (0.0, 0.75, 1.5, 127.5, 128.0, 255.0, 300.0, 4e4, 2.0**31 - 128, 2.0**31, 3e9, 2.0**32,
         2.0**53, 2.0**63 - 2.0**39, 2.0**63, 1.5e19, 2.0**64, 1e30, math.inf)  # fmt: skip
NUMBERS = np.array([*SIZES, *(-size for size in SIZES), math.nan, -math.nan])


def values(dtype: DType) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return NUMBERS.astype(dtype.numpy)


def exact(x: float, wanted: DType) -> int:
    """What :class:`Cast` says, in Python's integers."""
    bits = 64 if wanted.bits == 64 or wanted is DType.UINT32 else 32
    signed = wanted is not DType.UINT64
    low = -(1 << bits - 1) if signed else 0
    high = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    if math.isnan(x):
        return 0
    nearest = max(low, min(high, math.trunc(max(-1e300, min(1e300, x)))))
    return int(np.array(nearest % (1 << wanted.bits), np.uint64).astype(wanted.numpy))


def expected(source: DType, wanted: DType) -> Array:
    numbers = values(source).astype(np.float64).tolist()
    return np.array([exact(x, wanted) for x in numbers], wanted.numpy)


def cast(source: DType, wanted: DType, loop: str) -> Program:
    n = len(NUMBERS)
    x, out = buffer("x", n, dtype=source), buffer("out", n, dtype=wanted)
    return program(nest(f"{loop}{n}", lambda i: put(out, (i,), Cast(wanted, at(x, i)))), [x], [out])


@pytest.mark.parametrize("wanted", INTS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_every_float_becomes_an_integer(source: DType, wanted: DType) -> None:
    want = expected(source, wanted)
    for loop in "sv":
        made, got = cast(source, wanted, loop), empty(want.shape, wanted)
        Compiled(made)(values(source), got)
        np.testing.assert_array_equal(got, want)
    run_program(made, [values(source), got])
    np.testing.assert_array_equal(got, want)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    made = {
        f"{source.value}_{wanted.value}": cast(source, wanted, "s")
        for source in FLOATS for wanted in INTS
    }  # fmt: skip
    return emulate(made, tmp_path_factory.mktemp("casts"))


@needs_compiler
@pytest.mark.parametrize("wanted", INTS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_every_float_becomes_an_integer_on_a_gpu(
    emulated: Emulated, source: DType, wanted: DType
) -> None:
    want = expected(source, wanted)
    got = empty(want.shape, wanted)
    emulated(f"{source.value}_{wanted.value}", [values(source), got])
    np.testing.assert_array_equal(got, want)


def at_floats() -> Program:
    """``out[i] = table[int(x[i]) clipped]``: whatever x holds, the index stays inside."""
    n = len(NUMBERS)
    x, table = buffer("x", n), buffer("table", 8, dtype=DType.INT64)
    out = buffer("out", n, dtype=DType.INT64)

    def body(i: Var) -> Stmt:
        return put(out, (i,), at(table, Cast(DType.INT64, at(x, i)) % 8))

    return program(nest(f"s{n}", body), [x, table], [out])


@needs_compiler
def test_an_index_that_was_a_float_stays_inside(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    source, x, table = at_floats(), values(DType.FLOAT32), np.arange(8)
    want = expected(DType.FLOAT32, DType.INT64) % 8
    got, other = empty(want.shape, DType.INT64), empty(want.shape, DType.INT64)
    Compiled(source)(x, table, got)
    emulate({"at_floats": source}, tmp_path_factory.mktemp("index"))("at_floats", [x, table, other])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(other, want)


def test_lanes_become_integers_together() -> None:
    text = emit_llvm(cast(DType.FLOAT32, DType.INT32, "v"), Target.parse("x86-64-v4"), "k")
    assert "fptosi <16 x float>" in text and "fptosi float" not in text
