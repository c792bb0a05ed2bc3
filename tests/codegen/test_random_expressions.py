"""Whatever a program computes of mixed element types, the machine and the interpreter agree."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, walk
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Stmt
from ansorpy.ir.verify import verify
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put
from tests.codegen.random_expressions import TYPES, RandomExpression

EXTENTS = (1, 3, 7, 13, 17, 31, 33, 67)
LOOPS = ("s1 v{}", "v{}", "s{}", "u{}", "p{}")


def tolerance(value: Expr) -> float:
    """What rounding in the narrowest float type inside may come to, of the largest result."""
    inside = {e.dtype for e in walk(value)}
    if inside & {DType.FLOAT16, DType.BFLOAT16}:
        return 0.05
    return 1e-5 if DType.FLOAT32 in inside else 1e-13


def operands(dtype: DType, count: int, rng: np.random.Generator) -> Array:
    if dtype is DType.BOOL:
        return rng.integers(0, 2, count).astype(np.bool_)
    numbers = rng.integers(-8 if dtype.is_signed else 0, 9, count)
    return np.asarray(numbers / 4 if dtype.is_float else numbers).astype(dtype.numpy)


def expression_program(seed: int, loops: str) -> tuple[Program, Expr, list[Array]]:
    """``out[i]`` = a random expression of arrays of all types, the expression, and operands."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice(EXTENTS))
    sources = {dtype: buffer(dtype.value, n, dtype=dtype) for dtype in TYPES}
    out = buffer("out", n, dtype=TYPES[seed % len(TYPES)])
    made: list[Expr] = []

    def body(*variables: Expr) -> Stmt:
        i = variables[-1]
        loads = {dtype: at(source, i) for dtype, source in sources.items()}
        made.append(RandomExpression(rng, loads).value(out.dtype, 4))
        return put(out, (i,), made[-1])

    source = program(nest(loops.format(n), body), list(sources.values()), [out])
    return source, made[-1], [operands(dtype, n, rng) for dtype in TYPES]


# 409 takes the size of a constant int64.
@pytest.mark.parametrize("seed", [*range(80), 409])
def test_compiled_expressions_equal_the_interpreter(seed: int) -> None:
    source, value, arrays = expression_program(seed, LOOPS[seed % len(LOOPS)])
    verify(source)
    out = source.params[-1].buffer
    want, got = empty(out.shape, out.dtype), empty(out.shape, out.dtype)
    run_program(source, [*arrays, want])
    Compiled(source)(*arrays, got)
    found, exact = got.astype(np.float64), want.astype(np.float64)
    slack = tolerance(value) * np.abs(exact).max(initial=1.0) if out.dtype.is_float else 0.0
    np.testing.assert_allclose(found, exact, rtol=0, atol=slack)
