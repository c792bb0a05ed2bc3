"""Booleans: what is defined on them, computed alike everywhere, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.errors import LoweringError, UsageError
from ansorpy.ir import builders
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Expr, ReduceKind
from ansorpy.ir.interpret.program import run_program
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.ir.verify import verify
from tests.codegen.programs import Compiled, at, buffer, empty, nest, program, put, random

REFUSED: list[Callable[[Expr, Expr], Expr]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
    lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a**b,
]  # fmt: skip
ARITHMETIC = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.FLOORDIV,
              BinaryOp.FLOORMOD, BinaryOp.POW)  # fmt: skip


@pytest.mark.parametrize("made", REFUSED)
def test_there_is_no_arithmetic_of_booleans(made: Callable[[Expr, Expr], Expr]) -> None:
    a = placeholder((4,), DType.BOOL, name="a")
    with pytest.raises(UsageError, match=r"of bool values is not defined[^&]*with & and \|"):
        compute((4,), lambda i: made(a[i], a[i]), name="b")


@pytest.mark.parametrize("kind", ["sum", "prod"])
def test_booleans_are_not_summed(kind: str) -> None:
    a, k = placeholder((4,), DType.BOOL, name="a"), reduce_axis(4, name="k")
    with pytest.raises(UsageError, match=f"{kind} of bool values is not defined"):
        compute((1,), lambda i: getattr(builders, kind)(a[k], k), name="b")


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.value)
def test_a_program_with_arithmetic_of_booleans_is_refused(op: BinaryOp) -> None:
    a, out = (buffer(name, 4, dtype=DType.BOOL) for name in ("a", "out"))
    body = nest("s4", lambda i: put(out, (i,), Binary(op, at(a, i), at(a, i))))
    with pytest.raises(LoweringError, match="of bool values is not defined"):
        verify(program(body, [a], [out]))


@pytest.mark.parametrize("kind", [ReduceKind.SUM, ReduceKind.PROD], ids=lambda k: k.value)
def test_a_program_that_sums_booleans_is_refused(kind: ReduceKind) -> None:
    a, out = buffer("a", 4, dtype=DType.BOOL), buffer("out", 1, dtype=DType.BOOL)
    body = nest("s4", lambda i: put(out, (0,), at(a, i), kind))
    with pytest.raises(LoweringError, match=f"{kind.value} of bool values is not defined"):
        verify(program(body, [a], [out]))


@pytest.mark.parametrize("n", [1, 7, 16, 45])
@pytest.mark.parametrize("loop", ["s", "v", "u"])
@pytest.mark.parametrize("kind", [ReduceKind.MAX, ReduceKind.MIN], ids=lambda k: k.value)
def test_whether_one_or_all_hold(kind: ReduceKind, loop: str, n: int) -> None:
    a, out = buffer("a", 8, n, dtype=DType.BOOL), buffer("out", 8, dtype=DType.BOOL)
    body = nest(f"s8 {loop}{n}", lambda i, j: put(out, (i,), at(a, i, j), kind))
    source = program(body, [a], [out])
    verify(source)
    values = random((8, n), DType.BOOL)
    values[:2], values[2:4] = False, True
    got = np.arange(8) % 2 == 0
    combine = np.logical_or if kind is ReduceKind.MAX else np.logical_and
    want = combine(got, combine.reduce(values, axis=1))
    Compiled(source)(values, got)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", [BinaryOp.AND, BinaryOp.OR, BinaryOp.MIN, BinaryOp.MAX])
@pytest.mark.parametrize("loop", ["s", "v"])
def test_pairs_of_booleans(op: BinaryOp, loop: str) -> None:
    a, b, out = (buffer(name, 21, dtype=DType.BOOL) for name in ("a", "b", "out"))
    body = nest(f"{loop}21", lambda i: put(out, (i,), Binary(op, at(a, i), at(b, i))))
    source = program(body, [a, b], [out])
    verify(source)
    arrays = [random((21,), DType.BOOL, seed) for seed in (0, 1)]
    want, got = empty((21,), DType.BOOL), empty((21,), DType.BOOL)
    run_program(source, [*arrays, want])
    Compiled(source)(*arrays, got)
    np.testing.assert_array_equal(got, want)
