"""Whatever a program computes of mixed element types, the machine and the interpreter agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ansorpy.ir.analysis.magnitude import magnitude_of
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, Load, walk
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.loops import Program, Stmt
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.ir.verify import verify
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put
from tests.codegen.random_expressions import TYPES, RandomExpression

EXTENTS = (1, 3, 7, 13, 17, 31, 33, 67)
LOOPS = ("s1 v{}", "v{}", "s{}", "u{}", "p{}")


class OfTensors(Rewriter):
    """Reads tensors at an axis instead of buffers of the same names."""

    def __init__(self, tensors: Mapping[str, Tensor], axis: Expr) -> None:
        super().__init__()
        self.tensors, self.axis = tensors, axis

    def leave(self, e: Expr) -> Expr:
        return Load(self.tensors[e.source.name], (self.axis,)) if isinstance(e, Load) else e


def slack(value: Expr, arrays: Sequence[Array]) -> Array:
    """By how much two computations of *value* may differ, for each element of *arrays*.

    It is a rounding to the narrowest type inside, of a number of the element's magnitude.
    """
    given = {dtype.value: array for dtype, array in zip(TYPES, arrays, strict=True)}
    shape = arrays[0].shape
    if not value.dtype.is_float:
        return np.zeros(shape)
    rounding = max(e.dtype.epsilon for e in walk(value) if e.dtype.is_float)
    tensors = {dtype.value: placeholder(shape, dtype, name=dtype.value) for dtype in TYPES}
    out = compute(shape, lambda i: OfTensors(tensors, i).expr(value), name="out")
    dag, _ = magnitude_of(out)
    data = {op.name: given[op.name] for op in dag.args}
    return rounding * run_dag(dag, data, dtype=DType.FLOAT64)[0]


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
    assert np.isclose(found, exact, rtol=0, atol=slack(value, arrays), equal_nan=True).all()
