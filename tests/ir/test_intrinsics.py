"""Declared instructions: found by name, once, and expanded only on operands that fit."""

from __future__ import annotations

import pytest

from ansorpy.errors import AnsorpyError, LoweringError, UsageError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, const
from ansorpy.ir.intrinsics import Intrinsic, declare, expand, intrinsic, operand_tensors
from ansorpy.ir.loops import Buffer, For, Instruction, Scope, Store, walk_stmts
from ansorpy.ir.tensor import compute, placeholder

NAME = "vnni.dot_16x4"
ZERO = const(0)
Operand = tuple[Buffer, tuple[Expr, ...]]


def operand(dtype: DType, *shape: int) -> Operand:
    return Buffer("t", shape, dtype, Scope.GLOBAL), (ZERO,) * len(shape)


ACC, A, B = operand(DType.INT32, 6, 16), operand(DType.UINT8, 4), operand(DType.INT8, 2, 16, 4)


def test_operands_are_the_output_and_what_it_reads_in_order() -> None:
    pattern = intrinsic(NAME).pattern
    assert [tensor.name for tensor in operand_tensors(pattern)] == ["dot_16x4", "a", "b"]
    x, y = placeholder((8,), name="x"), placeholder((8,), name="y")
    again = compute((8,), lambda i: y[i] * x[i] + y[i], name="z")
    assert operand_tensors(again) == (again, y, x)


def test_the_expansion_is_the_pattern_on_the_operands() -> None:
    *fors, store = walk_stmts(expand(Instruction(NAME, (ACC, A, B))))
    assert [s.extent for s in fors if isinstance(s, For)] == [16, 4] and len(fors) == 2
    assert isinstance(store, Store) and store.buffer is ACC[0] and len(store.indices) == 2


@pytest.mark.parametrize(
    ("name", "operands", "error", "message"),
    [
        ("hlt", (ACC, A, B), UsageError, 'there is no instruction "hlt"'),
        (NAME, (ACC, A), LoweringError, f"{NAME} takes 3 operands, got 2"),
        (NAME, (ACC, ACC, B), LoweringError, "t, int32 of 2 dimensions, cannot be operand a"),
        (NAME, (ACC, A, operand(DType.INT8, 64)), LoweringError, "cannot be operand b"),
    ],
)
def test_what_cannot_be_expanded_is_refused(
    name: str, operands: tuple[Operand, ...], error: type[AnsorpyError], message: str
) -> None:
    with pytest.raises(error, match=message):
        expand(Instruction(name, operands))


def test_a_name_is_declared_once() -> None:
    known = intrinsic(NAME)
    assert declare(known) is known
    with pytest.raises(UsageError, match=f'an instruction named "{NAME}" is already declared'):
        declare(Intrinsic(NAME, known.pattern))
